"""What the tests of task groups, updates and edits share: kernels, refusals, small graphs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.base.enums import TaskType
from aclrt.graph import task_update

if TYPE_CHECKING:
    from collections.abc import Iterator

CHIPS = ["v100", "v200"]


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], value: float) -> None:
    x += value


@aclrt.kernel
def mul(x: aclrt.InOut[np.float32], value: float) -> None:
    x *= value


@aclrt.kernel(core="aic")
def add_cube(x: aclrt.InOut[np.float32], value: float) -> None:
    x += value


@aclrt.kernel(core="aicpu")
def add_aicpu(x: aclrt.InOut[np.float32], value: float) -> None:
    x += value


@contextmanager
def refused(code: int, *words: str) -> Iterator[None]:
    """The block fails with `code`, in one line that ends with it and has `words` in it."""
    with pytest.raises(aclrt.AclError) as caught:
        yield
    assert caught.value.code == code, caught.value
    text = str(caught.value)
    assert text.endswith(f"[{code}]")
    assert "\n" not in text
    for word in words:
        assert word in text


def begin(stream: aclrt.Stream, group: Any) -> None:
    task_update.update_begin(stream.context, stream, group)


def end(stream: aclrt.Stream) -> None:
    task_update.update_end(stream.context, stream)


class Grouped:
    """A graph with one task before its group of two, on its own arrays."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.dev = dev
        self.s, self.side, self.third = dev.stream(), dev.stream(), dev.stream()
        self.x, self.y = dev.array(np.zeros(4, "f4")), dev.array(np.zeros(4, "f4"))
        self.graph: Any = None
        self.group: Any = None

    async def capture(self) -> Grouped:
        async with aclrt.capture(self.s) as self.graph:
            self.s.launch(add, self.y, 1.0)
            with self.s.task_group() as self.group:
                self.s.launch(add, self.x, 1.0)
                self.s.launch(add, self.x, 2.0)
        return self

    async def run(self) -> tuple[float, float]:
        await self.graph.replay(self.s)
        return float(self.x.numpy()[0]), float(self.y.numpy()[0])


class Mixed:
    """x += 1, a value write, x *= 10, and on a joined stream y += 5."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.dev = dev
        self.s, self.side = dev.stream(), dev.stream()
        self.x, self.y = dev.array(np.zeros(4, "f4")), dev.array(np.zeros(4, "f4"))
        self.cell = dev.array(np.zeros(2, "u8"))
        self.graph: Any = None

    async def capture(self) -> Mixed:
        async with aclrt.capture(self.s) as self.graph:
            self.s.launch(add, self.x, 1.0)
            acl.aclrtValueWrite(self.cell.address, 7, 0, self.s)
            self.s.launch(mul, self.x, 10.0)
            async with self.s.fork(self.side) as (b,):
                b.launch(add, self.y, 5.0)
        return self

    @property
    def tasks(self) -> list[Any]:
        """Those of the origin stream."""
        return acl.aclmdlRIGetTasksByStream(acl.aclmdlRIGetStreams(self.graph)[-1])

    async def run(self) -> tuple[float, float, int]:
        await self.graph.replay(self.s)
        return float(self.x.numpy()[0]), float(self.y.numpy()[0]), int(self.cell.numpy()[0])


def kernel_params(kernel: Any, *args: Any) -> Any:
    params = acl.aclmdlRITaskParams(type=TaskType.KERNEL)
    params.kernelTaskParams.funcHandle = kernel
    params.kernelTaskParams.args = list(args)
    params.kernelTaskParams.numBlocks = 1
    return params


def write_params(address: int, value: int) -> Any:
    params = acl.aclmdlRITaskParams(type=TaskType.VALUE_WRITE)
    params.valueWriteTaskParams.devAddr = address
    params.valueWriteTaskParams.value = value
    return params


def wait_params(address: int, value: int, flag: int) -> Any:
    params = acl.aclmdlRITaskParams(type=TaskType.VALUE_WAIT)
    params.valueWaitTaskParams.devAddr = address
    params.valueWaitTaskParams.value = value
    params.valueWaitTaskParams.flag = flag
    return params
