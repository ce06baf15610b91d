"""What the cases on captures share: a device with given limits, host threads, events by kind, and small questions."""

from __future__ import annotations

import asyncio
import functools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .updating import GLOBAL, RELAXED, Bench, add, launch, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

__all__ = ["GLOBAL", "RELAXED", "Bench", "add", "launch", "refused"]

THREAD_LOCAL = acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL
MODES = (GLOBAL, THREAD_LOCAL, RELAXED)
NONE, ACTIVE, INVALIDATED = 0, 1, 2
H2D, D2H, D2D = acl.ACL_MEMCPY_HOST_TO_DEVICE, acl.ACL_MEMCPY_DEVICE_TO_HOST, acl.ACL_MEMCPY_DEVICE_TO_DEVICE


@aclrt.kernel
def axpy(x: aclrt.In[np.float32], y: aclrt.InOut[np.float32], a: float) -> None:
    """Several of them do not commute, so that a wrong order shows."""
    y *= 2
    y += np.float32(a) * x


@aclrt.kernel
def scaled_sum(a: aclrt.In[np.float32], b: aclrt.In[np.float32], out: aclrt.Out[np.float32]) -> None:
    """The operator of the official fork example: out = a + 1.1 b."""
    out[:] = a + np.float32(1.1) * b


@aclrt.kernel
def push(trace: aclrt.InOut[np.int64], value: int) -> None:
    """Append a digit to each cell: the order of the launches can be read off it."""
    trace *= 10
    trace += value


def on(**options: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    """Run a case on both chips, each time on a fresh device opened with `options`."""

    def decorate(fn: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        @pytest.mark.parametrize("chip", ["v100", "v200"])
        @functools.wraps(fn)
        async def run(chip: str) -> None:
            async with aclrt.open_device(0, chip=chip, **options) as dev:
                await fn(Bench(dev, chip))

        del run.__wrapped__  # pytest would ask for the case's own parameter
        return cast("Callable[..., Awaitable[None]]", run)

    return decorate


case = on()


class HostThread:
    """An asyncio task that makes the calls put to it, in order: another operating-system thread of the application."""

    def __init__(self, name: str) -> None:
        self._calls: asyncio.Queue[tuple[Callable[..., Any], tuple[Any, ...], asyncio.Future[Any]] | None]
        self._calls = asyncio.Queue()
        self.task = asyncio.get_running_loop().create_task(self._serve(), name=name)

    async def __call__(self, call: Callable[..., Any], *args: Any) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls.put_nowait((call, args, answer))
        return await answer

    async def refuses(self, code: int, call: Callable[..., Any], *args: Any) -> None:
        with refused(code):
            await self(call, *args)

    async def _serve(self) -> None:
        while (request := await self._calls.get()) is not None:
            call, args, answer = request
            try:
                made = call(*args)
                answer.set_result(await made if asyncio.iscoroutine(made) else made)
            except aclrt.AclError as error:
                answer.set_exception(error)

    def end(self) -> None:
        self._calls.put_nowait(None)


@asynccontextmanager
async def threads(count: int) -> AsyncIterator[list[HostThread]]:
    """Some host threads beside the test's own."""
    made = [HostThread(f"host thread {number}") for number in range(count)]
    try:
        yield made
    finally:
        for thread in made:
            thread.end()
        await asyncio.gather(*(thread.task for thread in made))


def new_event(flag: int = acl.ACL_EVENT_SYNC) -> Any:
    """A new-mode event, the kind that can be captured."""
    return acl.aclrtCreateEventExWithFlag(flag)


def external_event() -> Any:
    return acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL)


def fork(origin: Any, *sides: Any) -> Any:
    """Record on `origin`, wait on each side: they join the capture. Returns the event."""
    event = new_event()
    acl.aclrtRecordEvent(event, origin)
    for side in sides:
        acl.aclrtStreamWaitEvent(side, event)
    return event


def join(origin: Any, *sides: Any) -> None:
    """Record on each side, wait on `origin`."""
    for side in sides:
        fork(side, origin)


def status(stream: Any) -> int:
    return int(acl.aclmdlRICaptureGetInfo(stream).status)


def model_of(stream: Any) -> Any:
    return acl.aclmdlRICaptureGetInfo(stream).modelRI


def memset(x: Any) -> Coroutine[Any, Any, None]:
    """An unsafe call: a synchronous set of the first bytes, to what they are in a fresh array."""
    return acl.aclrtMemset(x.address, 4, 0, 4)


def value(x: Any) -> float:
    """The first element, read by a plain copy."""
    return float(x.numpy()[0])


async def still_works(b: Bench, *streams: Any) -> None:
    """Each stream can be captured and executed on again."""
    for stream in streams:
        assert acl.aclmdlRICaptureGetInfo(stream) == (NONE, None)
        y = b.dev.array(np.zeros(4, np.float32))
        b.begin(stream)
        launch(stream, add, y, 3.0)
        model = b.end(stream)
        acl.aclmdlRIExecuteAsync(model, stream)
        await b.sync(stream)
        assert (y.numpy() == 3).all()
        await acl.aclmdlRIDestroy(model)
