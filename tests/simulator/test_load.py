"""The load: a day's wave, the weekend, and peers that step in."""

from __future__ import annotations

import numpy as np

from app.simulator.days import minutes_of
from app.simulator.fleet import CHAT_4090, CHAT_H100, OFFICE_H100, demo_world
from app.simulator.load import level, offered_per_s
from tests.simulator.wires import DAY_S, WEDNESDAY_S, WORLD, node_named, of_the_day

WEDNESDAY = WEDNESDAY_S // DAY_S
SATURDAY = WEDNESDAY + 3
# All ripples together: 0.04 + 0.06 + 0.07.
RIPPLE = 0.17


def test_a_working_day_peaks_in_the_european_afternoon() -> None:
    wednesday = level(1, CHAT_H100, minutes_of(WEDNESDAY))
    peak = int(wednesday.argmax()) / 60
    assert 11 < peak < 17
    assert 1 - RIPPLE <= wednesday.max() <= 1 + RIPPLE
    # at 02:00, twelve hours from the peak, 0.12 of it is left
    assert 0.12 * (1 - RIPPLE) <= wednesday[120] <= 0.12 * (1 + RIPPLE)
    # smooth: no minute is further than 1% of the peak from its neighbour
    assert np.abs(np.diff(wednesday)).max() < 0.011


def test_a_weekend_asks_for_less() -> None:
    saturday, wednesday = (level(1, CHAT_H100, minutes_of(day)).mean() for day in (SATURDAY, WEDNESDAY))
    assert 0.45 < saturday / wednesday < 0.65


def test_nobody_works_with_the_office_model_at_night() -> None:
    office = level(1, OFFICE_H100, minutes_of(WEDNESDAY))
    assert office[120] == 0.0
    assert office.max() > 0.75


def test_the_same_seed_asks_the_same() -> None:
    minutes = minutes_of(WEDNESDAY)
    assert np.array_equal(level(1, CHAT_4090, minutes), level(1, CHAT_4090, minutes))
    assert not np.array_equal(level(1, CHAT_4090, minutes), level(2, CHAT_4090, minutes))
    part = minutes[700:710]
    assert np.array_equal(level(1, CHAT_4090, part), level(1, CHAT_4090, minutes)[700:710])


def test_peers_take_what_an_absent_one_would_get() -> None:
    world = demo_world(1)
    gone = node_named(world, "gamer-5").replicas[0]
    peers = world.peers(CHAT_4090)
    minutes = np.array([of_the_day(10, 19) // 60, of_the_day(10, 20) // 60])
    offered = {peer.node: offered_per_s(world, peer, minutes) for peer in peers}
    assert offered[gone.node][1] == 0.0
    before, after = (sum(float(one[at]) for one in offered.values()) for at in (0, 1))
    wanted = CHAT_4090.peak_per_s * level(1, CHAT_4090, minutes) * sum(peer.share for peer in peers)
    assert np.allclose((before, after), wanted)


def test_the_slow_replica_gets_fewer_requests() -> None:
    minutes = minutes_of(WEDNESDAY)
    slow, peer = (offered_per_s(WORLD, node_named(WORLD, name).replicas[0], minutes) for name in ("gamer-2", "gamer-1"))
    assert np.allclose(slow, 0.5 * peer)
