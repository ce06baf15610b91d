"""A CaptureStream: the hidden stream that holds what a user stream captures. Not the user's stream, which stays as it
was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from aclrt.base.enums import CaptureStatus
from aclrt.base.place import here
from aclrt.graph.patches import give_up_image
from aclrt.task.queue import TaskQueue
from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.graph.capture_model import CaptureModel
    from aclrt.stream.roles import CapturingSink
    from aclrt.stream.stream import Stream


@final
class CaptureStream:
    """One hidden stream of a CaptureModel.

    Invariants: exactly one hidden stream of a user stream is `last` (the end of its cascade chain) and that one is
    `user.capture`; `original` is inherited along the chain (acl_semantics 4.4).
    """

    def __init__(
        self,
        model: CaptureModel,
        user: Stream,
        *,
        original: bool,
        how: str,
        through: object = None,
        added: bool = False,
    ) -> None:
        self.model = model
        self.context = model.context
        self.npu = model.npu
        self.user = user
        self.original = original
        self.added = added
        self.last = True
        self.alive = True
        self.how = how  # how the stream came to be captured, for refusals, and through what
        self.through = through
        self.place = here()
        self.id = self.npu.alloc(IdKind.STREAM, f"capture stream of stream {user.id}")
        self.queue = TaskQueue(self, self.id)
        self.group: Any = None  # the open TaskGroup

    def joined_how(self) -> str:
        """ "joined at f.py:7 through event 3 recorded at f.py:6"."""
        return f"{self.how} at {self.place}{f' through {self.through}' if self.through is not None else ''}"

    def leave(self, stream: Stream) -> None:
        """The user stream goes back to NONE."""
        stream.status = CaptureStatus.NONE
        stream.capture = None
        stream.capture_sink = None
        stream.choose_sink()
        if stream in self.model.users:
            self.model.users.remove(stream)

    def discard(self) -> None:
        if self.alive:
            self.alive = False
            give_up_image(self.model, self.queue)
            self.npu.driver.free(IdKind.STREAM, self.id)

    def __repr__(self) -> str:
        role = "original" if self.original else "added" if self.added else "joined"
        state = f"{len(self.queue.tasks)} tasks{'' if self.alive else ', destroyed'}"
        return f"<CaptureStream {self.id} of stream {self.user.id}, {role}, {state}>"


def enter(
    model: CaptureModel,
    stream: Stream,
    sink: CapturingSink,
    *,
    original: bool,
    how: str,
    through: object = None,
    added: bool = False,
) -> CaptureStream:
    """Put a user stream into the capture of `model`: a hidden stream is made and becomes a head of the model."""
    capture = CaptureStream(model, stream, original=original, how=how, through=through, added=added)
    model.add_stream(capture, head=True)
    if model.origin is None:
        model.origin = capture
    model.users.append(stream)
    stream.status = CaptureStatus.ACTIVE
    stream.capture = capture
    stream.capture_sink = sink
    stream.choose_sink()
    return capture
