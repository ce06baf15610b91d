"""Models with a stream that the AI-CPU schedules: the AI-CPU engine is told of load, execute and destroy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.chips import Core, SqeKind
from hw.observe import ObserverBase

HEAD = acl.ACL_MODEL_STREAM_FLAG_HEAD


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], a: float) -> None:
    x += a


class Kernels(ObserverBase):
    """The cores of the kernels that run, in order."""

    def __init__(self) -> None:
        self.cores: list[Core] = []

    def task_start(self, sq: int, slot: int, sqe: Any) -> None:
        if sqe.kind is SqeKind.KERNEL:
            self.cores.append(Core(sqe["core"]))


def scheduled(flags: int) -> tuple[Any, Any]:
    model, stream = acl.aclmdlRIBuildBegin(0), acl.aclrtCreateStreamWithConfig(0, flags)
    acl.aclmdlRIBindStream(model, stream, HEAD)
    return model, stream


async def test_the_engine_is_told_of_load_execute_and_destroy() -> None:
    async with aclrt.open_device() as dev:
        exe, x = dev.stream(), dev.array(np.zeros(1, "f4"))
        model, stream = scheduled(acl.ACL_STREAM_PERSISTENT | acl.ACL_STREAM_CPU_SCHEDULE)
        stream.launch(add, x, 1.0)
        acl.aclmdlRIEndTask(model, stream)
        with pytest.raises(aclrt.AclError) as caught:  # the AI-CPU path takes one end
            acl.aclmdlRIEndTask(model, stream)
        assert caught.value.code == 507000
        arguments = len(dev.npu.driver._m.args)
        acl.aclmdlRIBuildEnd(model)
        acl.aclmdlRIBuildEnd(model)
        await dev.default_stream.synchronize()
        table = dev.npu.aicpu_models.executions
        assert list(table.values()) == [0]
        seen = Kernels()
        dev.npu.driver.observe(seen)
        for executions in (1, 2, 3):
            await acl.aclmdlRIExecuteAsync(model, exe)
            assert list(table.values()) == [executions]
        assert seen.cores == [Core.AICPU, Core.AIV] * 3
        await acl.aclmdlRIDestroy(model)
        await dev.default_stream.synchronize()
        assert table == {}
        assert x.numpy()[0] == 3
        assert len(dev.npu.driver._m.args) < arguments


async def test_other_models_are_none_of_its_business() -> None:
    async with aclrt.open_device() as dev:
        model, stream = scheduled(acl.ACL_STREAM_PERSISTENT)
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        await acl.aclmdlRIExecute(model, -1)
        await acl.aclmdlRIDestroy(model)
        assert dev.npu.aicpu_models is None
