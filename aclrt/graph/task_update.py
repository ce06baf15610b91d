"""Updating a task group: the window between TaskUpdateBegin and TaskUpdateEnd on a stream that is not capturing.

Not the patches it sends (`graph.patches`) and not the parameter edits of single tasks (`graph.task_params`).
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.host_thread import require_task
from aclrt.base.place import here
from aclrt.graph.task_group import TaskGroup, move
from aclrt.stream import context as contexts
from aclrt.stream.checks import check_handle, refuse_capturing
from aclrt.stream.stream import Stream
from aclrt.task.task import KernelOp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aclrt.base.errors import AclError
    from aclrt.graph.capture_model import CaptureModel
    from aclrt.stream.context import Context
    from aclrt.task.kernel import Kernel
    from aclrt.task.task import Op, Task

FULL_DEPTH = 32768  # SQEs; the depth at which v100 cannot address the full stream of a cascade (recorded)


@final
class Window:
    """An open update: the sink of its stream. Launches are matched with the group's tasks by their order.

    Invariants: exactly one window holds a group (`group.window`) and one a stream (`stream.update_sink`); `index`
    counts the launches matched so far; with `staged` a list, nothing has been sent and `commit` sends it.
    """

    __slots__ = ("group", "index", "place", "staged", "stream", "who")

    def __init__(self, stream: Stream, group: TaskGroup, *, staged: bool) -> None:
        self.stream = stream
        self.group = group
        self.index = 0
        self.staged: list[tuple[Task, KernelOp]] | None = [] if staged else None
        self.who = require_task().get_name()
        self.place = here()

    def append(self, stream: Stream, op: Op) -> None:
        """507009: only launches of the group's kernels pass. The window stays open, no slot is used up."""
        raise fail(
            Code.RT_TASK_TYPE_NOT_SUPPORT,
            f"{op.type_name} on stream {stream.id}",
            f"the stream updates {self.group!r} since {self.place}",
            "end the update first, or use another stream",
        )

    def kernel(self, stream: Stream, kernel: Kernel, args: tuple[Any, ...], blocks: int) -> None:
        """Match a launch with the next task of the group and patch that (acl_semantics 8.2).

        The slot is used up before anything else is checked, so a launch that fails then has used it. Errors: 507009
        (no AI core kernel), 107017 (graph destroyed), 507000 (more launches than tasks; another core), 107027 (the
        stream is also capturing; v200 takes it), 107000 (full stream).
        """
        if kernel.core == "aicpu":
            raise fail(
                Code.RT_TASK_TYPE_NOT_SUPPORT,
                f"launch of {kernel.name}",
                f"{self.group!r} holds AI core kernels",
                "end the update first",
            )
        model, task = self._next(kernel)
        if stream.capture is not None and not stream.npu.spec.launch_while_updating:
            self.index += 1
            refuse_capturing(stream, f"launch of {kernel.name}")
        driver = stream.npu.driver
        bound = kernel.bind(driver, args)
        self.index += 1
        self._check_task(task, kernel)
        handle = driver.args_put(bound.values, bound.bases)
        op = KernelOp(kernel=kernel, args=args, blocks=blocks, program=kernel.program(driver), handle=handle)
        if self.staged is not None:
            self.staged.append((task, op))
        else:
            self.group.patches(task).apply(model, stream, op)

    def _next(self, kernel: Kernel) -> tuple[CaptureModel, Task]:
        group = self.group
        if group.model is None:
            raise fail(
                Code.RT_INVALID_HANDLE,
                f"launch of {kernel.name} on stream {self.stream.id}",
                f"{group!r}",
                "end the update",
            )
        if self.index >= len(group.tasks):
            raise self._mismatch(
                f"launch of {kernel.name} on stream {self.stream.id}",
                f"launch {self.index + 1}",
                "launch no more than were captured",
            )
        return group.model, group.tasks[self.index]

    def _check_task(self, task: Task, kernel: Kernel) -> None:
        asked = f"launch of {kernel.name} on stream {self.stream.id}"
        old = task.op
        if not task.alive or not isinstance(old, KernelOp):
            raise fail(Code.RT_INTERNAL_ERROR, asked, f"{task!r} is no kernel any more", "capture the group again")
        if (old.kernel.core, old.fused) != (kernel.core, kernel.fused):
            met = f"{task!r} was captured as {old.kernel.name} for {old.kernel.core}, this is one for {kernel.core}"
            raise fail(Code.RT_INTERNAL_ERROR, asked, met, "update a task with a kernel of the same kind")
        spec = self.stream.npu.spec
        if not task.queue.owner.last and not spec.update_full_stream and spec.sq_depth >= FULL_DEPTH:
            raise fail(
                Code.RT_PARAM_INVALID,
                asked,
                f"{task!r} is in the full part of a cascade",
                "put the group where it fits",
            )

    def _mismatch(self, asked: str, got: str, todo: str) -> AclError:
        tasks = self.group.tasks
        names = ", ".join(
            task.op.kernel.name if isinstance(task.op, KernelOp) else task.op.type_name for task in tasks[:8]
        )
        met = f"{got} for the {len(tasks)} tasks of {self.group!r} ({names or 'none'})"
        return fail(Code.RT_INTERNAL_ERROR, asked, met, todo)

    # --- the end -----------------------------------------------------------------------------------------------------

    def check_count(self, asked: str) -> None:
        """507000 unless every task of the group was matched; nothing is rolled back."""
        if self.index != len(self.group.tasks):
            raise self._mismatch(asked, f"{self.index} launches", "launch every task of the group, in order")

    def commit(self) -> None:
        """Send what was staged. What is not sent when a step fails is dropped by `close`."""
        group, staged = self.group, self.staged or []
        if group.model is None:
            raise fail(Code.RT_INVALID_HANDLE, "end a task update", f"{group!r}", "capture again")
        while staged:
            task, op = staged.pop(0)
            group.patches(task).apply(group.model, self.stream, op)

    def close(self) -> None:
        """Let go of the stream and the group; staged launches are forgotten."""
        stream = self.stream
        for _, op in self.staged or ():
            stream.npu.driver.args_drop(op.handle)
        self.staged = None
        stream.update_sink = stream.updating = None
        stream.group_status = move(stream, "end update", "end a task update")
        stream.choose_sink()
        self.group.window = None

    def __repr__(self) -> str:
        seen = f"{self.index} of {len(self.group.tasks)} tasks"
        return f"<Window of {self.who} on stream {self.stream.id}, {seen} of {self.group!r}>"


def _open(ctx: Context | None, stream: Stream, group: TaskGroup, *, staged: bool) -> Window:
    asked = "aclmdlRICaptureTaskUpdateBegin"
    _check(ctx, stream, asked)
    after = move(stream, "begin update", asked)
    if group.window is not None:
        raise fail(
            Code.STREAM_TASK_GROUP_STATUS,
            f"{asked} on stream {stream.id}",
            f"{group!r} is being updated on stream {group.window.stream.id} since {group.window.place}",
            "end that update first",
        )
    if group.model is None:
        raise fail(Code.RT_INVALID_HANDLE, asked, f"{group!r}", "capture again")
    window = Window(stream, group, staged=staged)
    group.window = window
    stream.update_sink, stream.updating, stream.group_status = window, group, after
    stream.choose_sink()
    return window


def _check(ctx: Context | None, stream: Stream, asked: str) -> None:
    check_handle(stream, asked)
    refuse_capturing(stream, asked)
    if stream.model is not None:
        raise fail(
            Code.RT_STREAM_MODEL,
            asked,
            f"stream {stream.id} is bound to {stream.model.title()}",
            "use an unbound stream",
        )
    contexts.require_same(ctx, stream, asked)


def update_begin(ctx: Context | None, stream: Stream, group: TaskGroup) -> None:
    """aclmdlRICaptureTaskUpdateBegin: open a window; the group's graph may be in any state, running too.

    Errors: 107017, 107027, 107005, 107002, 107003, 107033 (something is open on the stream, or another window holds the
    group; the text names its task and place). Source: acl_semantics 8.2.
    """
    _open(ctx, stream, group, staged=False)


def update_end(ctx: Context | None, stream: Stream) -> None:
    """aclmdlRICaptureTaskUpdateEnd: close the window. The patches are tasks on the stream, nothing has been waited for.

    Errors: 107017, 107027, 107005, 107002, 107003, 107033 (no window), 507000 (fewer launches than tasks; the window is
    closed all the same and what was sent stays).
    """
    asked = "aclmdlRICaptureTaskUpdateEnd"
    _check(ctx, stream, asked)
    move(stream, "end update", asked)
    window = stream.update_sink
    assert isinstance(window, Window)
    try:
        window.check_count(f"{asked} on stream {stream.id}")
        if window.staged is not None:
            window.commit()
        window.group.updates += 1
    finally:
        window.close()


def abandon(stream: Stream) -> None:
    """Close the stream's window, if one is open, without a word; staged launches change nothing."""
    window = stream.update_sink
    if isinstance(window, Window):
        window.close()


@asynccontextmanager
async def update(group: TaskGroup, stream: Stream, graph: CaptureModel) -> AsyncIterator[Stream]:
    """`async with graph.update(group, on=stream) as u: u.launch(...)`: all of the group's tasks, or none.

    The patches go to the stream when the body has ended well; a body that raises or is cancelled leaves the group with
    its old arguments. Errors: TypeError, 107000 (the group is not of `graph` or a branch of it), and those of begin, of
    a launch and of end, at the same points.
    """
    _check_group(group, stream, graph)
    window = _open(stream.context, stream, group, staged=True)
    try:
        yield stream
        update_end(stream.context, stream)
    except BaseException:
        if stream.update_sink is window:
            window.close()
        raise


def _check_group(group: TaskGroup, stream: Stream, graph: CaptureModel) -> None:
    asked = f"update of {graph.title()}"
    if not isinstance(group, TaskGroup):
        raise TypeError(f"{asked}: {group!r} is not a task group; take what `with stream.task_group()` gives")
    if not isinstance(stream, Stream):
        raise TypeError(f"{asked}: {stream!r} is not a Stream")
    if group.model is not None and group.model.root is not graph.root:
        raise fail(Code.RT_PARAM_INVALID, asked, f"{group!r} is not one of its groups", "update the graph it is of")
