"""What a failing task does to the run of a normal model: codes, causes, what the next synchronize and run give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

HEAD, DEFAULT = acl.ACL_MODEL_STREAM_FLAG_HEAD, acl.ACL_MODEL_STREAM_FLAG_DEFAULT
SECOND = 1_000_000_000


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], a: float) -> None:
    x += a


def fails() -> None:
    raise ValueError("as told")


vector = aclrt.kernel(fails)
cube = aclrt.kernel(fails, core="aic")
control = aclrt.kernel(fails, core="aicpu")
slow_vector = aclrt.kernel(lambda: None, cost_ns=2 * SECOND)
slow_cube = aclrt.kernel(lambda: None, core="aic", cost_ns=2 * SECOND)
slow_control = aclrt.kernel(lambda: None, core="aicpu", cost_ns=2 * SECOND)


class Bench:
    """A model of one stream: add 1, something that may fail, add 10."""

    def __init__(self, dev: aclrt.Device, middle: Any) -> None:
        self.dev = dev
        self.exe = dev.stream()
        self.x = dev.array(np.zeros(1, "f4"))
        self.model = acl.aclmdlRIBuildBegin(0)
        self.stream = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
        acl.aclmdlRIBindStream(self.model, self.stream, HEAD)
        self.stream.launch(add, self.x, 1.0)
        middle(self.stream)
        self.stream.launch(add, self.x, 10.0)
        acl.aclmdlRIEndTask(self.model, self.stream)
        acl.aclmdlRIBuildEnd(self.model)

    async def fails(self, code: int, inner: int) -> aclrt.AclError:
        """One execution fails; the exe stream tells it once; nothing after the failing task ran."""
        self.x.assign([0])
        run = acl.aclmdlRIExecuteAsync(self.model, self.exe)
        with pytest.raises(aclrt.AclError) as caught:
            await acl.aclrtSynchronizeStream(self.exe)
        assert caught.value.code == code
        cause = caught.value.__cause__
        assert isinstance(cause, aclrt.AclError)
        assert cause.code == inner
        await acl.aclrtSynchronizeStream(self.exe)
        with pytest.raises(aclrt.AclError) as again:
            await run
        assert again.value.code == code
        assert self.x.numpy()[0] == 1
        return caught.value


CORES = {"aiv": (vector, 507035), "aic": (cube, 507015), "aicpu": (control, 507018)}


@pytest.mark.parametrize("chip", ["v100", "v200"])
@pytest.mark.parametrize("core", CORES)
async def test_a_kernel_that_raises(core: str, chip: str) -> None:
    kernel, inner = CORES[core]
    async with aclrt.open_device(chip=chip) as dev:
        b = Bench(dev, lambda stream: stream.launch(kernel))
        for _ in range(2):  # a normal model does not enter FAULT
            error = await b.fails(507011, inner)
            assert isinstance(error.__cause__.__cause__, ValueError)  # type: ignore[union-attr]
            assert "test_failures.py" in str(error)  # where the task was launched


SLOW = {
    "aiv": (slow_vector, 507011, 507034),
    "aic": (slow_cube, 507011, 507014),
    "aicpu": (slow_control, 507017, 507017),
}


@pytest.mark.parametrize("core", SLOW)
async def test_a_kernel_over_the_execute_time_out(core: str) -> None:
    kernel, code, inner = SLOW[core]
    async with aclrt.open_device(clock="virtual") as dev:
        acl.aclrtSetOpExecuteTimeOut(1)
        b = Bench(dev, lambda stream: stream.launch(kernel))
        await b.fails(code, inner)


async def test_a_copy_from_freed_memory() -> None:
    async with aclrt.open_device() as dev:
        src, dst = acl.aclrtMalloc(64, 0), acl.aclrtMalloc(64, 0)
        d2d = acl.ACL_MEMCPY_DEVICE_TO_DEVICE
        b = Bench(dev, lambda stream: acl.aclrtMemcpyAsync(dst, 64, src, 64, d2d, stream))
        b.x.assign([0])
        await acl.aclmdlRIExecuteAsync(b.model, b.exe)
        acl.aclrtFree(src)
        error = await b.fails(507011, 507013)
        assert type(error.__cause__.__cause__).__name__ == "MemoryFault"  # type: ignore[union-attr]


async def test_an_event_that_never_comes() -> None:
    async with aclrt.open_device(clock="virtual") as dev:
        event = acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_SYNC)
        started = dev.now_ns()
        b = Bench(dev, lambda stream: acl.aclrtStreamWaitEventWithTimeout(stream, event, 3))
        await b.fails(507011, 107020)
        assert dev.now_ns() - started == pytest.approx(3 * SECOND, rel=0.01)
        acl.aclrtRecordEvent(event, dev.default_stream)
        await acl.aclmdlRIExecuteAsync(b.model, b.exe)


async def test_other_streams_of_the_model_stop_and_other_models_go_on() -> None:
    async with aclrt.open_device() as dev:
        flag = dev.array(np.zeros(1, "i8"))
        b = Bench(dev, lambda stream: stream.launch(vector))
        side = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
        acl.aclmdlRIBindStream(b.model, side, HEAD)
        acl.aclrtValueWait(flag, 1, acl.ACL_VALUE_WAIT_EQ, side)
        acl.aclmdlRIBuildEnd(b.model)
        good = Bench(dev, lambda stream: None)
        other = acl.aclmdlRIExecuteAsync(good.model, good.exe)
        await b.fails(507011, 507035)
        await other
        assert good.x.numpy()[0] == 11
        assert not dev.npu.driver.model_busy(b.model.id)


async def test_in_stop_mode_the_context_stays_failed() -> None:
    async with aclrt.open_device() as dev:
        b = Bench(dev, lambda stream: stream.launch(vector))
        acl.aclrtSetStreamFailureMode(b.exe, acl.ACL_STOP_ON_FAILURE)
        acl.aclmdlRIExecuteAsync(b.model, b.exe)
        for _ in range(3):
            with pytest.raises(aclrt.AclError) as caught:
                await acl.aclrtSynchronizeStream(b.exe)
            assert caught.value.code == 507011
        with pytest.raises(aclrt.AclError) as caught:
            dev.stream().launch(add, b.x, 1.0)
        assert caught.value.code == 507011
        with pytest.raises(aclrt.AclError) as caught:
            acl.aclmdlRIExecuteAsync(b.model, b.exe)
        assert caught.value.code == 507011
        with pytest.raises(aclrt.AclError) as caught:  # STOP cannot be taken back
            acl.aclrtSetStreamFailureMode(b.exe, acl.ACL_CONTINUE_ON_FAILURE)
        assert caught.value.code == 207000


async def test_a_bound_stream_refuses_a_failure_mode_and_a_stopping_one_the_bind() -> None:
    async with aclrt.open_device() as dev:
        b = Bench(dev, lambda stream: None)
        with pytest.raises(aclrt.AclError) as caught:
            acl.aclrtSetStreamFailureMode(b.stream, acl.ACL_STOP_ON_FAILURE)
        assert caught.value.code == 207000


async def test_an_eager_failure_is_overwritten_by_a_later_one_and_told_once() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), dev.array(np.zeros(1, "f4"))
        s.launch(vector)
        s.launch(add, x, 1.0)
        s.launch(cube)
        s.launch(add, x, 1.0)
        with pytest.raises(aclrt.AclError) as caught:
            await s.synchronize()
        assert caught.value.code == 507015
        await s.synchronize()
        assert x.numpy()[0] == 2  # CONTINUE: the tasks behind a failing one ran


async def test_a_dropped_failure_surfaces_at_the_close() -> None:
    async def forget() -> None:
        async with aclrt.open_device() as dev:
            b = Bench(dev, lambda stream: stream.launch(vector))
            acl.aclmdlRIExecuteAsync(b.model, b.exe)

    with pytest.warns(aclrt.UnobservedErrorWarning, match="507011"):
        await forget()
