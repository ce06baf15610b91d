"""How events carry a capture from stream to stream: hidden events, joins, external records and waits, the joint
check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import AclError, fail
from aclrt.base.place import here
from aclrt.graph.capture_stream import enter
from aclrt.stream.register import Register
from aclrt.task.task import EventRecordOp, EventResetOp, EventWaitOp, ExternalRecordOp, ExternalWaitOp

if TYPE_CHECKING:
    from aclrt.graph.capture_model import CaptureModel
    from aclrt.graph.capture_sink import CaptureSink
    from aclrt.graph.capture_stream import CaptureStream
    from aclrt.stream.event import Event
    from aclrt.stream.roles import CapturingSink
    from aclrt.stream.stream import Stream
    from aclrt.task.task import Task


@final
class CaptureEvent:
    """The hidden event behind one captured record of a user event (acl_semantics 5.1).

    Invariants: `task` is None until its record was captured; `waits` lists the hidden streams that waited, as they were
    before a cascade during the wait.
    """

    __slots__ = ("event", "model", "place", "register", "sink", "task", "waits")

    def __init__(self, event: Event, model: CaptureModel, sink: CapturingSink) -> None:
        self.event = event
        self.model = model
        self.sink = sink
        self.register = Register(model.npu, "record an event in a capture")
        assert self.register.id is not None
        model.npu.driver.event_private(self.register.id)  # nobody can ask a hidden event for its time
        self.task: Task | None = None
        self.waits: list[CaptureStream] = []
        self.place = here()
        model.capture_events.append(self)

    @property
    def id(self) -> int | None:
        return self.register.id

    @property
    def active(self) -> bool:
        return self.model.capturing

    def join(self, stream: Stream) -> None:
        join(self, stream)

    def reset(self, stream: Stream) -> None:
        self.sink.append(stream, EventResetOp(event=self.register))

    def discard(self) -> None:
        self.register.drop()
        if self.event.capture is self:
            self.event.capture = None

    def __str__(self) -> str:
        return f"event {self.id} recorded at {self.place}"

    def __repr__(self) -> str:
        return f"<CaptureEvent {self.id} recorded at {self.place}, {len(self.waits)} waits>"


def record(stream: Stream, event: Event, sink: CapturingSink) -> None:
    """A record inside a capture: a fresh hidden event, then its task. Any failure invalidates (acl_semantics 5.4)."""
    capture: Any = stream.capture
    model: CaptureModel = capture.model
    hidden = event.capture if isinstance(event.capture, CaptureEvent) and event.capture.active else None
    if hidden is None or hidden.task is not None or model.npu.spec.fresh_capture_event:
        try:
            hidden = event.capture = CaptureEvent(event, model, sink)
        except AclError as error:
            model.terminate(error)
            raise
    elif hidden.model is not model:
        conflict = _conflict(f"aclrtRecordEvent on stream {stream.id}", hidden, model)
        hidden.model.terminate(conflict)
        model.terminate(conflict)
        raise conflict
    try:
        hidden.task = sink.append(stream, EventRecordOp(event=hidden.register, capture=hidden))
    except AclError as error:
        model.terminate(error)
        raise


def _conflict(asked: str, hidden: CaptureEvent, other: CaptureModel) -> AclError:
    return fail(
        Code.STREAM_CAPTURE_CONFLICT,
        asked,
        f"{hidden} belongs to the capture of {hidden.model.title()}, the stream to {other.title()}",
        "end both (507903) and use one event per capture",
    )


def join(hidden: CaptureEvent, stream: Stream) -> None:
    """A wait for a captured event; a stream outside any capture joins the event's (acl_semantics 5.3).

    Errors: 507000 (capture already invalidated), 207008, 107032 (another capture), 107034, 507009; all invalidate.
    """
    model = hidden.model
    joined: Any = stream.capture
    try:
        if joined is None:
            if not model.active:
                raise fail(
                    Code.RT_INTERNAL_ERROR,
                    "aclrtStreamWaitEvent",
                    f"the capture of {model.title()} is {model.status.name}",
                    "end it first",
                )
            joined = enter(model, stream, hidden.sink, original=False, how="joined", through=hidden)
        elif joined.model is not model:
            asked = f"aclrtStreamWaitEvent on stream {stream.id} ({joined.joined_how()})"
            conflict = _conflict(asked, hidden, joined.model)
            joined.model.terminate(conflict)
            raise conflict
        hidden.sink.append(stream, EventWaitOp(event=hidden.register, capture=hidden))
    except AclError as error:
        model.terminate(error)
        raise
    hidden.waits.append(joined)


# --- external operations (acl_semantics 5.7 b) -----------------------------------------------------------------------


def _external_rule(stream: Stream, event: Event, asked: str) -> CaptureModel:
    """One external record or wait per event and graph, and only of an event never recorded in hardware mode: 107000."""
    model: CaptureModel = stream.capture.model  # type: ignore[union-attr]
    if event in model.externals:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            "this graph already records or waits for the event externally",
            "use another event",
        )
    if event.recorded_hard:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            "the event was recorded before the capture",
            "capture first, then record; or use a fresh event",
        )
    return model


def record_external(stream: Stream, event: Event, sink: CapturingSink) -> None:
    """ACL_EVENT_RECORD_EXTERNAL: each run records the event anew, for streams outside the graph."""
    model = _external_rule(stream, event, "aclrtRecordEventWithFlag(EXTERNAL)")
    model.externals[event] = sink.append(stream, ExternalRecordOp(event=event))
    event.go_software()


def wait_external(stream: Stream, event: Event, sink: CapturingSink) -> None:
    """ACL_EVENT_WAIT_EXTERNAL: each run waits for the record that was latest when it was submitted."""
    model = _external_rule(stream, event, "aclrtStreamWaitEventWithFlag(EXTERNAL)")
    model.externals[event] = sink.append(stream, ExternalWaitOp(event=event))
    event.go_software()


# --- the joint check at End (acl_semantics 4.4) ----------------------------------------------------------------------


def check_joined(model: CaptureModel) -> None:
    """107025 unless every forked stream ends in a captured record that was waited for, and one of them by an origin."""
    forked = [stream for stream in model.streams if not stream.original and stream.last and not stream.added]
    ends: list[CaptureEvent] = []
    for stream in forked:
        last = stream.queue.tasks[-1] if stream.queue.tasks else None
        hidden = last.op.capture if last is not None and isinstance(last.op, EventRecordOp) else None
        if last is None or hidden is None:
            what = f"its last task is {last.op.type_name} from {last.place}" if last is not None else "it has no task"
            raise _unjoined(model, stream, f"{what}, not the record of a captured event")
        if not hidden.waits:
            raise _unjoined(model, stream, f"its last task is the record of {hidden}, for which nobody waited")
        ends.append(hidden)
    if ends and not any(waiter.original for hidden in ends for waiter in hidden.waits):
        why = "like those of all forked streams it was waited for, but not by an origin"
        raise _unjoined(model, forked[0], f"its last task is the record of {ends[0]}; {why}")


def _unjoined(model: CaptureModel, stream: CaptureStream, why: str) -> AclError:
    return fail(
        Code.RT_STREAM_UNJOINED,
        f"aclmdlRICaptureEnd of {model.title()}",
        f"stream {stream.user.id} ({stream.joined_how()}) is not joined: {why}",
        "record an event on it and wait for that on the stream that began the capture",
    )


def check_recorded(model: CaptureModel) -> None:
    """107024 for a captured event that was waited for although its record failed."""
    for hidden in model.capture_events:
        if hidden.waits and hidden.task is None:
            raise fail(
                Code.RT_CAPTURE_DEPENDENCY,
                f"aclmdlRICaptureEnd of {model.title()}",
                f"the event first recorded at {hidden.place} was waited for but never recorded",
                "record it inside the capture",
            )


def append_resets(model: CaptureModel, stream: Stream, sink: CaptureSink) -> None:
    """One reset per captured event at the tail of the origin stream, so that the next run starts unset."""
    for hidden in list(model.capture_events):
        if hidden.task is not None:
            sink.keep(stream, EventResetOp(event=hidden.register))
