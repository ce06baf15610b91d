"""The coroutine of a user SQ: it reads the ring's bytes as it reaches them, and runs what they say.

No decode cache here: each task is decoded once, from the bytes in the ring at that moment. A plain kernel needs
one `unpack_from`; everything else takes the general way. Heads are reported by the scheduler, turn by turn.
"""

from __future__ import annotations

from operator import length_hint
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING

from hw.chips import SQE_BYTES, CqeKind, SqeFlag, SqeKind, Status
from hw.engines.core import Divert
from hw.ts.careful import STALE, careful_task, decode_slot, handler
from hw.ts.control import PARK, RunFailed
from hw.ts.decoder import Cell, Step
from hw.ts.fault import FAILURES, closing
from hw.ts.replay import unwrap
from hw.ts.segment import on_worker
from hw.ts.sq import IDLE, RUNNING

if TYPE_CHECKING:
    from collections.abc import Generator

    from hw.chips.layout import Buffer
    from hw.engines.core import Pair
    from hw.ts.machine import Machine
    from hw.ts.sq import RingSq

__all__ = ["drop_queued", "report", "serve_ring"]

_KERNEL = int(SqeKind.KERNEL)
_WR_CQE = int(SqeFlag.WR_CQE)
_ONE_SHOT = int(SqeFlag.ONE_SHOT)
_KEPT = frozenset({SqeKind.EVENT_WAIT, SqeKind.NOTIFY_WAIT, SqeKind.MODEL_EXECUTE})
_KEEP = 256
_SCAN = Struct("<H6xIII44x").iter_unpack
"""(type and flags, core, program, args) of each KERNEL slot of a run; one layout on every chip."""

_HOP_NS = 1_000_000
"""Heavy kernels go to a worker together up to about this much work."""

_KEY = Struct("<I4x56s").unpack_from
"""A slot without its stream and task id."""


_STRIDE = 64
_LOOK_NS = 100_000
"""Light kernels run up to _STRIDE at a time between two looks at the clock; one at a time after that took _LOOK_NS."""


def serve_ring(m: Machine, sq: RingSq) -> Generator[None, None, None]:
    """Forever: run what is in the ring, go idle, be rung."""
    ring = sq.ring
    while True:
        while not sq.failed and (sq.head != ring.tail or ring.backlog):
            try:
                yield from (_careful(m, sq) if m.careful else _run(m, sq))
            except FAILURES as exc:  # the task at sq.head failed; it is recorded, and the SQ goes on behind it
                if closing(sq, exc):
                    raise
                _fail(m, sq, unwrap(exc))
            if sq.stopping:
                drop_queued(m, sq)
            if ring.backlog:
                report(m, sq)
        sq.state = IDLE
        yield


def report(m: Machine, sq: RingSq) -> None:
    """One HEAD CQE for all that was finished since the last one; then the backlog moves up."""
    ring = sq.ring
    ring.head = sq.head
    if sq.head != sq.reported:
        sq.reported = sq.head
        m.cq.post(CqeKind.HEAD, 0, sq.id, sq.stream_id, 0, sq.head, -1, -1)
    if ring.backlog:
        ring.refill()


def drop_queued(m: Machine, sq: RingSq) -> None:
    """Abort, at a task boundary: what is queued is dropped, an ERROR CQE says so, the head moves past it."""
    ring = sq.ring
    sq.stopping, sq.failed = False, False
    ring.head = sq.head
    for position in range(sq.head, ring.tail):
        _retire_args(m, sq, position)
    lost = sq.head != ring.position
    ring.drop()
    sq.head = ring.head
    if lost:
        m.post_error(sq, 0, sq.head, Status.STREAM_ABORTED, -1)
    report(m, sq)


def _retire_args(m: Machine, sq: RingSq, position: int) -> None:
    kind, flags, _, _, handle = m.chip.kernel_scan.unpack_from(sq.ring.buffer, position % sq.ring.depth << 6)
    if kind == _KERNEL and flags & _ONE_SHOT:
        m.args.retire(handle)


def _fail(m: Machine, sq: RingSq, exc: BaseException) -> None:
    ring = sq.ring
    slot = sq.head % ring.depth
    sqe = decode_slot(m, ring.buffer, slot)
    after = sq.head + (sqe.slots or 1 if sqe is not None else 1)
    if isinstance(exc, RunFailed):
        task_id, status, fault = sqe.task_id if sqe is not None else 0, exc.status, exc.fault
    else:
        task_id, fault = m.fault_of(sq, ring.buffer, slot, exc, after)
        status = m.faults.get(fault).status
    _retire_args(m, sq, sq.head)
    sq.settle()
    sq.head += 1
    sq.failed = sq.stop_on_error
    m.post_error(sq, task_id, after, status, fault)


def _run(m: Machine, sq: RingSq) -> Generator[None, None, None]:
    """Until the ring is empty, or the mode changed, or the SQ was aborted while it slept (`sq.stale`)."""
    ring, queue = sq.ring, m.queue
    depth, buffer, steps, light, values = ring.depth, ring.buffer, m.steps, m.kernels.light, m.args.values
    view = memoryview(buffer)
    stride, last, watch = _STRIDE, perf_counter_ns(), m.stopwatch
    sq.stale = False
    while sq.head != ring.tail:
        first = sq.head % depth
        at = first << 6
        if buffer[at] == _KERNEL:
            n = min(stride, ring.tail - sq.head, depth - first)
            it = _SCAN(view[at : at + (n << 6)])
            try:
                for word, core, program, handle in it:
                    if word != _KERNEL or core > 2:
                        break
                    light[program](*values[handle])
                else:
                    sq.head += n
                    n = 0
            except Divert:
                pass
            except FAILURES:
                sq.head += n - length_hint(it) - 1
                raise
            if n:
                sq.head += n - length_hint(it) - 1
                if word & 0xFF == _KERNEL:
                    yield from _task(m, sq, word, program, handle, None)
                    program = 0
                    if sq.stale:
                        return
        else:
            kept, program = steps.get(_KEY(buffer, at)), 0
            if kept is not None and kept.run(m, sq, kept) != PARK:
                sq.head += 1
                if kept.kind is SqeKind.MODEL_EXECUTE and sq.head != ring.tail:
                    # The model goes first: the end-graph wait behind is then passed, where it would be slept on.
                    ready = queue.ready
                    if len(ready) == 1 and ready[0].report is None:  # a model's SQ, and no one else wants a turn
                        lead = ready.popleft()
                        lead.state = RUNNING
                        lead.resume()
                    else:
                        sq.make_ready()
                        yield
                    if sq.stale:
                        return
            else:
                yield from _task(m, sq, buffer[at] | buffer[at + 1] << 8, 0, 0, kept)
                if sq.stale:
                    return
        now = perf_counter_ns()
        if now - last < _LOOK_NS:
            stride = _STRIDE
        else:
            if stride == 1:
                m.kernels.measured(program, watch.own(now - last))
            stride = 1
            watch.restart()
        if sq.stopping:
            return
        if now > queue.slice_end and sq.head != ring.tail:
            queue.budget = 0
            sq.make_ready()
            yield
            if sq.stale:
                return
            now = perf_counter_ns()
        last = now


def _task(
    m: Machine, sq: RingSq, word: int, program: int, handle: int, parked: Step | None
) -> Generator[None, None, None]:
    """The task at `sq.head`, one that is not simply called; `parked` is its step if it already found it has to wait.
    An abort meanwhile leaves `sq.stale` set and the head where the abort put it."""
    kernel = m.kernels.get(program) if word & 0xFF == _KERNEL else None
    if kernel is not None and kernel.heavy() and m.offload:
        pairs = _heavy_run(m, sq, program, kernel.mean_ns)
        m.kernels.measured(program, (yield from on_worker(m, sq, pairs, 0, len(pairs))))
        if word > 0xFF:
            m.after_kernel(sq, sq.head, word >> 8, handle)
        return
    cell = parked or _decode(m, sq.ring.buffer, sq.head % sq.ring.depth)
    if isinstance(cell, Step):
        run = handler(cell)
        while parked is not None or run(m, sq, cell) == PARK:
            yield
            parked = None
            if sq.stale:  # aborted; or the mode changed, and the wait is begun again over there
                return
    else:
        fn, ready = cell
        m.stopwatch.restart()
        before = perf_counter_ns()
        fn(*ready)
        if kernel is not None:
            m.kernels.measured(program, m.stopwatch.own(perf_counter_ns() - before))
    sq.head += 1
    if word > 0xFF:
        m.after_kernel(sq, sq.head, word >> 8, handle)


def _heavy_run(m: Machine, sq: RingSq, program: int, mean_ns: int) -> list[Pair]:
    """The heavy kernel at the head and, to share the hop to a worker, those of the same program right behind it."""
    ring, kernel = sq.ring, m.kernels.fns[program]
    pairs: list[Pair] = []
    for position in range(sq.head, min(ring.tail, sq.head + max(1, _HOP_NS // max(mean_ns, _LOOK_NS)))):
        at = position % ring.depth << 6
        word, core, named, handle = next(_SCAN(ring.buffer[at : at + SQE_BYTES]))
        if pairs and (word != _KERNEL or core > 2 or named != program):
            break
        pairs.append((kernel, m.args.at(handle)))
        if word != _KERNEL:  # its flags ask for something right after it
            break
    return pairs


def _decode(m: Machine, buffer: Buffer, slot: int) -> Cell:
    """The cell of a ring's slot. Waits and executes come again and again, bit for bit but for the task id: those
    steps are kept by their bytes."""
    sqe = decode_slot(m, buffer, slot)
    if sqe is not None and sqe.kind in m.sdma.KINDS:
        return m.sdma.run, (sqe,)
    cell = m.decoder.decode(buffer, slot) if sqe is None else m.decoder.cell(sqe, slot)
    if isinstance(cell, Step) and sqe is not None and not sqe.flags and cell.pair is None and cell.kind in _KEPT:
        if len(m.steps) >= _KEEP:
            m.steps.clear()
        handler(cell)  # looked up now, so that a kept step has its function
        m.steps[_KEY(buffer, slot * SQE_BYTES)] = cell
    return cell


def _careful(m: Machine, sq: RingSq) -> Generator[None, None, None]:
    ring, queue, serial = sq.ring, m.queue, sq.serial
    sq.stale = False
    while sq.head != ring.tail and m.careful:
        slot = sq.head % ring.depth
        sqe = decode_slot(m, ring.buffer, slot)
        if sqe is not None and sqe.kind is SqeKind.PLACE_HOLDER:
            sq.head += 1
            continue
        cell = m.decoder.decode(ring.buffer, slot)
        answer = yield from careful_task(m, sq, cell, sqe)
        if answer == STALE or sq.serial != serial:
            return
        sq.head += 1
        if sqe is not None and sqe.flags:
            m.after_kernel(sq, sq.head, sqe.flags, sqe.fields.get("args", 0))
        if sq.stopping:
            return
        queue.budget -= 1
        if queue.budget <= 0 and sq.head != ring.tail:
            sq.make_ready()
            yield
            if sq.serial != serial:
                return
