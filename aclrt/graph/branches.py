"""Branches as Python blocks: `if_`, `if_else`, `while_`, `switch` on a capturing graph, one `async with` per branch.

A face over `graph.cond` and `graph.capture`; the codes and the order of their checks are those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import CaptureMode, CondHandleFlag, CondType, ModelStatus
from aclrt.base.errors import fail
from aclrt.graph import capture, cond
from aclrt.graph.cond import CondHandle, CondTaskParams
from aclrt.stream import lifecycle
from aclrt.task.memory import DeviceArray, window

if TYPE_CHECKING:
    from types import TracebackType

    from aclrt.graph.capture_model import CaptureModel
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream


@final
class Condition:
    """A value that one conditional task decides by. Made by `graph.condition`.

    `buffer` is a device array u64[1] that kernels and copies inside the graph write. It is zero at first; submitting a
    replay sets it to the default if one was given. `handle` is the `aclmdlRICondHandle`.
    """

    __slots__ = ("buffer", "handle")

    def __init__(self, handle: CondHandle) -> None:
        self.handle = handle
        self.buffer: DeviceArray = window(handle.model.context, handle.cell, (1,), np.uint64)

    def __repr__(self) -> str:
        default = f", default {self.handle.default}" if self.handle.flag else ""
        return f"<Condition {self.handle!r}{default}>"


@final
class Branch:
    """One branch of a conditional task: `async with branch as stream` captures it. Entered once.

    The stream is the device's own, good inside the block only. Leaving the block ends the branch; an exception
    propagates unchanged and leaves nothing captured.
    """

    __slots__ = ("_stream", "handle", "index")

    def __init__(self, handle: CondHandle, index: int) -> None:
        self.handle = handle
        self.index = index
        self._stream: Stream | None = None  # set inside the block

    @property
    def model(self) -> CaptureModel:
        """The sub-model behind it."""
        return self.handle.models[self.index]

    async def __aenter__(self) -> Stream:
        """Begin the branch's capture. Errors: 107017 (the graph is gone), 107026 (entered before), 207008."""
        asked = f"enter the {self.handle.branch_name(self.index)} branch"
        cond.check_handle(self.handle, asked)
        context = self.handle.model.context
        stream = _take(context)
        try:
            capture.begin_to_model(context, stream, self.model, _mode(self.handle.model))
        except BaseException:
            context.spare_streams.append(stream)
            raise
        self._stream = stream
        return stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the branch. Errors: those of aclmdlRICaptureEnd; the branch then counts as never entered."""
        stream, self._stream = self._stream, None
        assert stream is not None, "left before it was entered"
        context = stream.context
        try:
            if error is None:
                capture.end(context, stream, want_model=False)
            else:
                self._give_up(stream)
        except BaseException:
            self._give_up(stream)
            raise
        finally:
            if stream.alive and stream.capture is None:
                context.spare_streams.append(stream)

    def _give_up(self, stream: Stream) -> None:
        """Leave nothing captured: an empty model takes the place of the half captured one."""
        capture.cancel(stream)
        if self.handle.alive:  # false when the whole graph was given up first
            self.handle.renew(self.model)

    def __repr__(self) -> str:
        if not self.handle.alive:
            return f"<Branch {self.index} of a destroyed graph>"
        return (
            f"<Branch {self.index} ({self.handle.branch_name(self.index)}) {self.model.status.name}, {self.handle!r}>"
        )


def condition(graph: CaptureModel, default: int | None = None, on: Stream | None = None) -> Condition:
    """A condition for one `if_`, `if_else`, `while_` or `switch` of this graph, or of a branch of it.

    With `default` (0 to 2**32 - 1) each replay starts from it: the host writes it when the run is submitted, so a run
    submitted while another one of the graph is going changes the value under that one. Submit the next when the run
    before has ended, or set the value by a task of the graph. Without `default` the value stays what was last written.
    It belongs to the graph, or to what `on` captures. Errors: 107000 unless capturing. Source: acl_semantics 9.1, 9.4.
    """
    if default is not None and not 0 <= default <= 0xFFFF_FFFF:
        raise ValueError(f"condition: default is {default}; give 0 to 2**32 - 1, or write the buffer")
    model = graph if on is None else _captured(on)
    flag = CondHandleFlag.NONE if default is None else CondHandleFlag.ASSIGN_DEFAULT
    return Condition(cond.create(model.context, model, default or 0, flag))


def if_(graph: CaptureModel, condition: Condition, on: Stream | None = None) -> Branch:
    """Run the branch when the value is not 0. `on`: the stream the task goes to, by default the one that began."""
    return _add(graph, condition, CondType.IF, 1, on)[0]


def if_else(graph: CaptureModel, condition: Condition, on: Stream | None = None) -> tuple[Branch, Branch]:
    """Run the first branch when the value is not 0, else the second."""
    yes, no = _add(graph, condition, CondType.IF, 2, on)
    return yes, no


def while_(graph: CaptureModel, condition: Condition, on: Stream | None = None) -> Branch:
    """Run the branch again and again until it leaves 0 in the value, which is read before each turn."""
    return _add(graph, condition, CondType.WHILE, 1, on)[0]


def switch(graph: CaptureModel, condition: Condition, n: int, on: Stream | None = None) -> tuple[Branch, ...]:
    """Run branch number `value`; a value outside 0 .. n-1 (read as signed) runs none of the `n`."""
    return tuple(_add(graph, condition, CondType.SWITCH, n, on))


def _add(graph: CaptureModel, condition: Condition, ctype: CondType, size: int, on: Stream | None) -> list[Branch]:
    """The conditional task. Errors: those of aclmdlRIAddCondTask (acl_semantics 9.2)."""
    if not isinstance(condition, Condition):
        raise TypeError(
            f"{ctype.name}: {type(condition).__name__} given for the condition; make one with graph.condition()"
        )
    handle = condition.handle
    cond.check_handle(handle, ctype.name)
    if handle.model.root is not graph.root:
        raise fail(
            Code.RT_PARAM_INVALID,
            ctype.name,
            f"the condition is of {handle.model.root.title()}",
            f"make one of {graph.title()}",
        )
    stream = on if on is not None else _origin(handle.model, ctype)
    target: Any = stream.capture
    if target is not None and target.model is not handle.model and _may_move(handle, target.model):
        handle.move_to(target.model)
    cond.add_task(handle.model.context, CondTaskParams(handle=handle, type=ctype, size=size), stream)
    return [Branch(handle, index) for index in range(size)]


def _may_move(handle: CondHandle, model: CaptureModel) -> bool:
    """A condition made on the graph may drive a task of a branch: one name for the user, one owner for the runtime."""
    return handle.ctype is None and model.active and model.root is handle.model.root


def _origin(model: CaptureModel, ctype: CondType) -> Stream:
    """The stream that began the capture of `model`."""
    if model.origin is None or not model.active:
        raise fail(
            Code.RT_STREAM_NOT_CAPTURED,
            ctype.name,
            f"{model.title()} is {model.status.name}",
            "use it inside the capture",
        )
    return model.origin.user


def _captured(stream: Stream) -> CaptureModel:
    """The model a stream captures into, 107029 if none."""
    joined: Any = stream.capture
    if joined is None:
        raise fail(
            Code.RT_STREAM_NOT_CAPTURED,
            "condition",
            f"stream {stream.id} is not capturing",
            "use it inside the capture",
        )
    model: CaptureModel = joined.model
    return model


def _mode(model: CaptureModel) -> CaptureMode:
    """Branches are captured in the mode their graph is."""
    origin = model.root.origin
    mode = origin.user.capture_mode if origin is not None else None
    return mode if mode is not None else CaptureMode.THREAD_LOCAL


def check_entered(graph: CaptureModel) -> None:
    """107045, naming branch and line, when a branch of the graph was never entered (acl_semantics 9.5)."""
    for model in graph.everything():
        if model.status is ModelStatus.NONE and model.parent_handle is not None:
            which = model.parent_handle.describe(model)
            todo = "enter each branch with `async with`, an empty one too"
            raise fail(Code.RT_SUB_ACLGRAPH_IS_CAPTURING, f"end {graph.title()}", f"{which} was never entered", todo)


# --- the streams branches are captured on ----------------------------------------------------------------------------


@final
class BranchOver:
    """The live sink of a stream that only ever captures branches: outside a branch it takes nothing."""

    __slots__ = ()

    def append(self, stream: Stream, op: object) -> NoReturn:
        raise fail(
            Code.RT_STREAM_NOT_CAPTURED,
            "submit a task",
            f"stream {stream.id} is that of a branch that was left",
            "use it inside its block",
        )

    def kernel(self, stream: Stream, kernel: object, args: tuple[object, ...], blocks: int) -> NoReturn:
        self.append(stream, kernel)


def _take(context: Context) -> Stream:
    """An idle hidden user stream of the context, or a new one. Errors: 207008."""
    while context.spare_streams:
        stream = context.spare_streams.pop()
        if stream.alive and stream.capture is None:
            return stream
    stream = lifecycle.create(context)
    stream.live = BranchOver()
    stream.choose_sink()
    return stream
