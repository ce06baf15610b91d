"""A TaskGroup: a run of captured kernels whose arguments can be updated later. Not the update (`graph.task_update`)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import TaskGroupStatus
from aclrt.base.errors import fail
from aclrt.base.place import here
from aclrt.base.states import Table
from aclrt.graph.patches import Patches
from aclrt.stream import checks as streams
from aclrt.stream import context as contexts
from aclrt.task.task import GROUPABLE_KINDS, ActiveOp, KernelOp, Nop

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aclrt.base.errors import AclError
    from aclrt.graph.capture_model import CaptureModel
    from aclrt.graph.capture_stream import CaptureStream
    from aclrt.graph.patches import Patch
    from aclrt.graph.task_update import Window
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream
    from aclrt.task.task import Op, Task

S = TaskGroupStatus
STATUS = Table(
    "task group",
    {
        (S.NONE, "begin"): S.SAMPLE,
        (S.SAMPLE, "end"): S.NONE,
        (S.NONE, "begin update"): S.UPDATE,
        (S.UPDATE, "end update"): S.NONE,
    },
    code=Code.STREAM_TASK_GROUP_STATUS,
)
"""Legal moves of a stream's task-group status (acl_semantics 3.3); every other one is 107033."""


@final
class TaskGroup:
    """The tasks captured between TaskGrpBegin and TaskGrpEnd, in order (seed acl-graph 4.2 "TaskGroup").

    Invariants: `tasks` is fixed once the group is closed; a task is in at most one group; `window` is the update that
    holds the group, or None, and at most one window holds it; `model` is None once the model is destroyed.
    """

    __slots__ = ("_patches", "index", "model", "place", "tasks", "updates", "user", "window")

    def __init__(self, model: CaptureModel, user: Stream) -> None:
        self.model: CaptureModel | None = model
        self.user = user
        self.index = len(model.groups)
        self.tasks: list[Task] = []
        self.updates = 0  # windows that ended well: a group left at 0 still has the arguments of its capture
        self.window: Window | None = None
        self.place = here()
        self._patches: dict[Task, Patches] = {}

    def add(self, task: Task) -> None:
        """Take a task captured while the group is open."""
        self.tasks.append(task)

    def patches(self, task: Task) -> Patches:
        """What updates did to one of the group's tasks."""
        return self._patches.get(task) or self._patches.setdefault(task, Patches(task))

    def flying(self) -> Iterator[Patch]:
        """Patches the device has not executed yet."""
        for patches in self._patches.values():
            yield from patches.flying

    def __repr__(self) -> str:
        owner = self.model.title() if self.model is not None else "a destroyed graph"
        state = f", updated by {self.window.who}" if self.window is not None else ""
        return f"<TaskGroup {self.index} of {owner}, {len(self.tasks)} tasks, begun at {self.place}{state}>"


def groupable(capture: CaptureStream, op: Op) -> bool:
    """Kernels of an AI core; on v200 also a fused kernel with a cube part (acl_semantics 8.1)."""
    if op.kind in GROUPABLE_KINDS:
        return True
    return isinstance(op, KernelOp) and op.fused and op.kernel.core == "aic" and capture.npu.spec.fusion_kernels


def admit(model: CaptureModel, capture: CaptureStream, op: Op) -> None:
    """Whether `op` may be captured on `capture` while some group of the model is open. ActiveOp always may.

    Errors: 107034 on another stream than the group's, 507009 for a kind no group takes. Both invalidate the capture and
    are what the group's End will return (acl_semantics 8.1).
    """
    if isinstance(op, ActiveOp):
        return
    error: AclError | None = None
    if capture not in model.open_groups:
        group = model.open_groups[0].group
        error = fail(
            Code.STREAM_TASK_GROUP_INTR,
            f"{op.type_name} on stream {capture.user.id}",
            f"{group!r} is open on stream {group.user.id}",
            "end the group before other streams of the capture get tasks",
        )
    elif not groupable(capture, op):
        error = fail(
            Code.RT_TASK_TYPE_NOT_SUPPORT,
            f"{op.type_name} in a task group",
            f"{capture.group!r} takes AI core kernels only",
            "put it before or after the group",
        )
    if error is not None:
        model.group_error = error
        model.terminate(error)
        raise error


def move(stream: Stream, verb: str, asked: str) -> TaskGroupStatus:
    """The status after `verb`; 107033 that names what is open on the stream."""
    if STATUS.allows(stream.group_status, verb):
        return STATUS.next(stream.group_status, verb)
    capture: Any = stream.capture
    if stream.group_status is S.NONE:
        met, todo = "none is open on it", "begin one first"
    elif stream.updating is not None:
        met, todo = f"{stream.updating!r} is open on it", "end that update first"
    elif capture is not None and capture.group is not None:
        met, todo = f"{capture.group!r} is open on it", "end that group first"
    else:
        met, todo = "a group of an earlier capture was never ended on it", "use another stream"
    raise fail(Code.STREAM_TASK_GROUP_STATUS, f"{asked} on stream {stream.id}", met, todo)


def _captured(ctx: Context | None, stream: Stream, asked: str) -> CaptureStream:
    streams.check_handle(stream, asked)
    capture: Any = stream.capture
    if capture is None:
        raise fail(Code.RT_STREAM_NOT_CAPTURED, asked, f"stream {stream.id} is not capturing", "begin a capture first")
    contexts.require_same(ctx, stream, asked)
    return capture  # type: ignore[no-any-return]


def begin(ctx: Context | None, stream: Stream) -> TaskGroup:
    """aclmdlRICaptureTaskGrpBegin: put the prefetch NOPs, then open the group (acl_semantics 8.1).

    Errors: 107017, 107029, 107002, 107003, 107033 (a group or an update is open on the stream), 107034 (another
    stream's group is open; invalidates), and those of a cascade.
    """
    asked = "aclmdlRICaptureTaskGrpBegin"
    capture = _captured(ctx, stream, asked)
    after = move(stream, "begin", asked)
    for _ in range(stream.npu.spec.task_prefetch):
        stream.submit(Nop())
    capture = stream.capture  # type: ignore[assignment]  # the NOPs may have made it cascade
    group = TaskGroup(capture.model, stream)
    capture.group = group
    capture.model.open_groups.append(capture)
    stream.group_status = after
    return group


def end(ctx: Context | None, stream: Stream) -> TaskGroup:
    """aclmdlRICaptureTaskGrpEnd: close the group and hand it over.

    Errors: 107017, 107029, 107002, 107003, 107033 (no group open), 507000 (the status of an unclosed group of an
    earlier capture), and what broke this one: 507009, 107034, 507903; after these three the group is closed and gone.
    """
    asked = "aclmdlRICaptureTaskGrpEnd"
    capture = _captured(ctx, stream, asked)
    move(stream, "end", asked)
    group: TaskGroup | None = capture.group
    if group is None:
        raise fail(
            Code.RT_INTERNAL_ERROR,
            asked,
            "the open group belonged to an earlier capture of the stream",
            "use another stream",
        )
    model = capture.model
    _close(stream, capture)
    if model.group_error is not None:
        raise model.group_error
    if not model.active:
        assert model.invalidated is not None
        reason, place = model.invalidated
        raise fail(
            Code.RT_STREAM_CAPTURE_INVALIDATED,
            asked,
            f"the capture was invalidated at {place} by: {reason}",
            "end the capture",
        ) from reason
    for task in group.tasks:
        task.group = group
    group.index = len(model.groups)
    model.groups.append(group)
    return group


def _close(stream: Stream, capture: CaptureStream) -> None:
    capture.group = None
    if capture in capture.model.open_groups:
        capture.model.open_groups.remove(capture)
    stream.group_status = S.NONE


def close(stream: Stream) -> None:
    """Close the stream's open group and drop it, whatever the state of the capture; nothing if none is open."""
    capture: Any = stream.capture
    if capture is not None and capture.group is not None:
        _close(stream, capture)


@contextmanager
def scope(stream: Stream) -> Iterator[TaskGroup]:
    """`with stream.task_group() as group:` is begin, then end; a failing body drops the group, not its exception."""
    group = begin(stream.context, stream)
    try:
        yield group
    except BaseException:
        close(stream)
        raise
    end(stream.context, stream)
