"""Task by task: the loops that run when somebody looks, when time is virtual, or when a policy chooses.

They do what `replay` and `eager` do, with device time, core occupancy, observers and slices that count tasks.
Nothing is offloaded here: one schedule for one seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hw.chips import SQE_BYTES, Core, CqeKind, Sqe, SqeError, SqeFlag, SqeKind, Status
from hw.engines import aicpu
from hw.ts.branch import HANDLERS
from hw.ts.control import NEXT, PARK, bad, call, describe
from hw.ts.decoder import Cell, Step
from hw.ts.fault import FAILURES, TaskFault, closing

if TYPE_CHECKING:
    from collections.abc import Generator

    from hw.chips.layout import Buffer
    from hw.engines.core import CorePool
    from hw.ts.machine import Machine
    from hw.ts.sq import ModelSq, Sq

__all__ = ["STALE", "careful_model", "careful_task", "decode_slot", "handler"]

STALE = -4
"""What `careful_task` answers when the SQ was stopped, or stopped and started again, while it slept."""


def handler(step: Any) -> Any:
    """What runs a Step: a function of (machine, SQ, step)."""
    if step.run is None:
        step.run = call if step.pair is not None else HANDLERS.get(step.kind, bad)
    return step.run


def careful_model(m: Machine, sq: ModelSq) -> Generator[None, None, bool]:
    """One run of a model SQ from `sq.head`. True: over. False: begin again at `sq.head`."""
    queue, image, serial = m.queue, sq.image, sq.serial
    sq.stale = False
    while sq.head < sq.tail:
        if not m.careful:
            return False
        slot = sq.head
        cell = image.cell(slot)
        sqe = decode_slot(m, image.buffer, slot)
        answer = yield from careful_task(m, sq, cell, sqe)
        if answer == STALE or sq.serial != serial:
            return False
        if answer != NEXT and answer < 0:
            return True
        if sqe is not None and sqe.flags & SqeFlag.WR_CQE:
            m.post_task(CqeKind.TASK, sq, sqe.task_id, slot)
        sq.head = answer if answer >= 0 else slot + (cell.span if isinstance(cell, Step) else 1)
        if sq.stopping:
            return True
        queue.budget -= 1
        if queue.budget <= 0 and sq.head < sq.tail:
            sq.make_ready()
            yield
            if sq.serial != serial:
                return False
    return True


def decode_slot(m: Machine, buffer: Buffer, slot: int) -> Sqe | None:
    """The SQE as observers are shown it; None for bytes that are none."""
    try:
        return m.chip.decode(buffer, slot * SQE_BYTES)
    except SqeError:
        return None


def careful_task(m: Machine, sq: Sq, cell: Cell, sqe: Sqe | None) -> Generator[None, None, int]:
    """Run the task at `sq.head`; what its handler answers (never PARK), or STALE. Raises what the task raises."""
    observers, slot, status = m.observers, sq.head, Status.OK
    if observers:
        observers.task_start(sq.id, slot, sqe)
    try:
        if isinstance(cell, Step) and cell.pair is None:
            answer = yield from _step(m, sq, cell)
        else:
            fn, values = cell.pair if isinstance(cell, Step) and cell.pair is not None else cell  # type: ignore[misc]
            answer = NEXT
            if m.clock.virtual and sqe is not None:
                answer = yield from _occupy(m, sq, sqe)
            if answer == NEXT:
                fn(*values)
        return answer
    except FAILURES as exc:
        if closing(sq, exc):  # in the middle of the task
            status = Status.STREAM_ABORTED
        else:
            status = m.status_of(sqe, exc) if sqe is not None else Status.SQE_ERROR
        raise
    finally:
        if observers:
            observers.task_end(sq.id, slot, sqe, status)


def _step(m: Machine, sq: Sq, step: Step) -> Generator[None, None, int]:
    serial, run = sq.serial, handler(step)
    while True:
        answer: int = run(m, sq, step)
        if answer != PARK:
            return answer
        if not (yield from _sleep(m, sq, serial)):
            return STALE


def _sleep(m: Machine, sq: Sq, serial: int) -> Generator[None, None, bool]:
    """Yield, parked; False when the SQ was stopped meanwhile."""
    if m.observers:
        m.observers.parked(sq.id, describe(m, sq)[1])
    yield
    if sq.serial != serial:
        return False
    if m.observers:
        m.observers.woken(sq.id)
    return True


def _occupy(m: Machine, sq: Sq, sqe: Sqe) -> Generator[None, None, int]:
    """Hold a core, if the task needs one, and let its device time pass. The task's effect is at the end of it."""
    cost = m.cost_ns(sqe)
    if cost <= 0:
        return NEXT
    serial, pool = sq.serial, _pool(m, sqe)
    if pool is not None:
        while pool.free == 0:
            sq.what = ("core", pool.name)
            sq.park(None, pool)
            if not (yield from _sleep(m, sq, serial)):
                return STALE
        pool.free -= 1
    limit = m.execute_timeout_ns if pool is not None else 0
    expired = 0 < limit < cost
    until = m.clock.now_ns() + (limit if expired else cost)
    sq.busy, sq.what = True, ("clock", until)
    sq.park(None, None)
    timer = m.clock.call_at(until, sq.wake, device=True)
    try:
        yield
    finally:
        sq.busy = False
        timer.cancel()
        if pool is not None:
            pool.release()
    if expired:
        core = sqe["core"] if sqe.kind is SqeKind.KERNEL else Core.AIC
        raise TaskFault(aicpu.TIMEOUT[Core(core)], f"the task takes {cost} ns, the execute time-out is {limit} ns")
    return NEXT


def _pool(m: Machine, sqe: Sqe) -> CorePool | None:
    if sqe.kind is SqeKind.KERNEL:
        return m.pools[sqe["core"]]
    return m.pools[Core.AIC] if sqe.kind is SqeKind.FUSION else None
