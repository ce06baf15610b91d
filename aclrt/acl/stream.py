"""aclrtStream functions: create, destroy, synchronize, query, modes, activation. Holds no logic.

Each function tests what the acl layer tests and makes one call; codes and their order are `aclrt.stream`'s.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from aclrt.acl.handles import DONE, handle, optional
from aclrt.stream import checks, lifecycle, progress
from aclrt.stream.context import current
from aclrt.stream.stream import Stream

if TYPE_CHECKING:
    from aclrt.base.completion import Completion
    from aclrt.base.enums import StreamStatus


def aclrtCreateStream() -> Stream:
    """A stream of priority 0 and no flags. Errors: 107002, 207005, 207008. Allowed during any capture."""
    return lifecycle.create(current())


def aclrtCreateStreamWithConfig(priority: int, flag: int) -> Stream:
    """A stream with `StreamFlag` bits; `priority` is clamped, unknown bits are ignored.

    Errors: 107002, 207005, 207008.
    """
    return lifecycle.create(current(), index(priority), index(flag))


async def aclrtDestroyStream(stream: Stream | None) -> None:
    """Wait for the stream's tasks, then free it. Errors: 100000, 107017, 107027, 107005, 107002, 107003."""
    await lifecycle.destroy(current(), handle(stream, Stream, "aclrtDestroyStream", "stream"))


def aclrtDestroyStreamForce(stream: Stream | None) -> Completion:
    """Free the stream now and drop what is queued on it; may be awaited like aclrtDestroyStream. Errors: as there."""
    lifecycle.destroy_now(current(), handle(stream, Stream, "aclrtDestroyStreamForce", "stream"))
    return DONE


async def aclrtSynchronizeStream(stream: Stream | None) -> None:
    """Wait for everything submitted; raises the stream's stored failure. None is the default stream.

    Errors: 107017, 107027.
    """
    await progress.synchronize(current(), optional(stream, Stream, "aclrtSynchronizeStream", "stream"))


async def aclrtSynchronizeStreamWithTimeout(stream: Stream | None, timeout: int) -> None:
    """As aclrtSynchronizeStream for at most `timeout` ms of device time, -1 for ever. Errors: 107000, 507046."""
    asked = "aclrtSynchronizeStreamWithTimeout"
    await progress.synchronize(current(), optional(stream, Stream, asked, "stream"), index(timeout))


def aclrtStreamQuery(stream: Stream | None) -> StreamStatus:
    """COMPLETE or NOT_READY. Errors: 107017, 107027."""
    return progress.query(current(), optional(stream, Stream, "aclrtStreamQuery", "stream"))


def aclrtStreamGetId(stream: Stream | None) -> int:
    """The stream's device id; None is the default stream. Errors: 107017, 107002."""
    return checks.resolve(current(), optional(stream, Stream, "aclrtStreamGetId", "stream"), "aclrtStreamGetId").id


def aclrtSetStreamFailureMode(stream: Stream | None, mode: int) -> None:
    """0 goes on after a failed task, 1 stops the stream; only bit 0 counts. Errors: 107017, 207000, 107002, 107003."""
    lifecycle.set_failure_mode(current(), optional(stream, Stream, "aclrtSetStreamFailureMode", "stream"), index(mode))


def aclrtSetStreamOverflowSwitch(stream: Stream | None, flag: int) -> None:
    """Switch overflow detection; no effect on numpy kernels. Errors: 107017, 107027 on a capturing stream."""
    lifecycle.set_overflow_switch(
        current(), optional(stream, Stream, "aclrtSetStreamOverflowSwitch", "stream"), index(flag)
    )


async def aclrtStreamAbort(stream: Stream | None) -> None:
    """Stop the running task at its boundary and drop what is queued.

    Errors: 100000, 107017, 107003, 507000 when bound.
    """
    await progress.abort(current(), handle(stream, Stream, "aclrtStreamAbort", "stream"))
