"""Cancelling a wait ends that wait only: device work goes on, other waiters are told, nothing is lost."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import anyio
import numpy as np
import pytest

import aclrt
from aclrt import acl
from tests.timeline import settle

from .bench import add, array, captured, code_of, held, refused, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class Gated:
    """A stream that stands at a gate, behind one launch and before another; a graph with the same inside."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.dev, self.s, self.other = dev, dev.stream(), dev.stream()
        self.x, self.gate = array(dev), dev.array(np.zeros(1, "i8"))
        self.event = dev.event()

    async def graph(self) -> aclrt.Graph:
        async with aclrt.capture(self.s) as graph:
            self.s.launch(add, self.x, 1.0)
            acl.aclrtValueWait(self.gate, 1, acl.ACL_VALUE_WAIT_EQ, self.s)
            self.s.launch(add, self.x, 10.0)
        self.model = graph
        return graph

    async def start(self) -> aclrt.Run:
        self.run = (await self.graph()).launch(self.s)
        self.s.record(self.event)
        await until(lambda: self.x.numpy()[0] == 1)
        return self.run

    def open(self) -> None:
        self.gate.assign(1)


@pytest.fixture
async def g() -> AsyncIterator[Gated]:
    async with aclrt.open_device() as dev:
        yield Gated(dev)


WAITS: dict[str, Callable[[Gated], Awaitable[Any]]] = {
    "run": lambda g: g.run,
    "synchronize": lambda g: g.s.synchronize(),
    "synchronize with timeout": lambda g: g.s.synchronize(60_000),
    "device": lambda g: g.dev.synchronize(),
    "event": lambda g: g.event.synchronize(),
    "event with timeout": lambda g: g.event.synchronize(60_000),
    "acl stream": lambda g: acl.aclrtSynchronizeStreamWithTimeout(g.s, 60_000),
    "acl device": lambda g: acl.aclrtSynchronizeDevice(),
    "acl event": lambda g: acl.aclrtSynchronizeEvent(g.event),
    "replay": lambda g: g.model.replay(g.s),
    "close": lambda g: g.model.close(),
    "destroy stream": lambda g: acl.aclrtDestroyStream(g.s),
}


async def wait_for_it(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


@pytest.mark.parametrize("what", WAITS)
async def test_the_wait_ends_the_device_goes_on(g: Gated, what: str) -> None:
    run = await g.start()
    before = held(g.dev)
    task = asyncio.create_task(wait_for_it(WAITS[what](g)))
    others = [asyncio.create_task(wait_for_it(WAITS[other](g))) for other in ("run", "run", "synchronize", "event")]
    await settle()
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not run.done
    assert g.s.alive
    assert g.model.alive
    assert not any(other.done() for other in others)
    g.open()
    await asyncio.gather(*others)
    await g.s.synchronize()
    assert g.x.numpy()[0] in (11, 22)  # 22: the replay that was cancelled had been enqueued, and ran
    after = held(g.dev)
    assert {name: after[name] for name in ("host waits", "parked", "marks", "failure takers", "EVENT")} == {
        "host waits": 0,
        "parked": 0,
        "marks": 0,
        "failure takers": 0,
        "EVENT": before["EVENT"],
    }


@pytest.mark.parametrize("what", WAITS)
async def test_cancelled_before_its_first_step(g: Gated, what: str) -> None:
    await g.start()
    awaitable = WAITS[what](g)
    task = asyncio.create_task(wait_for_it(awaitable))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if asyncio.iscoroutine(awaitable):
        awaitable.close()
    g.open()
    await g.s.synchronize()
    assert not g.dev.npu.waits


@pytest.mark.parametrize("what", ["run", "synchronize", "event"])
async def test_cancelled_in_the_very_pass_that_completes_it(g: Gated, what: str) -> None:
    """Whichever wins, the wait ends once, and whoever asks later is told the same."""
    await g.start()
    task = asyncio.create_task(wait_for_it(WAITS[what](g)))
    await settle()
    g.open()
    for _ in range(100):
        if g.run.done or task.done():
            break
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    await g.run
    await g.s.synchronize()
    assert g.x.numpy()[0] == 11


async def test_a_failure_stays_for_the_others(g: Gated) -> None:
    """Cancelling one of those who wait for a run that then fails: the other is told, and the next synchronize too."""
    run = await g.start()
    tasks = [asyncio.create_task(code_of(run)) for _ in range(3)]
    await settle()
    tasks[1].cancel()
    await settle()
    await g.model.abort()
    assert await tasks[0] == await tasks[2] == 507023
    assert tasks[1].cancelled()
    assert await code_of(g.s.synchronize()) == 507023
    assert await code_of(g.s.synchronize()) == 0


async def test_asyncio_timeout(g: Gated) -> None:
    run = await g.start()
    for wait in (g.s.synchronize, g.event.synchronize, lambda: wait_for_it(run)):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await wait()
    g.open()
    async with asyncio.timeout(60):
        await run


async def test_asyncio_timeout_around_a_capture(g: Gated) -> None:
    """It stays in the task, so it is the same host thread that begins and ends."""
    async with asyncio.timeout(60):
        async with aclrt.capture(g.s) as graph:
            g.s.launch(add, g.x, 1.0)
    await graph.replay(g.s)

    async def too_long() -> None:
        async with asyncio.timeout(0), aclrt.capture(g.s):
            g.s.launch(add, g.x, 1.0)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await too_long()
    assert not captured(g.dev)
    assert g.x.numpy()[0] == 1


async def test_wait_for_is_another_host_thread_on_3_11(g: Gated) -> None:
    acl.aclmdlRICaptureBegin(g.s, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
    g.s.launch(add, g.x, 1.0)
    model = acl.aclmdlRICaptureGetInfo(g.s).modelRI

    async def end() -> Any:
        return acl.aclmdlRICaptureEnd(g.s)

    if sys.version_info >= (3, 12):
        assert await asyncio.wait_for(end(), 60) is model
    else:
        with refused(107038, "another host thread"):
            await asyncio.wait_for(end(), 60)
    await acl.aclmdlRIDestroy(model)
    assert not captured(g.dev)


async def test_wait_for_around_a_whole_capture(g: Gated) -> None:
    async def capture() -> aclrt.Graph:
        async with aclrt.capture(g.s) as graph:
            g.s.launch(add, g.x, 1.0)
            await asyncio.sleep(0)
        return graph

    graph = await asyncio.wait_for(capture(), 60)
    await asyncio.wait_for(graph.replay(g.s), 60)
    assert g.x.numpy()[0] == 1


async def test_process_report_cancelled_loses_no_callback(g: Gated) -> None:
    done: list[int] = []
    me = aclrt.host_thread_id()
    acl.aclrtSubscribeReport(me, g.s)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await acl.aclrtProcessReport(-1)
    for number in range(3):
        acl.aclrtLaunchCallback(done.append, number, acl.ACL_CALLBACK_BLOCK, g.s)
    for _ in range(3):
        await acl.aclrtProcessReport(60_000)
    await g.s.synchronize()
    assert done == [0, 1, 2]
    acl.aclrtUnSubscribeReport(me, g.s)
    assert not g.dev.npu.waits


async def test_a_cancelled_scope_of_anyio(g: Gated) -> None:
    """Level-triggered: every await inside is cancelled again, also those of leaving."""
    run = await g.start()
    with anyio.move_on_after(0) as scope:
        await run
    assert scope.cancelled_caught
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with aclrt.capture(g.other) as graph:
            async with g.other.fork(g.dev.stream()) as (side,):
                side.launch(add, g.x, 1.0)
                async with graph.if_(graph.condition()) as body:
                    body.launch(add, g.x, 1.0)
                    await asyncio.sleep(0)
    assert scope.cancelled_caught
    assert not captured(g.dev)
    g.open()
    await run


async def test_a_task_group_that_fails_around_runs(g: Gated) -> None:
    run = await g.start()

    async def fail() -> None:
        await settle()
        raise LookupError("one of the group")

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait_for_it(run))
            group.create_task(g.s.synchronize())
            group.create_task(fail())

    with pytest.raises(ExceptionGroup) as caught:
        await together()
    assert caught.group_contains(LookupError)
    g.open()
    await run
    assert g.x.numpy()[0] == 11


async def test_destroy_is_refused_to_the_second_of_two(g: Gated) -> None:
    """Both wait for a running graph; one destroys it, the other is told."""
    await g.start()
    tasks = [asyncio.create_task(code_of(acl.aclmdlRIDestroy(g.model))) for _ in range(2)]
    await settle()
    g.open()
    assert sorted(await asyncio.gather(*tasks)) == [0, 107017]
    streams = [asyncio.create_task(code_of(acl.aclrtDestroyStream(g.s))) for _ in range(2)]
    assert sorted(await asyncio.gather(*streams)) in ([0, 0], [0, 107017])


# --- what ends a wait without being asked ----------------------------------------------------------------------------


@pytest.mark.parametrize("what", [name for name in WAITS if name not in ("close", "destroy stream", "replay")])
async def test_closing_the_device_ends_every_wait(what: str) -> None:
    async with aclrt.open_device() as dev:
        g = Gated(dev)
        await g.start()
        task = asyncio.create_task(code_of(WAITS[what](g)))
        await settle()
        assert not task.done()
    await settle()
    assert task.done()
    assert task.result() in (107023, 107002)
    assert not dev.npu.waits


async def test_closing_the_device_ends_a_wait_for_reports() -> None:
    async with aclrt.open_device() as dev:
        s = dev.stream()

        async def reports() -> None:
            acl.aclrtSubscribeReport(aclrt.host_thread_id(), s)
            await acl.aclrtProcessReport(-1)

        task = asyncio.create_task(reports())
        await settle()
    with refused(107002, "device 0 was closed"):
        await task


async def test_destroying_a_stream_by_force_ends_the_waits_for_it(g: Gated) -> None:
    await g.start()
    tasks = [asyncio.create_task(code_of(WAITS[what](g))) for what in ("run", "synchronize", "event", "acl device")]
    await settle()
    forced = acl.aclrtDestroyStreamForce(g.s)
    if forced is not None:
        await forced
    assert await asyncio.gather(*tasks) == [107023] * 4
    assert not g.dev.npu.waits
