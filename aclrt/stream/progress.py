"""Progress of streams as the host asks for it: synchronize, query, abort. Not the device's side (`hw.ts`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclrt.base import errors
from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import StreamStatus
from aclrt.stream import context as contexts
from aclrt.stream.checks import check_handle, check_timeout, refuse_capturing, resolve

if TYPE_CHECKING:
    from aclrt.base.errors import AclError
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream


async def synchronize(ctx: Context | None, stream: Stream | None, timeout_ms: int = -1) -> None:
    """aclrtSynchronizeStream(WithTimeout). Errors: 107000, 107017, 107027, 107002, 507046, the failure of a task."""
    asked = "aclrtSynchronizeStream"
    check_timeout(timeout_ms, asked)
    stream = resolve(ctx, stream, asked)
    refuse_capturing(stream, asked)
    if stream.never_waited:
        return  # such streams are never waited for (acl_semantics 1.6)
    if stream.context.failure is None:
        await stream.drained(asked, timeout_ms)
        _refuse_gone(stream, asked)
    error = stream.take_error()
    if error is not None:
        raise error


def _refuse_gone(stream: Stream, asked: str) -> None:
    """107023 when the stream was destroyed, or its device closed, while the call waited for it."""
    if not stream.alive:
        raise errors.fail(Code.RT_STREAM_ABORT, asked, f"{stream!r} while the call waited", "synchronize before that")


def query(ctx: Context | None, stream: Stream | None) -> StreamStatus:
    """aclrtStreamQuery. Errors: 107017, 107027, 107002."""
    stream = resolve(ctx, stream, "aclrtStreamQuery")
    refuse_capturing(stream, "aclrtStreamQuery")
    if stream.never_waited or stream.completed >= stream.submitted or stream.npu.null:
        return StreamStatus.COMPLETE
    return StreamStatus.NOT_READY


async def synchronize_device(ctx: Context | None, timeout_ms: int = -1) -> None:
    """aclrtSynchronizeDevice(WithTimeout): every stream of the current context. Errors: 107000, 107002, 107027,
    507046."""
    asked = "aclrtSynchronizeDevice"
    check_timeout(timeout_ms, asked)
    ctx = contexts.require(ctx, asked)
    capturing = ctx.capturing()
    if capturing is not None:
        refuse_capturing(capturing, asked)
    first: AclError | None = None
    for stream in list(ctx.streams):
        if stream.alive and not stream.persistent:
            await stream.drained(asked, timeout_ms)
            _refuse_gone(stream, asked)
            first = first or stream.take_error()
    if first is not None:
        raise first


async def abort(ctx: Context | None, stream: Stream) -> None:
    """aclrtStreamAbort: stop the current task at its boundary and drop what is queued. Errors: 107017, 107003,
    507000."""
    asked = "aclrtStreamAbort"
    check_handle(stream, asked)
    contexts.require_same(ctx, stream, asked)
    if stream.model is not None:
        raise errors.fail(
            Code.RT_INTERNAL_ERROR, asked, f"stream {stream.id} is bound to {stream.model.title()}", "abort the model"
        )
    stream.launcher.drop()
    for held in [held for held in stream.npu.short if held.stream is stream]:
        met = f"stream {stream.id} held runs that waited for resources"
        held.drop(errors.fail(Code.RT_STREAM_ABORT, asked, met, "execute again"))
    stream.npu.driver.sq_abort(stream.sq)
    if stream.gate is not None:
        stream.gate.clear()
    await stream.drained(asked)
