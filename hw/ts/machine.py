"""What the parts of the task scheduler share: the device's registers, tables and engines in one place.

It decides nothing and runs nothing; it is the board that the parts are mounted on, with the few things that touch
several of them: value pollers, fault reports and completions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from hw.chips import SQE_BYTES, Chip, Core, CqeKind, Sqe, SqeError, SqeFlag, SqeKind, Status
from hw.engines import aicpu
from hw.engines.args import ArgTable, Gone
from hw.engines.core import Kernels, Workers
from hw.engines.sdma import Sdma
from hw.observe import Observers
from hw.registers import EventFile, NotifyFile
from hw.ring import CqRing
from hw.stopwatch import Stopwatch
from hw.ts.decoder import Decoder, Step
from hw.ts.fault import INTERRUPTS, FaultLog, FaultRecord, TaskFault, cut_off
from hw.ts.images import Images
from hw.ts.model import Models
from hw.ts.sq import PARKED, ModelSq, RingSq, RunQueue, Sq

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.chips.layout import Buffer
    from hw.clock import Clock
    from hw.memory import Memory

__all__ = ["Machine"]


@final
class Machine:
    """One device without its scheduler. `careful`: tasks run one by one (observers, virtual clock or a policy)."""

    def __init__(self, chip: Chip, memory: Memory, clock: Clock, queue: RunQueue) -> None:
        self.chip = chip
        self.memory = memory
        self.clock = clock
        self.queue = queue
        self.observers = Observers()
        self.args = ArgTable()
        self.kernels = Kernels()
        self.sdma = Sdma(memory)
        self.workers = Workers()
        self.pools = aicpu.pools(chip.spec)
        self.events = EventFile(chip.spec.max_events, clock)
        self.notifies = NotifyFile(chip.spec.max_notifies)
        self.decoder = Decoder(chip, memory, self.args, self.kernels, self.sdma, self.events, self.notifies)
        self.models = Models(queue, self.notifies, self.observers)
        self.images = Images(self.decoder)
        self.rings: dict[int, RingSq] = {}
        self.steps: dict[tuple[Any, ...], Step] = {}  # decoded waits of user SQs, by their bytes without the task id
        self.cq = CqRing()
        self.faults = FaultLog()
        self.stopwatch = Stopwatch()  # of the eager loop, while it goes task by task
        self.interrupt: BaseException | None = None  # raised by a task, to be raised at the end of the pass
        self.execute_timeout_ns = 0  # 0: none; looked at under the virtual clock
        self.careful = clock.virtual
        self.models.careful = lambda: self.careful
        self.models.drop_fault = self.faults.drop
        self.offload = not clock.virtual  # may heavy kernels go to worker threads
        self.call_threadsafe: Callable[[Callable[[], None]], None] = lambda call: call()  # set by the scheduler
        self.pollers: dict[Sq, Callable[[], bool]] = {}
        self.args.on_change = self.images.args_changed

    # -- pollers --------------------------------------------------------------------------------------------------

    def poll_for(self, sq: Sq, test: Callable[[], bool]) -> None:
        """Have a parked SQ woken once `test` holds; tested after passes that ran something and after host writes."""
        self.pollers[sq] = test

    def poll(self) -> bool:
        """Test every poller once; True if one was woken. A test that raises wakes too: the task meets the fault."""
        woken = False
        for sq, test in list(self.pollers.items()):
            if sq.state is not PARKED:  # stopped meanwhile
                del self.pollers[sq]
                continue
            try:
                passed = test()
            except Exception:  # not swallowed: the SQ runs the same test again at its task, where it is a fault
                passed = True
            if passed and self.pollers.pop(sq, None) is not None:
                sq.wake()
                woken = True
        return woken

    # -- kernels --------------------------------------------------------------------------------------------------

    def after_kernel(self, sq: Sq, after: int, flags: int, handle: int) -> None:
        """What the header's flags ask for once a task of a user SQ succeeded; `after` is the position behind it."""
        if flags & SqeFlag.ONE_SHOT:
            self.args.retire(handle)
        if flags & SqeFlag.WR_CQE and isinstance(sq, RingSq):
            sqe = self.chip.decode(sq.ring.buffer, (after - 1) % sq.ring.depth * SQE_BYTES)
            self.post_task(CqeKind.TASK, sq, sqe.task_id, after - 1 + (sqe.slots or 1))

    # -- completions and faults -----------------------------------------------------------------------------------

    def post_task(self, kind: CqeKind, sq: Sq, task_id: int, position: int, callback: int = -1) -> None:
        self.cq.post(kind, Status.OK, sq.id, sq.stream_id, task_id, position, -1, callback)

    def post_error(self, sq: Sq, task_id: int, position: int, status: int, fault: int) -> None:
        self.cq.post(CqeKind.ERROR, status, sq.id, sq.stream_id, task_id, position, fault, -1)

    def fault_of(self, sq: Sq, buffer: Buffer, slot: int, exc: BaseException, position: int) -> tuple[int, int]:
        """Write the error log for the task in a slot; (task id, fault index)."""
        program, task_id = "", 0
        cut_off(exc)
        if isinstance(exc, INTERRUPTS):
            self.interrupt = exc
            self.queue.slice_end = 0
        try:
            sqe = self.chip.decode(buffer, slot * SQE_BYTES)
        except SqeError:
            status = Status.SQE_ERROR
        else:
            task_id = sqe.task_id
            status = self.status_of(sqe, exc)
            if sqe.kind is SqeKind.KERNEL:
                kernel = self.kernels.get(sqe["program"])
                program = kernel.name if kernel is not None else ""
        record = FaultRecord(
            None if isinstance(exc, TaskFault) else exc,
            status,
            sq.id,
            sq.stream_id,
            task_id,
            position,
            program,
            _path(sq),
        )
        return task_id, self.faults.add(record)

    def status_of(self, sqe: Sqe, exc: BaseException) -> Status:
        """How the failure of a task is called (acl_semantics 11.3)."""
        if isinstance(exc, TaskFault):
            return exc.status
        if isinstance(exc, Gone):
            return Status.SQE_ERROR
        if sqe.kind is SqeKind.KERNEL:
            known = self.kernels.get(sqe["program"]) is not None and self.args.live(sqe["args"])
            return aicpu.EXCEPTION[Core(sqe["core"])] if known else Status.SQE_ERROR
        if sqe.kind is SqeKind.FUSION:
            return self._fused_status(sqe["args"])
        return Status.SDMA_ERROR

    def _fused_status(self, handle: int) -> Status:
        """A fused kernel fails as its first part's core does."""
        parts = self.args.at(handle)
        kernel = self.kernels.get(parts[0][0]) if isinstance(parts, tuple) and parts else None
        return aicpu.EXCEPTION[kernel.core] if kernel is not None else Status.AICORE_EXCEPTION

    def cost_ns(self, sqe: Sqe) -> int:
        """Device time of a task under the virtual clock."""
        if sqe.kind is SqeKind.KERNEL:
            kernel = self.kernels.get(sqe["program"])
            return kernel.cost(self.args.at(sqe["args"])) if kernel is not None else 0
        if sqe.kind is SqeKind.FUSION:
            parts = self.args.at(sqe["args"])
            kernels = [(self.kernels.get(p), values) for p, values in parts] if isinstance(parts, tuple) else []
            return sum(kernel.cost(values) for kernel, values in kernels if kernel is not None)
        if sqe.kind in self.sdma.KINDS:
            return self.sdma.cost_ns(sqe)
        return 0


def _path(sq: Sq) -> list[tuple[int, int]]:
    """The (branch, iteration) of every COND above a model SQ's run, outermost first."""
    path: list[tuple[int, int]] = []
    at: Sq | None = sq
    while isinstance(at, ModelSq) and len(path) < 1000:
        if at.branch is not None:
            path.append(at.branch)
        at = at.starter
    return path[::-1]
