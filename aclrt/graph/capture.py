"""The capture calls: begin, begin into a branch, end, info, exchange mode, add a stream. Not what a capture records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import CaptureMode, CaptureStatus, ModelStatus
from aclrt.base.errors import AclError, fail
from aclrt.base.host_thread import host_thread, require_task
from aclrt.base.place import here
from aclrt.graph import joining
from aclrt.graph.added_stream import AddedStream
from aclrt.graph.capture_model import CaptureModel
from aclrt.graph.capture_sink import SINK
from aclrt.graph.capture_stream import enter
from aclrt.graph.execution import GRAPH
from aclrt.graph.orphan import gone
from aclrt.model.model import check_handle as check_model
from aclrt.stream import checks as streams
from aclrt.stream import context as contexts

if TYPE_CHECKING:
    from aclrt.graph.capture_stream import CaptureStream
    from aclrt.model.model import Model
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream


class CaptureInfo(NamedTuple):
    """What aclmdlRICaptureGetInfo writes: the stream's status and the model it captures into (None when NONE)."""

    status: CaptureStatus
    modelRI: CaptureModel | None  # noqa: N815 - the C name


def _check_type(stream: Stream, asked: str) -> None:
    if not stream.supports_capture:
        raise fail(Code.RT_INTERNAL_ERROR, asked, f"{stream!r} has a type no capture takes", "use a plain stream")


def _check_place(ctx: Context | None, stream: Stream, asked: str) -> None:
    """107002, 107003, 107005, 207000 in their recorded order."""
    contexts.require_same(ctx, stream, asked)
    if stream.model is not None:
        raise fail(
            Code.RT_STREAM_MODEL,
            asked,
            f"stream {stream.id} is bound to {stream.model.title()}",
            "use an unbound stream",
        )
    if stream.is_default:
        raise fail(Code.RT_FEATURE_NOT_SUPPORT, asked, "the default stream cannot be captured", "use a created stream")


def _mode(mode: int, asked: str) -> CaptureMode:
    if not 0 <= mode <= 2:
        raise fail(Code.RT_PARAM_INVALID, asked, f"mode is {mode}", "use GLOBAL 0, THREAD_LOCAL 1 or RELAXED 2")
    return CaptureMode(mode)


def begin(ctx: Context | None, stream: Stream, mode: int) -> CaptureModel:
    """aclmdlRICaptureBegin. Check order: acl_semantics 4.1.

    Errors: 107017, 107000 (mode), 507000 (stream type), 107002, 107003, 107005, 207000, 107027, 207010, 207008.
    """
    asked = "aclmdlRICaptureBegin"
    streams.check_handle(stream, asked)
    wanted = _mode(mode, asked)
    _check_type(stream, asked)
    _check_place(ctx, stream, asked)
    streams.refuse_capturing(stream, asked)
    model: CaptureModel = stream.npu.new_graph(stream.context)
    model.execution = GRAPH
    try:
        _enter_origin(model, stream, wanted)
    except BaseException:
        model.discard()
        raise
    return model


def begin_to_model(ctx: Context | None, stream: Stream, model: Model, mode: int) -> None:
    """aclmdlRICaptureToModelRIBegin: capture a branch of a conditional task (acl_semantics 4.1, 9.2).

    Errors as `begin`, and 107000 (not a branch), 107026 (branch captured before or capturing, tested before 107027).
    """
    asked = "aclmdlRICaptureToModelRIBegin"
    streams.check_handle(stream, asked)
    check_model(model, asked)
    wanted = _mode(mode, asked)
    _check_type(stream, asked)
    if not isinstance(model, CaptureModel) or not model.is_sub:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"{model.title()} is not a branch of a conditional task",
            "use a model of aclmdlRIAddCondTask",
        )
    _check_place(ctx, stream, asked)
    if model.status is not ModelStatus.NONE:
        raise fail(
            Code.RT_MODEL_CAPTURED, asked, f"{model.title()} is {model.status.name}", "a branch is captured once"
        )
    streams.refuse_capturing(stream, asked)
    _enter_origin(model, stream, wanted)


def _enter_origin(model: CaptureModel, stream: Stream, mode: CaptureMode) -> None:
    thread = host_thread()
    enter(model, stream, SINK, original=True, how="began the capture")
    model.move("begin")
    stream.capture_mode = mode
    stream.begin_thread = thread
    stream.context.modes.enter(mode)
    thread.modes.enter(mode)


def _exit_mode(stream: Stream) -> None:
    """The context's count drops, and that of the *ending* thread (a wrong-thread End leaves the beginner's;
    recorded)."""
    if stream.capture_mode is not None:
        stream.context.modes.exit(stream.capture_mode)
        host_thread().modes.exit(stream.capture_mode)
    stream.capture_mode = None
    stream.begin_thread = None


def end(ctx: Context | None, stream: Stream, *, want_model: bool = True) -> CaptureModel:
    """aclmdlRICaptureEnd. Check order and outcomes: acl_semantics 4.2. `want_model` False is a NULL out pointer.

    Errors: 107017, 507000, 107000, 107002, 107003, 107005, 207000, 107029, 107036, 107038, 507903, 107045, 107025,
    107033,
    107024, 207009. After any from 107038 on, every stream is back at NONE; a root model is destroyed (107038: stays
    READY).
    """
    asked = "aclmdlRICaptureEnd"
    streams.check_handle(stream, asked)
    _check_type(stream, asked)
    capture: Any = stream.capture
    if capture is not None and not want_model and not capture.model.is_sub:
        raise fail(Code.RT_PARAM_INVALID, asked, "no place for the model", "give a pointer for it; the capture goes on")
    _check_place(ctx, stream, asked)
    if capture is None:
        raise fail(Code.RT_STREAM_NOT_CAPTURED, asked, f"stream {stream.id} is not capturing", "begin a capture first")
    if not capture.model.alive:
        _leave_orphan(stream)
        raise gone(stream, asked)
    if not capture.original:
        raise fail(
            Code.RT_STREAM_CAPTURE_UNMATCHED,
            asked,
            f"stream {stream.id} {capture.joined_how()}; it did not begin the capture",
            f"end it on stream {capture.model.origin.user.id}",
        )
    model: CaptureModel = capture.model
    wrong_thread = stream.capture_mode is not CaptureMode.RELAXED and stream.begin_thread is not host_thread()
    mode_name = stream.capture_mode.name if stream.capture_mode is not None else "?"
    _exit_mode(stream)
    if wrong_thread:
        _exit_capture(model)
        raise fail(
            Code.RT_STREAM_CAPTURE_WRONG_THREAD,
            asked,
            f"the capture was begun in {mode_name} mode by another host thread (asyncio task)",
            "end it where it began, or begin it RELAXED; destroy the model if its handle was given out",
        )
    try:
        _validate(model, stream)
        _finish(model, stream)
    except BaseException:
        _exit_capture(model)
        if not model.is_sub:
            model.discard()
        raise
    _exit_capture(model)
    model.end_place = here()
    return model


def _validate(model: CaptureModel, stream: Stream) -> None:
    """Steps 8 to 11 of acl_semantics 4.2."""
    if stream.status is CaptureStatus.INVALIDATED or model.status is ModelStatus.CAPTURE_INVALIDATED:
        assert model.invalidated is not None
        reason, place = model.invalidated
        error = fail(
            Code.RT_STREAM_CAPTURE_INVALIDATED,
            f"aclmdlRICaptureEnd of {model.title()}",
            f"the capture was invalidated at {place} by: {reason}",
            "mend that call and capture again",
        )
        raise error from reason
    for handle in model.cond_handles:
        for branch in handle.models:
            _check_branch(model, branch)
    joined_error: AclError | None = None
    if model.open_groups:
        joined_error = fail(
            Code.STREAM_TASK_GROUP_STATUS,
            f"aclmdlRICaptureEnd of {model.title()}",
            f"the task group on stream {model.open_groups[0].user.id} is still open",
            "end every task group before the capture",
        )
    if joined_error is not None:
        raise joined_error
    joining.check_joined(model)


def _check_branch(model: CaptureModel, branch: CaptureModel) -> None:
    """107045 unless the branch and its own branches were captured (acl_semantics 9.5)."""
    if branch.status is not ModelStatus.READY:
        raise fail(
            Code.RT_SUB_ACLGRAPH_IS_CAPTURING,
            f"aclmdlRICaptureEnd of {model.title()}",
            f"{branch.parent_handle.describe(branch)} is {branch.status.name}",
            "capture and end every branch first",
        )
    for handle in branch.cond_handles:
        for nested in handle.models:
            _check_branch(model, nested)


def _finish(model: CaptureModel, stream: Stream) -> None:
    """Steps 12 to 14: notifies of added streams, event resets."""
    for added in model.added:
        added.pair()
    joining.check_recorded(model)
    joining.append_resets(model, stream, SINK)


def _exit_capture(model: CaptureModel) -> None:
    """Every stream of the model leaves; the model is READY whatever the outcome (recorded); events lose their hidden
    one."""
    for user in list(model.users):
        capture: CaptureStream = user.capture  # type: ignore[assignment]
        capture.group = None
        capture.leave(user)
        if user.capture_mode is not None:
            _exit_mode(user)
    model.open_groups.clear()
    if model.capturing:
        model.move("exit")
    for hidden in model.capture_events:
        hidden.event.capture = (
            None  # whatever it points at by now: also a later capture's record is forgotten (recorded)
        )


def cancel(stream: Stream) -> None:
    """End the capture a stream began, free it and say nothing (an exception is on its way through `aclrt.capture`)."""
    capture: Any = stream.capture
    if capture is None:
        return
    model: CaptureModel = capture.model
    if not model.alive:
        _leave_orphan(stream)
        return
    for user in list(model.users):
        if user.capture_mode is not None:
            _exit_mode(user)
    for handle in model.cond_handles:
        for branch in handle.models:
            for user in list(branch.users):
                if user.capture_mode is not None:
                    cancel(user)
    _exit_capture(model)
    if not model.is_sub:
        model.discard()


def _leave_orphan(stream: Stream) -> None:
    """A stream whose branch is gone goes back to NONE."""
    capture: Any = stream.capture
    _exit_mode(stream)
    capture.leave(stream)


def get_info(stream: Stream) -> CaptureInfo:
    """aclmdlRICaptureGetInfo: the *stream's* status (acl_semantics 4.3). Errors: 107017."""
    require_task()
    streams.check_handle(stream, "aclmdlRICaptureGetInfo")
    capture: Any = stream.capture
    return CaptureInfo(stream.status, capture.model if capture is not None and capture.model.alive else None)


def exchange_mode(ctx: Context | None, mode: int) -> CaptureMode:
    """aclmdlRICaptureThreadExchangeMode: set this thread's exchange mode, return the old one. Errors: 107000,
    107002."""
    asked = "aclmdlRICaptureThreadExchangeMode"
    wanted = _mode(mode, asked)
    contexts.require(ctx, asked)
    thread = host_thread()
    old, thread.exchange_mode = thread.exchange_mode, wanted
    return old


def add_stream(ctx: Context | None, stream: Stream | None, model: Model | None) -> None:
    """rtStreamAddToModel: pull a stream into a capture without an event (acl_semantics 5.8, recorded).

    Errors: 107017, 107000 (not a capture model), 207000 (branch, default stream), 107002, 107003, 107005, 507000 (not
    capturing), 107027 (captured elsewhere). Failures of the adding itself invalidate.
    """
    asked = "rtStreamAddToModel"
    for given in (stream, model):
        if given is not None:
            streams.check_handle(given, asked) if given is stream else check_model(given, asked)  # type: ignore[arg-type]
    if stream is None or not isinstance(model, CaptureModel):
        met = (
            f"{model.title()} is not a captured graph"
            if model is not None and stream is not None
            else "the stream or the model is NULL"
        )
        raise fail(Code.RT_PARAM_INVALID, asked, met, "give a stream and the model of aclmdlRICaptureGetInfo")
    if model.is_sub:
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT, asked, f"{model.title()} is a branch of a conditional task", "use a root graph"
        )
    _check_place(ctx, stream, asked)
    if any(added.user is stream for added in model.added):
        return
    if not model.active:
        raise fail(
            Code.RT_INTERNAL_ERROR,
            asked,
            f"{model.title()} is {model.status.name}",
            "add streams while it is capturing",
        )
    try:
        streams.refuse_capturing(stream, asked)
        hidden = enter(model, stream, SINK, original=False, how="added by rtStreamAddToModel", added=True)
        model.added.append(AddedStream(hidden))
    except AclError as error:
        model.terminate(error)
        raise
