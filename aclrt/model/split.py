"""AutoSplitSq: the tasks of one persistent stream laid out over the SQs that hold them (seed model-module 4.1,
LoadComplete).

Not a limit: where the chip does not split, the launch over the limit was refused (507002) and one SQ is enough. Not a
cascade of a capture: that happens while tasks are captured, this at load-complete, and the user's stream is one all
along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclrt.task.queue import TaskQueue
from aclrt.task.task import ActiveOp
from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.stream.persistent import PersistentTasks
    from aclrt.task.task import Task
    from hw.chips import ChipSpec

PERSISTENT_SQ = 1 << 20
"""SQs of persistent streams are numbered apart from the pool (a user stream owns its SQ outside it): this plus the
stream id."""


def lay_out(kept: PersistentTasks) -> list[TaskQueue]:
    """The master's part and one for each slave stream, each ending in a stream-active task that starts the next.

    A part is closed when another task would leave it less than the chip's reserve (acl_semantics 10.7:
    `count + need + 32 + 8 >= 32767`). Errors: 207008 without a stream id for a slave; then nothing has changed.
    """
    npu = kept.stream.npu
    chunks = _chunks(kept.queue.tasks, npu.spec) if npu.spec.auto_split else [kept.queue.tasks]
    slaves: list[int] = []
    try:
        while len(slaves) < len(chunks) - 1:
            slaves.append(npu.alloc(IdKind.STREAM, f"slave stream of stream {kept.stream.id}"))
    except BaseException:
        for stream_id in slaves:
            npu.driver.free(IdKind.STREAM, stream_id)
        raise
    kept.queue.sq = PERSISTENT_SQ + kept.stream.id
    if not slaves:
        kept.queue.restamp()
        return [kept.queue]
    parts = [TaskQueue(kept.stream, stream_id) for stream_id in (kept.stream.id, *slaves)]
    for part, chunk, following in zip(parts, chunks, [*parts[1:], None], strict=True):
        part.sq = PERSISTENT_SQ + part.stream_id
        part.tasks = list(chunk)
        part.restamp()
        if following is not None:
            last = chunk[-1]
            part.next_task_id = last.task_id + 1
            part.append(ActiveOp(target=following), last.seq, last.place, npu.spec.wait_sqes)
    return parts


def _chunks(tasks: list[Task], spec: ChipSpec) -> list[list[Task]]:
    """Cut before each task that would not leave the reserve; a chunk has at least one task."""
    reserve = spec.capture_reserved + spec.expand_reserved
    chunks: list[list[Task]] = [[]]
    count = 0
    for task in tasks:
        if chunks[-1] and count + task.nsqe + reserve >= spec.stream_task_limit:
            chunks.append([])
            count = 0
        chunks[-1].append(task)
        count += task.nsqe
    return chunks
