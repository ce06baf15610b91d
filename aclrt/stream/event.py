"""An Event: created, recorded on a stream, waited for by others. Not the hidden event of a capture
(`graph.joining`)."""

from __future__ import annotations

from _thread import get_ident
from typing import TYPE_CHECKING, Protocol, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.completion import Completion
from aclrt.base.enums import EventFlag, EventRecordedStatus, EventStatus, EventWaitStatus
from aclrt.base.errors import fail
from aclrt.base.host_thread import require_task
from aclrt.base.place import here
from aclrt.stream import context as contexts
from aclrt.stream.register import Cell, Mark, Register

if TYPE_CHECKING:
    from aclrt.base.enums import RecordFlag, WaitFlag
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream

WAITABLE = EventFlag.SYNC | EventFlag.DDSYNC | EventFlag.EXTERNAL | EventFlag.IPC
KNOWN = 0x7F


class CaptureOf(Protocol):
    """The hidden event that stands for an Event inside an open capture (`graph.joining.CaptureEvent`)."""

    @property
    def active(self) -> bool:
        """True while the model it belongs to is still capturing."""

    def join(self, stream: Stream) -> None:
        """Wait for it on `stream`, pulling the stream into the capture if need be."""

    def reset(self, stream: Stream) -> None: ...


@final
class Event:
    """One event. `new_mode` events (aclrtCreateEventExWithFlag) may be captured; old ones may not, but can be reset.

    Invariants: `register` is the one register of an old-mode event (new mode takes a fresh one per record); once
    `software` is True it stays so and every record takes a fresh memory cell; `record_flag` and `wait_flag` are fixed
    by the first record and the first wait for the event's life (acl_semantics 5.7).
    """

    def __init__(self, context: Context, flags: EventFlag, *, new_mode: bool) -> None:
        self.context = context
        self.npu = context.npu
        self.flags = flags
        self.new_mode = new_mode
        # What the flags say, read once: IntFlag arithmetic costs more than all else a record does.
        self.external = bool(flags & EventFlag.EXTERNAL)
        self.waitable = bool(flags & WAITABLE)  # False for marks and time stamps: recorded, but never waited for
        self.device_only = bool(flags & EventFlag.DEVICE_USE_ONLY)
        self.ipc = bool(flags & EventFlag.IPC)
        self.classic = not new_mode and flags == OLD_DEFAULT  # of aclrtCreateEvent
        self.alive = True
        self.software = False
        self.recorded_hard = False  # was recorded through a register; from then on it cannot change to software mode
        self.register: Register | None = None
        self.latest: Mark | None = None
        self.was_reset = False
        self.record_flag: RecordFlag | None = None
        self.wait_flag: WaitFlag | None = None
        self.capture: CaptureOf | None = None
        self.place = here()

    @property
    def id(self) -> int | None:
        """The register of the latest record (old mode: the event's own)."""
        if self.register is not None:
            return self.register.id
        return self.latest.at.id if self.latest is not None and isinstance(self.latest.at, Register) else None

    @property
    def captured(self) -> bool:
        """True while an open capture holds a record of it."""
        return not self.external and self.capture is not None and self.capture.active

    def own_register(self, asked: str) -> Register:
        """The register of an old-mode event, taken on first use."""
        if self.register is None:
            self.register = Register(self.npu, asked)
        return self.register

    def marked(self, mark: Mark) -> None:
        """A new latest record; the one before lets go of its register or cell."""
        before, self.latest = self.latest, mark
        self.was_reset = False
        if before is not None and before.at is not self.register:
            before.at.drop()

    def go_software(self) -> None:
        self.software = True

    async def synchronize(self, timeout_ms: int = -1) -> None:
        """Wait until the latest record has executed. Errors: 107028 captured, 507047 on time-out. acl_semantics 1.7."""
        await synchronize(self, timeout_ms)

    def __del__(self) -> None:
        """A dropped event gives its id back, as a destroyed one does, on the device's thread."""
        if not getattr(self, "alive", False) or self.npu.closed:
            return
        if get_ident() == self.npu.thread:
            discard(self)
        elif not self.npu.loop.is_closed():
            self.npu.loop.call_soon_threadsafe(discard, self)

    def __repr__(self) -> str:
        state = "destroyed" if not self.alive else "captured" if self.captured else "idle"
        if state == "idle" and self.latest is not None:
            state = "reset" if self.was_reset else "recorded" if self.latest.done else "recording"
        mode = "new" if self.new_mode else "old"
        name = self.id if self.id is not None else "-"
        return f"<Event {name} {state}, {mode} mode {self.flags!r}{', software' if self.software else ''}>"


OLD_DEFAULT = EventFlag.CAPTURE_STREAM_PROGRESS | EventFlag.DDSYNC | EventFlag.TIME_LINE  # the runtime's 0x0E


def check_handle(event: Event, asked: str) -> None:
    """107017 for a destroyed event. RuntimeError outside a task."""
    require_task()
    if event.__class__ is not Event:
        raise TypeError(f"{asked}: {event!r} is not an Event")
    if not event.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, "the event is destroyed", "use a live event")


def create(ctx: Context | None) -> Event:
    """aclrtCreateEvent: old mode. Errors: 107002."""
    return Event(contexts.require(ctx, "aclrtCreateEvent"), OLD_DEFAULT, new_mode=False)


def create_with_flag(ctx: Context | None, flag: int) -> Event:
    """aclrtCreateEventWithFlag: old mode; SYNC and EXTERNAL take their id now. Errors: 107000, 107002, 207007."""
    asked = "aclrtCreateEventWithFlag"
    flags = EventFlag(flag & KNOWN)
    alone = EventFlag.DEVICE_USE_ONLY | EventFlag.EXTERNAL
    if (
        flag <= 0
        or flag & ~KNOWN
        or flags & EventFlag.IPC
        or (flags & alone and flags not in (EventFlag.DEVICE_USE_ONLY, EventFlag.EXTERNAL))
    ):
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"flag is {flag:#x}",
            "combine known flags; DEVICE_USE_ONLY and EXTERNAL stand alone",
        )
    event = Event(contexts.require(ctx, asked), flags, new_mode=False)
    if flags & (EventFlag.SYNC | EventFlag.EXTERNAL):
        event.own_register(asked)
    return event


def create_ex_with_flag(ctx: Context | None, flag: int) -> Event:
    """aclrtCreateEventExWithFlag: new mode. Errors: 107000, 107002. Source: acl_semantics 1.7, recorded (IPC alone
    only)."""
    asked = "aclrtCreateEventExWithFlag"
    usable = 0x4F  # SYNC, PROGRESS, DDSYNC, TIME_LINE, IPC
    if flag <= 0 or flag & ~usable or (flag & EventFlag.IPC and flag != EventFlag.IPC):
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"flag is {flag:#x}",
            "combine SYNC, CAPTURE_STREAM_PROGRESS and TIME_LINE, or IPC alone",
        )
    return Event(contexts.require(ctx, asked), EventFlag(flag), new_mode=True)


def destroy(ctx: Context | None, event: Event) -> None:
    """aclrtDestroyEvent: the id is freed when outstanding tasks are done. Errors: 107017."""
    check_handle(event, "aclrtDestroyEvent")
    discard(event)


def discard(event: Event) -> None:
    """Let go of what the event holds; tasks already submitted keep their register until they are done."""
    event.alive = False
    if event.latest is not None and event.latest.at is not event.register:
        event.latest.at.drop()
    event.latest = None
    if event.register is not None:
        event.register.drop()
        event.register = None


def fresh_mark(event: Event, stream: Stream | None, asked: str) -> Mark:
    """A register (or a cell, in software mode) for one record of a new-mode event."""
    at: Register | Cell = Cell(event.npu, asked) if event.software else Register(event.npu, asked)
    return Mark(at, stream, 0)


# --- host queries: they look at the latest record that was not captured ---------------------------------------------


def refuse_captured(event: Event, asked: str) -> None:
    """107028 for an event whose latest record is inside an open capture."""
    if event.captured:
        met = f"{event.capture} belongs to an open capture"
        raise fail(Code.RT_EVENT_CAPTURED, asked, met, "wait for it on a stream, or end the capture")


def refuse_external(event: Event, asked: str) -> None:
    """207000 for an event created with the EXTERNAL flag."""
    if event.external:
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT,
            asked,
            "events with the EXTERNAL flag have no host state",
            "synchronize a stream that waits for it",
        )


def refuse_software(event: Event, asked: str) -> None:
    """507000 where the chip keeps no recording stream of a software-mode event (recorded; v200 does)."""
    if event.software and event.latest is not None and not event.npu.spec.software_event_state:
        raise fail(
            Code.RT_INTERNAL_ERROR,
            asked,
            "the event is in software mode, its record has no stream",
            "synchronize the recording stream",
        )


async def synchronize(event: Event, timeout_ms: int = -1) -> None:
    """aclrtSynchronizeEvent(WithTimeout). Errors: 107000, 107017, 107028, 207000, 507000, 507047. acl_semantics 1.7."""
    asked = "aclrtSynchronizeEvent"
    if timeout_ms == 0 or timeout_ms < -1:
        raise fail(
            Code.RT_PARAM_INVALID, asked, f"timeout is {timeout_ms}", "give milliseconds above 0, or -1 for no limit"
        )
    check_handle(event, asked)
    refuse_captured(event, asked)
    refuse_external(event, asked)
    refuse_software(event, asked)
    mark = event.latest
    if mark is None or mark.done or mark.stream is None or event.npu.null:
        return
    if mark.stream.model is not None:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"recorded on stream {mark.stream.id}, which is bound to a model",
            "synchronize the execution",
        )
    done = Completion()
    mark.stream.when(mark.position, done.set)
    await event.npu.wait(done, f"{asked}: recorded on stream {mark.stream.id}", timeout_ms, Code.RT_EVENT_SYNC_TIMEOUT)
    if not mark.stream.alive:
        raise fail(Code.RT_STREAM_ABORT, asked, f"{mark.stream!r}, which recorded it", "synchronize before that")


def query_status(event: Event) -> EventRecordedStatus:
    """aclrtQueryEventStatus. Errors: 107017, 107028, 207000, 507000. Never recorded: new mode COMPLETE, old
    NOT_READY."""
    asked = "aclrtQueryEventStatus"
    check_handle(event, asked)
    refuse_captured(event, asked)
    refuse_external(event, asked)
    refuse_software(event, asked)
    if event.latest is None:
        return EventRecordedStatus.COMPLETE if event.new_mode else EventRecordedStatus.NOT_READY
    return EventRecordedStatus.COMPLETE if event.latest.done and not event.was_reset else EventRecordedStatus.NOT_READY


def query(event: Event) -> EventStatus:
    """aclrtQueryEvent (deprecated): old-mode events only. Errors: 107017, 107028, 207000."""
    asked = "aclrtQueryEvent"
    check_handle(event, asked)
    if event.new_mode or event.flags & (EventFlag.EXTERNAL | EventFlag.IPC):
        raise fail(Code.RT_FEATURE_NOT_SUPPORT, asked, f"{event!r} has no such state", "use aclrtQueryEventStatus")
    refuse_captured(event, asked)
    return EventStatus.COMPLETE if event.latest is None or event.latest.done else EventStatus.NOT_READY


def query_wait_status(event: Event) -> EventWaitStatus:
    """aclrtQueryEventWaitStatus: old-mode events only (new mode 207000, tested first). Errors: 107017, 207000."""
    asked = "aclrtQueryEventWaitStatus"
    check_handle(event, asked)
    if event.new_mode or event.external:
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT,
            asked,
            f"{event!r} does not count its waits",
            "use an event of aclrtCreateEvent",
        )
    return EventWaitStatus.COMPLETE if event.latest is None or event.latest.done else EventWaitStatus.NOT_READY


def elapsed_ms(start: Event, end: Event) -> float:
    """aclrtEventElapsedTime. Errors: 107017, 107028, 507000 (no record), 107006 (no time stamp), 107007 (reversed)."""
    asked = "aclrtEventElapsedTime"
    for event in (start, end):
        check_handle(event, asked)
    for event in (start, end):
        refuse_captured(event, asked)
    stamps = [timestamp_ns(event, asked) for event in (start, end)]
    if stamps[1] < stamps[0]:
        raise fail(Code.RT_EVENT_TIMESTAMP_REVERSAL, asked, "the end was recorded before the start", "swap the events")
    return (stamps[1] - stamps[0]) / 1e6


def timestamp_ns(event: Event, asked: str = "aclrtEventGetTimestamp") -> int:
    """Device time of the latest record in ns. Errors: 507000 (no record), 107006 (no TIME_LINE flag, or not done)."""
    check_handle(event, asked)
    refuse_captured(event, asked)
    if event.latest is None:
        raise fail(Code.RT_INTERNAL_ERROR, asked, "the event was never recorded", "record it on a stream first")
    at = event.latest.at
    stamp = at.recorded_ns() if isinstance(at, Register) and event.latest.done else None
    if stamp is None or not event.flags & EventFlag.TIME_LINE:
        raise fail(
            Code.RT_EVENT_TIMESTAMP_INVALID,
            asked,
            f"{event!r} has no time stamp",
            "create it with ACL_EVENT_TIME_LINE and wait for the record",
        )
    return stamp


def event_id(event: Event) -> int:
    """aclrtGetEventId. Errors: 107017, 507000 without an id."""
    check_handle(event, "aclrtGetEventId")
    if event.id is None:
        raise fail(Code.RT_INTERNAL_ERROR, "aclrtGetEventId", "the event has no id yet", "record it first")
    return event.id
