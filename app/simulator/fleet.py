"""What is simulated: two fleets with their cards, replicas and events. Everything here is made up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from app.simulator.recurring import DAY_S, MINUTE_S, Recurring

HOUR_S = 3600
METRICS_PORT = 8000
GIB = 2**30

MODEL_14B = "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"
MODEL_32B = "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"


@dataclass(frozen=True)
class Card:
    """A kind of GPU. Its powers are assumptions, not measurements.

    bare_w: without an engine. idle_w: with an engine that has nothing to do. loaded_w: at the replica's best
    throughput, well below the limit: token generation waits for memory, not for arithmetic.
    """

    name: str
    memory_bytes: int
    limit_w: int
    bare_w: float
    idle_w: float
    loaded_w: float
    clock_mhz: int
    hot_clock_mhz: int
    memory_clock_mhz: int


# Limits and memory as the driver tells them; 4090s that share a model over PCIe spend much of their time on the bus.
H100 = Card("NVIDIA H100 PCIe", 85_520_809_984, 350, 51.0, 84.0, 285.0, 1755, 1140, 1593)
RTX_4090 = Card("NVIDIA GeForce RTX 4090", 25_757_220_864, 450, 21.0, 56.0, 252.0, 2730, 1905, 10501)


@dataclass(frozen=True)
class Pool:
    """Replicas of one fleet and model that share its requests.

    peak_per_s: offered to a replica at the peak of a working day. closed_below: part of the peak under which nobody
    asks at all, as of a tool of office hours.
    """

    fleet: str
    model: str
    peak_per_s: float
    closed_below: float = 0.0


@dataclass(frozen=True, eq=False)
class Replica:
    """An engine with its GPUs (positions on its node).

    kv_tokens: tokens that its cache holds. share: of the requests that a peer gets. ttft_factor, itl_factor: against
    the study's. down: when it does not answer, beyond its node's absence. hot: when its cards slow down.
    """

    node: str
    port: int
    card: Card
    gpus: tuple[int, ...]
    pool: Pool
    kv_tokens: int
    share: float = 1.0
    ttft_factor: float = 1.0
    itl_factor: float = 1.0
    away: Recurring | None = None
    restart: Recurring | None = None
    hot: Recurring | None = None

    @property
    def url(self) -> str:
        return f"http://{self.node}:{self.port}/metrics"

    @cached_property
    def down(self) -> tuple[Recurring, ...]:
        """When it does not answer."""
        return tuple(event for event in (self.away, self.restart) if event is not None)


@dataclass(frozen=True, eq=False)
class SimulatedNode:
    """away: when the machine is off, so that nothing is heard of it and it boots again."""

    name: str
    card: Card
    replicas: tuple[Replica, ...]
    gpu_count: int = 2
    away: Recurring | None = None

    def uuid(self, gpu: int) -> str:
        return f"simulated-{self.name}-{gpu}"

    def replica_of(self, gpu: int) -> Replica | None:
        """The replica on that GPU; None where there is no engine."""
        return next((replica for replica in self.replicas if gpu in replica.gpus), None)


@dataclass(frozen=True, eq=False)
class World:
    """seed: another one gives other noise; fleets and events stay."""

    seed: int
    nodes: tuple[SimulatedNode, ...]

    @cached_property
    def replicas(self) -> tuple[Replica, ...]:
        return tuple(replica for node in self.nodes for replica in node.replicas)

    def peers(self, pool: Pool) -> list[Replica]:
        return [replica for replica in self.replicas if replica.pool == pool]


CHAT_H100 = Pool("h100", MODEL_14B, peak_per_s=10.0)
OFFICE_H100 = Pool("h100", MODEL_32B, peak_per_s=8.0, closed_below=0.35)
CHAT_4090 = Pool("rtx4090", MODEL_14B, peak_per_s=6.0)

# What is left of the cards' memory for the cache, in tokens of that model.
KV_14B_H100, KV_32B_H100, KV_14B_4090 = 215_000, 24_000, 69_000

# All times UTC.
THROTTLES_IN_THE_AFTERNOON = Recurring(DAY_S, 13 * HOUR_S, HOUR_S)
THROTTLES_NOW_AND_THEN = Recurring(15 * MINUTE_S, 6 * MINUTE_S, 3 * MINUTE_S)
RESTARTS_AT_HALF_PAST_NINE = Recurring(DAY_S, 9 * HOUR_S + 30 * MINUTE_S, 90)
LEAVES_FOR_TWENTY_MINUTES = Recurring(DAY_S, 10 * HOUR_S + 20 * MINUTE_S, 20 * MINUTE_S)
LEAVES_FOR_THE_NIGHT = Recurring(DAY_S, 22 * HOUR_S + 30 * MINUTE_S, 5 * HOUR_S + 40 * MINUTE_S)


def demo_world(seed: int) -> World:
    """Four nodes of two H100s with an engine on each but one, and six pairs of 4090s with one engine a pair."""
    return World(seed, (*_h100_nodes(), *_gamer_nodes()))


def _h100_nodes() -> list[SimulatedNode]:
    def chat(node: str, gpu: int, *, hot: Recurring | None = None, restart: Recurring | None = None) -> Replica:
        return Replica(node, METRICS_PORT + gpu, H100, (gpu,), CHAT_H100, KV_14B_H100, hot=hot, restart=restart)

    def office(node: str, gpu: int) -> Replica:
        return Replica(node, METRICS_PORT + gpu, H100, (gpu,), OFFICE_H100, KV_32B_H100)

    replicas = {
        "h100-1": (chat("h100-1", 0), chat("h100-1", 1)),
        "h100-2": (chat("h100-2", 0, hot=THROTTLES_IN_THE_AFTERNOON), chat("h100-2", 1)),
        "h100-3": (chat("h100-3", 0, restart=RESTARTS_AT_HALF_PAST_NINE), office("h100-3", 1)),
        "h100-4": (office("h100-4", 0),),
    }
    return [SimulatedNode(name, H100, on_it) for name, on_it in replicas.items()]


def _gamer_nodes() -> list[SimulatedNode]:
    def pair(
        number: int, *, slow: bool = False, hot: Recurring | None = None, away: Recurring | None = None
    ) -> SimulatedNode:
        # The slow one sits in a narrow slot: its cards wait for each other over the bus.
        share, ttft_factor, itl_factor = (0.5, 3.0, 1.6) if slow else (1.0, 1.0, 1.0)
        replica = Replica(
            f"gamer-{number}", METRICS_PORT, RTX_4090, (0, 1), CHAT_4090, KV_14B_4090,
            share=share, ttft_factor=ttft_factor, itl_factor=itl_factor, away=away, hot=hot,
        )  # fmt: skip
        return SimulatedNode(replica.node, RTX_4090, (replica,), away=away)

    return [
        pair(1),
        pair(2, slow=True),
        pair(3),
        pair(4, hot=THROTTLES_NOW_AND_THEN),
        pair(5, away=LEAVES_FOR_TWENTY_MINUTES),
        pair(6, away=LEAVES_FOR_THE_NIGHT),
    ]
