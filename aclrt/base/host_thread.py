"""Host threads: what the runtime keeps per calling thread. Here a host thread is an asyncio task, not an OS thread.

A ContextVar alone would not do: child tasks, callbacks and worker threads get a copy of it, a C thread-local they do
not. So each record is owned by one task, and a task that finds another's record starts its own. The current Context is
inherited on purpose: a child of a task group could not even create a stream otherwise (a deviation: C answers 107002).
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, final

from aclrt.base.capture_mode import ModeCounts
from aclrt.base.enums import CaptureMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_ids = count(1)
_host: ContextVar[HostThread | None] = ContextVar("aclrt_host_thread", default=None)
_current: ContextVar[object | None] = ContextVar("aclrt_current_context", default=None)

# What runs user code on an OS thread right now that may not call the runtime: thread ident -> what it is. Not a
# ContextVar: a task created from there would inherit the mark and be refused for ever.
_barred: dict[int, str] = {}


@final
class HostThread:
    """The record of one host thread. `exchange_mode` outlives captures; `modes` counts those begun here."""

    __slots__ = ("__weakref__", "_owner", "exchange_mode", "id", "modes")

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self.id = next(_ids)
        self.exchange_mode = CaptureMode.GLOBAL
        self.modes = ModeCounts()
        self._owner = weakref.ref(task)  # weak: the record lives in the context of the very task

    def owned_by(self, task: asyncio.Task[Any]) -> bool:
        return self._owner() is task

    def __repr__(self) -> str:
        task = self._owner()
        owner = task.get_name() if task is not None else "ended"
        return f"<HostThread {self.id} of {owner}, exchange {self.exchange_mode.name}, {self.modes!r}>"


if sys.version_info >= (3, 12) or TYPE_CHECKING:
    _current_task: Callable[[Any], asyncio.Task[Any] | None] = asyncio.current_task
else:
    # 3.11 has current_task in Python only: two calls where a dictionary look-up is enough on a path taken per launch.
    _current_task = asyncio.tasks._current_tasks.get
_running_loop = asyncio._get_running_loop


def require_task() -> asyncio.Task[Any]:
    """The calling task. RuntimeError where there is none, or where calls are refused: the cheap check of every call."""
    if not _barred or get_ident() not in _barred:
        loop = _running_loop()
        if loop is not None:
            task = _current_task(loop)
            if task is not None:
                return task
            where = "a callback of the event loop"
        else:
            where = "a thread without a running event loop"
    else:
        where = _barred[get_ident()]
    raise RuntimeError(f"call the runtime: this is {where}; a host thread is an asyncio task, call it from one")


def another_loop() -> NoReturn:
    """Refuse a task of another event loop than the device's: wake-ups would cross threads."""
    raise RuntimeError(
        "call the runtime: this is a task of another event loop than the device's; use the loop that opened it"
    )


barred = _barred
"""Empty unless some thread is inside `outside_tasks`: for hot paths that test it inline."""


def tasks_running() -> Mapping[Any, Any]:
    """A mapping that holds a loop while one of its tasks runs; for hot paths, with a thread test beside it.

    Where asyncio keeps no such table (3.14 on), a table that holds everything: the slow path then does the test.
    """
    table = getattr(asyncio.tasks, "_current_tasks", None)
    if isinstance(table, dict) and sys.version_info < (3, 14):
        return table
    return _Everything()


class _Everything(dict[Any, Any]):
    def __contains__(self, key: object) -> bool:
        return True


def host_thread() -> HostThread:
    """The calling task's record, made on its first call. RuntimeError outside a task (design.md, host threads)."""
    task = require_task()
    record = _host.get()
    if record is None or record._owner() is not task:
        record = HostThread(task)
        _host.set(record)
    return record


def host_thread_id() -> int:
    """A number for the calling host thread, never reused (the `threadId` of aclrtSubscribeReport)."""
    return host_thread().id


@contextmanager
def outside_tasks(what: str) -> Iterator[None]:
    """Run user code that may not call the runtime, whatever task happens to be below it on the stack."""
    ident = get_ident()
    before = _barred.get(ident)
    _barred[ident] = what
    try:
        yield
    finally:
        if before is None:
            del _barred[ident]
        else:
            _barred[ident] = before


def without_calls(what: str, run: Callable[[], object]) -> None:
    """`run()` inside `outside_tasks(what)`, for a path that counts nanoseconds."""
    ident = get_ident()
    if ident in _barred:
        run()
        return
    _barred[ident] = what
    try:
        run()
    finally:
        del _barred[ident]


def host_function() -> Any:
    """The region in which a host function runs."""
    return outside_tasks("a host function")


def current_context() -> object | None:
    """The current Context, as the calling task inherited or set it. What it is, `stream.context` knows."""
    return _current.get()


def set_current_context(context: object | None) -> None:
    """Make `context` current for the calling task and for tasks it creates from now on."""
    _current.set(context)
