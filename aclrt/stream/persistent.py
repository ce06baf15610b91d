"""The persistent tasks of a stream: kept at the host, in order, until a model's load-complete sends them.

Not the device's SQ memory (`model.fill` writes that) and not the model: the tasks stay the stream's own when it is
unbound, and may be bound again to another model (seed model-module 4.2: delayRecycleTaskid_, sqeBuffer_,
argLoaderRecord_).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.place import here
from aclrt.task.queue import TaskQueue
from aclrt.task.task import Copy2dOp, CopyOp, KernelOp

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.stream.label import Label
    from aclrt.stream.stream import Stream
    from aclrt.task.kernel import Kernel
    from aclrt.task.task import Op, Task


def keep(stream: Stream) -> PersistentTasks:
    """From now on the stream's tasks are kept, not sent: while it is bound to a model, and always where the chip splits
    streams (v200 keeps unsent tasks of persistent streams in a host buffer; recorded)."""
    if stream.kept is None:
        stream.kept = PersistentTasks(stream)
        stream.queue = stream.kept.queue
    stream.model_sink = stream.kept
    stream.choose_sink()
    return stream.kept


@final
class PersistentTasks:
    """A persistent stream's tasks and what they hold on the device.

    Invariants: `arguments` has one argument-table entry for each kernel of `queue` (argLoaderRecord_); `dma` the host
    buffers whose addresses copies name (dmaAddrRecord_); `on_drop` is called once, when the tasks are dropped;
    `labels` are those set in the stream, `ends` its end-graph records. `parts` are the SQs the tasks were sent to at
    load-complete, the stream's own first; empty while the stream is not bound.
    """

    __slots__ = ("arguments", "dma", "ends", "labels", "on_drop", "parts", "queue", "sent_slots", "stream")

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.queue = TaskQueue(stream, stream.id)
        self.arguments: list[int] = []
        self.dma: list[Any] = []
        self.on_drop: list[Callable[[], None]] = []
        self.labels: list[Label] = []
        self.ends: list[Task] = []
        self.parts: list[TaskQueue] = []
        self.sent_slots = -1  # SQEs of the stream when it was last sent; -1: never

    # --- the sink --------------------------------------------------------------------------------------------------

    def append(self, stream: Stream, op: Op) -> Task:
        """Keep one operation.

        Errors: 107000 where the chip splits streams and the model is complete (recorded); 507002 over the task limit
        where it does not split them.
        """
        spec = stream.npu.spec
        if spec.auto_split and stream.model is not None and stream.model.loaded:
            raise fail(
                Code.RT_PARAM_INVALID,
                "submit a task",
                f"{stream.model.title()} of stream {stream.id} is complete",
                "submit tasks before aclmdlRIBuildEnd",
            )
        nsqe = op.sqes(spec.wait_sqes)
        if self.queue.sqe_count + nsqe > spec.stream_task_limit and not spec.auto_split:
            raise fail(
                Code.RT_STREAM_TASK_FULL,
                "submit a task",
                f"stream {stream.id} holds {self.queue.sqe_count} SQEs, the limit is {spec.stream_task_limit}",
                "spread the tasks over more streams",
            )
        model = stream.model
        task = self.queue.append(op, model.next_seq() if model is not None else 0, here(), spec.wait_sqes)
        if isinstance(op, (CopyOp, Copy2dOp)):
            self.dma += [buffer for buffer in op.keep if buffer is not None]
        return task

    def kernel(self, stream: Stream, kernel: Kernel[...], args: tuple[Any, ...], blocks: int) -> Task:
        driver = stream.npu.driver
        bound = kernel.bind(driver, args)
        return self.keep_kernel(
            KernelOp(
                kernel=kernel,
                args=args,
                blocks=blocks,
                program=kernel.program(driver),
                handle=driver.args_put(bound.values, bound.bases),
            )
        )

    def keep_kernel(self, op: KernelOp) -> Task:
        """Keep a kernel whose argument entry was just made; the entry goes again when the task is refused."""
        try:
            task = self.append(self.stream, op)
        except BaseException:
            self.stream.npu.driver.args_drop(op.handle)
            raise
        self.arguments.append(op.handle)
        return task

    # --- the end ---------------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Forget every task and free what they hold, in the order of the seed's destroy flow: arguments, then DMA."""
        driver = self.stream.npu.driver
        arguments, self.arguments = self.arguments, []
        for handle in arguments:
            driver.args_drop(handle)
        self.dma.clear()
        held, self.on_drop = self.on_drop, []
        for release in held:
            release()
        for label in list(self.labels):
            label.unset()
        self.ends.clear()
        for task in self.queue.tasks:
            task.alive = False
        self.queue.tasks.clear()  # in place: switch and activate tasks of other streams point at this queue
        self.queue.restamp()
        self.sent_slots = -1

    def hold(self, release: Callable[[], None]) -> None:
        """Call `release` when the tasks kept so far are dropped."""
        self.on_drop.append(release)

    def __repr__(self) -> str:
        sent = f"{len(self.parts)} SQs" if self.parts else "not sent"
        return f"<PersistentTasks of stream {self.stream.id}, {len(self.queue.tasks)} tasks, {sent}>"
