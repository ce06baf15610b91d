"""What users report, class D: update, external event and replay out of step. A test for each scenario."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from hw.ts.policy import SeededRandom
from tests.timeline import settle

from .updating import add

if TYPE_CHECKING:
    from collections.abc import Sequence

CHIPS = ["v100", "v200"]


class Prefer:
    """A schedule by rank: the first of `sqs` that is ready runs, one task at a time; those not named come last."""

    slice_tasks = 1

    def __init__(self) -> None:
        self.sqs: list[int] = []

    def choose(self, ready: Sequence[int]) -> int:
        ranks = [self.sqs.index(sq) if sq in self.sqs else len(self.sqs) for sq in ready]
        return ranks.index(min(ranks))


async def signalled(dev: aclrt.Device) -> tuple[aclrt.Graph, Any, aclrt.Stream, aclrt.Stream, aclrt.DeviceArray]:
    """A graph of wait(X), reset(X), x += 1."""
    s, u, x, event = dev.stream(), dev.stream(), dev.array(np.zeros(1, np.float32)), dev.event(external=True)
    async with aclrt.capture(s) as graph:
        s.wait(event)
        s.reset(event)
        s.launch(add, x, 1.0)
    return graph, event, s, u, x


async def two_steps(dev: aclrt.Device, *, fenced: bool, before: Any = None) -> float:
    """Two replays, each released by a record from the update stream; `fenced` synchronises before the second record."""
    graph, event, s, u, x = await signalled(dev)
    if before is not None:
        before(s, u)
    for step in range(2):
        graph.launch(s)
        if step and fenced:
            await wait_for(lambda: x.numpy()[0] == 1)
        u.record(event)
    await s.synchronize()
    return float(x.numpy()[0])


async def wait_for(condition: Any) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")


@pytest.mark.parametrize("chip", CHIPS)
async def test_D1_a_fast_host_loses_a_signal(chip: str) -> None:
    """The second record comes before the reset of the first replay, which wipes it: the second replay hangs."""
    policy = Prefer()
    async with aclrt.open_device(0, chip=chip, clock="virtual", policy=policy) as dev:

        def host_is_fast(s: aclrt.Stream, u: aclrt.Stream) -> None:
            policy.sqs = [u.sq, s.sq]

        with pytest.raises(aclrt.DeadlockError) as caught:
            await two_steps(dev, fenced=False, before=host_is_fast)
        assert caught.value.code == 107020
        assert not isinstance(caught.value, TimeoutError)
        assert "event" in str(caught.value)  # the story: who waits, and that nothing queued records it


@pytest.mark.parametrize("chip", CHIPS)
async def test_D1_the_fenced_order_passes_under_the_same_policy(chip: str) -> None:
    policy = Prefer()
    async with aclrt.open_device(0, chip=chip, clock="virtual", policy=policy) as dev:

        def host_is_fast(s: aclrt.Stream, u: aclrt.Stream) -> None:
            policy.sqs = [u.sq, s.sq]

        assert await two_steps(dev, fenced=True, before=host_is_fast) == 2


async def test_D1_a_slow_host_passes_unfenced() -> None:
    policy = Prefer()
    async with aclrt.open_device(0, clock="virtual", policy=policy) as dev:

        def host_is_slow(s: aclrt.Stream, u: aclrt.Stream) -> None:
            policy.sqs = [s.sq, *range(dev.npu.spec.max_sqs)]  # graphs first, the update stream last

        assert await two_steps(dev, fenced=False, before=host_is_slow) == 2


@pytest.mark.parametrize("seed", range(8))
async def test_D1_is_the_same_again_with_the_same_seed(seed: int) -> None:
    async def outcome() -> str:
        async with aclrt.open_device(0, clock="virtual", policy=SeededRandom(seed)) as dev:
            try:
                return f"{await two_steps(dev, fenced=False)}"
            except aclrt.DeadlockError as error:
                return str(error).split(" at /")[0]

    first, second = await outcome(), await outcome()
    assert first == second


@pytest.mark.parametrize("chip", CHIPS)
async def test_D1_a_time_out_tells_the_same_story(chip: str) -> None:
    policy = Prefer()
    async with aclrt.open_device(0, chip=chip, clock="virtual", policy=policy) as dev:
        graph, event, s, u, x = await signalled(dev)
        policy.sqs = [u.sq, s.sq]
        for _ in range(2):
            graph.launch(s)
            u.record(event)
        with pytest.raises(TimeoutError) as caught:
            await s.synchronize(timeout_ms=100)
        assert caught.value.code == 507046  # type: ignore[attr-defined]
        assert "waits for event" in str(caught.value)
        assert x.numpy()[0] == 1
        u.record(event)  # a third signal sets it right
        await s.synchronize()
        assert x.numpy()[0] == 2


async def test_D4_replay_first_and_then_the_signal_is_fine() -> None:
    async with aclrt.open_device(0) as dev:
        graph, event, s, u, x = await signalled(dev)
        for _ in range(3):
            run = graph.launch(s)
            await settle()
            assert not run.done
            u.record(event)
            await run
        assert x.numpy()[0] == 3


async def test_D6_a_wait_in_front_of_its_own_record_is_a_certain_dead_lock() -> None:
    async with aclrt.open_device(0, clock="virtual") as dev:
        lane, x, event = dev.stream(), dev.array(np.zeros(1, np.float32)), dev.event(external=True)
        lane.wait(event)
        lane.launch(add, x, 1.0)
        lane.record(event)  # queued behind the wait: one lane for the encoder, the replay and the update
        with pytest.raises(aclrt.DeadlockError) as caught:
            await lane.synchronize()
        assert f"stream {lane.id}" in str(caught.value)


async def test_D6_a_lane_of_its_own_sets_the_update_free() -> None:
    async with aclrt.open_device(0, clock="virtual") as dev:
        lane, own, x, event = dev.stream(), dev.stream(), dev.array(np.zeros(1, np.float32)), dev.event(external=True)
        async with aclrt.capture(lane) as graph:
            lane.wait(event)
            lane.reset(event)
            with lane.task_group() as group:
                lane.launch(add, x, 1.0)
        run = graph.launch(lane)
        async with graph.update(group, on=own) as u:
            u.launch(add, x, 5.0)
        own.record(event)
        await run
        assert x.numpy()[0] == 5
        run = graph.launch(lane)
        async with graph.update(group, on=lane) as u:  # behind the replay that waits for it
            u.launch(add, x, 7.0)
        lane.record(event)
        with pytest.raises(aclrt.DeadlockError):
            await run


async def test_D9_the_stuck_report_names_who_waits_and_for_what() -> None:
    async with aclrt.open_device(0) as dev:
        graph, event, s, u, x = await signalled(dev)
        run = graph.launch(s)
        await settle()
        story = dev.explain()
        assert f"stream {graph.streams[0].id}" in story
        assert "test_reports_d.py" in story
        u.record(event)
        await run
        assert x.numpy()[0] == 1
