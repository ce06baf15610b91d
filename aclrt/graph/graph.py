"""A Graph: the public face of a captured model, with its verbs. `aclrt.capture` makes one. Not how capturing works."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, final

from aclrt.base.enums import CaptureMode
from aclrt.graph import branches, capture, listing, task_edit, task_group, task_params, task_structs, task_update
from aclrt.graph.capture_model import CaptureModel
from aclrt.model import execute, names, stop
from aclrt.stream.stream import Stream
from aclrt.views import dot, dump

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from aclrt.graph.branches import Branch, Condition
    from aclrt.graph.task_group import TaskGroup
    from aclrt.graph.task_structs import Params
    from aclrt.model.execute import Run
    from aclrt.task.task import Task

Mode = Literal["global", "thread_local", "relaxed"]
MODES: dict[str, CaptureMode] = {mode.name.lower(): mode for mode in CaptureMode}


@final
class Graph(CaptureModel):
    """A captured graph: replay it many times, update it, branch inside it.

    The same object during the capture and after it, and the very handle the `acl` functions give and take. Its states
    are
    RtCaptureModelStatus (`graph.status`); `repr` shows them.
    """

    def launch(self, stream: Stream) -> Run:
        """Enqueue one run on `stream` and return it: `await` it later, or drop it. Errors: `execute_async`."""
        if stream.__class__ is not Stream:
            raise TypeError(f"launch of {self.title()}: {stream!r} is not a Stream")
        return execute.execute_async(stream.context, self, stream)

    async def replay(self, stream: Stream) -> None:
        """Run once on `stream` and wait for the end; raises the run's failure."""
        await self.launch(stream)

    async def abort(self) -> None:
        """Stop the run in progress at its next task boundary (507023 to its waiters). Errors: 107019."""
        await stop.abort(self.context, self)

    async def close(self) -> None:
        """aclmdlRIDestroy, once: a second close does nothing. Errors: 107026 while capturing, 107037 still running."""
        if self.alive:
            await stop.destroy(self.context, self)

    def update(self, group: TaskGroup, *, on: Stream) -> AbstractAsyncContextManager[Any]:
        """`async with graph.update(group, on=side) as u: u.launch(...)`: new kernels for the group's tasks, in order.

        The patches are tasks of `on`. A body that raises leaves the group as it was. Errors: 107000 (a group of another
        graph), 107033 (another updater has the group or the stream), 507000 (another number of launches).
        """
        return task_update.update(group, on, self)

    def params(self, task: Task) -> Params:
        """What a task does, as the struct of its type (a copy). Errors: 107000 (it has none; a task of another graph),
        107017, 207000 (branch)."""
        task_params.check_member(self, task)
        return task_structs.of(task_params.get_params(task))

    def set_params(self, task: Task, params: Params) -> None:
        """Change what a task does from the next `commit` on. Errors: 107000 (a task of another graph; the graph stays
        READY), `task_edit.set_params`."""
        task_params.check_member(self, task)
        task_edit.set_params(task, task_structs.wrap(params))

    def disable(self, task: Task) -> None:
        """Take a task out from the next `commit` on. Errors: 107000 (a task of another graph), `task_edit.disable`."""
        task_params.check_member(self, task)
        task_edit.disable(task)

    def commit(self) -> None:
        """aclmdlRIUpdate: take over what task parameters were set or disabled. Errors: 107040, 507002."""
        task_edit.update(self)

    def rename(self, name: str) -> None:
        """aclmdlRISetName."""
        names.set_name(self.context, self, name)

    # --- conditional branches (while capturing) --------------------------------------------------------------------

    def condition(self, default: int | None = None, *, on: Stream | None = None) -> Condition:
        """A condition cell for one branch construct; submitting a run sets it to `default`, if given."""
        return branches.condition(self, default, on)

    def if_(self, cond: Condition, *, on: Stream | None = None) -> Branch:
        """`async with graph.if_(cond) as body`: runs when the cell is not 0. `on`: the stream the task goes to."""
        return branches.if_(self, cond, on)

    def if_else(self, cond: Condition, *, on: Stream | None = None) -> tuple[Branch, Branch]:
        """Two branches, each captured by its own `async with`."""
        return branches.if_else(self, cond, on)

    def while_(self, cond: Condition, *, on: Stream | None = None) -> Branch:
        """The body runs until the cell is 0; it must change the cell itself."""
        return branches.while_(self, cond, on)

    def switch(self, cond: Condition, n: int, *, on: Stream | None = None) -> tuple[Branch, ...]:
        """Branch `v` of `n` runs for the cell's value v; out of range runs nothing."""
        return branches.switch(self, cond, n, on)

    # --- looking at it ---------------------------------------------------------------------------------------------

    def to_dot(self) -> str:
        """DOT text: streams as clusters, tasks with kernel and place, edges for order, events, notifies, activation."""
        return dot.dot_text(listing.list_model(self))

    def to_json(self, *, verbose: bool = False) -> str:
        """The text aclmdlRIDebugJsonPrint writes (acl_semantics 12.2)."""
        return dump.json_text(listing.list_model(self), verbose=verbose)


@asynccontextmanager
async def capture_graph(
    stream: Stream, *, mode: Mode = "thread_local", name: str | None = None
) -> AsyncIterator[Graph]:
    """`async with aclrt.capture(stream) as graph`: what is submitted to `stream` inside becomes the graph.

    An exception or a cancellation inside ends the capture, frees it and propagates unchanged. At the end: an open task
    group is closed, a branch that was never entered raises 107045 with its line, then `aclmdlRICaptureEnd` decides
    (107025 unjoined, 507903, ...). Source: design.md section 4.
    """
    if not isinstance(stream, Stream):
        raise TypeError(f"capture: {stream!r} is not a Stream")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"capture: name is {name!r}; give a str")
    if mode not in MODES:
        raise ValueError(f"capture: mode is {mode!r}; use one of {', '.join(MODES)}")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"capture: name must be a str, not {type(name).__name__}")
    graph = capture.begin(stream.context, stream, MODES[mode])
    assert isinstance(graph, Graph)
    try:
        graph.name = name or ""
        yield graph
        for user in list(graph.users):
            task_group.close(user)
        if graph.capturing:
            branches.check_entered(graph)
    except BaseException:
        if graph.capturing:
            capture.cancel(stream)
        raise
    if graph.capturing:
        try:
            capture.end(stream.context, stream)
        except BaseException:
            if graph.alive:
                graph.discard()  # ended on another host thread: nobody else has the handle
            raise
