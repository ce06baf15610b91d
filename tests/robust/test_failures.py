"""Device failures: the code at the await and at the synchronize, the causes, the place, and what still runs."""

from __future__ import annotations

import asyncio
import re
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from tests.timeline import settle

from .bench import Boom, add, array, boom, boom_aic, boom_aicpu, code_of, held, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CORES = {"aiv": (boom, 507035), "aic": (boom_aic, 507015), "aicpu": (boom_aicpu, 507018)}
HERE = "test_failures.py"


@pytest.fixture
async def dev() -> AsyncIterator[aclrt.Device]:
    async with aclrt.open_device() as device:
        yield device


async def failure(awaitable: Any) -> aclrt.AclError:
    with pytest.raises(aclrt.AclError) as caught:
        await awaitable
    text = str(caught.value)
    assert text.endswith(f"[{caught.value.code}]")
    assert "\n" not in text
    return caught.value


def line_of(text: str) -> int:
    """The line of this file that a message names."""
    found = re.search(rf"{HERE}:(\d+)", text)
    assert found is not None, text
    return int(found[1])


def line_here() -> int:
    return sys._getframe(1).f_lineno


# --- a kernel that raises --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("core", CORES)
async def test_eager(dev: aclrt.Device, core: str) -> None:
    kernel, code = CORES[core]
    s, x = dev.stream(), array(dev)
    s.launch(add, x, 1.0)
    s.launch(kernel, x)
    line = line_here() - 1
    s.launch(add, x, 1.0)
    error = await failure(s.synchronize())
    assert error.code == code
    assert isinstance(error.__cause__, Boom)
    assert str(error.__cause__) == "no such luck"
    assert kernel.name in str(error)
    assert line_of(str(error)) == line
    assert f"stream {s.id}" in str(error)
    assert x.numpy()[0] == 2  # the tasks around it ran
    await s.synchronize()  # told once


@pytest.mark.parametrize("times", [1, 2, 200])
async def test_the_place_is_that_of_the_failing_launch(dev: aclrt.Device, times: int) -> None:
    """Also in the middle of a burst, whose launches go to the ring together."""
    s, x = dev.stream(), array(dev)

    @aclrt.kernel
    def third(x: aclrt.InOut[np.float32]) -> None:
        x += 1
        if x[0] == 2 * times + 2:
            raise Boom

    for _ in range(2):
        for _ in range(times):
            s.launch(third, x)
        await settle()
    s.launch(third, x)
    s.launch(third, x)
    line = line_here() - 1
    s.launch(third, x)
    assert line_of(str(await failure(s.synchronize()))) == line


@pytest.mark.parametrize("core", CORES)
async def test_in_a_graph(dev: aclrt.Device, core: str) -> None:
    kernel, code = CORES[core]
    s, x = dev.stream(), array(dev)
    async with aclrt.capture(s, name="of mine") as graph:
        s.launch(add, x, 1.0)
        s.launch(kernel, x)
        line = line_here() - 1
        s.launch(add, x, 1.0)
    run = graph.launch(s)
    s.launch(add, x, 10.0)
    for awaited in (run, run, s.synchronize()):
        error = await failure(awaited)
        assert error.code == 507011
        assert isinstance(error.__cause__, aclrt.ExecutionError)
        assert error.__cause__.code == code
        assert isinstance(error.__cause__.__cause__, Boom)
        assert '"of mine"' in str(error)
        assert kernel.name in str(error)
        assert line_of(str(error)) == line
    assert x.numpy()[0] == 11  # the run stopped behind its failing task; the stream went on behind the run
    await s.synchronize()
    assert repr(run).endswith("failed>")


async def test_in_a_branch(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    async with aclrt.capture(s) as graph:
        go = graph.condition(default=1)
        async with graph.while_(go) as body:
            body.launch(add, x, 1.0)
            body.launch(boom, x)
    error = await failure(graph.replay(s))
    assert error.code == 507011
    assert error.__cause__ is not None
    assert isinstance(error.__cause__.__cause__, Boom)
    assert "WHILE" in str(error)
    assert await code_of(s.synchronize()) == 507011
    assert x.numpy()[0] == 1


async def test_in_a_built_model(dev: aclrt.Device) -> None:
    exe, x = dev.stream(), array(dev)
    stream = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
    model = acl.aclmdlRIBuildBegin(0)
    acl.aclmdlRIBindStream(model, stream, acl.ACL_MODEL_STREAM_FLAG_HEAD)
    stream.launch(boom, x)
    line = line_here() - 1
    acl.aclmdlRIEndTask(model, stream)
    acl.aclmdlRIBuildEnd(model)
    for _ in range(2):  # a built model does not enter FAULT
        error = await failure(acl.aclmdlRIExecuteAsync(model, exe))
        assert error.code == 507011
        assert error.__cause__ is not None
        assert isinstance(error.__cause__.__cause__, Boom)
        assert line_of(str(error)) == line
        assert await code_of(exe.synchronize()) == 507011
    assert (await failure(acl.aclmdlRIExecute(model, -1))).code == 507011
    await acl.aclmdlRIDestroy(model)


async def test_the_kernels_own_traceback_and_nothing_of_the_device(dev: aclrt.Device) -> None:
    """The user sees the kernel's frames; those of the scheduler would keep what they hold alive for as long."""

    @aclrt.kernel
    def deep(x: aclrt.InOut[np.float32]) -> None:
        deeper()

    def deeper() -> None:
        raise Boom

    s, x = dev.stream(), array(dev)
    s.launch(deep, x)
    eager = (await failure(s.synchronize())).__cause__
    async with aclrt.capture(s) as graph:
        s.launch(deep, x)
    run = (await failure(graph.replay(s))).__cause__
    await failure(s.synchronize())
    assert run is not None
    for error in (eager, run.__cause__):
        assert error is not None
        names, trace = [], error.__traceback__
        while isinstance(trace, TracebackType):
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        assert names == ["deep", "deeper"]


async def test_a_message_of_several_lines_is_told_in_one(dev: aclrt.Device) -> None:
    @aclrt.kernel
    def poet(x: aclrt.InOut[np.float32]) -> None:
        raise Boom("roses\nare red")

    s = dev.stream()
    s.launch(poet, array(dev))
    assert "roses are red" in str(await failure(s.synchronize()))

    def fn() -> None:
        raise Boom("violets\nare blue")

    s.callback(fn)
    assert "violets are blue" in str(await failure(s.synchronize()))


async def test_what_a_kernel_may_raise(dev: aclrt.Device) -> None:
    """StopIteration ends coroutines and GeneratorExit closes them: a kernel that raises one is a failing kernel."""
    s, x = dev.stream(), array(dev)
    for error in (StopIteration(), StopAsyncIteration(), IndexError("i"), RecursionError("deep"), ArithmeticError()):

        @aclrt.kernel
        def raising(x: aclrt.InOut[np.float32], error: Any = error) -> None:
            raise error

        s.launch(raising, x)
        s.launch(add, x, 1.0)
        found = await failure(s.synchronize())
        assert (found.code, found.__cause__) == (507035, error)
        async with aclrt.capture(s) as graph:
            s.launch(raising, x)
        found = await failure(graph.replay(s))
        assert found.code == 507011
        assert found.__cause__ is not None
        assert found.__cause__.__cause__ is error
        await failure(s.synchronize())
        await graph.close()
    assert x.numpy()[0] == 5


async def test_other_streams_do_not_notice(dev: aclrt.Device) -> None:
    streams, arrays = [dev.stream() for _ in range(4)], [array(dev) for _ in range(4)]
    for round_ in range(20):
        for s, x in zip(streams, arrays, strict=True):
            s.launch(add, x, 1.0)
        streams[round_ % 4].launch(boom, arrays[0])
    assert [await code_of(s.synchronize()) for s in streams] == [507035] * 4
    assert [x.numpy()[0] for x in arrays] == [20] * 4


async def test_device_synchronize_tells_one_failure_at_a_time(dev: aclrt.Device) -> None:
    a, b, x = dev.stream(), dev.stream(), array(dev)
    a.launch(boom_aic, x)
    b.launch(boom, x)
    assert [await code_of(dev.synchronize()) for _ in range(3)] == [507015, 507035, 0]


async def test_an_event_behind_a_failure_is_recorded_all_the_same(dev: aclrt.Device) -> None:
    a, b, x = dev.stream(), dev.stream(), array(dev)
    a.launch(boom, x)
    b.wait(a.record())
    b.launch(add, x, 1.0)
    await b.synchronize()
    assert x.numpy()[0] == 1
    assert await code_of(a.synchronize()) == 507035


@pytest.mark.parametrize("heavy", [False, True])
async def test_on_a_worker_thread(dev: aclrt.Device, heavy: bool) -> None:
    kernel = aclrt.kernel(boom.fn, offload=heavy, name="elsewhere")
    s, x = dev.stream(), array(dev)
    s.launch(kernel, x)
    s.launch(add, x, 1.0)
    error = await failure(s.synchronize())
    assert error.code == 507035
    assert isinstance(error.__cause__, Boom)
    assert x.numpy()[0] == 1


# --- after a failure -------------------------------------------------------------------------------------------------


async def test_a_failed_graph_is_fault_and_those_already_queued_run(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    fails = [True]

    @aclrt.kernel
    def once(x: aclrt.InOut[np.float32]) -> None:
        if fails.pop():
            fails.append(False)
            raise Boom
        fails.append(False)
        x += 1

    async with aclrt.capture(s) as graph:
        s.launch(once, x)
    runs = [graph.launch(s) for _ in range(3)]
    assert [await code_of(run) for run in runs] == [507011, 0, 0]
    assert x.numpy()[0] == 2
    assert "FAULT" in repr(graph)
    with refused(507011, "FAULT", "capture again"):
        graph.launch(s)
    assert await code_of(s.synchronize()) == 507011
    await graph.close()  # only that leaves FAULT
    assert not graph.alive


async def test_on_execute_error_ready() -> None:
    async with aclrt.open_device(on_execute_error="ready") as dev:
        s, x = dev.stream(), array(dev)
        async with aclrt.capture(s) as graph:
            s.launch(add, x, 1.0)
            s.launch(boom, x)
        for _ in range(3):
            assert await code_of(graph.replay(s)) == 507011
            assert await code_of(s.synchronize()) == 507011
            assert "READY" in repr(graph)
        assert x.numpy()[0] == 3


async def test_abort_and_timeout_make_no_fault(dev: aclrt.Device) -> None:
    s, x, gate = dev.stream(), array(dev), dev.array(np.zeros(1, "i8"))
    async with aclrt.capture(s) as graph:
        acl.aclrtValueWait(gate, 1, acl.ACL_VALUE_WAIT_EQ, s)
        s.launch(add, x, 1.0)
    run = graph.launch(s)
    assert await code_of(s.synchronize(1)) == 507046
    await settle()
    await run.abort()
    assert await code_of(run) == 507023
    assert await code_of(s.synchronize()) == 507023
    gate.assign(1)
    await graph.replay(s)
    assert x.numpy()[0] == 1


@pytest.mark.parametrize("way", ["eager", "graph"])
async def test_stop_mode(dev: aclrt.Device, way: str) -> None:
    """The first failing task is the last of its stream; it answers every later call of the context."""
    s, x = dev.stream(), array(dev)
    acl.aclrtSetStreamFailureMode(s, 1)
    code = 507035
    s.launch(add, x, 1.0)
    if way == "eager":
        s.launch(boom, x)
    else:
        code = 507011
        async with aclrt.capture(s) as graph:
            s.launch(boom, x)
        graph.launch(s)
    s.launch(add, x, 10.0)
    assert await code_of(s.synchronize()) == code
    assert await code_of(s.synchronize()) == code
    for _ in range(2):
        with refused(code):
            s.launch(add, x, 10.0)
        with refused(code):
            s.record()
    with refused(code):
        dev.stream().launch(add, x, 10.0)
    assert x.numpy()[0] == 1


async def test_nothing_of_a_failure_is_kept(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    before = held(dev)
    for _ in range(50):
        s.launch(boom, x)
        assert await code_of(s.synchronize()) == 507035
    assert held(dev) == before | {"arguments": before["arguments"] + 1}  # the kept binding of (boom, x)


def test_a_keyboard_interrupt_in_a_kernel_leaves_the_loop() -> None:
    """Not a failure of the kernel's: it passes through the device, as through any callback of the loop."""

    @aclrt.kernel
    def interrupted(x: aclrt.InOut[np.float32]) -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        async with aclrt.open_device() as dev:
            s = dev.stream()
            s.launch(interrupted, array(dev))
            await s.synchronize()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
