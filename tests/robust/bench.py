"""What the robustness tests share: small kernels, a count of all that could leak, refusals. Not a test."""

from __future__ import annotations

import asyncio
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from hw.driver import IdKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


class Boom(Exception):
    """What a failing kernel of these tests raises."""


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], a: float) -> None:
    x += a


@aclrt.kernel
def double(x: aclrt.InOut[np.float32]) -> None:
    x *= 2


def _boom(x: aclrt.InOut[np.float32]) -> None:
    raise Boom("no such luck")


boom = aclrt.kernel(_boom, name="boom")
boom_aic = aclrt.kernel(_boom, core="aic", name="boom_aic")
boom_aicpu = aclrt.kernel(_boom, core="aicpu", name="boom_aicpu")


def array(dev: aclrt.Device, n: int = 8) -> aclrt.DeviceArray:
    """`n` zeroed floats on the device."""
    return dev.empty(n, np.float32)


def held(dev: aclrt.Device) -> dict[str, int]:
    """Everything that could leak, on the device and in the host's book-keeping."""
    npu, driver = dev.npu, dev.npu.driver
    machine = driver._m
    counts = {kind.name: driver.held(kind) for kind in IdKind}
    return counts | {
        "bytes": driver.used_bytes,
        "images": len(machine.images._images),
        "arguments": len(machine.args),
        "device models": len(machine.models.models),
        "model SQs": len(machine.models.sqs),
        "user SQs": len(machine.rings),
        "faults": len(machine.faults),
        "parked": driver.waiting(),
        "host queues": len(npu.queues),
        "host waits": len(npu.waits),
        "host streams": len(npu.streams),
        "callbacks": len(npu._callbacks),
        "held runs": len(npu.short),
        "models": sum(1 for _ in npu.models()),
        "marks": sum(len(stream._marks) for context in npu.contexts for stream in context.streams),
        "failure takers": sum(len(stream._failures) for context in npu.contexts for stream in context.streams),
        "modes": sum(context.modes.strictest is not None for context in npu.contexts),
    }


def assert_held(dev: aclrt.Device, before: dict[str, int]) -> None:
    """Everything is where it was; what only a cycle of garbage holds (errors and their frames) does not count."""
    if held(dev) != before:
        gc.collect()
    assert held(dev) == before


def captured(dev: aclrt.Device) -> list[Any]:
    """Streams that are still in a capture: always none after one ended, however it ended."""
    return [stream for context in dev.npu.contexts for stream in context.streams if stream.capturing or stream.capture]


@contextmanager
def refused(code: int, *words: str) -> Iterator[pytest.ExceptionInfo[aclrt.AclError]]:
    """The block fails with `code`, in one line that ends with it and has `words` in it."""
    with pytest.raises(aclrt.AclError) as caught:
        yield caught
    assert caught.value.code == code, caught.value
    text = str(caught.value)
    assert text.endswith(f"[{code}]")
    assert "\n" not in text
    for word in words:
        assert word in text, text


async def code_of(awaitable: Awaitable[Any]) -> int:
    """The code that awaiting it raises; 0 for none."""
    try:
        await awaitable
    except aclrt.AclError as error:
        return error.code
    return 0


async def until(true: Callable[[], bool], passes: int = 10_000) -> None:
    """Let the loop run until the condition holds; fails rather than hangs."""
    for _ in range(passes):
        if true():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never came true")
