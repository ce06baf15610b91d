"""One seed, one schedule: traces compared byte for byte, twice, and over both event loops."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
import uvloop

from hw.chips import CondType
from hw.driver import RoundRobin, Scripted, SeededRandom
from hw.observe import ObserverBase
from tests.hw.rig import K, Rig
from tests.hw.test_ts_branch import WHILE, Cond, count_down, finish, root_id


class Tape(ObserverBase):
    """Everything an observer hears, as text, with the device time."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.lines = rig, []  # type: tuple[Rig, list[str]]

    def _say(self, *words: object) -> None:
        now = self.rig.driver.clock.now_ns() if self.rig.driver.clock.virtual else ""
        self.lines.append(" ".join(map(str, (now, *words))))

    def task_start(self, sq: int, slot: int, sqe: Any) -> None:
        self._say("start", sq, slot, sqe)

    def task_end(self, sq: int, slot: int, sqe: Any, status: int) -> None:
        self._say("end", sq, slot, status)

    def parked(self, sq: int, reason: tuple[Any, ...]) -> None:
        self._say("parked", sq, reason)

    def woken(self, sq: int) -> None:
        self._say("woken", sq)

    def model_start(self, model: int, sq: int) -> None:
        self._say("model start", model, sq)

    def model_end(self, model: int, status: int) -> None:
        self._say("model end", model, status)


async def scenario(**options: Any) -> tuple[list[str], list[Any], list[str]]:
    """Three streams that hand over by events, a loop, a failing task, two executes and eager work, all at once."""
    rig = Rig(**options)
    tape = Tape(rig)
    rig.driver.observe(tape)
    a, b, root = rig.sq(), rig.sq(), root_id(rig)
    cond = Cond(rig, root)
    turns = rig.driver.view(cond.cell, 1, "i8")
    cond.branch([rig.say("turn", cost_ns=300), count_down(rig, cond.cell, cost_ns=10)])
    record, wait = rig.sqe(K.EVENT_RECORD, event_id=1), rig.sqe(K.EVENT_WAIT, event_id=1)
    arm = rig.kernel(lambda: turns.fill(3))
    graph = finish(rig, root, [arm, *cond.tasks(CondType(WHILE)), rig.say("after")])
    streams = [[rig.say((n, k), cost_ns=100 * n + 7 * k) for k in range(4)] for n in range(3)]
    first = [*streams[0], wait, rig.sqe(K.EVENT_RESET, event_id=1)]
    wide = rig.model(first, streams[1], [*streams[2], record], heads=3)
    for sq in (a, b):
        for model in (graph, wide):
            position = rig.execute(sq, model)
        rig.submit(sq, rig.say("eager"), rig.boom())
        position = rig.submit(sq, rig.sqe(K.NOTIFY_WAIT, notify_id=9, timeout_ms=1))
    rig.driver.notify_set(9)
    for sq in (a, b):
        await rig.until(sq, position)
    log = [repr(c) for c in rig.log]
    rig.driver.close()
    return tape.lines, rig.ran, log


def run(loop: str, **options: Any) -> tuple[list[str], list[Any], list[str]]:
    if loop == "uvloop":
        return uvloop.run(scenario(**options))
    return asyncio.run(scenario(**options))


@pytest.mark.parametrize("seed", [None, 1, 2, 77])
def test_one_seed_gives_one_trace_on_every_loop(seed: int | None) -> None:
    def policy() -> SeededRandom | RoundRobin:
        return RoundRobin() if seed is None else SeededRandom(seed)

    first = run("asyncio", clock="virtual", policy=policy())
    assert run("asyncio", clock="virtual", policy=policy()) == first
    assert run("uvloop", clock="virtual", policy=policy()) == first
    assert len(first[0]) > 100


def test_seeds_differ_and_a_script_repeats_one() -> None:
    traces = {tuple(run("asyncio", clock="virtual", policy=SeededRandom(seed))[0]) for seed in range(5)}
    assert len(traces) > 1
    policy = SeededRandom(3)
    first = run("asyncio", clock="virtual", policy=policy)
    script = Scripted(policy.taken)
    assert run("asyncio", clock="virtual", policy=script) == first
    assert script.taken == policy.taken


def test_a_policy_steers_the_wall_clock_too() -> None:
    first = run("asyncio", policy=SeededRandom(5))
    again = run("uvloop", policy=SeededRandom(5))
    assert [line for line in first[0] if "eager" not in line] == [line for line in again[0] if "eager" not in line]
    assert first[1] == again[1]


async def test_every_schedule_of_unordered_streams_can_be_had() -> None:
    seen = set()
    for seed in range(40):
        rig = Rig(policy=SeededRandom(seed))
        sqs = [rig.sq() for _ in range(3)]
        for n, sq in enumerate(sqs):
            rig.submit(sq, rig.say(n))
        for sq in sqs:
            await rig.until(sq, 1)
        seen.add(tuple(rig.ran))
        rig.driver.close()
    assert len(seen) == 6


async def test_observers_come_and_go_while_work_is_parked() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    tape = Tape(rig)
    gate = rig.sqe(K.EVENT_WAIT, event_id=1)
    model = rig.model([rig.say(1), gate, rig.say(2), rig.sqe(K.EVENT_WAIT, event_id=2), rig.say(3)])
    rig.submit(sq, rig.say(0))
    position = rig.execute(sq, model)
    await rig.settle()
    assert tape.lines == []
    d.observe(tape)
    d.event_set(1)
    await rig.settle()
    assert any(f"parked {model.sqs[0]} ('event', 2)" in line for line in tape.lines)
    d.unobserve(tape)
    heard = len(tape.lines)
    d.event_set(2)
    await rig.until(sq, position)
    assert rig.ran == [0, 1, 2, 3]
    assert len(tape.lines) <= heard + 4  # what it was in the middle of when it was taken off
    d.close()


async def test_the_result_does_not_depend_on_how_it_is_run() -> None:
    results = []
    for options in ({}, {"clock": "virtual"}, {"policy": SeededRandom(4)}):
        rig = Rig(**options)
        sq = rig.sq()
        x = rig.driver.view(rig.driver.malloc(256), 64, np.float32)
        x[:] = np.arange(64)
        tasks = [rig.kernel(op, x, np.float32(3), x) for op in (np.add, np.multiply, np.subtract) for _ in range(5)]
        model = rig.model(tasks)
        for _ in range(3):
            await rig.until(sq, rig.execute(sq, model))
        results.append(x.tobytes())
        rig.driver.close()
    assert len(set(results)) == 1
