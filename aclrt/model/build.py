"""The build calls of a normal model: begin, bind, unbind, end task, build end. Not executions (`model.execute`).

Check orders are those recorded; acl_semantics 1.2 with the corrections of the recordings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import BindFlag, FailureMode, StreamFlag
from aclrt.base.errors import fail
from aclrt.model import fill, to_aicpu
from aclrt.model.model import check_handle as check_model
from aclrt.model.model import require_same
from aclrt.model.normal import NormalModel
from aclrt.stream import context as contexts
from aclrt.stream.checks import refuse_capturing, resolve
from aclrt.stream.persistent import keep
from aclrt.task.task import NotifyRecordOp

if TYPE_CHECKING:
    from aclrt.model.model import Model
    from aclrt.stream.context import Context
    from aclrt.stream.persistent import PersistentTasks
    from aclrt.stream.stream import Stream


def _normal(model: Model, asked: str) -> NormalModel:
    """107000 for a captured graph, which is never built by hand."""
    if not isinstance(model, NormalModel):
        raise fail(
            Code.RT_PARAM_INVALID, asked, f"{model.title()} is a captured graph", "use a model of aclmdlRIBuildBegin"
        )
    return model


def begin(ctx: Context | None, flag: int = 0) -> NormalModel:
    """aclmdlRIBuildBegin: an empty normal model in the current context. Errors: 107000 (flag not 0), 107002, 207010."""
    asked = "aclmdlRIBuildBegin"
    if flag != 0:
        raise fail(Code.RT_PARAM_INVALID, asked, f"flag is {flag}", "give 0")
    return NormalModel(contexts.require(ctx, asked))


def bind(ctx: Context | None, model: Model, stream: Stream | None, flag: int) -> None:
    """aclmdlRIBindStream: the stream's tasks from now on are the model's; HEAD streams start with an execute.

    Errors in order: 107000 (flag), 107017, 107000 (stream not PERSISTENT), 107005 (bound already), 107000 (captured
    graph), 107027, 507000 (DEVICE_USE_ONLY), 207000 (failure mode STOP, FAST_LAUNCH, so NULL too), 107002, 107004,
    507000.
    """
    asked = "aclmdlRIBindStream"
    if flag not in (BindFlag.HEAD, BindFlag.DEFAULT):
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"flag is {flag:#x}",
            "use ACL_MODEL_STREAM_FLAG_HEAD 0 or _DEFAULT 0x7fffffff",
        )
    check_model(model, asked)
    by_default = stream is None
    stream = resolve(ctx, stream, asked)
    if not by_default and not stream.persistent:
        raise fail(
            Code.RT_PARAM_INVALID, asked, f"{stream!r} is not persistent", "create it with ACL_STREAM_PERSISTENT"
        )
    if stream.model is not None:
        raise fail(
            Code.RT_STREAM_MODEL,
            asked,
            f"stream {stream.id} is bound to {stream.model.title()} already",
            "unbind it first",
        )
    normal = _normal(model, asked)
    _check_bindable(stream, asked)
    require_same(ctx, model, asked)
    head = flag == BindFlag.HEAD
    kept = keep(stream)
    _drop_foreign_ends(kept, normal)
    try:
        fill.attach(normal, kept, head=head)
    except BaseException:
        if not normal.npu.spec.auto_split:
            stream.model_sink = None
            stream.choose_sink()
        raise
    normal.adopt(stream, head=head)


def _check_bindable(stream: Stream, asked: str) -> None:
    refuse_capturing(stream, asked)
    if stream.flags & StreamFlag.DEVICE_USE_ONLY:
        raise fail(
            Code.RT_INTERNAL_ERROR, asked, f"{stream!r} is for the device's own use", "use a plain persistent stream"
        )
    if stream.failure_mode is FailureMode.STOP:
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT,
            asked,
            f"stream {stream.id} is in STOP mode",
            "a model's stream goes on after failures",
        )
    if stream.flags & StreamFlag.FAST_LAUNCH:
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT,
            asked,
            f"{stream!r} is a fast-launch stream",
            "create it with ACL_STREAM_PERSISTENT only",
        )


def _drop_foreign_ends(kept: PersistentTasks, model: NormalModel) -> None:
    """End-graph records of a model the stream was bound to before mean nothing to this one."""
    queue = kept.queue
    mine = [
        task
        for task in queue.tasks
        if not (isinstance(task.op, NotifyRecordOp) and task in kept.ends and task.op.notify is not model.end_notify)
    ]
    if len(mine) != len(queue.tasks):
        kept.ends = [task for task in kept.ends if task.op.notify is model.end_notify]  # type: ignore[attr-defined]
        queue.tasks = mine
        queue.restamp()


def unbind(ctx: Context | None, model: Model, stream: Stream | None) -> None:
    """aclmdlRIUnbindStream: the stream keeps its persistent tasks and may be bound again.

    Errors in order: 107017, 107000 (captured graph), 107027, 107002, 107004, 107005 (not bound to this model), 507000
    (the device refuses while the model runs).
    """
    asked = "aclmdlRIUnbindStream"
    check_model(model, asked)
    stream = resolve(ctx, stream, asked)
    normal = _normal(model, asked)
    refuse_capturing(stream, asked)
    require_same(ctx, model, asked)
    if stream.model is not normal:
        where = stream.model.title() if stream.model is not None else "no model"
        raise fail(
            Code.RT_STREAM_MODEL,
            asked,
            f"stream {stream.id} is bound to {where}, not {model.title()}",
            "unbind what is bound",
        )
    assert stream.kept is not None
    fill.detach(normal, stream.kept)
    normal.release_stream(stream)


def end_task(ctx: Context | None, model: Model, stream: Stream | None) -> None:
    """aclmdlRIEndTask: the end-graph record, which ends a run, goes to the stream's tail. Twice is accepted (recorded),
    but not for a stream the AI-CPU schedules (acl_semantics 10.3).

    Errors in order: 107017, 107000 (captured graph), 107027, 107002, 107003, 107004, 507000 (not bound to this model;
    AI-CPU: twice), 107000 (v200: complete already), 507002, 207009.
    """
    asked = "aclmdlRIEndTask"
    check_model(model, asked)
    stream = resolve(ctx, stream, asked)
    normal = _normal(model, asked)
    refuse_capturing(stream, asked)
    contexts.require_same(ctx, stream, asked)
    require_same(ctx, model, asked)
    if stream.model is not normal:
        raise fail(
            Code.RT_INTERNAL_ERROR, asked, f"stream {stream.id} is not bound to {model.title()}", "bind it first"
        )
    if normal.end_notify.id is not None and stream.flags & StreamFlag.CPU_SCHEDULE:
        met = f"{model.title()} has an end already, and the AI-CPU schedules stream {stream.id}"
        raise fail(Code.RT_INTERNAL_ERROR, asked, met, "end the tasks of such a model once")
    assert stream.kept is not None
    kept = stream.kept
    normal.alloc_end_notify()
    kept.ends.append(kept.append(stream, NotifyRecordOp(notify=normal.end_notify)))


def build_end(ctx: Context | None, model: Model) -> None:
    """aclmdlRIBuildEnd (load complete): SQEs are filled in one batch, tails move, the model can be executed.

    A stream over the task limit is split here where the chip does that. Errors in order: 107017, 107000 (captured
    graph), 107002, 107004, 107005 (no stream bound), 507011 (no EndTask), 207008 (slave streams), 107037 (new tasks
    while it runs).
    """
    asked = "aclmdlRIBuildEnd"
    check_model(model, asked)
    normal = _normal(model, asked)
    require_same(ctx, model, asked)
    if not normal.streams:
        raise fail(Code.RT_STREAM_MODEL, asked, f"{model.title()} has no stream", "bind one with aclmdlRIBindStream")
    if normal.end_notify.id is None:
        raise fail(
            Code.RT_MODEL_EXECUTE,
            asked,
            f"{model.title()} has no EndTask",
            "call aclmdlRIEndTask on the stream that ends last",
        )
    fill.send(normal)
    normal.loaded = True
    to_aicpu.loaded(normal)
