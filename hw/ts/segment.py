"""Running a segment that is not known to be light: measuring it, in parts, or on worker threads.

The light ones never come here. Each function is a part of an SQ's coroutine: it keeps `sq.head` at the task that
runs, so that an exception that leaves it is that task's.
"""

from __future__ import annotations

from operator import length_hint
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from hw.engines.core import HEAVY_NS
from hw.stopwatch import Stopwatch
from hw.ts.careful import handler
from hw.ts.control import PARK
from hw.ts.fault import FAILURES
from hw.ts.program import OP_RUN, OP_SLOW, PART_NS, Parked, Segment

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from hw.engines.core import Pair
    from hw.ts.machine import Machine
    from hw.ts.program import StepEntry
    from hw.ts.sq import ModelSq, Sq

__all__ = ["on_worker", "run_segment"]

CERTAIN_NS = 5_000_000
"""A task that took this long is heavy at the first look."""


def run_segment(m: Machine, sq: ModelSq, steps: list[StepEntry], index: int, skip: int) -> Generator[None, None, bool]:
    """Run `steps[index]` from its task `skip` on. False: the SQ was stopped or its program changed; look at
    `sq.head` and `sq.stopping`."""
    segment: Segment = steps[index][1]
    if skip or not segment.parts:
        return (yield from _measured(m, sq, steps, index, skip))
    return (yield from _in_parts(m, sq, segment))


def _measured(m: Machine, sq: ModelSq, steps: list[StepEntry], index: int, skip: int) -> Generator[None, None, bool]:
    """Task by task, with the clock beside it; afterwards the segment knows its parts."""
    segment: Segment = steps[index][1]
    pairs, queue, times, watch = segment.pairs, m.queue, [0] * skip, Stopwatch()
    for at in range(skip, len(pairs)):
        sq.head = segment.start + at
        fn, values = pairs[at]
        kernel = m.kernels.of(fn) if m.offload else None
        if kernel is not None and kernel.heavy():
            spent = yield from on_worker(m, sq, pairs, at, at + 1)
            if sq.stopping or sq.stale:
                return False
            times.append(max(spent, HEAVY_NS))
            continue
        before = perf_counter_ns()
        try:
            fn(*values)
        except Parked:
            if not (yield from _wait(m, sq)):
                return False
            before = perf_counter_ns()
        now = perf_counter_ns()
        times.append(now - before)
        if now - before >= HEAVY_NS:
            times[-1] = watch.own(now - before)
            watch.restart()
        if now > queue.slice_end and at + 1 < len(pairs):
            sq.head += 1
            queue.budget = 0
            sq.make_ready()
            yield
            if sq.stale:
                return False
    queue.budget -= len(pairs) - skip
    if not skip:
        if segment.times:
            times = list(map(min, times, segment.times))
        elif _doubtful(times):
            segment.times = times  # a look from another run: what took long may only have been interrupted
            return True
        segment.times = []
        segment.mean_ns = sum(times) // len(times)
        segment.parts = _cut(m, pairs, times)
        light = len(segment.parts) == 1 and not segment.parts[0][0]
        steps[index] = (OP_RUN if light else OP_SLOW, segment, pairs)
    return True


def _doubtful(times: Sequence[int]) -> bool:
    """Whether one measurement is not enough to say that a segment is not light."""
    longest = max(times)
    return (longest >= HEAVY_NS or sum(times) > PART_NS) and longest < CERTAIN_NS


def _cut(m: Machine, pairs: Sequence[Pair], times: Sequence[int]) -> list[tuple[bool, int, int]]:
    """Runs of heavy kernels go to a worker; what is between them is cut by time."""
    parts: list[tuple[bool, int, int]] = []
    first, total = 0, 0
    heavy = [m.offload and spent >= HEAVY_NS and _may_leave(m, pair) for spent, pair in zip(times, pairs, strict=True)]
    for at, spent in enumerate(times):
        if at > first and (heavy[at] != heavy[first] or (not heavy[at] and total + spent > PART_NS)):
            parts.append((heavy[first], first, at))
            first, total = at, 0
        total += spent
    parts.append((heavy[first], first, len(pairs)))
    return parts


def _may_leave(m: Machine, pair: Pair) -> bool:
    """Kernels (but those that say no) and copies may run on a worker; register writes may not."""
    kernel = m.kernels.of(pair[0])
    return kernel.offload is not False if kernel is not None else pair[0] is np.copyto


def _in_parts(m: Machine, sq: ModelSq, segment: Segment) -> Generator[None, None, bool]:
    queue, pairs = m.queue, segment.pairs
    for on_thread, first, end in segment.parts:
        sq.head = segment.start + first
        if on_thread:
            spent = yield from on_worker(m, sq, pairs, first, end)
            if spent < HEAVY_NS // 2:
                segment.parts = []  # no longer heavy: measured anew by the next run
            if sq.stopping or sq.stale:
                return False
            continue
        at = first
        while at < end:
            it = iter(pairs[at:end])
            try:
                for fn, values in it:
                    fn(*values)
                at = end
            except Parked:
                at = end - length_hint(it)
                sq.head = segment.start + at - 1
                if not (yield from _wait(m, sq)):
                    return False
            except FAILURES:
                sq.head = segment.start + end - length_hint(it) - 1
                raise
        queue.budget -= end - first
        if perf_counter_ns() > queue.slice_end and end < len(pairs):
            sq.head = segment.start + end
            queue.budget = 0
            sq.make_ready()
            yield
            if sq.stale:
                return False
    return True


def _wait(m: Machine, sq: ModelSq) -> Generator[None, None, bool]:
    """Park at the wait at `sq.head` until it passes; False: stopped, or the program changed."""
    step = sq.image.cells[sq.head]
    while handler(step)(m, sq, step) == PARK:
        yield
        if sq.stale:
            return False
    return True


def on_worker(m: Machine, sq: Sq, pairs: Sequence[Pair], first: int, end: int) -> Generator[None, None, int]:
    """Run pairs first .. end-1 on a worker thread, the SQ parked meanwhile; the ns a task took on average. An SQ that
    is to stop stops between two of them. What one raises is raised here. `sq.head` moves past those that finished."""
    outcome: list[tuple[int, BaseException | None, int]] = []

    def back() -> None:
        m.workers.running -= 1
        sq.wake()

    def done(finished: int, failure: BaseException | None, spent: int) -> None:
        outcome.append((finished, failure, spent))
        m.call_threadsafe(back)

    sq.busy, sq.what = True, ("worker",)
    sq.park(None, None)
    m.workers.start(pairs, first, end, lambda: sq.stopping, done)
    yield
    sq.busy = False
    finished, failure, spent = outcome[0]
    sq.head += finished
    if failure is not None:
        raise failure
    return spent // max(1, finished)
