"""The persistent task list of one stream of a model, with the SQ memory (image) that holds its SQEs.

Not a user stream's ring: tasks here stay after they ran.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from aclrt.task.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aclrt.base.place import Place
    from aclrt.task.task import Op


@final
class TaskQueue:
    """Tasks of one model stream in order of submission.

    Invariants: `sqe_count == sum(task.nsqe for task in tasks)`; `image` is None until the first build; `sq` is None
    unless bound; when `sent`, the image's bytes are those of `tasks` as they were when it was written.
    """

    __slots__ = (
        "gate",
        "image",
        "image_slots",
        "next_task_id",
        "owner",
        "sent",
        "sq",
        "sqe_count",
        "stream_id",
        "tasks",
    )

    def __init__(self, owner: Any, stream_id: int) -> None:
        self.owner = owner  # the Stream or CaptureStream
        self.stream_id = stream_id
        self.gate: Any = None  # the stream.gate.Gate of its host functions
        self.tasks: list[Task] = []
        self.sqe_count = 0
        self.next_task_id = 0
        self.image: int | None = None
        self.image_slots = 0
        self.sq: int | None = None
        self.sent = False

    def append(self, op: Op, seq: int, place: Place | None, wait_sqes: int) -> Task:
        """Add a task at the tail."""
        nsqe = op.sqes(wait_sqes)
        task = Task(op, self, self.next_task_id & 0xFFFF, seq, nsqe, self.sqe_count, place)
        self.next_task_id += 1
        self.tasks.append(task)
        self.sqe_count += nsqe
        self.sent = False
        return task

    def restamp(self) -> None:
        """Give every task its slot again after tasks were removed or changed size."""
        slot = 0
        for task in self.tasks:
            task.slot = slot
            slot += task.nsqe
        self.sqe_count = slot

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __repr__(self) -> str:
        bound = f"SQ {self.sq}" if self.sq is not None else "no SQ"
        return f"<TaskQueue of stream {self.stream_id}, {len(self.tasks)} tasks, {self.sqe_count} SQEs, {bound}>"
