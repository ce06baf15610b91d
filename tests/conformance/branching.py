"""A capture with conditional tasks, through the C names: what the cases of group H are made of."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

IF, WHILE, SWITCH = acl.ACL_MODEL_RI_COND_TYPE_IF, acl.ACL_MODEL_RI_COND_TYPE_WHILE, acl.ACL_MODEL_RI_COND_TYPE_SWITCH
ASSIGN_DEFAULT = acl.ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT
THREAD_LOCAL = acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL
D2D = acl.ACL_MEMCPY_DEVICE_TO_DEVICE

A = np.arange(1, 9, dtype=np.float32)
B = A / 2

Body = Callable[[Any], object]


@aclrt.kernel
def add_scaled(a: aclrt.In[np.float32], b: aclrt.In[np.float32], out: aclrt.Out[np.float32], alpha: float) -> None:
    out[:] = a + alpha * b


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], value: float) -> None:
    x += value


@aclrt.kernel
def count_down(counter: aclrt.InOut[np.int64], cell: aclrt.Out[np.uint64]) -> None:
    counter -= 1
    cell[0] = counter[0] > 0


@aclrt.kernel
def write(cell: aclrt.Out[np.uint64], value: int) -> None:
    cell[0] = value


@contextmanager
def refused(code: int) -> Iterator[None]:
    with pytest.raises(aclrt.AclError) as caught:
        yield
    assert caught.value.code == code


class Graph:
    """A capture on one stream, its conditional tasks and the memory they use."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.dev = dev
        self.stream = acl.aclrtCreateStream()
        self.exe = acl.aclrtCreateStream()
        self.a, self.b, self.out = dev.array(A), dev.array(B), dev.array(np.full(8, -1, np.float32))
        self.word, self.counter = dev.array(np.zeros(1, np.uint64)), dev.array(np.zeros(1, np.int64))
        acl.aclmdlRICaptureBegin(self.stream, THREAD_LOCAL)
        self.model = acl.aclmdlRICaptureGetInfo(self.stream).modelRI

    def launch(self, stream: Any, kernel: Any, *args: Any) -> None:
        acl.aclrtLaunchKernel(kernel, 1, list(args), stream)

    def scaled(self, alpha: float) -> Body:
        return lambda stream: self.launch(stream, add_scaled, self.a, self.b, self.out, alpha)

    def cond(
        self,
        kind: int,
        bodies: Sequence[Body],
        *,
        default: int = 0,
        flag: int = 0,
        stream: Any = None,
        model: Any = None,
    ) -> Any:
        """A conditional task with its branches captured; returns its cell as an array."""
        handle = acl.aclmdlRICondHandleCreate(model or self.model, default, flag)
        cell = aclrt.view(acl.aclmdlRICondHandleGetCondPtr(handle), (1,), np.uint64)
        for branch, body in zip(self.add(handle, kind, len(bodies), stream), bodies, strict=True):
            self.capture(branch, body)
        return cell

    def add(self, handle: Any, kind: int, size: int, stream: Any = None) -> list[Any]:
        params = acl.aclmdlRICondTaskParams(handle=handle, type=kind, size=size)
        models = acl.aclmdlRIAddCondTask(params, stream or self.stream, 0)
        assert params.modelRIArray == models
        return models

    def capture(self, branch: Any, body: Body) -> None:
        stream = acl.aclrtCreateStream()
        acl.aclmdlRICaptureToModelRIBegin(stream, branch, THREAD_LOCAL)
        body(stream)
        assert acl.aclmdlRICaptureEnd(stream) is branch

    def end(self) -> None:
        assert acl.aclmdlRICaptureEnd(self.stream) is self.model

    async def run(self) -> np.ndarray[Any, Any]:
        acl.aclmdlRIExecuteAsync(self.model, self.exe)
        await acl.aclrtSynchronizeStream(self.exe)
        return self.out.numpy()


def case(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Run a test on each chip with a Graph. Not a fixture: a fixture's task would be another host thread."""

    @functools.wraps(test)
    async def run(chip: str, **given: Any) -> None:
        async with aclrt.open_device(0, chip=chip) as dev:
            await test(Graph(dev), **given)

    signature = inspect.signature(test)
    chip = inspect.Parameter("chip", inspect.Parameter.KEYWORD_ONLY)
    others = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in list(signature.parameters.values())[1:]]
    run.__signature__ = signature.replace(parameters=[chip, *others])  # type: ignore[attr-defined]
    return pytest.mark.parametrize("chip", ["v100", "v200"])(run)
