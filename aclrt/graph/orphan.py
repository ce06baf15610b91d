"""A stream left behind: it captures a branch whose graph is gone. It shows ACTIVE, takes nothing, leaves at its End.

Not a failure of the stream's own: the parent's End met an open branch (107045) and destroyed it (recorded).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail

if TYPE_CHECKING:
    from aclrt.base.errors import AclError
    from aclrt.stream.stream import Stream


@final
class OrphanSink:
    """Refuses whatever is captured: 507000."""

    __slots__ = ()

    def append(self, stream: Stream, op: object) -> NoReturn:
        raise gone(stream, "submit a task")

    def kernel(self, stream: Stream, kernel: object, args: tuple[object, ...], blocks: int) -> NoReturn:
        raise gone(stream, "launch a kernel")

    def record_event(self, stream: Stream, event: object) -> NoReturn:
        raise gone(stream, "aclrtRecordEvent")

    def record_external(self, stream: Stream, event: object) -> NoReturn:
        raise gone(stream, "aclrtRecordEventWithFlag(EXTERNAL)")

    def wait_external(self, stream: Stream, event: object) -> NoReturn:
        raise gone(stream, "aclrtStreamWaitEventWithFlag(EXTERNAL)")

    def task_group(self, stream: Stream) -> NoReturn:
        raise gone(stream, "open a task group")


SINK = OrphanSink()


def orphan(stream: Stream) -> None:
    """The branch `stream` captures is being destroyed under it."""
    stream.capture_sink = SINK
    stream.choose_sink()


def gone(stream: Stream, asked: str) -> AclError:
    """507000 for a capturing stream without a model."""
    met = f"stream {stream.id} captures a branch whose graph was destroyed"
    return fail(Code.RT_INTERNAL_ERROR, asked, met, "end its capture, then use it again")
