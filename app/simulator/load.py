"""How much is asked of each replica, minute by minute: a day's wave, a week's dip, ripples, and peers that step in."""

from __future__ import annotations

import numpy as np

from app.simulator.arrays import Floats, Ints, generator
from app.simulator.fleet import Pool, Replica, World
from app.simulator.recurring import DAY_MINUTES, MINUTE_S, covered_s

# Europe's afternoon, as UTC.
PEAK_HOUR = 14.0
NIGHT = 0.12
WEEKEND = 0.55
# Hours since Monday 00:00 UTC: the week's level falls from Friday evening to Saturday morning, and rises again.
_WEEK_HOURS = (6.0, 114.0, 126.0, 162.0)
_WEEK_LEVELS = (1.0, 1.0, WEEKEND, WEEKEND)
# 1970 began on a Thursday.
_MINUTES_SINCE_MONDAY = 3 * DAY_MINUTES
# Periods in minutes and amplitudes of the ripples: no two days are alike.
_RIPPLES = ((41.0, 0.04), (167.0, 0.06), (613.0, 0.07))


def level(seed: int, pool: Pool, minutes: Ints) -> Floats:
    """What is asked of a pool, about 1 at the peak of a working day."""
    hour = minutes % DAY_MINUTES / 60
    wave = NIGHT + (1 - NIGHT) * (0.5 + 0.5 * np.cos(2 * np.pi * (hour - PEAK_HOUR) / 24)) ** 1.5
    week_hour = (minutes + _MINUTES_SINCE_MONDAY) % (7 * DAY_MINUTES) / 60
    week = np.interp(week_hour, _WEEK_HOURS, _WEEK_LEVELS, period=7 * 24)
    phases = generator(seed, "ripples", pool.fleet, pool.model).uniform(0, 2 * np.pi, len(_RIPPLES))
    ripple = np.ones(len(minutes))
    for (period, amplitude), phase in zip(_RIPPLES, phases, strict=True):
        ripple += amplitude * np.sin(2 * np.pi * minutes / period + phase)
    asked = wave * week * ripple
    return np.maximum(asked - pool.closed_below, 0.0) / (1 - pool.closed_below)


def offered_per_s(world: World, replica: Replica, minutes: Ints) -> Floats:
    """Requests per second that are offered to a replica while it is up; what an absent peer would get is shared out."""
    peers = world.peers(replica.pool)
    answering = sum(peer.share * up_share(peer, minutes) for peer in peers)
    wanted = replica.pool.peak_per_s * level(world.seed, replica.pool, minutes) * sum(peer.share for peer in peers)
    offered = replica.share * wanted / np.maximum(answering, replica.share)
    return np.where(up_share(replica, minutes) > 0, offered, 0.0)


def up_share(replica: Replica, minutes: Ints) -> Floats:
    """Part of each minute in which the replica answers."""
    return 1.0 - covered_s(replica.down, minutes) / MINUTE_S
