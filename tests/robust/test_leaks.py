"""Memory, ids, SQs and the host's book-keeping are where they were, however often and however badly things ended."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .bench import Boom, add, array, assert_held, boom, captured, code_of, held, refused, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CHIPS = ["v100", "v200"]
CODES = {"streams": 207008, "sqs": 207005, "events": 207007, "notifies": 207009, "models": 207010}


class Bench:
    """Three streams, two arrays, a flag that gates graphs, and what can be done with them."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.dev = dev
        self.s, self.side, self.third = dev.stream(), dev.stream(), dev.stream()
        self.x, self.y = array(dev), array(dev)
        self.gate = dev.array(np.zeros(1, "i8"))

    async def capture(self) -> aclrt.Graph:
        """A graph with everything in it: a fork, a group, a condition with a branch, a host function, a copy."""
        s = self.s
        async with aclrt.capture(s) as graph:
            s.launch(add, self.x, 1.0)
            async with s.fork(self.side) as (b,):
                b.launch(add, self.y, 2.0)
            with s.task_group() as self.group:
                s.launch(add, self.y, 3.0)
            s.copy(self.x, self.y)
            s.callback(lambda: None)
            go = graph.condition(default=1)
            async with graph.if_(go) as body:
                body.launch(add, self.x, 5.0)
                async with body.fork(self.third) as (b,):
                    b.launch(add, self.y, 2.0)
        return graph

    async def gated(self) -> tuple[aclrt.Graph, aclrt.Run]:
        """A graph that runs and stands at its gate."""
        async with aclrt.capture(self.s) as graph:
            self.s.launch(add, self.x, 1.0)
            acl.aclrtValueWait(self.gate, 1, acl.ACL_VALUE_WAIT_EQ, self.s)
            self.s.launch(add, self.x, 1.0)
        run = graph.launch(self.s)
        await until(lambda: any(wait.what[:1] == ("value",) for wait in self.dev.npu.driver.waits()))
        return graph, run


async def steady(dev: aclrt.Device, act: Callable[[], Awaitable[Any]], times: int) -> None:
    """`act` leaves everything where it was, once it has been done once."""
    await act()
    gc.collect()
    before = held(dev)
    for _ in range(times):
        await act()
    assert not captured(dev)
    assert_held(dev, before)


@pytest.mark.parametrize("chip", CHIPS)
async def test_10_000_replays(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        b = Bench(dev)
        s = b.s
        async with aclrt.capture(s) as graph:
            s.launch(add, b.x, 1.0)
            async with s.fork(b.side) as (side,):
                side.launch(add, b.y, 2.0)
        await graph.replay(s)
        before = held(dev)
        for _ in range(5_000):
            await graph.replay(s)
        for _ in range(50):
            for _ in range(100):
                graph.launch(s)
            await s.synchronize()
        assert held(dev) == before
        assert b.x.numpy()[0] == 10_001
        assert b.y.numpy()[0] == 20_002


@pytest.mark.parametrize("chip", CHIPS)
async def test_1_000_captures_and_destroys(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        b = Bench(dev)

        async def act() -> None:
            graph = await b.capture()
            await graph.replay(b.s)
            await graph.close()

        await steady(dev, act, 500)

        async def never_run() -> None:
            await (await b.capture()).close()

        await steady(dev, never_run, 500)


@pytest.mark.parametrize("clock", ["wall", "virtual"])
async def test_closing_gives_back_what_was_never_destroyed(clock: Any) -> None:
    async with aclrt.open_device(clock=clock) as dev:
        for _ in range(20):
            b = Bench(dev)
            await (await b.capture()).replay(b.s)
            b.s.launch(add, b.x, 1.0)
            b.side.wait(b.s.record())
            b.side.callback(lambda: None)
    assert dev.used_bytes == 0
    assert not dev.npu.driver.waiting()
    assert not dev.npu.waits


# --- captures that end badly -----------------------------------------------------------------------------------------


async def unjoined(b: Bench) -> None:
    acl.aclmdlRICaptureBegin(b.s, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
    b.side.wait(b.s.record())
    b.side.launch(add, b.y, 1.0)
    with refused(107025, f"stream {b.side.id}"):
        acl.aclmdlRICaptureEnd(b.s)


async def conflict(b: Bench) -> None:
    for stream in (b.s, b.side):
        acl.aclmdlRICaptureBegin(stream, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
        stream.launch(add, b.x, 1.0)
    event = b.s.record()
    with refused(107032):
        b.side.wait(event)
    for stream in (b.s, b.side):
        with refused(507903):
            acl.aclmdlRICaptureEnd(stream)


async def outside(b: Bench) -> None:
    event = b.side.record()
    acl.aclmdlRICaptureBegin(b.s, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
    with refused(107024):
        b.s.wait(event)
    await acl.aclmdlRIDestroy(acl.aclmdlRICaptureEnd(b.s))  # refused only
    await b.side.synchronize()


async def default_stream(b: Bench) -> None:
    acl.aclmdlRICaptureBegin(b.s, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
    event = b.s.record()
    with refused(107031):
        b.dev.default_stream.wait(event)
    await acl.aclmdlRIDestroy(acl.aclmdlRICaptureEnd(b.s))  # 107031 does not invalidate


async def group_broken(b: Bench) -> None:
    acl.aclmdlRICaptureBegin(b.s, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
    acl.aclmdlRICaptureTaskGrpBegin(b.s)
    b.s.launch(add, b.x, 1.0)
    with refused(507009):
        b.s.copy(b.x, b.y)
    with refused(507009):
        acl.aclmdlRICaptureTaskGrpEnd(b.s)
    with refused(507903):
        acl.aclmdlRICaptureEnd(b.s)


async def branch_missing(b: Bench) -> None:
    acl.aclmdlRICaptureBegin(b.s, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
    handle = acl.aclmdlRICondHandleCreate(acl.aclmdlRICaptureGetInfo(b.s).modelRI, 1, 1)
    acl.aclmdlRIAddCondTask(acl.aclmdlRICondTaskParams(handle=handle, type=0, size=2), b.s)
    with refused(107045):
        acl.aclmdlRICaptureEnd(b.s)


async def branch_open(b: Bench) -> None:
    acl.aclmdlRICaptureBegin(b.s, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
    handle = acl.aclmdlRICondHandleCreate(acl.aclmdlRICaptureGetInfo(b.s).modelRI, 1, 1)
    (branch,) = acl.aclmdlRIAddCondTask(acl.aclmdlRICondTaskParams(handle=handle, type=0, size=1), b.s)
    acl.aclmdlRICaptureToModelRIBegin(b.side, branch, 1)
    b.side.launch(add, b.x, 1.0)
    with refused(107045):
        acl.aclmdlRICaptureEnd(b.s)
    with refused(507000):
        b.side.launch(add, b.x, 1.0)
    with refused(507000):
        acl.aclmdlRICaptureEnd(b.side)


async def wrong_thread(b: Bench) -> None:
    acl.aclmdlRICaptureBegin(b.s, acl.ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
    b.s.launch(add, b.x, 1.0)

    async def end() -> None:
        await acl.aclmdlRIDestroy(acl.aclmdlRICaptureEnd(b.s))  # RELAXED: any thread may

    await asyncio.create_task(end())


async def refused_begin(b: Bench) -> None:
    for stream, mode, code in ((b.dev.default_stream, 0, 207000), (b.s, 3, 107000)):
        with refused(code):
            acl.aclmdlRICaptureBegin(stream, mode)


async def raised(b: Bench) -> None:
    async def work() -> None:
        async with aclrt.capture(b.s) as graph:
            b.s.launch(add, b.x, 1.0)
            async with b.s.fork(b.side) as (side,):
                with side.task_group():
                    side.launch(add, b.y, 1.0)
                async with graph.if_(graph.condition(default=1)) as body:
                    body.launch(add, b.x, 1.0)
                    raise Boom

    with pytest.raises(Boom):
        await work()


async def cancelled(b: Bench) -> None:
    async def work() -> None:
        async with aclrt.capture(b.s):
            b.s.launch(add, b.x, 1.0)
            async with b.s.fork(b.side) as (side,):
                side.launch(add, b.y, 1.0)
                await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# --- runs that end badly ---------------------------------------------------------------------------------------------


async def failed_eager(b: Bench) -> None:
    for _ in range(3):
        b.s.launch(boom, b.x)
        b.s.launch(add, b.x, 1.0)
    assert await code_of(b.s.synchronize()) == 507035


async def failed_run(b: Bench) -> None:
    async with aclrt.capture(b.s) as graph:
        b.s.launch(add, b.x, 1.0)
        b.s.launch(boom, b.x)
        async with b.s.fork(b.side) as (side,):
            side.launch(add, b.y, 1.0)
    assert await code_of(graph.replay(b.s)) == 507011
    assert await code_of(b.s.synchronize()) == 507011
    assert await code_of(graph.close()) == 0


async def failed_branch(b: Bench) -> None:
    async with aclrt.capture(b.s) as graph:
        async with graph.if_(graph.condition(default=1)) as body:
            body.launch(boom, b.x)
    assert await code_of(graph.replay(b.s)) == 507011
    assert await code_of(b.s.synchronize()) == 507011
    await graph.close()


async def failed_host_function(b: Bench) -> None:
    def fn() -> None:
        raise Boom

    b.s.callback(fn)
    assert await code_of(b.s.synchronize()) == 507000
    async with aclrt.capture(b.s) as graph:
        b.s.callback(fn)
    assert await code_of(graph.replay(b.s)) == 507000
    assert await code_of(b.s.synchronize()) == 507000
    await graph.close()


async def aborted_run(b: Bench) -> None:
    graph, run = await b.gated()
    await graph.abort()
    assert await code_of(run) == 507023
    await code_of(b.s.synchronize())
    await graph.close()


async def aborted_stream(b: Bench) -> None:
    b.s.launch(add, b.x, 1.0)
    acl.aclrtValueWait(b.gate, 1, acl.ACL_VALUE_WAIT_EQ, b.s)
    b.s.launch(add, b.x, 2.0)  # one-shot arguments, never used
    b.side.wait(b.s.record())
    b.s.callback(lambda: None)
    await acl.aclrtStreamAbort(b.s)
    await acl.aclrtStreamAbort(b.side)
    for stream in (b.s, b.side):
        await code_of(stream.synchronize())


async def destroyed_stream(b: Bench) -> None:
    stream = b.dev.stream()
    graph = await b.capture()
    acl.aclrtValueWait(b.gate, 1, acl.ACL_VALUE_WAIT_EQ, stream)
    stream.launch(add, b.x, 3.0)
    run = graph.launch(stream)
    forced = acl.aclrtDestroyStreamForce(stream)
    if forced is not None:
        await forced
    assert await code_of(run) == 107023
    await graph.close()


async def forgotten(b: Bench) -> None:
    """Runs that nobody awaits, events that nobody keeps."""
    graph = await b.capture()
    for _ in range(3):
        graph.launch(b.s)
        b.side.wait(b.s.record())
    await b.s.synchronize()
    await b.side.synchronize()
    await graph.close()


ENDINGS = {
    ending.__name__: ending
    for ending in (
        unjoined,
        conflict,
        outside,
        default_stream,
        group_broken,
        branch_missing,
        branch_open,
        wrong_thread,
        refused_begin,
        raised,
        cancelled,
        failed_eager,
        failed_run,
        failed_branch,
        failed_host_function,
        aborted_run,
        aborted_stream,
        destroyed_stream,
        forgotten,
    )
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("ending", ENDINGS)
async def test_what_ends_badly_leaves_nothing(chip: str, ending: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        b = Bench(dev)
        await steady(dev, lambda: ENDINGS[ending](b), 20)
        graph = await b.capture()  # and everything still works
        b.x.assign(0)
        await graph.replay(b.s)
        assert b.x.numpy().any()


@pytest.mark.parametrize("left", list(CODES))
async def test_a_capture_that_runs_out_gives_everything_back(left: str) -> None:
    """Whatever the limit, the call that meets it is refused with its code, and all it had taken comes back."""

    async def act(b: Bench) -> None:
        await (await b.capture()).replay(b.s)

    met = set()
    for limit in range(4 if left == "streams" else 1, 14):
        async with aclrt.open_device(limits={f"max_{left}": limit}) as dev:
            b = Bench(dev)
            before = held(dev)
            met.add(await code_of(act(b)))
            for model in list(dev.npu.models()):
                await acl.aclmdlRIDestroy(model)  # type: ignore[arg-type]
            assert not captured(dev)
            after = held(dev)
            spare = len(dev.context.spare_streams)  # the stream a branch was captured on is kept for the next
            assert after["STREAM"] - spare == before["STREAM"]
            for name in ("SQ", "EVENT", "NOTIFY", "MODEL", "bytes", "images", "models", "device models"):
                assert after[name] == before[name], (name, limit)
    assert met == {0, CODES[left]}
