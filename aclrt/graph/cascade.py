"""The cascade: a capture that outgrows its SQ continues on a new hidden stream (seed acl-graph 5.2, acl_semantics
6.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclrt.base.place import here
from aclrt.graph.capture_stream import CaptureStream
from aclrt.task.task import ActiveOp

if TYPE_CHECKING:
    from aclrt.stream.stream import Stream


def extend(stream: Stream, full: CaptureStream) -> CaptureStream:
    """A continuation of `full`, linked by a stream-active task; the open task group moves along.

    Errors: 207008 without a stream id; the caller invalidates the capture.
    """
    model = full.model
    tail = CaptureStream(model, stream, original=full.original, how=full.how, through=full.through, added=full.added)
    tail.place = full.place
    model.add_stream(tail, head=False)
    tail.group, full.group = full.group, None
    if full in model.open_groups:
        model.open_groups[model.open_groups.index(full)] = tail
    full.queue.append(ActiveOp(target=tail.queue), model.next_seq(), here(), model.npu.spec.wait_sqes)
    full.last = False
    stream.capture = tail
    return tail
