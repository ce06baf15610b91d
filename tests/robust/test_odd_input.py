"""Odd input, each refused in one line: what kernels and host functions may raise, memory and events of two devices,
sizes, wrong loops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .bench import add, array, code_of, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


@pytest.fixture
async def dev() -> AsyncIterator[aclrt.Device]:
    async with aclrt.open_device() as device:
        yield device


class Odd(BaseException):
    """Neither an Exception nor an interrupt, as pytest's own outcomes are."""


@aclrt.kernel
def plus(x: Any, k: Any) -> None:
    x += k


def raising(error: BaseException, **options: Any) -> aclrt.Kernel:
    def fn(x: aclrt.InOut[np.float32]) -> None:
        raise error

    return aclrt.kernel(fn, **options)


# --- what a kernel raises --------------------------------------------------------------------------------------------

ERRORS = [GeneratorExit("g"), Odd("o"), asyncio.CancelledError("c"), StopIteration("s")]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("clock", ["wall", "virtual"])
@pytest.mark.parametrize("offload", [False, True])
async def test_whatever_a_kernel_raises_fails_that_kernel(error: BaseException, clock: Any, offload: bool) -> None:
    """GeneratorExit closed the coroutine of the SQ, and a later collection of its frames crashed CPython 3.11.7."""
    kernel = raising(error, offload=offload)
    async with aclrt.open_device(clock=clock) as dev:
        s, side, x = dev.stream(), dev.stream(), array(dev)
        s.launch(kernel, x)
        s.launch(add, x, 1.0)
        assert await code_of(s.synchronize()) == 507035
        for streams in (1, 2):
            async with aclrt.capture(s) as graph:
                if streams == 2:
                    async with s.fork(side):
                        side.launch(add, x, 1.0)
                s.launch(kernel, x)
            assert await code_of(graph.replay(s)) == 507011
            assert await code_of(s.synchronize()) == 507011
        s.launch(add, x, 1.0)
        await s.synchronize()
        assert x.numpy()[0] == 3


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt("stop"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("way", ["eager", "worker", "graph", "merged", "host function", "virtual"])
def test_an_interrupt_reaches_the_loops_caller_and_the_device_goes_on(interrupt: BaseException, way: str) -> None:
    kernel = raising(interrupt, offload=way == "worker")
    opened: list[Any] = []

    async def begin() -> None:
        manager = aclrt.open_device(clock="virtual" if way == "virtual" else "wall")
        dev = await manager.__aenter__()
        s, side, x = dev.stream(), dev.stream(), array(dev)
        opened.extend((manager, s, x))
        if way in ("graph", "merged"):
            async with aclrt.capture(s) as graph:
                if way == "merged":
                    async with s.fork(side):
                        side.launch(add, x, 0.0)
                s.launch(kernel, x)
            graph.launch(s)
        elif way == "host function":
            s.callback(lambda: kernel(x.data))
        else:
            s.launch(kernel, x)
        s.launch(add, x, 1.0)
        await s.synchronize()

    async def go_on() -> None:
        manager, s, x = opened
        await code_of(s.synchronize())
        s.launch(add, x, 1.0)
        await s.synchronize()
        assert x.numpy()[0] == 2
        await manager.__aexit__(None, None, None)

    loop = asyncio.new_event_loop()
    try:
        task = loop.create_task(begin())
        with pytest.raises(type(interrupt)):
            loop.run_until_complete(task)
        assert loop.run_until_complete(code_of(task)) in (507035, 507011, 507000)
        loop.run_until_complete(go_on())
    finally:
        loop.close()


@pytest.mark.parametrize("wrong", [None, 3, "fn"])
async def test_a_host_function_is_a_plain_function(dev: aclrt.Device, wrong: Any) -> None:
    async def never_awaited() -> None: ...

    s = dev.stream()
    for fn in (wrong, never_awaited):
        with pytest.raises(TypeError, match="not a plain function"):
            s.callback(fn)
    with pytest.raises(TypeError, match="aclrtLaunchHostFunc"):
        acl.aclrtLaunchHostFunc(s, never_awaited, None)


async def test_a_failed_host_function_is_named(dev: aclrt.Device) -> None:
    def my_callback() -> None:
        raise ValueError("mine")

    s = dev.stream()
    s.callback(my_callback)
    with refused(507000, "my_callback", "mine"):
        await s.synchronize()


# --- launches --------------------------------------------------------------------------------------------------------


async def test_arguments_that_cannot_be_hashed(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev, 2)
    for _ in range(3):
        s.launch(plus, x, [1.0, 2.0])
    await s.synchronize()
    assert x.numpy().tolist() == [3, 6]


@pytest.mark.parametrize(("blocks", "kind"), [(0, aclrt.AclError), (1 << 32, aclrt.AclError), (1.5, TypeError)])
async def test_blocks_out_of_range_leave_the_stream_usable(dev: aclrt.Device, blocks: Any, kind: type) -> None:
    s, x = dev.stream(), array(dev)
    with pytest.raises(kind, match="blocks"):
        s.launch(add, x, 1.0, blocks=blocks)
    async with aclrt.capture(s):
        with pytest.raises(kind, match="blocks"):
            s.launch(add, x, 1.0, blocks=blocks)
    s.launch(add, x, 1.0, blocks=7)
    await s.synchronize()
    assert x.numpy()[0] == 1


@pytest.mark.parametrize("cost", [-1, 1.5, "much"])
def test_a_cost_is_whole_nanoseconds(cost: Any) -> None:
    with pytest.raises(ValueError, match="cost_ns"):
        aclrt.kernel(cost_ns=cost)(lambda x: None)


async def test_timeouts_of_waits(dev: aclrt.Device) -> None:
    s, notify, event = dev.stream(), dev.notify(), dev.event()
    for what in (notify, event):
        with refused(107000, "timeout"):
            s.wait(what, timeout_ms=-1)
        with pytest.raises(TypeError):
            s.wait(what, timeout_ms=1.5)  # type: ignore[arg-type]


# --- copies ----------------------------------------------------------------------------------------------------------


async def test_sizes_that_no_buffer_has(dev: aclrt.Device) -> None:
    s, x, host = dev.stream(), array(dev), np.zeros(8, "f4")
    calls: list[Callable[[], Any]] = [
        lambda: acl.aclrtMemcpy(x, 32, host, -4, acl.ACL_MEMCPY_HOST_TO_DEVICE),
        lambda: acl.aclrtMemset(x, 32, 0, -1),
        lambda: acl.aclrtMemcpy2d(x, 100, host, 100, 50, 5, acl.ACL_MEMCPY_HOST_TO_DEVICE),
        lambda: acl.aclrtMemcpy2d(x, 8, host, 16, 8, 4, acl.ACL_MEMCPY_HOST_TO_DEVICE),
    ]
    for call in calls:
        with refused(107000, "bytes asked"):
            await call()
    for enqueue in (
        lambda: acl.aclrtMemcpyAsync(x, 32, host, -4, acl.ACL_MEMCPY_HOST_TO_DEVICE, s),
        lambda: acl.aclrtMemsetAsync(x, 32, 0, -1, s),
        lambda: acl.aclrtMemcpy2dAsync(x, 100, host, 100, 50, 5, acl.ACL_MEMCPY_HOST_TO_DEVICE, s),
    ):
        with refused(107000, "bytes asked"):
            enqueue()
    await acl.aclrtMemcpy2d(x, 8, host, 8, 8, 4, acl.ACL_MEMCPY_HOST_TO_DEVICE)  # the last byte of both
    await s.synchronize()


async def test_a_read_only_destination(dev: aclrt.Device) -> None:
    s, x, fixed = dev.stream(), array(dev), np.zeros(8, "f4")
    fixed.flags.writeable = False
    for host in (fixed, b"0" * 32, memoryview(b"0" * 32)):
        with refused(107000, "read-only"):
            await acl.aclrtMemcpy(host, 32, x, 32, acl.ACL_MEMCPY_DEVICE_TO_HOST)
        with refused(107000, "read-only"):
            s.copy(host, x)
        s.copy(x, host)
    await s.synchronize()


@pytest.mark.parametrize("dtype", ["f2", "?", "i1", "c16", "M8[s]", "m8[D]", "f4,i4", "V7", "S4", ">f4"])
async def test_every_dtype_goes_there_and_back(dev: aclrt.Device, dtype: str) -> None:
    s = dev.stream()
    rng = np.random.default_rng(1)
    source = rng.integers(0, 2, (3, np.dtype(dtype).itemsize), dtype=np.uint8).view(dtype)
    x, back = dev.empty(source.shape, dtype), np.zeros_like(source)
    s.copy(x, source)
    s.copy(back, x)
    await s.synchronize()
    assert back.tobytes() == source.tobytes() == x.numpy().tobytes()


async def test_what_has_no_bytes(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev, 4)
    wrong = [None, [1.0], memoryview(bytearray(32))[::2], np.zeros(8, "f4")[::2], np.array([None] * 2), x.address]
    for host in (*wrong, np.int64(x.address)):
        for pair in ((x, host), (host, x)):
            with pytest.raises(TypeError, match=r"copy|aclrtMemcpyAsync"):
                s.copy(*pair)


async def test_a_memoryview_of_pinned_memory_is_pinned(dev: aclrt.Device) -> None:
    s, x, host = dev.stream(), dev.array(np.arange(4, dtype="f4")), acl.aclrtMallocHost(32)
    async with aclrt.capture(s) as graph:
        s.copy(memoryview(host)[16:], x)
    await graph.replay(s)
    assert host.numpy(np.float32).tolist() == [0, 0, 0, 0, 0, 1, 2, 3]


# --- two devices, two loops, a closed device -------------------------------------------------------------------------


async def test_what_belongs_to_another_device(dev: aclrt.Device) -> None:
    """A register or an address of one device named something else on the other: wrong data, or a wait for ever."""
    async with aclrt.open_device(1) as other:
        s, theirs = dev.stream(), other.stream()
        x, y, event, notify = array(dev), array(other), other.event(), other.notify()
        theirs.record(event)
        for call in (
            lambda: s.wait(event),
            lambda: s.record(event),
            lambda: s.wait(notify),
            lambda: s.record(notify),
            lambda: s.copy(x, y),
            lambda: s.copy(y, x),
            lambda: s.launch(add, y, 1.0),
        ):
            with refused(107000, "device"):
                call()
        host = acl.aclrtMallocHost(32)  # pinned memory serves every device
        dev.array(np.ones(8, "f4"))
        s.copy(host, dev.array(np.arange(8, dtype="f4")))
        await s.synchronize()
        theirs.copy(y, host)
        await theirs.synchronize()
        assert y.numpy().tolist() == list(range(8))
        host.free()
    await s.synchronize()


async def test_a_task_of_another_loop_makes_nothing(dev: aclrt.Device) -> None:
    x = array(dev)
    calls = (dev.stream, dev.event, dev.notify, lambda: dev.array([1]), lambda: dev.empty(2), x.numpy, x.free)

    def elsewhere() -> list[str]:
        async def main() -> list[str]:
            said = []
            for call in (*calls, lambda: x.assign(1), lambda: aclrt.view(x.address, 1, "f4")):
                with pytest.raises(RuntimeError) as caught:
                    call()
                said.append(str(caught.value))
            with pytest.raises(RuntimeError, match="another event loop"):
                await dev.close()
            return said

        return asyncio.run(main())

    assert all("another event loop" in text for text in await asyncio.to_thread(elsewhere))


async def test_a_closed_device() -> None:
    async with aclrt.open_device() as dev:
        x, freed, host = array(dev), array(dev), acl.aclrtMallocHost(8)
        freed.free()
        with refused(107000, "free"):
            dev.array(freed)
    with refused(107002, "closed"):
        _ = dev.default_stream
    with refused(107002, "closed"):
        await dev.rebuild()
    with refused(107000, "closed"):
        host.free()
    with refused(107000, "closed"):
        dev.array(x)


@pytest.mark.parametrize("wrong", [None, "0", 1.5, True])
async def test_ids_and_policies_of_a_wrong_type(wrong: Any) -> None:
    for options in ({"index": wrong}, {"policy": 3}, {"policy": object}):
        with pytest.raises(TypeError, match="open"):
            async with aclrt.open_device(**options):
                pass


async def test_shapes(dev: aclrt.Device) -> None:
    assert dev.empty(np.int64(3)).shape == (3,)
    assert dev.empty(np.array([2, 3])).shape == (2, 3)  # type: ignore[arg-type]
    for shape in (2.5, None, "3", (1, 2.5)):
        with pytest.raises(TypeError, match="shape"):
            dev.empty(shape)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="negative"):
        aclrt.view(array(dev).address, (-1, -2), "f4")


async def test_a_graphs_name_is_text(dev: aclrt.Device) -> None:
    with pytest.raises(TypeError, match="name"):
        async with aclrt.capture(dev.stream(), name=5):  # type: ignore[arg-type]
            pass
