"""Record, wait and reset of events on streams: every check in its order, then one task. Not host waits
(`stream.event`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import EventFlag, RecordFlag, WaitFlag
from aclrt.base.errors import fail
from aclrt.stream import checks as streams
from aclrt.stream import context as contexts
from aclrt.stream import event as events
from aclrt.stream.register import Cell, Mark, Register
from aclrt.task.task import EventRecordOp, EventResetOp, EventWaitOp, ValueWaitOp, ValueWriteOp

if TYPE_CHECKING:
    from aclrt.base.errors import AclError
    from aclrt.stream.context import Context
    from aclrt.stream.event import Event
    from aclrt.stream.stream import Stream


def _unsupported(asked: str, met: str, todo: str) -> AclError:
    return fail(Code.RT_FEATURE_NOT_SUPPORT, asked, met, todo)


def _invalid(asked: str, met: str, todo: str) -> AclError:
    return fail(Code.RT_PARAM_INVALID, asked, met, todo)


def _refuse_foreign(event: Event, stream: Stream, asked: str) -> None:
    """107000: a register means something on its own device only."""
    if event.npu is not stream.npu:
        met = f"{event!r} is of device {event.npu.index}, the stream of device {stream.npu.index}"
        raise _invalid(asked, met, "use an event of the stream's device; wait for the other one on the host")


def _refuse_mc2(event: Event, asked: str) -> None:
    if event.device_only:
        raise _invalid(asked, "the event is for the device's own use", "create an event without DEVICE_USE_ONLY")


def _refuse_ipc(event: Event, stream: Stream, asked: str) -> None:
    if event.ipc and stream.capturing:
        raise _unsupported(
            asked, "IPC events cannot be captured", "use an event of aclrtCreateEventExWithFlag(ACL_EVENT_SYNC)"
        )


def _refuse_old_in_capture(event: Event, stream: Stream, asked: str) -> None:
    if stream.capturing and not event.new_mode and not event.external:
        met = f"an old-mode event on capturing {streams.captured(stream)}"
        raise _unsupported(asked, met, "create it with aclrtCreateEventExWithFlag(ACL_EVENT_SYNC)")


def _refuse_bound(event: Event, stream: Stream, asked: str) -> None:
    """207000: a stream of a normal model takes no new-mode event and none of aclrtCreateEvent."""
    if stream.model is not None and (event.new_mode or event.classic):
        raise _unsupported(
            asked, f"stream {stream.id} is bound to {stream.model.title()}", "use an event of aclrtCreateEventWithFlag"
        )


# --- record ----------------------------------------------------------------------------------------------------------


def record(ctx: Context | None, event: Event, stream: Stream | None, flag: RecordFlag = RecordFlag.DEFAULT) -> None:
    """aclrtRecordEvent(WithFlag). Check order and codes: acl_semantics 5.4, 5.7.

    Errors: 107017, 107000, 207000, 107002, 107003, 107029 (external, not capturing), 107032 (another capture), 107034.
    """
    asked = "aclrtRecordEvent" if flag is RecordFlag.DEFAULT else "aclrtRecordEventWithFlag(EXTERNAL)"
    events.check_handle(event, asked)
    stream = streams.resolve(ctx, stream, asked)
    _refuse_foreign(event, stream, asked)
    _refuse_mc2(event, asked)
    _refuse_ipc(event, stream, asked)
    if flag is RecordFlag.EXTERNAL:
        _external_rules(event, asked)
    _stick_record(event, flag, asked)
    if flag is RecordFlag.EXTERNAL:
        _record_external(ctx, event, stream, asked)
        return
    if stream.model is not None:
        contexts.require(ctx, asked)
        _refuse_bound(event, stream, asked)
    contexts.require_same(ctx, stream, asked)
    if stream.capture_sink is not None and not event.external:
        _refuse_old_in_capture(event, stream, asked)
        if not stream.supports_capture:
            raise fail(Code.RT_INTERNAL_ERROR, asked, f"{stream!r} has a type no capture takes", "use a plain stream")
        if event.waitable:
            stream.capture_sink.record_event(stream, event)
        return
    _record_live(event, stream, asked)


def _stick_record(event: Event, flag: RecordFlag, asked: str) -> None:
    if event.record_flag is None:
        event.record_flag = flag
    elif event.record_flag is not flag:
        raise _invalid(
            asked,
            f"the event's first record was {event.record_flag.name}",
            "one event keeps one kind of record for life",
        )


def _stick_wait(event: Event, flag: WaitFlag, asked: str) -> None:
    if event.wait_flag is None:
        event.wait_flag = flag
    elif event.wait_flag is not flag:
        raise _invalid(
            asked, f"the event's first wait was {event.wait_flag.name}", "one event keeps one kind of wait for life"
        )


def _external_rules(event: Event, asked: str) -> None:
    if not event.new_mode or event.flags != EventFlag.SYNC:
        raise _unsupported(
            asked, f"{event!r} cannot take the EXTERNAL operation", "use aclrtCreateEventExWithFlag(ACL_EVENT_SYNC)"
        )


def _external_stream(ctx: Context | None, stream: Stream, asked: str) -> None:
    """The stream's part of an external operation's checks, in their recorded order."""
    if stream.capture is not None and stream.capture.model.is_sub:
        raise _unsupported(asked, f"stream {stream.id} captures a conditional branch", "move it to the parent graph")
    if stream.model is not None:
        raise _unsupported(asked, f"stream {stream.id} is bound to {stream.model.title()}", "use a capturing stream")
    contexts.require_same(ctx, stream, asked)
    if stream.capture is None:
        raise fail(
            Code.RT_STREAM_NOT_CAPTURED,
            asked,
            f"stream {stream.id} is not capturing",
            "use the EXTERNAL flag inside a capture only",
        )


def _record_external(ctx: Context | None, event: Event, stream: Stream, asked: str) -> None:
    _external_stream(ctx, stream, asked)
    assert stream.capture_sink is not None
    stream.capture_sink.record_external(stream, event)


def _record_live(event: Event, stream: Stream, asked: str) -> None:
    """An ordinary record: a task of this stream, whatever its sink makes of it."""
    if stream.cpu_schedule:
        return  # accepted, but the event stays as if it had never been recorded (recorded)
    if not event.new_mode:
        register = event.own_register(asked)
        stream.submit(EventRecordOp(event=register))
        register.hold_until(stream)
        event.marked(Mark(register, stream, stream.submitted))
        return
    mark = events.fresh_mark(event, stream, asked)
    try:
        if isinstance(mark.at, Cell):
            stream.submit(ValueWriteOp(address=mark.at.address, value=1, width=1))
        else:
            stream.submit(EventRecordOp(event=mark.at))
    except BaseException:
        mark.at.drop()
        raise
    mark.position = stream.submitted
    mark.at.hold_until(stream)
    event.recorded_hard |= not event.software
    event.marked(mark)


# --- wait ------------------------------------------------------------------------------------------------------------


def wait(
    ctx: Context | None, stream: Stream | None, event: Event, flag: WaitFlag = WaitFlag.DEFAULT, timeout_ms: int = 0
) -> None:
    """aclrtStreamWaitEvent(WithFlag / WithTimeout). Check order and codes: acl_semantics 5.3, 5.5, 5.7.

    `timeout_ms` is device time, 0 for no limit. Errors: 107017, 107000, 207000, 107002, 107003, 107024, 107029,
    107031, 107032, 107034, 507000.
    """
    asked = "aclrtStreamWaitEvent" if flag is WaitFlag.DEFAULT else "aclrtStreamWaitEventWithFlag(EXTERNAL)"
    if timeout_ms < 0:
        raise _invalid(asked, f"timeout is {timeout_ms} ms", "give 0 for no limit, or more")
    events.check_handle(event, asked)
    stream = streams.resolve(ctx, stream, asked)
    _refuse_foreign(event, stream, asked)
    _refuse_mc2(event, asked)
    if flag is WaitFlag.EXTERNAL:
        _external_rules(event, asked)
    if not event.waitable:
        raise _unsupported(asked, f"{event!r} cannot be waited for", "create it with ACL_EVENT_SYNC")
    _refuse_ipc(event, stream, asked)
    _stick_wait(event, flag, asked)
    if flag is WaitFlag.EXTERNAL:
        _external_stream(ctx, stream, asked)
        assert stream.capture_sink is not None
        stream.capture_sink.wait_external(stream, event)
        return
    if stream.model is not None:
        contexts.require(ctx, asked)
        _refuse_bound(event, stream, asked)
    contexts.require_same(ctx, stream, asked)
    if event.captured:
        assert event.capture is not None
        _refuse_join(stream, event, asked)
        event.capture.join(stream)
        return
    _refuse_old_in_capture(event, stream, asked)
    if stream.capturing and event.new_mode:
        if event.latest is not None:
            raise fail(
                Code.RT_CAPTURE_DEPENDENCY,
                asked,
                f"the event was recorded outside the capture of {streams.captured(stream)}",
                "record it inside, or wait with ACL_EVENT_WAIT_EXTERNAL",
            )
        return
    _wait_live(event, stream, timeout_ms, asked)


def _refuse_join(stream: Stream, event: Event, asked: str) -> None:
    """What a stream must not be to be pulled into a capture: 507000 for its type, 107031 for the default stream."""
    if not stream.supports_capture:
        raise fail(Code.RT_INTERNAL_ERROR, asked, f"{stream!r} has a type no capture takes", "use a plain stream")
    if stream.is_default:
        met = f"the default stream would join a capture through {event.capture}"
        raise fail(Code.RT_STREAM_CAPTURE_IMPLICIT, asked, met, "use a created stream")


def _wait_live(event: Event, stream: Stream, timeout_ms: int, asked: str) -> None:
    """An ordinary wait, with the shortcuts that make it a no-op (acl_semantics 5.5 step 6)."""
    timeout_ms = timeout_ms or stream.context.op_wait_timeout_ms
    mark = event.latest
    if event.software:
        if mark is not None:
            assert isinstance(mark.at, Cell)
            stream.submit(ValueWaitOp(address=mark.at.address, value=1, flag=0, width=1))
            mark.at.hold_until(stream)
        return
    if event.new_mode:
        if mark is None or (stream.npu.spec.same_stream_shortcut and (mark.stream is stream or mark.done)):
            return
        assert isinstance(mark.at, Register)
        stream.submit(EventWaitOp(event=mark.at, timeout_ms=timeout_ms))
        mark.at.hold_until(stream)
        return
    if event.classic and not stream.capturing:
        if mark is None:
            raise _invalid(asked, "the event was never recorded", "record it before a stream waits for it")
        if mark.done and not event.was_reset:
            return
    register = event.own_register(asked)
    stream.submit(EventWaitOp(event=register, timeout_ms=timeout_ms))
    register.hold_until(stream)


# --- reset -----------------------------------------------------------------------------------------------------------


def reset(ctx: Context | None, event: Event, stream: Stream | None) -> None:
    """aclrtResetEvent: old-mode events only. Errors: 107017, 107000, 207000, 107002, 107003. Source: acl_semantics
    5.6."""
    asked = "aclrtResetEvent"
    events.check_handle(event, asked)
    stream = streams.resolve(ctx, stream, asked)
    _refuse_foreign(event, stream, asked)
    _refuse_mc2(event, asked)
    if event.new_mode or not event.waitable:
        raise _unsupported(asked, f"{event!r} is never reset", "record the event again")
    contexts.require_same(ctx, stream, asked)
    if event.classic and stream.npu.spec.event_reset_noop and stream.model is None:
        return
    _refuse_old_in_capture(event, stream, asked)
    register = event.own_register(asked)
    stream.submit(EventResetOp(event=register))
    register.hold_until(stream)
    event.was_reset = True
