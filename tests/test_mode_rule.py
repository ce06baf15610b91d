"""The rule for unsafe calls, end to end: captures here and elsewhere, every exchange mode, every such call.

Not the rule as a function (`tests/base/test_capture_mode.py`) and not which calls there are in C.
"""

from __future__ import annotations

import asyncio
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MODES = GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
H2D = acl.ACL_MEMCPY_HOST_TO_DEVICE
OPEN = [(), *((mode,) for mode in MODES), (GLOBAL, RELAXED), (THREAD_LOCAL, RELAXED), (RELAXED, THREAD_LOCAL, GLOBAL)]


def allowed(here: tuple[int, ...], elsewhere: tuple[int, ...], exchange: int) -> bool:
    """acl_semantics 4.5, said of the captures themselves."""
    if not (here or elsewhere) or exchange == RELAXED:
        return True
    if exchange == GLOBAL:
        return GLOBAL not in here + elsewhere and (not here or min(here) != THREAD_LOCAL)
    return not here or min(here) == RELAXED


async def capture_elsewhere(modes: tuple[int, ...], ready: asyncio.Event, done: asyncio.Event) -> None:
    streams = [acl.aclrtCreateStream() for _ in modes]
    for stream, mode in zip(streams, modes, strict=True):
        acl.aclmdlRICaptureBegin(stream, mode)
    ready.set()
    await done.wait()
    for stream in streams:
        acl.aclmdlRICaptureEnd(stream)


def unsafe_calls(dev: aclrt.Device) -> dict[str, Callable[[], Any]]:
    """Everything that works at once on memory a capture might use (acl_semantics 4.5)."""
    x, host, pinned = dev.array(np.zeros(8, np.float32)), np.zeros(8, np.float32), acl.aclrtMallocHost(32)
    return {
        "memcpy": lambda: acl.aclrtMemcpy(x, 32, host, 32, H2D),
        "memcpy of pinned memory": lambda: acl.aclrtMemcpy(x, 32, pinned, 32, H2D),
        "memset": lambda: acl.aclrtMemset(x.address, 32, 0, 32),
        "memcpy2d": lambda: acl.aclrtMemcpy2d(x, 16, host, 16, 16, 2, H2D),
        "array": lambda: dev.array(host),
        "numpy": x.numpy,
        "assign": lambda: x.assign(host),
    }


async def code(call: Callable[[], Awaitable[object] | object]) -> int:
    try:
        made = call()
        if asyncio.iscoroutine(made):
            await made
    except aclrt.AclError as error:
        return error.code
    return 0


@pytest.mark.parametrize("exchange", MODES)
async def test_the_whole_table(exchange: int) -> None:
    for here, elsewhere in product(OPEN, OPEN):
        async with aclrt.open_device() as dev:
            calls = unsafe_calls(dev)
            plain, pageable, x = dev.stream(), np.zeros(8, np.float32), dev.empty(8)
            ready, done = asyncio.Event(), asyncio.Event()
            other = asyncio.create_task(capture_elsewhere(elsewhere, ready, done))
            await ready.wait()
            streams = [dev.stream() for _ in here]
            for stream, mode in zip(streams, here, strict=True):
                acl.aclmdlRICaptureBegin(stream, mode)
            acl.aclmdlRICaptureThreadExchangeMode(exchange)
            expected = allowed(here, elsewhere, exchange)
            case = f"captures here {here}, elsewhere {elsewhere}"
            for name, call in calls.items():
                assert await code(call) == (0 if expected else 107030), f"{name}: {case}"
            # An asynchronous copy that pageable memory makes synchronous has a code of its own.
            got = await code(lambda: acl.aclrtMemcpyAsync(x, 32, pageable, 32, H2D, plain))  # noqa: B023
            assert got == (0 if expected else 107041), case
            for stream in streams:
                assert acl.aclmdlRICaptureGetInfo(stream).status == 1, case  # nothing was invalidated
                acl.aclmdlRICaptureEnd(stream)
            done.set()
            await other
            for name, call in calls.items():
                assert await code(call) == 0, name
