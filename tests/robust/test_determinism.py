"""One seed gives one run: every start, end, park and wake-up, the time and the result, on every event loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from hw.driver import RoundRobin, Scripted, SeededRandom
from hw.observe import ObserverBase

from .bench import add


@aclrt.kernel(cost_ns=5_000_000)
def slow(x: aclrt.InOut[np.float32]) -> None:
    x += 1


class Trace(ObserverBase):
    """Everything the task scheduler did, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[Any, ...]] = []

    def task_start(self, sq: int, slot: int, sqe: Any) -> None:
        self.lines.append(("start", sq, slot, sqe.kind.name))

    def task_end(self, sq: int, slot: int, sqe: Any, status: int) -> None:
        self.lines.append(("end", sq, slot, status))

    def parked(self, sq: int, reason: tuple[Any, ...]) -> None:
        self.lines.append(("parked", sq, *reason[:1]))

    def woken(self, sq: int) -> None:
        self.lines.append(("woken", sq))


async def traced(policy: Any, clock: Any = "virtual") -> tuple[list[tuple[Any, ...]], int, bytes]:
    """A job of three streams, eager and replayed; its trace, its time, its result."""
    async with aclrt.open_device(clock=clock, policy=policy) as dev:
        trace = Trace()
        dev.npu.driver.observe(trace)
        s, sides, x = dev.stream(), (dev.stream(), dev.stream()), dev.array(np.zeros(8, "f4"))
        async with aclrt.capture(s) as graph:
            for round_ in range(3):
                s.launch(add, x, 1.0)
                async with s.fork(*sides) as forked:
                    for number, side in enumerate(forked):
                        side.launch(multiply, x, 1.0 + round_ + number)
                        side.launch(slow, x)
                        side.launch(add, x, 3.0)
        graph.launch(s)
        for side in sides:
            side.launch(multiply, x, 0.5)
            side.launch(slow, x)
        await graph.replay(s)
        await dev.synchronize()
        dev.npu.driver.unobserve(trace)
        return trace.lines, dev.now_ns() if clock == "virtual" else 0, x.numpy().tobytes()


@aclrt.kernel
def multiply(x: aclrt.InOut[np.float32], a: float) -> None:
    x *= a


@pytest.mark.parametrize("clock", ["virtual", "wall"])
async def test_one_seed_one_run(clock: Any) -> None:
    runs = {}
    for seed in range(8):
        runs[seed] = await traced(SeededRandom(seed), clock)
        assert await traced(SeededRandom(seed), clock) == runs[seed]
    assert len({tuple(lines) for lines, _, _ in runs.values()}) > 4  # and other seeds give other ones
    assert len({result for _, _, result in runs.values()}) > 1


async def test_the_choices_of_a_run_are_its_script() -> None:
    seeded = SeededRandom(7)
    first = await traced(seeded)
    assert await traced(Scripted(seeded.taken)) == first
    assert await traced(RoundRobin()) == await traced(None)


SEEN: dict[str, Any] = {}


async def test_the_same_run_on_every_loop() -> None:
    """This test runs once on each event loop; all of them see the same."""
    for seed in (None, 1, 2):
        found = await traced(SeededRandom(seed) if seed else None)
        assert SEEN.setdefault(str(seed), found) == found
