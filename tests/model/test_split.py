"""Streams over the task limit: split into master and slaves on v200, refused on v100."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.driver import IdKind

HEAD = acl.ACL_MODEL_STREAM_FLAG_HEAD
SMALL = {"stream_task_limit": 100}  # 100 - 32 - 8: at most 59 tasks in a part


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], a: float) -> None:
    x += a


@aclrt.kernel
def mix(x: aclrt.InOut[np.uint64], a: int) -> None:
    x[:] = x * np.uint64(6364136223846793005) + np.uint64(a)  # the order of all tasks shows in the result


def bound(model: Any) -> Any:
    stream = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
    acl.aclmdlRIBindStream(model, stream, HEAD)
    return stream


def complete(model: Any, last: Any) -> None:
    acl.aclmdlRIEndTask(model, last)
    acl.aclmdlRIBuildEnd(model)


async def test_a_stream_of_100_000_tasks_splits_and_gives_the_same_result() -> None:
    tasks = 100_000
    async with aclrt.open_device(chip="v200") as dev:
        model, exe = acl.aclmdlRIBuildBegin(0), dev.stream()
        stream, x = bound(model), dev.array(np.zeros(1, "f4"))
        for _ in range(tasks):
            stream.launch(add, x, 1.0)
        streams = dev.npu.driver.held(IdKind.STREAM)
        complete(model, stream)
        slaves = len(stream.kept.parts) - 1
        assert slaves == 3  # 32,726 tasks a part: 32767 - 32 - 8 - 1
        assert [len(part.tasks) for part in stream.kept.parts[:2]] == [32_727, 32_727]  # the link is one of them
        assert dev.npu.driver.held(IdKind.STREAM) == streams + slaves
        assert acl.aclmdlRIGetStreams(model) == [stream]
        assert len(acl.aclmdlRIGetTasksByStream(stream)) == tasks + 1
        for runs in (1, 2):
            await acl.aclmdlRIExecuteAsync(model, exe)
            assert x.numpy()[0] == runs * tasks
        acl.aclmdlRIUnbindStream(model, stream)
        assert dev.npu.driver.held(IdKind.STREAM) == streams
        await acl.aclmdlRIDestroy(model)


@pytest.mark.parametrize("tasks", [58, 59, 60, 118, 119, 1000])
async def test_order_is_kept_across_the_parts(tasks: int) -> None:
    async with aclrt.open_device(chip="v200", limits=SMALL) as dev:
        model = acl.aclmdlRIBuildBegin(0)
        stream, x = bound(model), dev.array(np.ones(1, "u8"))
        expected = np.ones(1, "u8")
        for at in range(tasks):
            stream.launch(mix, x, at)
            mix(expected, at)
        complete(model, stream)
        await acl.aclmdlRIExecute(model, -1)
        assert x.numpy()[0] == expected[0]
        assert (len(stream.kept.parts) > 1) == (tasks + 1 > 59)


async def test_labels_and_memory_waits_work_in_slave_streams() -> None:
    async with aclrt.open_device(chip="v200", limits=SMALL) as dev:
        model = acl.aclmdlRIBuildBegin(0)
        stream, x = bound(model), dev.array(np.zeros(1, "f4"))
        index, turns, flag = dev.array(np.zeros(1, "u4")), dev.array(np.zeros(1, "i8")), dev.array(np.ones(1, "i8"))
        begin, end = acl.aclrtCreateLabel(), acl.aclrtCreateLabel()
        table = acl.aclrtCreateLabelList([begin, end])
        acl.aclrtSetLabel(begin, stream)
        for _ in range(200):
            stream.launch(add, x, 1.0)
            acl.aclrtValueWait(flag, 1, acl.ACL_VALUE_WAIT_EQ, stream)
        stream.launch(count, index, turns, 3)
        acl.aclrtSwitchLabelByIndex(index, 2, table, stream)  # from the last part back to the first
        acl.rtLabelGoto(end, stream)
        acl.aclrtSetLabel(end, stream)
        complete(model, stream)
        await acl.aclmdlRIExecute(model, -1)
        assert turns.numpy()[0] == 3
        assert x.numpy()[0] == 600


@aclrt.kernel
def count(index: aclrt.InOut[np.uint32], turns: aclrt.InOut[np.int64], last: int) -> None:
    turns += 1
    index[0] = 0 if turns[0] < last else 1


async def test_no_stream_id_for_a_slave_leaves_the_model_as_it_was() -> None:
    async with aclrt.open_device(chip="v200", limits=SMALL | {"max_streams": 4}) as dev:
        model, spare, exe = acl.aclmdlRIBuildBegin(0), dev.stream(), dev.stream()
        stream, x = bound(model), dev.array(np.zeros(1, "f4"))
        for _ in range(150):
            stream.launch(add, x, 1.0)
        acl.aclmdlRIEndTask(model, stream)
        with pytest.raises(aclrt.AclError, match="stream resource") as caught:
            acl.aclmdlRIBuildEnd(model)
        assert caught.value.code == 207008
        assert dev.npu.driver.held(IdKind.STREAM) == 3
        assert not model.loaded
        await acl.aclrtDestroyStream(spare)
        acl.aclmdlRIBuildEnd(model)
        await acl.aclmdlRIExecuteAsync(model, exe)
        assert x.numpy()[0] == 150


async def test_v100_refuses_the_task_over_the_limit() -> None:
    async with aclrt.open_device(chip="v100", limits={"stream_task_limit": 10}) as dev:
        model = acl.aclmdlRIBuildBegin(0)
        stream, x = bound(model), dev.array(np.zeros(2, "f4"))
        for _ in range(9):
            stream.launch(add, x, 1.0)
        with pytest.raises(aclrt.AclError) as caught:
            acl.aclrtValueWait(x, 1, acl.ACL_VALUE_WAIT_EQ, stream)  # four SQEs
        assert caught.value.code == 507002
        acl.aclmdlRIEndTask(model, stream)
        with pytest.raises(aclrt.AclError) as caught:
            stream.launch(add, x, 1.0)
        assert caught.value.code == 507002
        acl.aclmdlRIBuildEnd(model)
        await acl.aclmdlRIExecute(model, -1)
        assert x.numpy()[0] == 9
