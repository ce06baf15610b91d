"""Interleaved timing: every contender runs once per round, so that a slow moment of the machine hits all of them.

It compares contenders with a floor measured in the same round; it does not report one absolute number as truth.
"""

from __future__ import annotations

import gc
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

WARM_ROUNDS = 2


class Contender(NamedTuple):
    """Something to time: one call of `run` executes `tasks` tasks and has finished when it returns."""

    run: Callable[[], Awaitable[None]]
    tasks: int


class Cost(NamedTuple):
    """Cost of one contender: nanoseconds per task of each round, in order of the rounds."""

    rounds: tuple[float, ...]

    @property
    def ns(self) -> float:
        return statistics.median(self.rounds)

    def over(self, floor: Cost) -> float:
        """Median of the per-round ratios to `floor`, which steadies what a median of each alone would not."""
        return statistics.median(mine / its for mine, its in zip(self.rounds, floor.rounds, strict=True))


async def measure(contenders: Mapping[str, Contender], rounds: int) -> dict[str, Cost]:
    """Time all contenders `rounds` times, garbage collection off in the timed parts.

    Each contender runs once untimed first: what the collection and the contender before it left in the caches is
    theirs. The order turns by one each round.
    """
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    for number in range(WARM_ROUNDS + rounds):
        gc.collect()
        gc.disable()
        try:
            for name in order:
                await contenders[name].run()
                spent = await _ns_per_task(contenders[name])
                if number >= WARM_ROUNDS:
                    samples[name].append(spent)
        finally:
            gc.enable()
        order.append(order.pop(0))
    return {name: Cost(tuple(values)) for name, values in samples.items()}


async def _ns_per_task(contender: Contender) -> float:
    start = time.perf_counter_ns()
    await contender.run()
    return (time.perf_counter_ns() - start) / contender.tasks
