"""One whole job, cancelled or failing at each of its points in turn: whatever the point, nothing is left behind."""

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from tests.timeline import settle

from .bench import Boom, add, array, assert_held, boom, captured, code_of, held

if TYPE_CHECKING:
    from collections.abc import Callable


class Job:
    """Capture, replay, update, synchronize, destroy: `point` is awaited between any two calls."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.dev = dev
        self.s, self.side, self.third = dev.stream(), dev.stream(), dev.stream()
        self.x, self.y = array(dev), array(dev)

    async def run(self, point: Callable[[str], Any]) -> None:
        graph = await self.capture(point)
        try:
            await point("captured")
            await graph.replay(self.s)
            await point("replayed")
            async with graph.update(self.group, on=self.third) as u:
                await point("updating")
                u.launch(add, self.x, 2.0)
                await point("updated")
            await self.third.synchronize()
            run = graph.launch(self.s)
            await point("launched")
            self.side.wait(self.s.record())
            await run
            await self.side.synchronize(60_000)
            await point("synchronized")
        finally:
            await self.s.synchronize()
            await graph.close()

    async def capture(self, point: Callable[[str], Any]) -> aclrt.Graph:
        s, side, x, y = self.s, self.side, self.x, self.y
        async with aclrt.capture(s, name="job") as graph:
            await point("begun")
            s.launch(add, x, 1.0)
            await point("one task")
            async with s.fork(side) as (b,):
                await point("forked")
                b.launch(add, y, 1.0)
                await point("forked, one task")
            await point("joined")
            with s.task_group() as self.group:
                await point("group")
                s.launch(add, x, 1.0)
                await point("group, one task")
            await point("group ended")
            yes, no = graph.if_else(graph.condition(default=1))
            await point("branches made")
            async with yes as body:
                await point("branch")
                body.launch(add, x, 1.0)
                async with body.fork(self.third) as (c,):
                    await point("branch, forked")
                    c.launch(add, y, 1.0)
                inner = graph.condition(default=0, on=body)
                async with graph.while_(inner, on=body) as loop:
                    await point("branch in a branch")
                    loop.launch(add, x, 1.0)
                await point("branch, with a branch")
            await point("branch ended")
            async with no as body:
                await point("second branch")
            await point("second branch ended")
        await point("capture ended")
        return graph


POINTS: list[str] = []


async def collect() -> None:
    async def note(name: str) -> None:
        POINTS.append(name)

    async with aclrt.open_device() as dev:
        await Job(dev).run(note)


asyncio.run(collect())
assert len(POINTS) == len(set(POINTS)) > 20


async def check(dev: aclrt.Device, job: Job, before: dict[str, int]) -> None:
    """Nothing captured, nothing lost, and the job can be done."""
    await dev.synchronize()
    assert not captured(dev)
    assert not any(stream.group_status for stream in dev.context.streams)
    assert not any(stream.update_sink for stream in dev.context.streams)
    assert_held(dev, before)
    job.x.assign(0)

    async def on(name: str) -> None:
        await asyncio.sleep(0)

    await job.run(on)
    assert job.x.numpy()[0] == 3 + 4


async def warmed(dev: aclrt.Device) -> tuple[Job, dict[str, int]]:
    job = Job(dev)

    async def on(name: str) -> None: ...

    await job.run(on)
    await dev.synchronize()
    return job, held(dev)


@pytest.mark.parametrize("chip", ["v100", "v200"])
@pytest.mark.parametrize("name", POINTS)
async def test_an_exception_at(chip: str, name: str) -> None:
    error = Boom(name)

    async def fail(at: str) -> None:
        await asyncio.sleep(0)
        if at == name:
            raise error

    async with aclrt.open_device(chip=chip) as dev:
        job, before = await warmed(dev)
        with pytest.raises(Boom) as caught:
            await job.run(fail)
        assert caught.value is error
        assert caught.value.__cause__ is None
        await check_after(dev, job, before, name)


async def check_after(dev: aclrt.Device, job: Job, before: dict[str, int], name: str) -> None:
    if name == "capture ended":  # the graph was made, and lost by the job itself
        for model in list(dev.npu.models()):
            await acl.aclmdlRIDestroy(model)  # type: ignore[arg-type]
    await check(dev, job, before)


@pytest.mark.parametrize("name", POINTS)
async def test_a_cancellation_at(name: str) -> None:
    async def stop(at: str) -> None:
        if at == name:
            task.cancel()
        await asyncio.sleep(0)

    async with aclrt.open_device() as dev:
        job, before = await warmed(dev)
        task = asyncio.create_task(job.run(stop))
        await asyncio.wait([task])
        assert task.cancelled()
        await check_after(dev, job, before, name)


async def test_a_cancellation_after_any_number_of_passes_of_the_loop() -> None:
    async def on(name: str) -> None:
        await asyncio.sleep(0)

    async with aclrt.open_device() as dev:
        job, before = await warmed(dev)
        for passes in range(1000):
            task = asyncio.create_task(job.run(on))
            for _ in range(passes):
                await asyncio.sleep(0)
            if task.done():
                break
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            for model in list(dev.npu.models()):
                await acl.aclmdlRIDestroy(model)  # type: ignore[arg-type]
            await dev.synchronize()
            assert not captured(dev)
        assert passes > len(POINTS)
        await task
        await check(dev, job, before)


async def test_two_captures_one_cancelled() -> None:
    """On streams of their own, in tasks of their own: the other goes on as if nothing had been."""
    async with aclrt.open_device() as dev:
        jobs = [Job(dev), Job(dev)]

        async def on(name: str) -> None:
            await asyncio.sleep(0)

        tasks = [asyncio.create_task(job.run(on)) for job in jobs]
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(captured(dev)) >= 2
        tasks[0].cancel()
        await asyncio.wait(tasks)
        assert tasks[0].cancelled()
        tasks[1].result()
        assert jobs[1].x.numpy()[0] == 3 + 4


async def test_a_child_task_that_outlives_the_capture() -> None:
    """It has a copy of the context; the capture is not its own, and the stream is free again."""
    async with aclrt.open_device() as dev:
        s, x, go = dev.stream(), array(dev), asyncio.Event()

        async def child() -> None:
            await go.wait()
            s.launch(add, x, 1.0)
            await s.synchronize()

        async with aclrt.capture(s) as graph:
            task = asyncio.create_task(child())
            s.launch(add, x, 10.0)
        go.set()
        await task
        assert x.numpy()[0] == 1
        await graph.replay(s)
        assert x.numpy()[0] == 11


# --- leaving the device ----------------------------------------------------------------------------------------------


def parked(dev: aclrt.Device) -> None:
    """A stream that waits for what never comes, an open capture, and a graph that is running."""
    s, never, capturing = dev.stream(), dev.event(external=True), dev.stream()
    s.wait(never)
    s.launch(add, array(dev), 1.0)
    acl.aclrtSetCurrentContext(dev.context)
    acl.aclmdlRICaptureBegin(capturing, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
    capturing.launch(add, array(dev), 1.0)


def failing(dev: aclrt.Device) -> None:
    dev.stream().launch(boom, array(dev))


@pytest.mark.parametrize("clock", ["wall", "virtual"])
@pytest.mark.parametrize("left", [parked, failing])
@pytest.mark.parametrize("error", [Boom("mine"), KeyboardInterrupt("mine"), asyncio.CancelledError("mine")], ids=repr)
async def test_leaving_by_exception_masks_nothing(left: Any, error: BaseException, clock: Any) -> None:
    async def job() -> None:
        async with aclrt.open_device(clock=clock) as dev:
            left(dev)
            await settle()
            raise error

    with pytest.raises(type(error)) as caught:
        await job()
    assert caught.value is error
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    async with aclrt.open_device() as dev:
        assert dev.used_bytes == 0


@pytest.mark.parametrize("clock", ["wall", "virtual"])
async def test_leaving_normally_stops_what_is_parked(clock: Any) -> None:
    async with aclrt.open_device(clock=clock) as dev:
        parked(dev)
        s, x = dev.stream(), array(dev)
        s.launch(add, x, 1.0)
        ran = x.data
    assert ran[0] == 1  # what could run ran
    assert dev.used_bytes == 0


async def test_cancelled_while_leaving() -> None:
    async def job() -> None:
        async with aclrt.open_device() as dev:
            devices.append(dev)
            dev.stream().launch(add, array(dev), 1.0)
            dev.stream().launch(boom, array(dev))
            asyncio.get_running_loop().call_soon(task.cancel)

    devices: list[aclrt.Device] = []
    task = asyncio.create_task(job())
    await asyncio.wait([task])
    assert task.cancelled()
    assert devices[0].npu.closed
    async with aclrt.open_device() as dev:
        assert dev.used_bytes == 0


async def test_two_devices_the_inner_one_fails() -> None:
    async def job() -> None:
        async with aclrt.open_device(0) as outer, aclrt.open_device(1) as inner:
            parked(outer)
            parked(inner)
            raise Boom

    with pytest.raises(Boom):
        await job()


# --- failures nobody was told of -------------------------------------------------------------------------------------


async def left_untold(act: Callable[[aclrt.Device], Any]) -> list[str]:
    """The warnings a device gives when it closes after `act`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        async with aclrt.open_device() as dev:
            await act(dev)
    assert all(warning.category is aclrt.UnobservedErrorWarning for warning in caught)
    return [str(warning.message) for warning in caught]


async def test_a_dropped_failure_is_told_once() -> None:
    async def eager(dev: aclrt.Device) -> None:
        dev.stream().launch(boom, array(dev))

    async def dropped(dev: aclrt.Device) -> None:
        s, x = dev.stream(), array(dev)
        async with aclrt.capture(s) as graph:
            s.launch(boom, x)
        graph.launch(s)
        await settle()

    async def with_its_stream(dev: aclrt.Device) -> None:
        s = dev.stream()
        s.launch(boom, array(dev))
        await acl.aclrtDestroyStream(s)

    for act in (eager, dropped, with_its_stream):
        texts = await left_untold(act)
        assert len(texts) == 1
        assert "boom" in texts[0]
        assert "no such luck" in texts[0]
        assert "test_cancelled_anywhere.py:" in texts[0]


async def test_a_failure_somebody_was_told_is_not_told_again() -> None:
    async def synchronized(dev: aclrt.Device) -> None:
        s = dev.stream()
        s.launch(boom, array(dev))
        assert await code_of(s.synchronize()) == 507035

    async def awaited(dev: aclrt.Device) -> None:
        s, x = dev.stream(), array(dev)
        async with aclrt.capture(s) as graph:
            s.launch(boom, x)
        assert await code_of(graph.replay(s)) == 507011  # the stream keeps it; whoever awaited knows

    async def asked_for(dev: aclrt.Device) -> None:
        s, gate = dev.stream(), dev.array(np.zeros(1, "i8"))
        acl.aclrtValueWait(gate, 1, acl.ACL_VALUE_WAIT_EQ, s)
        await acl.aclrtStreamAbort(s)

    for act in (synchronized, awaited, asked_for):
        assert await left_untold(act) == []
