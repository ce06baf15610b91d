"""What users report, class H: other host threads (asyncio tasks) during a capture. A test for each scenario."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from tests.robust.bench import add, array, captured, code_of, refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2


async def elsewhere(call: Callable[[], Awaitable[Any]]) -> Any:
    """The call, made by another host thread."""

    async def thread() -> Any:
        return await call()

    return await asyncio.create_task(thread())


@pytest.mark.parametrize(
    ("mode", "own", "other"), [(GLOBAL, 107030, 107030), (THREAD_LOCAL, 107030, 0), (RELAXED, 0, 0)]
)
async def test_H1_who_may_copy(dev: aclrt.Device, mode: int, own: int, other: int) -> None:
    s, x, host = dev.stream(), array(dev), np.ones(8, np.float32)

    def copy() -> Awaitable[None]:
        return acl.aclrtMemcpy(x, 32, host, 32, acl.ACL_MEMCPY_HOST_TO_DEVICE)

    async def relaxed_copy() -> None:
        assert acl.aclmdlRICaptureThreadExchangeMode(RELAXED) == GLOBAL
        await copy()

    acl.aclmdlRICaptureBegin(s, mode)
    s.launch(add, x, 1.0)
    assert await code_of(copy()) == own
    assert await elsewhere(lambda: code_of(copy())) == other
    assert await elsewhere(lambda: code_of(relaxed_copy())) == 0
    graph = acl.aclmdlRICaptureEnd(s)
    await acl.aclmdlRIExecuteAsync(graph, s)


async def test_H1_the_refusal_names_the_capture_of_the_other_thread(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    acl.aclmdlRICaptureBegin(s, GLOBAL)

    async def copy() -> None:
        with refused(107030, f"stream {s.id} (GLOBAL", "exchange mode GLOBAL"):
            x.assign(0)

    await elsewhere(copy)
    acl.aclmdlRICaptureEnd(s)


async def test_H2_a_watchdog_polls_events(dev: aclrt.Device) -> None:
    """An event recorded before is harmless; one recorded inside is refused; neither hurts the capture."""
    s, other, x, before, inside = dev.stream(), dev.stream(), array(dev), dev.event(), dev.event()
    other.record(before)
    await other.synchronize()
    acl.aclmdlRICaptureBegin(s, GLOBAL)
    s.launch(add, x, 1.0)
    s.record(inside)

    async def poll() -> tuple[int, int]:
        with refused(107028, "open capture"):
            acl.aclrtQueryEventStatus(inside)
        with refused(107028):
            await inside.synchronize()
        return int(acl.aclrtQueryEventStatus(before)), await code_of(before.synchronize())

    assert await elsewhere(poll) == (1, 0)
    graph = acl.aclmdlRICaptureEnd(s)
    await acl.aclmdlRIExecuteAsync(graph, s)
    assert x.numpy()[0] == 1


@pytest.mark.parametrize(
    ("mode", "stopped"),
    [
        (GLOBAL, {"copy", "pageable async copy", "array", "numpy"}),
        (THREAD_LOCAL, set()),
        (RELAXED, set()),
    ],
)
async def test_H4_what_a_daemon_may_do_on_a_side_stream(dev: aclrt.Device, mode: int, stopped: set[str]) -> None:
    """The same calls from another thread under each mode: what THREAD_LOCAL would have spared."""
    s, side, x, y, host = dev.stream(), dev.stream(), array(dev), array(dev), np.ones(8, np.float32)
    pinned = acl.aclrtMallocHost(32)

    async def synchronize() -> None:
        await side.synchronize()

    async def free() -> None:
        acl.aclrtFree(acl.aclrtMalloc(32))

    calls: dict[str, Callable[[], Any]] = {
        "launch": lambda: side.launch(add, y, 1.0),
        "copy": lambda: acl.aclrtMemcpy(y, 32, host, 32, acl.ACL_MEMCPY_HOST_TO_DEVICE),
        "pinned async copy": lambda: side.copy(y, pinned),
        "pageable async copy": lambda: side.copy(y, host),
        "array": lambda: dev.array(host),
        "numpy": y.numpy,
        "synchronize": synchronize,
        "malloc": free,
        "record": side.record,
        "stream": dev.stream,
    }

    async def daemon() -> set[str]:
        refused_ = set()
        for name, call in calls.items():
            try:
                made = call()
                if asyncio.iscoroutine(made):
                    await made
            except aclrt.CaptureError:
                refused_.add(name)
        return refused_

    acl.aclmdlRICaptureBegin(s, mode)
    s.launch(add, x, 1.0)
    assert await elsewhere(daemon) == stopped
    await acl.aclmdlRIExecuteAsync(acl.aclmdlRICaptureEnd(s), s)
    assert x.numpy()[0] == 1


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
async def test_H5_another_threads_device_sync_in_every_mode(dev: aclrt.Device, mode: int) -> None:
    s, x = dev.stream(), array(dev)
    acl.aclmdlRICaptureBegin(s, mode)
    s.launch(add, x, 1.0)
    assert await elsewhere(lambda: code_of(acl.aclrtSynchronizeDevice())) == 107027
    await acl.aclmdlRIExecuteAsync(acl.aclmdlRICaptureEnd(s), s)
    await acl.aclrtSynchronizeDevice()


async def test_H6_two_threads_capture_at_once(dev: aclrt.Device) -> None:
    async def job(number: int) -> float:
        s, side, x = dev.stream(), dev.stream(), array(dev)
        async with aclrt.capture(s) as graph:
            for _ in range(number):
                await asyncio.sleep(0)  # let the others in between any two calls
                async with s.fork(side) as (b,):
                    await asyncio.sleep(0)
                    b.launch(add, x, 1.0)
        await graph.replay(s)
        return float(x.numpy()[0])

    assert await asyncio.gather(*(job(number) for number in range(1, 9))) == [*range(1, 9)]
    assert not captured(dev)


async def test_H7_a_helper_task_has_the_context_of_its_parent(dev: aclrt.Device) -> None:
    """No unwanted context on device 0: a child task inherits the current one, and may set its own."""
    async with aclrt.open_device(1) as second:
        mine = acl.aclrtGetCurrentContext()
        assert mine is second.context

        async def helper() -> Any:
            inherited = acl.aclrtGetCurrentContext()
            acl.aclrtSetCurrentContext(dev.context)
            return inherited, acl.aclrtGetDevice()

        inherited, index = await asyncio.create_task(helper())
        assert inherited is mine
        assert index == 0
        assert acl.aclrtGetCurrentContext() is mine  # what the child set is its own
        assert acl.aclrtGetDevice() == 1
        assert len(dev.npu.contexts) == len(second.npu.contexts) == 1
