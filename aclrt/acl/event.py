"""aclrtEvent and aclrtNotify functions. Holds no logic; codes and their order are `aclrt.stream`'s."""

from __future__ import annotations

from operator import index

from aclrt.acl.handles import handle, member, optional
from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import EventRecordedStatus, EventStatus, EventWaitStatus, RecordFlag, WaitFlag
from aclrt.base.errors import fail
from aclrt.stream import event as events
from aclrt.stream import notify as notifies
from aclrt.stream import ordering
from aclrt.stream.context import current
from aclrt.stream.event import Event
from aclrt.stream.notify import Notify
from aclrt.stream.stream import Stream


def aclrtCreateEvent() -> Event:
    """An old-mode event: it can be reset, not captured. Errors: 107002."""
    return events.create(current())


def aclrtCreateEventWithFlag(flag: int) -> Event:
    """An old-mode event with `EventFlag` bits; EXTERNAL makes the classic event of a graph update.

    Errors: 107000, 107002, 207007.
    """
    return events.create_with_flag(current(), index(flag))


def aclrtCreateEventExWithFlag(flag: int) -> Event:
    """A new-mode event: it can be captured, not reset. Errors: 107000, 107002."""
    return events.create_ex_with_flag(current(), index(flag))


def aclrtDestroyEvent(event: Event | None) -> None:
    """Destroy the event; its id is freed when outstanding tasks are done. Errors: 100000, 107017."""
    events.destroy(current(), handle(event, Event, "aclrtDestroyEvent", "event"))


def aclrtRecordEvent(event: Event | None, stream: Stream | None) -> None:
    """Record `event` when the stream gets there; inside a capture it becomes a join point. acl_semantics 5.4."""
    event = handle(event, Event, "aclrtRecordEvent", "event")
    ordering.record(current(), event, optional(stream, Stream, "aclrtRecordEvent", "stream"))


def aclrtRecordEventWithFlag(event: Event | None, stream: Stream | None, flag: int) -> None:
    """As aclrtRecordEvent; ACL_EVENT_RECORD_EXTERNAL lets others outside the graph wait for it. acl_semantics 5.7."""
    asked = "aclrtRecordEventWithFlag"
    event = handle(event, Event, asked, "event")
    ordering.record(
        current(), event, optional(stream, Stream, asked, "stream"), member(flag, RecordFlag, asked, "flag")
    )


def aclrtStreamWaitEvent(stream: Stream | None, event: Event | None) -> None:
    """Make `stream` wait for the event's latest record; a captured event pulls it into the capture.

    acl_semantics 5.3, 5.5.
    """
    event = handle(event, Event, "aclrtStreamWaitEvent", "event")
    ordering.wait(current(), optional(stream, Stream, "aclrtStreamWaitEvent", "stream"), event)


def aclrtStreamWaitEventWithTimeout(stream: Stream | None, event: Event | None, timeout: int) -> None:
    """As aclrtStreamWaitEvent for at most `timeout` seconds of device time, 0 for ever. Errors: 107000 below 0."""
    asked = "aclrtStreamWaitEventWithTimeout"
    event = handle(event, Event, asked, "event")
    ordering.wait(current(), optional(stream, Stream, asked, "stream"), event, timeout_ms=index(timeout) * 1000)


def aclrtStreamWaitEventWithFlag(stream: Stream | None, event: Event | None, timeout: int, flag: int) -> None:
    """As aclrtStreamWaitEvent; ACL_EVENT_WAIT_EXTERNAL waits for a record outside the graph and takes timeout 0
    only."""
    asked = "aclrtStreamWaitEventWithFlag"
    event = handle(event, Event, asked, "event")
    kind = member(flag, WaitFlag, asked, "flag")
    if kind is WaitFlag.EXTERNAL and timeout:
        raise fail(Code.INVALID_PARAM, asked, f"timeout is {timeout}", "an external wait takes timeout 0 only")
    ordering.wait(current(), optional(stream, Stream, asked, "stream"), event, kind, index(timeout) * 1000)


def aclrtResetEvent(event: Event | None, stream: Stream | None) -> None:
    """Clear an old-mode event when the stream gets there. Errors: 100000, 107017, 207000 for a new-mode event."""
    event = handle(event, Event, "aclrtResetEvent", "event")
    ordering.reset(current(), event, optional(stream, Stream, "aclrtResetEvent", "stream"))


async def aclrtSynchronizeEvent(event: Event | None) -> None:
    """Wait until the latest record has executed. Errors: 100000, 107017, 107028, 207000."""
    await events.synchronize(handle(event, Event, "aclrtSynchronizeEvent", "event"))


async def aclrtSynchronizeEventWithTimeout(event: Event | None, timeout: int) -> None:
    """As aclrtSynchronizeEvent for at most `timeout` ms of device time, -1 for ever. Errors: 107000, 507047."""
    await events.synchronize(handle(event, Event, "aclrtSynchronizeEventWithTimeout", "event"), index(timeout))


def aclrtQueryEvent(event: Event | None) -> EventStatus:
    """Deprecated in C; old-mode events only. Errors: 100000, 107017, 107028, 207000."""
    return events.query(handle(event, Event, "aclrtQueryEvent", "event"))


def aclrtQueryEventStatus(event: Event | None) -> EventRecordedStatus:
    """Whether the latest record has executed (COMPLETE is 1 here). Errors: 100000, 107017, 107028."""
    return events.query_status(handle(event, Event, "aclrtQueryEventStatus", "event"))


def aclrtQueryEventWaitStatus(event: Event | None) -> EventWaitStatus:
    """Whether the waits for an old-mode event have executed. Errors: 100000, 107017, 207000 for a new-mode event."""
    return events.query_wait_status(handle(event, Event, "aclrtQueryEventWaitStatus", "event"))


def aclrtEventElapsedTime(startEvent: Event | None, endEvent: Event | None) -> float:
    """Milliseconds of device time between two records. Errors: 100000, 107028, 507000, 107006, 107007."""
    asked = "aclrtEventElapsedTime"
    return events.elapsed_ms(handle(startEvent, Event, asked, "startEvent"), handle(endEvent, Event, asked, "endEvent"))


def aclrtEventGetTimestamp(event: Event | None) -> int:
    """Device time of the latest record in microseconds. Errors: 100000, 107028, 507000, 107006."""
    return events.timestamp_ns(handle(event, Event, "aclrtEventGetTimestamp", "event")) // 1000


def aclrtGetEventId(event: Event | None) -> int:
    """The event's device id. Errors: 100000, 107017, 507000 before it has one."""
    return events.event_id(handle(event, Event, "aclrtGetEventId", "event"))


def aclrtCreateNotify(flag: int) -> Notify:
    """A one-bit notify. Errors: 107000, 107002, 207009."""
    return notifies.create(current(), index(flag))


def aclrtDestroyNotify(notify: Notify | None) -> None:
    """Free the notify at once. Errors: 100000, 107017."""
    notifies.destroy(current(), handle(notify, Notify, "aclrtDestroyNotify", "notify"))


def aclrtRecordNotify(notify: Notify | None, stream: Stream | None) -> None:
    """Set the notify when the stream gets there. Errors: 100000, 107017, 107003."""
    notify = handle(notify, Notify, "aclrtRecordNotify", "notify")
    notifies.record(current(), notify, optional(stream, Stream, "aclrtRecordNotify", "stream"))


def aclrtWaitAndResetNotify(notify: Notify | None, stream: Stream | None, timeout: int) -> None:
    """Wait for the notify and clear it; `timeout` in seconds of device time, 0 for ever.

    Errors: 100000, 107017, 107003.
    """
    asked = "aclrtWaitAndResetNotify"
    notify = handle(notify, Notify, asked, "notify")
    notifies.wait(current(), notify, optional(stream, Stream, asked, "stream"), index(timeout))


def aclrtGetNotifyId(notify: Notify | None) -> int:
    """The notify's device id. Errors: 100000, 107017."""
    return notifies.get_id(handle(notify, Notify, "aclrtGetNotifyId", "notify"))
