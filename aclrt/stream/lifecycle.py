"""The life of a stream: create, the default stream, failure mode, destroy. Not its work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclrt.base import errors
from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import FailureMode, StreamFlag
from aclrt.stream import context as contexts
from aclrt.stream.checks import check_handle, refuse_capturing, resolve
from aclrt.stream.persistent import keep
from aclrt.stream.stream import Stream
from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.stream.context import Context


def new_default(context: Context) -> Stream:
    """A context's default stream (`Context.default_stream` keeps it)."""
    return Stream(context, context.npu.alloc(IdKind.STREAM, "default stream"), StreamFlag.FAST_LAUNCH, 0, default=True)


def create(ctx: Context | None, priority: int = 0, flags: int = 0) -> Stream:
    """aclrtCreateStream / aclrtCreateStreamWithConfig. Errors: 107002, 207008. Source: acl_semantics 1.6."""
    ctx = contexts.require(ctx, "aclrtCreateStream")
    known = StreamFlag(flags & 0x3F)  # unknown bits are ignored
    stream = Stream(ctx, ctx.npu.alloc(IdKind.STREAM, "aclrtCreateStream"), known, max(0, min(7, priority)))
    if stream.persistent and ctx.npu.spec.auto_split:
        keep(stream)
    return stream


async def destroy(ctx: Context | None, stream: Stream) -> None:
    """aclrtDestroyStream: waits for the stream's tasks, those submitted meanwhile too. Errors: 107017, 107027, 107005
    (bound), 107002, 107003, also for what the stream became meanwhile.

    Source: acl_semantics 1.6.
    """
    asked = "aclrtDestroyStream"
    _check_destroyable(ctx, stream, asked)
    while not stream.npu.null and stream.completed < stream.submitted:
        await stream.drained(asked)
        if not stream.alive:
            return
        _check_destroyable(ctx, stream, asked)
    close(stream)


def destroy_now(ctx: Context | None, stream: Stream) -> None:
    """aclrtDestroyStreamForce: drops what is queued. Errors as `destroy`."""
    _check_destroyable(ctx, stream, "aclrtDestroyStreamForce")
    close(stream)


def _check_destroyable(ctx: Context | None, stream: Stream, asked: str) -> None:
    check_handle(stream, asked)
    refuse_capturing(stream, asked)
    if stream.model is not None:
        raise errors.fail(
            Code.RT_STREAM_MODEL,
            asked,
            f"stream {stream.id} is bound to {stream.model.title()}",
            "unbind it or destroy the model",
        )
    contexts.require_same(ctx, stream, asked)


def close(stream: Stream) -> None:
    """Free the stream's SQ and id; what is queued is dropped. The last step of destroy and of closing a device."""
    stream.alive = False
    stream.launcher.close()
    stream.choose_sink()
    stream.npu.driver.sq_abort(stream.sq)
    stream.advance(stream.submitted)
    if stream.gate is not None:
        stream.gate.drop()
    if stream.kept is not None:
        stream.kept.drop()
    if stream.error is not None:
        stream.npu.unobserved.append(stream.error)
        stream.error = None
    del stream.npu.streams[stream.sq]
    stream.npu.driver.sq_close(stream.sq)
    stream.npu.driver.free(IdKind.STREAM, stream.id)
    stream.context.streams.remove(stream)
    if stream.context.default is stream:
        stream.context.default = None


def set_failure_mode(ctx: Context | None, stream: Stream | None, mode: int) -> None:
    """aclrtSetStreamFailureMode; only bit 0 counts. Errors: 107017, 207000, 107002, 107003. Source: acl_semantics
    1.6."""
    asked = "aclrtSetStreamFailureMode"
    stream = resolve(ctx, stream, asked)
    wanted = FailureMode(mode & 1)
    if stream.flags & StreamFlag.DEVICE_USE_ONLY or stream.model is not None:
        raise errors.fail(
            Code.RT_FEATURE_NOT_SUPPORT, asked, f"{stream!r} cannot change it", "use a stream outside a model"
        )
    if wanted is stream.failure_mode:
        return
    if stream.failure_mode is FailureMode.STOP:
        raise errors.fail(
            Code.RT_FEATURE_NOT_SUPPORT, asked, f"stream {stream.id} is in STOP mode", "STOP cannot be taken back"
        )
    contexts.require_same(ctx, stream, asked)
    stream.failure_mode = wanted
    stream.context.failure_mode = wanted
    stream.npu.driver.sq_stop_on_error(stream.sq, True)


def set_overflow_switch(ctx: Context | None, stream: Stream | None, flag: int) -> None:
    """aclrtSetStreamOverflowSwitch: refused on a capturing stream (107027). Source: acl_semantics 1.6."""
    asked = "aclrtSetStreamOverflowSwitch"
    stream = resolve(ctx, stream, asked)
    refuse_capturing(stream, asked)
