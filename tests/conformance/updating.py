"""What the cases on task groups, updates and external events share: kernels, a capture in C names, refusals."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

GLOBAL = acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
RELAXED = acl.ACL_MODEL_RI_CAPTURE_MODE_RELAXED
READY_TIMEOUT = 2000  # device ms: a wait that should not block is given this long
ONES = np.arange(1, 9, dtype=np.float32)


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], value: float) -> None:
    x += value


@aclrt.kernel
def scale(x: aclrt.InOut[np.float32], value: float) -> None:
    x *= value


@aclrt.kernel
def add_scaled(a: aclrt.In[np.float32], b: aclrt.In[np.float32], out: aclrt.Out[np.float32], alpha: float) -> None:
    """The operator of the official examples: out = a + alpha * b."""
    out[:] = a + np.float32(alpha) * b


@aclrt.kernel(core="aic")
def add_cube(x: aclrt.InOut[np.float32], value: float) -> None:
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


def launch(stream: Any, kernel: Any, *args: Any) -> None:
    acl.aclrtLaunchKernel(kernel, 1, list(args), stream)


class Bench:
    """Three streams, a few arrays and the captures made with them, on one open device."""

    def __init__(self, dev: aclrt.Device, chip: str) -> None:
        self.dev = dev
        self.chip = chip
        self.s, self.side, self.third = (acl.aclrtCreateStream() for _ in range(3))
        self.x, self.y = (dev.array(np.zeros(8, np.float32)) for _ in range(2))

    def begin(self, stream: Any = None, mode: int = GLOBAL) -> None:
        acl.aclmdlRICaptureBegin(stream or self.s, mode)

    def end(self, stream: Any = None) -> Any:
        return acl.aclmdlRICaptureEnd(stream or self.s)

    def group(self, *values: float, stream: Any = None) -> Any:
        """A group of one `add` to x for each value."""
        acl.aclmdlRICaptureTaskGrpBegin(stream or self.s)
        for value in values:
            launch(stream or self.s, add, self.x, value)
        return acl.aclmdlRICaptureTaskGrpEnd(stream or self.s)

    def update(self, group: Any, *values: float, on: Any = None) -> None:
        stream = on or self.side
        acl.aclmdlRICaptureTaskUpdateBegin(stream, group)
        for value in values:
            launch(stream, add, self.x, value)
        acl.aclmdlRICaptureTaskUpdateEnd(stream)

    async def sync(self, stream: Any = None) -> None:
        await acl.aclrtSynchronizeStreamWithTimeout(stream or self.s, READY_TIMEOUT)

    async def run(self, model: Any, stream: Any = None) -> float:
        acl.aclmdlRIExecuteAsync(model, stream or self.s)
        await self.sync(stream)
        return float(self.x.numpy()[0])

    def tasks(self, model: Any, stream: int = -1) -> list[Any]:
        """Those of one of the model's streams, the origin by default."""
        return acl.aclmdlRIGetTasksByStream(acl.aclmdlRIGetStreams(model)[stream])


def case(fn: Callable[[Bench], Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Run a case on both chips, each time on a fresh device."""

    @pytest.mark.parametrize("chip", ["v100", "v200"])
    @functools.wraps(fn)
    async def run(chip: str) -> None:
        async with aclrt.open_device(0, chip=chip) as dev:
            await fn(Bench(dev, chip))

    del run.__wrapped__  # pytest would ask for the case's own parameter
    return run
