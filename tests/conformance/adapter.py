"""An `Adapter` makes the recorded calls, one by one, through the public names of `aclrt.acl`.

It is not an oracle: it knows no error number and no sequence. It keeps what a recording names (streams, events,
models, ...) and runs one asyncio task for each host thread of the recording.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Self

import aclrt
from aclrt import acl

from .graph_calls import GraphCalls
from .stream_calls import StreamCalls

if TYPE_CHECKING:
    from types import TracebackType

    from .names import Args, Out

    Call = Callable[[Args, Out], Any]

SUCCESS = 0


class Calls(StreamCalls, GraphCalls):
    """Every recorded operation, as a method of its name."""


class HostThread:
    """One asyncio task that makes its calls in the order they are put to it, as one operating-system thread would."""

    __slots__ = ("_inbox", "_task")

    def __init__(self, name: str) -> None:
        self._inbox: asyncio.Queue[tuple[Call, Args, asyncio.Future[Any]] | None] = asyncio.Queue()
        self._task = asyncio.get_running_loop().create_task(self._serve(), name=name)

    async def call(self, call: Call, args: Args) -> tuple[int | str, dict[str, Any]]:
        answer: asyncio.Future[tuple[int | str, dict[str, Any]]] = asyncio.get_running_loop().create_future()
        self._inbox.put_nowait((call, args, answer))
        return await answer

    async def stop(self) -> None:
        self._inbox.put_nowait(None)
        if not self._inbox.empty() and self._inbox.qsize() > 1:
            self._task.cancel()  # a call that never returned: the recording's run was given up
        await asyncio.wait((self._task,), timeout=1)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def _serve(self) -> None:
        acl.aclrtSetDevice(0)
        while (request := await self._inbox.get()) is not None:
            call, args, answer = request
            code, out = await _make(call, args)
            if not answer.done():
                answer.set_result((code, out))


async def _make(call: Call, args: Args) -> tuple[int | str, dict[str, Any]]:
    """The call's code and outputs. Calls write their outputs as they go, since C leaves some written on failure."""
    out: dict[str, Any] = {}
    try:
        waiting = call(args, out)
        if waiting is not None:
            code = await waiting if isinstance(waiting, Awaitable) else waiting
            return code or SUCCESS, out
        return SUCCESS, out
    except aclrt.AclError as error:
        return error.code, out
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = "/".join(frame.filename.rsplit("/", 2)[-2:])
        return f"{type(error).__name__} at {place}:{frame.lineno}: {error}", out


class Adapter:
    """`async with Adapter(chip) as a: code, out = await a.do(thread, op, args)`, on a fresh null device."""

    __slots__ = ("_calls", "_device", "_threads")

    def __init__(self, chip: str = "v100") -> None:
        self._device = aclrt.open_device(0, chip=chip, engine="null")
        self._calls = Calls()
        self._threads: dict[int, HostThread] = {}

    async def __aenter__(self) -> Self:
        await self._device.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for thread in self._threads.values():
            await thread.stop()
        await self._device.__aexit__(kind, error, trace)

    async def do(self, thread: int, op: str, args: Args) -> tuple[int | str, dict[str, Any]]:
        """Make the call in host thread `thread`. The code is 0 on success, else the error's."""
        host = self._threads.get(thread)
        if host is None:
            host = self._threads[thread] = HostThread(f"host thread {thread}")
        return await host.call(getattr(self._calls, op), args)

    def statuses(self) -> dict[str, int]:
        """The capture status of every live stream that has one (1 active, 2 invalidated), by name."""
        found = {}
        for name, stream in self._calls.streams.items():
            if name not in self._calls.destroyed_streams:
                status = acl.aclmdlRICaptureGetInfo(stream).status
                if status:
                    found[name] = int(status)
        return found
