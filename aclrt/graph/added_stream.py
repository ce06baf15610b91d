"""A stream added to a capture by rtStreamAddToModel, and the notifies that order it with every run (seed acl-graph
5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.place import here
from aclrt.model.model import NotifyId
from aclrt.task.task import NotifyRecordOp, NotifyWaitOp
from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.graph.capture_stream import CaptureStream
    from aclrt.stream.stream import Stream


@final
class AddedStream:
    """Three notifies: `start` (added stream -> execute stream), `join` (inside the graph), `done` (execute stream ->
    added stream).

    All ids are None until End pairs the stream, and again once the model is gone.
    """

    def __init__(self, hidden: CaptureStream) -> None:
        self.hidden = hidden
        self.user = hidden.user
        self.start = NotifyId()
        self.join = NotifyId()
        self.done = NotifyId()

    def pair(self) -> None:
        """At End: the graph's origin waits for the tail of the added stream. Errors: 207009."""
        model = self.hidden.model
        for notify in (self.start, self.join, self.done):
            notify.id = model.npu.alloc(IdKind.NOTIFY, f"added stream {self.user.id} of {model.title()}")
        tail = next(stream for stream in model.streams if stream.user is self.user and stream.last)
        origin = next(stream for stream in model.streams if stream.original and stream.last)
        waits = model.npu.spec.wait_sqes
        tail.queue.append(NotifyRecordOp(notify=self.join), model.next_seq(), here(), waits)
        origin.queue.append(NotifyWaitOp(notify=self.join), model.next_seq(), here(), waits)

    def check_paired(self) -> None:
        """107000 when the capture never reached the step that pairs it (an End on the wrong thread; recorded)."""
        if self.start.id is None:
            title = self.hidden.model.title()
            raise fail(
                Code.RT_PARAM_INVALID,
                f"execute {title}",
                f"added stream {self.user.id} was never paired",
                "capture it again",
            )

    def before(self, execute: Stream) -> None:
        """SetNotifyBeforeExecute: the run starts after what the added stream has queued."""
        if self.user.alive and self.user is not execute and not self.user.capturing:
            self.user.submit(NotifyRecordOp(notify=self.start))
            execute.submit(NotifyWaitOp(notify=self.start))

    def after(self, execute: Stream) -> None:
        """SetNotifyAfterExecute: the added stream goes on after the run."""
        if self.user.alive and self.user is not execute and not self.user.capturing:
            execute.submit(NotifyRecordOp(notify=self.done))
            self.user.submit(NotifyWaitOp(notify=self.done))

    @property
    def notifies(self) -> int:
        """How many notify ids it holds."""
        return sum(notify.id is not None for notify in (self.start, self.join, self.done))

    def discard(self) -> None:
        for notify in (self.start, self.join, self.done):
            if notify.id is not None:
                self.hidden.npu.driver.free(IdKind.NOTIFY, notify.id)
                notify.id = None
