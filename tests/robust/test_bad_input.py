"""Bad input gives a clear error at once and loses nothing: arguments, memory, handles, devices that are closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw import driver

from .bench import add, array, captured, held, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

F4 = np.float32
H2D, D2H, D2D = acl.ACL_MEMCPY_HOST_TO_DEVICE, acl.ACL_MEMCPY_DEVICE_TO_HOST, acl.ACL_MEMCPY_DEVICE_TO_DEVICE


@aclrt.kernel
def add_to(x: aclrt.In[np.float32], y: aclrt.InOut[np.float32]) -> None:
    y += x


@pytest.fixture
async def dev() -> AsyncIterator[aclrt.Device]:
    async with aclrt.open_device() as device:
        yield device


# --- arguments of a launch -------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[Callable[[aclrt.Device], tuple[Any, ...]], tuple[str, ...]]] = {
    "another dtype": (lambda dev: (dev.array(np.ones(8, "i4")), 1.0), ("parameter x", "float32", "int32")),
    "a numpy array": (lambda dev: (np.ones(8, F4), 1.0), ("parameter x", "host array", "Device.array")),
    "pinned memory": (lambda dev: (acl.aclrtMallocHost(32), 1.0), ("parameter x", "HostBuffer")),
    "an address": (lambda dev: (acl.aclrtMalloc(32), 1.0), ("parameter x", "aclrt.view")),
    "bytes": (lambda dev: (b"12345678", 1.0), ("parameter x", "bytes")),
    "None": (lambda dev: (None, 1.0), ("parameter x", "None")),
    "text for a number": (lambda dev: (array(dev), "1"), ("parameter a", "'1'")),
    "an array for a number": (lambda dev: (array(dev), array(dev)), ("parameter a", "DeviceArray")),
    "one too few": (lambda dev: (array(dev),), ("2 arguments (x, a)", "1 given")),
    "one too many": (lambda dev: (array(dev), 1.0, 2.0), ("2 arguments (x, a)", "3 given")),
    "unhashable": (lambda dev: (array(dev), [1.0]), ("parameter a",)),
}


@pytest.mark.parametrize("capturing", [False, True])
@pytest.mark.parametrize("case", WRONG)
async def test_a_wrong_argument_is_a_type_error_at_the_launch(dev: aclrt.Device, case: str, capturing: bool) -> None:
    make, words = WRONG[case]
    s, x = dev.stream(), array(dev)
    args = make(dev)
    if capturing:
        async with aclrt.capture(s) as graph:
            before = held(dev)
            with pytest.raises(TypeError) as caught:
                s.launch(add, *args)
            assert held(dev) == before
            s.launch(add, x, 1.0)
        await graph.replay(s)
    else:
        before = held(dev)
        with pytest.raises(TypeError) as caught:
            s.launch(add, *args)
        assert held(dev) == before
        s.launch(add, x, 1.0)
    await s.synchronize()
    assert x.numpy()[0] == 1  # the stream and its capture are as they were
    assert "launch of add" in str(caught.value)
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


async def test_a_ufunc_checks_dtypes_and_shapes_at_the_launch(dev: aclrt.Device) -> None:
    s, x, plus = dev.stream(), array(dev), aclrt.kernel(np.add)
    with pytest.raises(ValueError, match=r"shape \(3,\) of out"):
        s.launch(plus, x, x, array(dev, 3))
    with pytest.raises(TypeError, match="dtypes"):
        s.launch(plus, x, x, dev.array(np.ones(8, "i4")))


async def test_a_shape_only_the_kernel_knows_is_its_failure(dev: aclrt.Device) -> None:
    s = dev.stream()
    s.launch(add_to, array(dev), array(dev, 3))
    with refused(507035, "add_to", "ValueError", "test_bad_input.py") as caught:
        await s.synchronize()
    assert isinstance(caught.value.__cause__, ValueError)


NOT_KERNELS: dict[str, Any] = {"a function": lambda x: None, "a ufunc": np.add, "nothing": None, "a name": "add"}


@pytest.mark.parametrize("what", NOT_KERNELS)
async def test_what_is_no_kernel(dev: aclrt.Device, what: str) -> None:
    s, x = dev.stream(), array(dev)
    with pytest.raises(TypeError, match=r"@aclrt\.kernel"):
        s.launch(NOT_KERNELS[what], x)
    if NOT_KERNELS[what] is not None:
        with pytest.raises(TypeError, match=r"@aclrt\.kernel"):
            acl.aclrtLaunchKernel(NOT_KERNELS[what], 1, [x], s)


async def test_what_no_kernel_is_made_of() -> None:
    async def coroutine() -> None: ...

    with pytest.raises(TypeError, match="not a plain function"):
        aclrt.kernel(coroutine)
    with pytest.raises(TypeError, match="one already"):
        aclrt.kernel(add)
    with pytest.raises(ValueError, match="core is 'gpu'"):
        aclrt.kernel(lambda: None, core="gpu")  # type: ignore[call-overload]


@pytest.mark.parametrize("blocks", [0, -1])
async def test_a_launch_has_at_least_one_block(dev: aclrt.Device, blocks: int) -> None:
    s, x = dev.stream(), array(dev)
    for _ in range(2):  # the second launch of the same arguments takes another way through the host
        with refused(107000, "blocks", "at least 1"):
            s.launch(add, x, 1.0, blocks=blocks)
        with refused(107000, "at least 1"):
            acl.aclrtLaunchKernel(add, blocks, [x, 1.0], s)
        s.launch(add, x, 1.0)


# --- a host pointer where a device one is due ------------------------------------------------------------------------

HOST_FOR_DEVICE: dict[str, Callable[[aclrt.Device, Any, Any], Any]] = {
    "view": lambda dev, s, host: aclrt.view(host.address, (8,), F4),
    "aclrtMemsetAsync": lambda dev, s, host: acl.aclrtMemsetAsync(host, 32, 0, 32, s),
    "aclrtMemsetAsync of an address": lambda dev, s, host: acl.aclrtMemsetAsync(host.address, 32, 0, 32, s),
    "aclrtValueWrite": lambda dev, s, host: acl.aclrtValueWrite(host, 1, 0, s),
    "aclrtValueWait": lambda dev, s, host: acl.aclrtValueWait(host, 1, 0, s),
    "aclrtFree": lambda dev, s, host: acl.aclrtFree(host.address),
    "aclrtMemcpyAsync, device to device": lambda dev, s, host: acl.aclrtMemcpyAsync(array(dev), 32, host, 32, D2D, s),
    "aclrtMemcpyAsync, to the host": lambda dev, s, host: acl.aclrtMemcpyAsync(host, 32, host, 32, D2H, s),
    "aclrtMemcpyAsync, to the device": lambda dev, s, host: acl.aclrtMemcpyAsync(host, 32, array(dev), 32, H2D, s),
    "aclrtMemcpyAsync, by address": lambda dev, s, host: acl.aclrtMemcpyAsync(host.address, 32, array(dev), 32, D2D, s),
}


@pytest.mark.parametrize("call", HOST_FOR_DEVICE)
async def test_a_host_pointer_where_a_device_one_is_due(dev: aclrt.Device, call: str) -> None:
    s, host = dev.stream(), acl.aclrtMallocHost(32)
    with refused(107000):
        HOST_FOR_DEVICE[call](dev, s, host)
    await s.synchronize()


async def test_an_address_that_is_none(dev: aclrt.Device) -> None:
    s = dev.stream()
    for address in (1, 1 << 40, acl.aclrtMalloc(32) + 4096):
        with refused(107000):
            aclrt.view(address, (8,), F4)
        with refused(107000):
            acl.aclrtMemsetAsync(address, 32, 0, 32, s)
    with refused(107000):
        acl.aclrtFree(12345)
    with refused(107008, "aligned"):
        aclrt.view(acl.aclrtMalloc(32) + 1, (1,), F4)
    with pytest.raises(TypeError, match=r"aclrt\.view"):
        s.copy(acl.aclrtMalloc(32), array(dev))
    with pytest.raises(TypeError, match="float"):
        aclrt.view(1.5, (8,), F4)  # type: ignore[arg-type]


async def test_copies_that_do_not_fit(dev: aclrt.Device) -> None:
    s = dev.stream()
    with refused(107000, "32 bytes", "16"):
        s.copy(array(dev, 4), array(dev, 8))
    with pytest.raises(TypeError, match="strided"):
        s.copy(array(dev, 8)[::2], array(dev, 4))
    for value in ([1, 2], "text"):
        with pytest.raises(TypeError):
            s.copy(array(dev), value)


# --- freed buffers ---------------------------------------------------------------------------------------------------


async def test_a_buffer_freed_before_the_launch(dev: aclrt.Device) -> None:
    s, z = dev.stream(), array(dev)
    s.launch(add, z, 1.0)  # once well, so that the launch is one seen before
    await s.synchronize()
    z.free()
    with refused(107000, "parameter x", "freed"):
        s.launch(add, z, 1.0)
    with refused(107000, "freed"):
        s.copy(z, array(dev))
    for use in (z.numpy, lambda: z.assign(0), z.free):
        with refused(107000, "freed"):
            use()
    async with aclrt.capture(s):
        with refused(107000, "parameter x", "freed"):
            s.launch(add, z, 1.0)


async def test_a_buffer_freed_between_launch_and_run(dev: aclrt.Device) -> None:
    s, z, x = dev.stream(), array(dev), array(dev)
    s.launch(add, z, 1.0)
    s.launch(add, x, 1.0)
    z.free()
    with refused(507035, "freed", "kernel add", "test_bad_input.py") as caught:
        await s.synchronize()
    assert isinstance(caught.value.__cause__, driver.MemoryFault)
    assert x.numpy()[0] == 1  # what is behind it ran


@pytest.mark.parametrize("freed", ["before the first run", "between two runs"])
async def test_a_buffer_freed_inside_a_graph(dev: aclrt.Device, freed: str) -> None:
    s, z, x = dev.stream(), array(dev), array(dev)
    async with aclrt.capture(s) as graph:
        s.launch(add, x, 1.0)
        s.launch(add, z, 1.0)
    if freed == "between two runs":
        await graph.replay(s)
    z.free()
    with refused(507011, "kernel add", "test_bad_input.py", "freed") as caught:
        await graph.replay(s)
    core = caught.value.__cause__
    assert isinstance(core, aclrt.AclError)
    assert core.code == 507035
    assert isinstance(core.__cause__, driver.MemoryFault)
    assert core.__cause__.freed
    with refused(507011):
        await s.synchronize()
    await graph.close()


async def test_pinned_memory_freed_under_a_copy_in_a_graph(dev: aclrt.Device) -> None:
    s, x, host = dev.stream(), array(dev), acl.aclrtMallocHost(32)
    async with aclrt.capture(s) as graph:
        s.copy(x, host)
    acl.aclrtFreeHost(host)
    with refused(507011, "freed", "MEMCPY_ASYNC"):
        await graph.replay(s)
    with refused(507011):
        await s.synchronize()
    with refused(107000, "freed"):
        acl.aclrtFreeHost(host)
    with refused(107000, "freed"):
        s.copy(x, host)


# --- handles ---------------------------------------------------------------------------------------------------------


async def test_a_stream_event_or_graph_of_another_device(dev: aclrt.Device) -> None:
    async with aclrt.open_device(1) as other:
        s, mine = dev.stream(), other.stream()
        with refused(107000, "another device"):
            s.launch(add, array(other), 1.0)
        async with aclrt.capture(s) as graph:
            s.launch(add, array(dev), 1.0)
        with refused(107004):
            graph.launch(mine)


async def test_text_for_an_object(dev: aclrt.Device) -> None:
    s, wrong = dev.stream(), "s"
    calls: list[Callable[[], Any]] = [
        lambda: s.wait(wrong),  # type: ignore[arg-type]
        lambda: s.record(wrong),  # type: ignore[arg-type]
        lambda: s.reset(wrong),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(TypeError, match="is not an Event"):
            call()
    with pytest.raises(TypeError, match="is not a Stream"):
        async with s.fork(wrong):  # type: ignore[arg-type]
            pass
    with pytest.raises(TypeError, match="is not a Stream"):
        async with aclrt.capture(wrong):  # type: ignore[arg-type]
            pass
    with pytest.raises(ValueError, match="mode is 'loose'"):
        async with aclrt.capture(s, mode="loose"):  # type: ignore[arg-type]
            pass
    async with aclrt.capture(s) as graph:
        s.launch(add, array(dev), 1.0)
    for stream in (None, wrong):
        with pytest.raises(TypeError, match="is not a Stream"):
            graph.launch(stream)  # type: ignore[arg-type]
    assert not captured(dev)


# --- a device that is closed -----------------------------------------------------------------------------------------


async def test_everything_of_a_closed_device_says_so() -> None:
    async with aclrt.open_device() as dev:
        s, x, event, notify = dev.stream(), array(dev), dev.event(), dev.notify()
        async with aclrt.capture(s) as graph:
            with s.task_group() as group:
                s.launch(add, x, 1.0)
    uses: dict[str, Callable[[], Any]] = {
        "launch": lambda: s.launch(add, x, 1.0),
        "record": s.record,
        "record event": lambda: s.record(event),
        "wait": lambda: s.wait(event),
        "notify": lambda: s.record(notify),
        "copy": lambda: s.copy(x, np.ones(8, F4)),
        "fill": lambda: s.fill(x, 0),
        "callback": lambda: s.callback(print),
        "graph": lambda: graph.launch(s),
        "numpy": x.numpy,
        "assign": lambda: x.assign(0),
        "free": x.free,
        "array": lambda: dev.array(np.ones(3)),
        "empty": lambda: dev.empty(3),
        "stream": dev.stream,
        "event": dev.event,
        "new notify": dev.notify,
        "acl launch": lambda: acl.aclrtLaunchKernel(add, 1, [x, 1.0], s),
        "acl query": lambda: acl.aclrtStreamQuery(s),
        "acl begin": lambda: acl.aclmdlRICaptureBegin(s, 0),
        "acl execute": lambda: acl.aclmdlRIExecuteAsync(graph, s),
    }
    for name, use in uses.items():
        with pytest.raises(aclrt.AclError, match="device 0 was closed") as caught:
            use()
        assert caught.value.code in (107017, 107002, 107000), name
    for wait in (s.synchronize(), dev.synchronize(), graph.replay(s), graph.abort()):
        with pytest.raises(aclrt.AclError, match="device 0 was closed"):
            await wait
    with pytest.raises(aclrt.AclError, match="device 0 was closed"):
        async with aclrt.capture(s):
            pass
    with pytest.raises(aclrt.AclError, match="device 0 was closed"):
        async with graph.update(group, on=s):
            pass
    assert "closed" in repr(dev)
    await graph.close()  # a second end of what is gone does nothing
    await dev.close()
    assert dev.used_bytes == 0
    async with aclrt.open_device() as again:  # the same id, another device
        s2, y = again.stream(), array(again)
        with refused(107000):
            s2.launch(add, x, 1.0)
        s2.launch(add, y, 1.0)
        await s2.synchronize()
        assert y.numpy()[0] == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"chip": "v300"}, ValueError),
        ({"clock": "sun"}, ValueError),
        ({"engine": "steam"}, ValueError),
        ({"limits": {"max_straems": 2}}, ValueError),
        ({"limits": {"max_streams": -1}}, ValueError),
        ({"on_execute_error": "never"}, ValueError),
        ({"index": 8}, aclrt.AclError),
        ({"index": -1}, aclrt.AclError),
    ],
)
async def test_open_device_refuses_what_it_does_not_know(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        async with aclrt.open_device(**options):
            pass
    async with aclrt.open_device():
        with pytest.raises(RuntimeError, match="already open"):
            async with aclrt.open_device():
                pass
