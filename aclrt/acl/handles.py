"""What the acl layer itself tests of an argument: NULL, the kind of a handle, the Python type. Knows no state of any
object.

A mandatory pointer that is None is 100000 (acl_semantics 0, step 1). A handle of another kind is 107017; anything
that could never be a handle is a TypeError (design.md 3, "NULL and types").
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NoReturn, TypeVar

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.completion import Completion
from aclrt.base.errors import fail
from aclrt.graph.cond import CondHandle
from aclrt.graph.joining import CaptureEvent
from aclrt.graph.task_group import TaskGroup
from aclrt.model.model import Model
from aclrt.stream.context import Context
from aclrt.stream.event import Event
from aclrt.stream.label import Label, LabelList
from aclrt.stream.notify import Notify
from aclrt.stream.stream import Stream
from aclrt.task.task import Task

T = TypeVar("T")
E = TypeVar("E", bound=IntEnum)

aclrtContext = Context
aclrtStream = Stream
aclrtEvent = Event
aclrtNotify = Notify
aclrtLabel = Label
aclrtLabelList = LabelList
aclmdlRI = Model
aclmdlRITask = Task
aclmdlRICondHandle = CondHandle
aclrtTaskGrp = TaskGroup

HANDLES: tuple[type, ...] = (
    Stream,
    Event,
    Model,
    TaskGroup,
    CondHandle,
    Task,
    Notify,
    Label,
    LabelList,
    Context,
    CaptureEvent,
)


DONE = Completion()
"""What a call returns that C lets block and that has nothing to wait for here: `await` works and is not needed."""
DONE.set()


def null(asked: str, name: str) -> NoReturn:
    """100000 for a pointer C does not allow to be NULL."""
    raise fail(Code.INVALID_PARAM, asked, f"{name} is NULL", f"give a {name}")


def given(value: T | None, asked: str, name: str) -> T:
    """A mandatory pointer that is no handle (a callback, a path, an address)."""
    if value is None:
        null(asked, name)
    return value


def handle(value: T | None, kind: type[T], asked: str, name: str) -> T:
    """A mandatory handle of one kind."""
    if value.__class__ is kind:
        return value
    if value is None:
        null(asked, name)
    return _another(value, kind, asked, name)


def needed(value: T | None, kind: type[T], asked: str, name: str) -> T:
    """A handle whose NULL the acl layer lets through and the runtime below refuses with 107000."""
    if value is None:
        raise fail(Code.RT_PARAM_INVALID, asked, f"{name} is NULL", f"give a {name}")
    return handle(value, kind, asked, name)


def optional(value: T | None, kind: type[T], asked: str, name: str) -> T | None:
    """A handle that may be NULL here: the default stream, or a NULL the floors below refuse with their own code."""
    if value is None or value.__class__ is kind:
        return value
    return _another(value, kind, asked, name)


def _another(value: Any, kind: type[T], asked: str, name: str) -> T:
    if isinstance(value, kind):
        return value
    if isinstance(value, HANDLES):
        raise fail(Code.RT_INVALID_HANDLE, asked, f"{name} is {value!r}", f"give a {kind.__name__}")
    raise TypeError(f"{asked}: {name} must be a {kind.__name__}, not {type(value).__name__}")


def member(value: int, kind: type[E], asked: str, name: str) -> E:
    """An enum value whose range the acl layer tests itself: 100000 outside it."""
    try:
        return kind(value)
    except ValueError:
        if not isinstance(value, int):
            raise TypeError(f"{asked}: {name} must be an int, not {type(value).__name__}") from None
        known = ", ".join(f"{each.name} {each.value}" for each in kind)
        raise fail(Code.INVALID_PARAM, asked, f"{name} is {value}", f"give one of {known}") from None
