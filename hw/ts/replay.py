"""The coroutine of a model SQ: it runs the decoded program of its image, once for each time the SQ is started.

The inner loop is as bare as Python allows: nothing in it counts, looks or asks. Where a task failed is read off
the iterator afterwards. Task by task, with observers and device time, is `careful`.
"""

from __future__ import annotations

from operator import length_hint
from typing import TYPE_CHECKING, Any

from hw.chips import CqeKind, SqeKind, Status
from hw.ts.careful import careful_model, handler
from hw.ts.control import NEXT, PARK, RunFailed
from hw.ts.fault import FAILURES, closing
from hw.ts.merged import run_merged
from hw.ts.program import OP_CONTROL, OP_RUN, OP_SLOW, Parked, pass_event
from hw.ts.segment import run_segment
from hw.ts.sq import RUNNING

if TYPE_CHECKING:
    from collections.abc import Generator

    from hw.ts.decoder import Step
    from hw.ts.machine import Machine
    from hw.ts.sq import ModelSq

__all__ = ["serve_model"]


def serve_model(m: Machine, sq: ModelSq) -> Generator[None, None, None]:
    """Forever: run from `sq.head` to the tail, end, be started again."""
    while True:
        try:
            if sq.merged is not None:
                answer = yield from run_merged(m, sq)
                if isinstance(answer, tuple):
                    failed, slot, failure = answer
                    failed.head = slot
                    fail(m, failed, unwrap(failure))
                done = bool(answer)
            else:
                done = yield from (careful_model(m, sq) if m.careful else _run(m, sq))
        except FAILURES as exc:  # the task at sq.head failed; it is recorded and ends the run
            if closing(sq, exc):
                raise
            fail(m, sq, unwrap(exc))
            done = True
        if done:
            m.models.ended(sq)
            yield


def _run(m: Machine, sq: ModelSq) -> Generator[None, None, bool]:
    """True: the run is over (end, stop or branch away). False: begin again at `sq.head`. Raises what a task raised."""
    queue, image = m.queue, sq.image
    sq.stale = False
    steps = image.program(sq.tail)
    index, skip = image.locate(sq.head) if sq.head else (0, 0)
    end = len(steps)
    while index < end:
        op, step, calls = steps[index]
        if op == OP_RUN and not skip:
            it = iter(calls)
            while True:
                try:
                    for fn, values in it:
                        fn(*values)
                    break
                except Parked:
                    sq.head = step.stop - length_hint(it) - 1
                    waiting: Any = image.cells[sq.head]
                    if fn is pass_event:  # the one wait of captured graphs: no detour
                        while not waiting.cell.recorded:
                            sq.park(waiting, waiting.cell)
                            yield
                            if sq.stale:
                                return False
                        continue
                    while handler(waiting)(m, sq, waiting) == PARK:
                        yield
                        if sq.stale:
                            return False
                except FAILURES:
                    sq.head = step.stop - length_hint(it) - 1
                    raise
            queue.budget -= len(calls)
            index += 1
            if queue.budget > 0 or index == end or not queue.over():
                continue
            if queue.late:
                steps[index - 1] = (OP_SLOW, step, calls)
                step.parts = []
            sq.head = step.stop
        elif op == OP_CONTROL:
            sq.head = step.slot
            answer = _control(m, sq, step)
            if answer == PARK:
                yield
                if sq.stale:
                    return False
                continue
            if answer == NEXT:
                index += 1
                sq.head += step.span
                if step.kind is SqeKind.COND and len(queue.ready) == 1 and queue.ready[0].report is None:
                    # The branch goes first: the wait for its end is then passed, where it would be slept on.
                    branch = queue.ready.popleft()
                    branch.state = RUNNING
                    branch.resume()
                    if sq.stopping:
                        return True
            elif answer < 0:
                return True
            else:
                sq.head = answer
                index, skip = image.locate(answer)
            queue.budget -= 1
            if sq.stale:
                return False
            if queue.budget > 0 or index >= end or not queue.over():
                continue
        else:
            if not (yield from run_segment(m, sq, steps, index, skip)):
                return sq.stopping
            index, skip = index + 1, 0
            if queue.budget > 0 or index == end or not queue.over():
                continue
            sq.head = step.stop
        sq.make_ready()
        yield
        if sq.stale:
            return False
    return True


def _control(m: Machine, sq: ModelSq, step: Step) -> int:
    """Run a control step; its TASK CQE if it asks for one."""
    answer: int = (step.run or handler(step))(m, sq, step)
    if answer != PARK and step.sqe is not None and step.sqe.flags & 1:
        m.post_task(CqeKind.TASK, sq, step.sqe.task_id, step.slot)
    return answer


def fail(m: Machine, sq: ModelSq, exc: BaseException) -> None:
    """A task of a model failed: error log, ERROR CQE, and the end of the root's run (design: the run fails)."""
    task_id, fault = m.fault_of(sq, sq.image.buffer, sq.head, exc, sq.head)
    if isinstance(exc, RunFailed):
        m.faults.drop(fault)
        fault, status = exc.fault, exc.status
    else:
        status = m.faults.get(fault).status
    m.post_error(sq, task_id, sq.head, status, fault)
    if sq.root is not None:
        m.models.fail(sq.root, Status.MODEL_FAILED, fault, sq)


def unwrap(exc: BaseException) -> BaseException:
    """What the task raised: a StopIteration leaves a coroutine as the cause of a RuntimeError."""
    cause = exc.__cause__
    return cause if isinstance(exc, RuntimeError) and isinstance(cause, StopIteration) else exc
