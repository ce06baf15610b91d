"""Fused kernels (one SQE, parts in order) and AI-CPU kernels (their own engine), eager, in models and in captures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.chips import SqeKind


@aclrt.kernel
def note(x: aclrt.InOut[np.float64], digit: float) -> None:
    x[:] = x * 10 + digit


@aclrt.kernel(core="aic")
def cube(x: aclrt.InOut[np.float64], digit: float) -> None:
    x[:] = x * 10 + digit


@aclrt.kernel(core="aicpu")
def control(x: aclrt.InOut[np.float64], digit: float) -> None:
    x[:] = x * 10 + digit


@aclrt.kernel
def broken(x: aclrt.In[np.float64]) -> None:
    raise ArithmeticError("no such digit")


@aclrt.kernel(core="aicpu")
def broken_control(x: aclrt.In[np.float64]) -> None:
    raise ArithmeticError("no such digit")


def parts(x: Any) -> list[Any]:
    return [(cube, (x, 1.0)), (note, (x, 2.0)), (control, (x, 3.0))]


async def test_the_parts_run_in_order_as_one_sqe() -> None:
    async with aclrt.open_device(chip="v200") as dev:
        s, x = dev.stream(), dev.array(np.zeros(1, "f8"))
        s.launch_fused(parts(x))
        assert s.submitted == 1
        await s.synchronize()
        assert x.numpy()[0] == 123


async def test_a_model_runs_a_fused_kernel_at_each_execution() -> None:
    async with aclrt.open_device(chip="v200") as dev:
        model = acl.aclmdlRIBuildBegin(0)
        stream, x = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT), dev.array(np.zeros(1, "f8"))
        acl.aclmdlRIBindStream(model, stream, acl.ACL_MODEL_STREAM_FLAG_HEAD)
        stream.launch_fused(parts(x))
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        driver = dev.npu.driver
        sqe = driver.chip.decode(driver.image_read(stream.kept.parts[0].image, 0, 1))
        assert sqe.kind is SqeKind.FUSION
        assert [task.kind.name for task in acl.aclmdlRIGetTasksByStream(stream)] == ["FUSION", "NOTIFY_RECORD"]
        arguments = len(driver._m.args)
        for _ in range(2):
            await acl.aclmdlRIExecute(model, -1)
        assert x.numpy()[0] == 123123
        await acl.aclmdlRIDestroy(model)
        assert len(driver._m.args) == arguments - 1


async def test_a_capture_takes_a_fused_kernel() -> None:
    async with aclrt.open_device(chip="v200") as dev:
        s, x = dev.stream(), dev.array(np.zeros(1, "f8"))
        async with aclrt.capture(s) as graph:
            s.launch_fused(parts(x))
        for _ in range(2):
            await graph.replay(s)
        assert x.numpy()[0] == 123123


async def test_a_part_that_raises_ends_the_task() -> None:
    async with aclrt.open_device(chip="v200") as dev:
        s, x = dev.stream(), dev.array(np.zeros(1, "f8"))
        s.launch_fused([(note, (x, 1.0)), (broken, (x,)), (note, (x, 2.0))])
        with pytest.raises(aclrt.AclError) as caught:
            await s.synchronize()
        assert caught.value.code == 507035
        assert isinstance(caught.value.__cause__, ArithmeticError)
        assert x.numpy()[0] == 1


async def test_arguments_are_checked_and_released() -> None:
    async with aclrt.open_device(chip="v200") as dev:
        s, x = dev.stream(), dev.array(np.zeros(1, "f8"))
        arguments = len(dev.npu.driver._m.args)
        with pytest.raises(TypeError):
            s.launch_fused([(note, (dev.empty(1, "i4"), 1.0))])
        with pytest.raises(ValueError, match="no part"):
            s.launch_fused([])
        with pytest.raises(TypeError, match="a part is"):
            s.launch_fused([note])  # type: ignore[list-item]
        for _ in range(20):
            s.launch_fused(parts(x))
        await s.synchronize()
        assert len(dev.npu.driver._m.args) == arguments


@pytest.mark.parametrize("chip", ["v100", "310p"])
async def test_chips_without_fused_kernels_refuse(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        with pytest.raises(aclrt.AclError) as caught:
            dev.stream().launch_fused(parts(dev.empty(1, "f8")))
        assert caught.value.code == 207000


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_an_ai_cpu_kernel_runs_on_its_engine_and_fails_with_its_code(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        s, x = dev.stream(), dev.array(np.zeros(1, "f8"))
        s.launch(control, x, 1.0)
        await s.synchronize()
        assert x.numpy()[0] == 1
        s.launch(broken_control, x)
        with pytest.raises(aclrt.AclError) as caught:
            await s.synchronize()
        assert caught.value.code == 507018


async def test_ai_cpu_kernels_do_not_wait_for_ai_cores() -> None:
    """One vector core and one AI CPU: a kernel of each takes the time of one."""
    slow = aclrt.kernel(lambda: None, cost_ns=1_000_000)
    slow_control = aclrt.kernel(lambda: None, core="aicpu", cost_ns=1_000_000)
    async with aclrt.open_device(clock="virtual", limits={"aiv_cores": 1, "aicpu_cores": 1}) as dev:
        a, b = dev.stream(), dev.stream()
        for first, second, expected in ((slow, slow_control, 1e6), (slow, slow, 2e6)):
            started = dev.now_ns()
            a.launch(first)
            b.launch(second)
            await dev.synchronize()
            assert dev.now_ns() - started == pytest.approx(expected, rel=0.1)


async def test_a_model_with_an_ai_cpu_kernel_that_fails() -> None:
    async with aclrt.open_device() as dev:
        model = acl.aclmdlRIBuildBegin(0)
        stream, x = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT), dev.array(np.zeros(1, "f8"))
        acl.aclmdlRIBindStream(model, stream, acl.ACL_MODEL_STREAM_FLAG_HEAD)
        stream.launch(control, x, 1.0)
        stream.launch(broken_control, x)
        stream.launch(control, x, 2.0)
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        for _ in range(2):  # a normal model does not enter FAULT
            x.assign([0])
            with pytest.raises(aclrt.AclError) as caught:
                await acl.aclmdlRIExecute(model, -1)
            assert caught.value.code == 507011
            inner = caught.value.__cause__
            assert isinstance(inner, aclrt.AclError)
            assert inner.code == 507018
            assert isinstance(inner.__cause__, ArithmeticError)
            assert x.numpy()[0] == 1
