"""Streams that start streams: activate, and the switch in its six conditions and two widths."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

HEAD, DEFAULT = acl.ACL_MODEL_STREAM_FLAG_HEAD, acl.ACL_MODEL_STREAM_FLAG_DEFAULT
H2D, D2D = acl.ACL_MEMCPY_HOST_TO_DEVICE, acl.ACL_MEMCPY_DEVICE_TO_DEVICE


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], a: float) -> None:
    x += a


@aclrt.kernel
def weighted(a: aclrt.In[np.float32], b: aclrt.In[np.float32], out: aclrt.Out[np.float32], alpha: float) -> None:
    out[:] = a + np.float32(alpha) * b


def model_with(count: int) -> tuple[Any, list[Any]]:
    """A model of persistent streams, the first its head."""
    model = acl.aclmdlRIBuildBegin(0)
    streams = [acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT) for _ in range(count)]
    for at, stream in enumerate(streams):
        acl.aclmdlRIBindStream(model, stream, DEFAULT if at else HEAD)
    return model, streams


def complete(model: Any, last: Any) -> None:
    acl.aclmdlRIEndTask(model, last)
    acl.aclmdlRIBuildEnd(model)


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_the_official_model_switch_example(chip: str) -> None:
    """acl_semantics 13, example 2: five streams, two switches, with the numbers its README prints."""
    async with aclrt.open_device(chip=chip) as dev:
        model, (s1, s2, s3, s4, end) = model_with(5)
        exe = dev.stream()
        values = {1: 1.0, 2: 2.0, 3: 3.0}
        host = {k: acl.aclrtMallocHost(32) for k in values}
        twos = acl.aclrtMallocHost(32)
        for k, value in values.items():
            host[k].numpy(np.float32)[:] = value
        twos.numpy(np.float32)[:] = 2.0
        self_ = {k: dev.empty(8) for k in values}
        other = {k: dev.empty(8) for k in values}
        data = {k: dev.empty(8) for k in values}
        source, number = dev.array(np.array([1], "i8")), dev.array(np.zeros(1, "i8"))
        constants = {k: dev.array(np.array([k], "i8")) for k in (1, 2)}
        for k, stream in ((1, s1), (2, s2), (3, s3)):
            acl.aclrtMemcpyAsync(self_[k], 32, host[k], 32, H2D, stream)
            acl.aclrtMemcpyAsync(other[k], 32, twos, 32, H2D, stream)
            stream.launch(weighted, self_[k], other[k], data[k], 1.2)
        acl.aclrtMemcpyAsync(number, 8, source, 8, D2D, s1)
        acl.aclrtActiveStream(end, s2)
        acl.aclrtActiveStream(end, s3)
        acl.aclrtSwitchStream(number, acl.ACL_RT_EQUAL, constants[1], acl.ACL_RT_SWITCH_INT64, s3, None, s1)
        acl.aclrtSwitchStream(number, acl.ACL_RT_EQUAL, constants[2], acl.ACL_RT_SWITCH_INT64, s4, None, s1)
        acl.aclrtActiveStream(s2, s4)
        complete(model, end)

        acl.aclmdlRIExecuteAsync(model, exe)
        await acl.aclrtSynchronizeStream(exe)
        assert np.allclose(data[1].numpy(), 3.4)
        assert np.all(data[2].numpy() == 0.0)
        assert np.allclose(data[3].numpy(), 5.4)

        source.assign([2])
        acl.aclmdlRIExecuteAsync(model, exe)
        await acl.aclrtSynchronizeStream(exe)
        assert np.allclose(data[1].numpy(), 3.4)
        assert np.allclose(data[2].numpy(), 4.4)
        assert np.allclose(data[3].numpy(), 5.4)

        for stream in (s1, s2, s3, s4, end):
            acl.aclmdlRIUnbindStream(model, stream)
        await acl.aclmdlRIDestroy(model)


CONDITIONS = {
    acl.ACL_RT_EQUAL: operator.eq,
    acl.ACL_RT_NOT_EQUAL: operator.ne,
    acl.ACL_RT_GREATER: operator.gt,
    acl.ACL_RT_GREATER_OR_EQUAL: operator.ge,
    acl.ACL_RT_LESS: operator.lt,
    acl.ACL_RT_LESS_OR_EQUAL: operator.le,
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("cond", CONDITIONS, ids=lambda cond: cond.name)
async def test_a_switch_compares_signed_values_when_it_runs(cond: Any, dtype: type) -> None:
    async with aclrt.open_device() as dev:
        model, (head, true, end) = model_with(3)
        left, right = dev.array(np.zeros(1, dtype)), dev.array(np.zeros(1, dtype))
        x = dev.array(np.zeros(2, "f4"))
        code = acl.ACL_RT_SWITCH_INT32 if dtype is np.int32 else acl.ACL_RT_SWITCH_INT64
        acl.aclrtSwitchStream(left, cond, right, code, true, None, head)
        head.launch(add, x[:1], 1.0)  # runs only when the switch is not taken
        acl.aclrtActiveStream(end, head)
        true.launch(add, x[1:], 1.0)
        acl.aclrtActiveStream(end, true)
        complete(model, end)
        least = np.iinfo(dtype).min
        for a, b in ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (int(least), 1)):
            left.assign([a])
            right.assign([b])
            x.assign([0, 0])
            await acl.aclmdlRIExecute(model, -1)
            assert x.numpy().tolist() == ([0, 1] if CONDITIONS[cond](a, b) else [1, 0]), (a, b)


async def test_int32_looks_at_four_bytes_only() -> None:
    async with aclrt.open_device() as dev:
        model, (head, true, end) = model_with(3)
        left, right = dev.array(np.array([7, 99], "i4")), dev.array(np.array([7, -1], "i4"))
        x = dev.array(np.zeros(1, "f4"))
        acl.aclrtSwitchStream(left, acl.ACL_RT_EQUAL, right, acl.ACL_RT_SWITCH_INT32, true, None, head)
        acl.aclrtActiveStream(end, head)
        true.launch(add, x, 1.0)
        acl.aclrtActiveStream(end, true)
        complete(model, end)
        await acl.aclmdlRIExecute(model, -1)
        assert x.numpy()[0] == 1


async def test_a_finished_stream_may_be_activated_again_in_the_same_run() -> None:
    async with aclrt.open_device() as dev:
        model, (head, side) = model_with(2)
        x, flag = dev.array(np.zeros(1, "f4")), dev.array(np.zeros(1, "i8"))
        for turn in (1, 2, 3):
            acl.aclrtActiveStream(side, head)
            acl.aclrtValueWait(flag, turn, acl.ACL_VALUE_WAIT_EQ, head)
        side.launch(add, x, 1.0)
        side.launch(bump, flag)
        complete(model, head)
        for executions in (1, 2):
            flag.assign([0])
            await acl.aclmdlRIExecute(model, -1)
            assert x.numpy()[0] == 3 * executions


@aclrt.kernel
def bump(flag: aclrt.InOut[np.int64]) -> None:
    flag += 1


async def test_activating_a_running_stream_ends_the_run() -> None:
    async with aclrt.open_device() as dev:
        model, (head, side) = model_with(2)
        flag, exe = dev.array(np.zeros(1, "i8")), dev.stream()
        acl.aclrtValueWait(flag, 1, acl.ACL_VALUE_WAIT_EQ, side)
        acl.aclrtActiveStream(side, head)
        acl.aclrtActiveStream(side, head)
        complete(model, head)
        run = acl.aclmdlRIExecuteAsync(model, exe)
        with pytest.raises(aclrt.AclError) as caught:
            await run
        assert caught.value.code == 507011
        assert caught.value.__cause__ is not None
        assert caught.value.__cause__.code == 507001  # type: ignore[attr-defined]
        with pytest.raises(aclrt.AclError):
            await exe.synchronize()


async def test_a_stream_nobody_activates_neither_runs_nor_holds_the_end_up() -> None:
    async with aclrt.open_device() as dev:
        model, (head, idle) = model_with(2)
        x = dev.array(np.zeros(1, "f4"))
        idle.launch(add, x, 1.0)
        complete(model, head)
        await acl.aclmdlRIExecute(model, -1)
        assert x.numpy()[0] == 0


async def test_a_target_that_was_unbound_is_reported_by_the_run() -> None:
    async with aclrt.open_device():
        model, (head, side) = model_with(2)
        acl.aclrtActiveStream(side, head)
        acl.aclmdlRIUnbindStream(model, side)
        complete(model, head)
        with pytest.raises(aclrt.AclError) as caught:
            await acl.aclmdlRIExecute(model, -1)
        assert caught.value.code == 507011
