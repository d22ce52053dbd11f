"""Hidden parameters of replicas: what a step of their engine takes and draws. Invented, and told to no one but tests.

What is modelled: an engine that batches continuously and reads prompts in chunks. A step takes a fixed time, and more
for each prompt token that it reads, each sequence that it goes on with, and each token of their contexts. A replica
draws its idle power without a step, a higher one within steps, and some energy for each token on top.

What is not: preemption (a request is let in once its whole context fits), prefix caches, speculation, attention of a
prompt's tokens to each other (a prompt token costs the same wherever it stands), clocks and temperatures, start-up,
failures, noise of sensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.simulator.arrays import Floats, Ints

GIB = 1024**3


@dataclass(frozen=True)
class ReplicaType:
    """One replica: its engine on `gpus` like cards. Times in whole nanoseconds, so that sums of them are exact.

    step_ns: of any step; prompt_token_ns, sequence_ns, context_token_ns: more for each prompt token, decoding sequence
    and token of its context. kv_tokens: what the cache holds. idle_w, stepping_w: of all its GPUs, without and within
    steps; prompt_token_mj, generated_token_mj: more for each token.
    """

    card: str
    gpus: int
    memory_bytes: int
    step_ns: int
    prompt_token_ns: int
    sequence_ns: int
    context_token_ns: int
    max_sequences: int
    max_batched_tokens: int
    kv_tokens: int
    idle_w: float = 0.0
    stepping_w: float = 0.0
    prompt_token_mj: float = 0.0
    generated_token_mj: float = 0.0

    def __post_init__(self) -> None:
        if self.max_batched_tokens <= self.max_sequences:
            raise ValueError(f"{self.card}: max_batched_tokens above max_sequences, or prompts may never be read")
        if self.step_ns <= 0:
            raise ValueError(f"{self.card}: step_ns above 0, or time may stand still")

    def energy_mj(self, elapsed_s: Floats, stepping_s: Floats, prompt_tokens: Ints, generated_tokens: Ints) -> Floats:
        """What all its GPUs take in `elapsed_s`, of which it spends `stepping_s` in steps."""
        power_mj = 1000 * (self.idle_w * elapsed_s + (self.stepping_w - self.idle_w) * stepping_s)
        total: Floats = power_mj + self.prompt_token_mj * prompt_tokens + self.generated_token_mj * generated_tokens
        return total


# A model of 70 B parameters in 8 bits on three kinds of replica.
H100 = ReplicaType(
    card="NVIDIA H100 80GB HBM3", gpus=2, memory_bytes=80 * GIB, step_ns=16_300_000, prompt_token_ns=193_000,
    sequence_ns=31_000, context_token_ns=43, max_sequences=64, max_batched_tokens=2048, kv_tokens=380_000, idle_w=236.0,
    stepping_w=640.0, prompt_token_mj=95.0, generated_token_mj=130.0,
)  # fmt: skip
L40S = ReplicaType(
    card="NVIDIA L40S", gpus=4, memory_bytes=48 * GIB, step_ns=33_700_000, prompt_token_ns=307_000,
    sequence_ns=52_000, context_token_ns=88, max_sequences=64, max_batched_tokens=1024, kv_tokens=510_000, idle_w=344.0,
    stepping_w=760.0, prompt_token_mj=140.0, generated_token_mj=210.0,
)  # fmt: skip
RTX_4090 = ReplicaType(
    card="NVIDIA GeForce RTX 4090", gpus=4, memory_bytes=24 * GIB, step_ns=36_900_000, prompt_token_ns=561_000,
    sequence_ns=64_000, context_token_ns=79, max_sequences=48, max_batched_tokens=512, kv_tokens=95_000, idle_w=132.0,
    stepping_w=810.0, prompt_token_mj=235.0, generated_token_mj=290.0,
)  # fmt: skip
