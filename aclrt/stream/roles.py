"""What a stream asks of the capture or model that has it, as protocols: those rooms are upstairs and implement them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from aclrt.task.task import TaskSink

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from aclrt.stream.event import Event
    from aclrt.stream.stream import Stream
    from aclrt.task.queue import TaskQueue


class Captured(Protocol):
    """What a stream knows of the capture it is in: the hidden stream its tasks go to, and where it joined."""

    model: Any
    queue: TaskQueue

    def joined_how(self) -> str: ...


class CapturingSink(TaskSink, Protocol):
    """The sink of a capturing stream: events take part in the capture instead of becoming plain tasks."""

    def record_event(self, stream: Stream, event: Event) -> None: ...

    def record_external(self, stream: Stream, event: Event) -> None: ...

    def wait_external(self, stream: Stream, event: Event) -> None: ...

    def task_group(self, stream: Stream) -> AbstractContextManager[Any]: ...


class BoundTo(Protocol):
    """The model a stream is bound to. `owned` are releases to call when it goes; `loaded`: it is complete."""

    owned: list[Callable[[], None]]
    labels: dict[int, Any]
    loaded: bool

    def title(self) -> str: ...

    def next_seq(self) -> int: ...
