"""A long life: what is given out again, dropped elsewhere, used while it ends."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import aclrt
from aclrt import acl
from hw.driver import IdKind

from .bench import add, array, code_of, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def dev() -> AsyncIterator[aclrt.Device]:
    async with aclrt.open_device() as device:
        yield device


@aclrt.kernel
def plus(x: Any, k: Any) -> None:
    x += k


async def test_arguments_forget_images_that_are_gone(dev: aclrt.Device) -> None:
    """An entry given out again told an image of the same id, which had fewer slots, of a slot beyond its end."""
    s, x = dev.stream(), array(dev)
    table = dev.npu.driver._m.args
    for tasks in (100, 5, 60, 3, 90):
        async with aclrt.capture(s) as graph:
            for _ in range(tasks):
                s.launch(add, x, 1.0)
        await graph.replay(s)
        await graph.close()
    assert x.numpy()[0] == 258
    assert not table._many


async def test_frees_of_others_make_no_index_grow(dev: aclrt.Device) -> None:
    """The index by allocation kept a place for every launch that ever used a long-lived array."""
    s, x = dev.stream(), array(dev)
    table = dev.npu.driver._m.args
    for step in range(2_000):
        s.launch(plus, x, float(step))
        array(dev).free()
        if step % 4 == 3:
            await s.synchronize()
    assert max(map(len, table._by_base.values())) <= 2 * len(table.values) + 64
    s.launch(plus, x, -1.0)
    x.free()
    assert await code_of(s.synchronize()) == 507035


async def test_a_stream_is_used_while_it_is_destroyed(dev: aclrt.Device) -> None:
    """What was submitted meanwhile was dropped, and a capture begun meanwhile lost its stream."""
    s, side, x, gate = dev.stream(), dev.stream(), array(dev), dev.notify()
    s.wait(gate)
    ending = asyncio.create_task(acl.aclrtDestroyStream(s))
    await asyncio.sleep(0)
    side.record(gate)
    s.launch(add, x, 1.0)
    side.wait(s.record())
    side.launch(add, x, 1.0)
    await ending
    await side.synchronize()
    assert x.numpy()[0] == 2
    side.wait(gate)
    ending = asyncio.create_task(acl.aclrtDestroyStream(side))
    await asyncio.sleep(0)
    async with aclrt.capture(side) as graph:
        side.launch(add, x, 1.0)
        dev.default_stream.record(gate)
        with refused(107027):
            await ending
    await graph.replay(side)
    assert x.numpy()[0] == 3


async def test_an_event_dropped_on_another_thread(dev: aclrt.Device) -> None:
    """The collector may run on the worker thread of a kernel; ids are given back on the device's thread."""
    s = dev.stream()
    box = [s.record()]
    await s.synchronize()
    before = dev.npu.driver.held(IdKind.EVENT)
    await asyncio.to_thread(box.clear)
    await asyncio.sleep(0)
    assert dev.npu.driver.held(IdKind.EVENT) == before - 1


async def until_done(dev: aclrt.Device) -> None:
    while not dev.npu.driver.idle():  # noqa: ASYNC110 - nobody is told of the end of what nobody waits for
        await asyncio.sleep(0)


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_a_graph_outlives_the_stream_that_ran_it(chip: str) -> None:
    """Its host function's gate was cleared with the stream: the graph stood there for ever, and every later run too."""
    async with aclrt.open_device(chip=chip) as dev:
        s, other, x = dev.stream(), dev.stream(), array(dev)
        called: list[int] = []
        async with aclrt.capture(s) as graph:
            s.callback(lambda: called.append(1))
            s.launch(add, x, 1.0)
        for stop in (acl.aclrtDestroyStreamForce, acl.aclrtStreamAbort):
            run = graph.launch(s)
            await asyncio.sleep(0)  # it stands at the host function now
            ended = stop(s)
            if stop is acl.aclrtStreamAbort:
                await ended
            assert await code_of(run) == 107023
            await until_done(dev)
            s = dev.stream()
        await graph.replay(other)
        assert (len(called), x.numpy()[0]) == (3, 3)


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_a_run_behind_one_that_failed_keeps_its_host_functions(chip: str) -> None:
    """The end of the failed run was told behind the next one's call, which it then took for its own."""
    async with aclrt.open_device(chip=chip, on_execute_error="ready") as dev:
        s, other, x = dev.stream(), dev.stream(), array(dev)
        fails = [True, False, True, False]

        @aclrt.kernel
        def sometimes(x: Any) -> None:
            if fails.pop(0):
                raise ValueError

        async with aclrt.capture(s) as graph:
            s.launch(sometimes, x)
            s.callback(lambda: None)
            s.launch(add, x, 1.0)
        runs = [graph.launch(stream) for stream in (s, other, s, other)]
        assert sorted([await code_of(run) for run in runs]) == [0, 0, 507011, 507011]
        assert x.numpy()[0] == 2


async def test_the_failure_of_a_run_nobody_waits_for_is_not_kept(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)

    @aclrt.kernel
    def fails(x: Any) -> None:
        raise ValueError

    async with aclrt.capture(s) as graph:
        s.callback(lambda: None)
        s.launch(fails, x)
    graph.launch(s)
    await asyncio.sleep(0)
    acl.aclrtDestroyStreamForce(s)
    await until_done(dev)
    assert not len(dev.npu.driver._m.faults)


async def test_a_stream_ends_while_its_kernel_is_on_a_worker(dev: aclrt.Device) -> None:
    """Back from the worker, its SQ stood in the run queue when it was closed, and a dead coroutine was resumed."""
    began, go_on = threading.Event(), threading.Event()

    def heavy(x: Any) -> None:
        began.set()
        go_on.wait(5)

    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    kernel, x = aclrt.kernel(heavy, offload=True), array(dev)
    for passes in range(4):
        s, other = dev.stream(), dev.stream()
        began.clear()
        go_on.clear()
        s.launch(kernel, x)
        while not began.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0)
        go_on.set()
        dev.npu.driver._m.workers._pool.submit(int).result()  # type: ignore[union-attr]
        for _ in range(passes):
            await asyncio.sleep(0)
        acl.aclrtDestroyStreamForce(s)
        other.launch(add, x, 1.0)
        await other.synchronize()
    assert (x.numpy()[0], complaints) == (4, [])
