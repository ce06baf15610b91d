"""A submission queue as the task scheduler runs it, and the queue of those that are ready.

An SQ is not its tasks: a user SQ reads them from its ring, a model SQ from the program of its image. Here is where
it stands, what it is parked on, and the one way it is woken or stopped.
"""

from __future__ import annotations

import enum
from collections import deque
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, final

from hw.stopwatch import Stopwatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.clock import Clock, Timer
    from hw.ring import SqRing
    from hw.signal import Signal
    from hw.ts.decoder import Step
    from hw.ts.merged import Merged
    from hw.ts.program import Image

__all__ = ["MOVES", "SLICE_NS", "SLICE_TASKS", "ModelSq", "RingSq", "RunQueue", "Sq", "SqState"]


class SqState(enum.IntEnum):
    """IDLE: nothing to run. READY: in the run queue. RUNNING: its coroutine is on. PARKED: waits, head unmoved."""

    IDLE = 0
    READY = 1
    RUNNING = 2
    PARKED = 3
    CLOSED = 4


MOVES: dict[SqState, frozenset[SqState]] = {
    SqState.IDLE: frozenset({SqState.READY, SqState.CLOSED}),
    SqState.READY: frozenset({SqState.RUNNING, SqState.IDLE, SqState.CLOSED}),
    SqState.RUNNING: frozenset({SqState.IDLE, SqState.READY, SqState.PARKED}),
    SqState.PARKED: frozenset({SqState.READY, SqState.IDLE, SqState.CLOSED}),
    SqState.CLOSED: frozenset(),
}
"""The legal moves. The hot loops assign states directly; a test follows them through this table."""

IDLE, READY, RUNNING, PARKED, CLOSED = SqState

SLICE_NS = 500_000
SLICE_TASKS = 512
WATCHED_SLICES = 64
"""The loop is given back after SLICE_NS, looked at every SLICE_TASKS tasks. WATCHED_SLICES follow one that was far too
long."""


@final
class RunQueue:
    """The ready SQs, oldest first, and what is left of the time slice.

    Invariants: an SQ is in `ready` if and only if it is READY; `asleep` means that no pass of the scheduler is
    running or scheduled, so whoever makes an SQ ready then must `kick`.
    """

    __slots__ = ("_watch", "asleep", "budget", "kick", "late", "ready", "slice_end", "slice_tasks", "watched")

    def __init__(self, kick: Callable[[], None]) -> None:
        self.ready: deque[Sq] = deque()
        self.kick = kick
        self.asleep = True
        self.slice_tasks: int | None = None  # None: slices are time; else they are this many tasks
        self.budget = SLICE_TASKS
        self.slice_end = 0
        self.late = False  # the last look at the clock was far too late: what ran is heavier than it was thought
        self.watched = 0  # so many slices are still opened with the stopwatch running
        self._watch = Stopwatch()

    def __repr__(self) -> str:
        return f"<RunQueue {len(self.ready)} ready{' asleep' if self.asleep else ''}>"

    def open_slice(self) -> None:
        self.budget = self.slice_tasks or SLICE_TASKS
        self.slice_end = perf_counter_ns() + SLICE_NS
        if self.watched:
            self.watched -= 1
            self._watch.restart()

    def over(self) -> bool:
        """Called when the budget is used up: is the slice over? If not, there is a new budget."""
        if self.slice_tasks is not None:
            return True
        left = self.slice_end - perf_counter_ns()
        if left <= 0:
            self.late = left < -SLICE_NS and self._own_doing(SLICE_NS - left)
            return True
        self.budget = SLICE_TASKS
        return False

    def _own_doing(self, spent_ns: int) -> bool:
        """A slice took far too long: by what ran in it? The first time nobody can say; the next are watched."""
        watched, self.watched = self.watched, WATCHED_SLICES
        return watched > 0 and self._watch.own(spent_ns) > 2 * SLICE_NS


class Sq:
    """What user and model SQs have in common.

    Invariants: `step` and `parked_on` mean something only while PARKED (parked_on is None when parked on a poll, a
    worker or the clock); `busy` only while PARKED, on a task that has started and cannot be taken back.
    """

    __slots__ = (
        "__weakref__",
        "busy",
        "end",
        "head",
        "id",
        "moved",
        "parked_on",
        "queue",
        "report",
        "resume",
        "serial",
        "stale",
        "state",
        "step",
        "stopping",
        "stream_id",
        "timed_out",
        "timer",
        "what",
    )

    def __init__(self, id: int, stream_id: int, queue: RunQueue) -> None:
        self.id = id
        self.stream_id = stream_id
        self.queue = queue
        self.state = IDLE
        self.head = 0
        self.step: Step | None = None
        self.what: tuple[Any, ...] = ()  # what it is parked on when no step tells
        self.parked_on: Signal | None = None
        self.timer: Timer | None = None
        self.timed_out = False
        self.busy = False
        self.stopping = False  # stop at the task boundary, which a busy SQ has not reached
        self.stale = True  # the coroutine's locals no longer match head or program: look again
        self.serial = 0  # grows when the SQ starts anew: a coroutine that slept through that begins again
        self.resume: Callable[[], None] = _unbound
        self.moved = False  # had a turn in this pass and its head was not told yet; user SQs only
        self.end: Callable[[], None] = _unbound  # end the coroutine, in the middle of whatever it does
        self.report: Callable[[], None] | None = None  # a user SQ's: post its head, at the end of each turn

    # -- moves ----------------------------------------------------------------------------------------------------

    def make_ready(self) -> None:
        self.state = READY
        queue = self.queue
        queue.ready.append(self)
        if queue.asleep:
            queue.kick()

    def wake(self) -> None:
        """What it is parked on may have changed. The coroutine tests again, so a wake too many does no harm."""
        if self.state is PARKED:
            self.parked_on = None
            self.state = READY
            queue = self.queue
            queue.ready.append(self)
            if queue.asleep:
                queue.kick()

    def park(self, step: Step | None, on: Signal | None) -> None:
        """Stay at this task until woken. The caller yields next."""
        self.state = PARKED
        self.step = step
        self.parked_on = on
        if on is not None:
            on.sleepers.append(self)

    def unpark(self) -> None:
        """Leave whatever it is parked on, without being made ready."""
        if self.parked_on is not None:
            self.parked_on.forget(self)
            self.parked_on = None
        self.settle()

    def arm(self, clock: Clock, timeout_ns: int) -> None:
        """Start the time-out of a wait, unless it is running already (a wait may be woken in vain)."""
        if self.timer is None and timeout_ns > 0:
            self.timer = clock.call_at(clock.now_ns() + timeout_ns, self._time_out, device=True)

    def settle(self) -> None:
        """The wait is over, one way or the other."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.timed_out = False

    def _time_out(self) -> None:
        self.timer = None
        self.timed_out = True
        if self.state is PARKED:
            if self.parked_on is not None:
                self.parked_on.forget(self)
            self.wake()


def _unbound() -> None:
    raise RuntimeError("SQ without a coroutine")


@final
class RingSq(Sq):
    """A user stream's SQ: its tasks are decoded from the ring's bytes when they are reached."""

    __slots__ = ("failed", "ident", "reported", "ring", "stop_on_error")

    def __init__(self, id: int, stream_id: int, queue: RunQueue, ring: SqRing, ident: int) -> None:
        super().__init__(id, stream_id, queue)
        self.ring = ring
        self.ident = ident  # header word of its KERNEL slots, without the task id
        self.stop_on_error = False
        self.failed = False  # a task failed while stop_on_error: the rest is not run
        self.reported = 0  # the head as last told to the host

    def __repr__(self) -> str:
        return f"<SQ {self.id} of stream {self.stream_id} {self.state.name}, head {self.head}/{self.ring.position}>"

    @property
    def tail(self) -> int:
        return self.ring.position


@final
class ModelSq(Sq):
    """A model stream's SQ: bound to an image while its model holds SQs. Each run starts at head 0.

    `starter` and `branch` tell who started this run: the COND's SQ and (branch, iteration), for fault reports.
    """

    __slots__ = ("branch", "image", "merged", "root", "starter", "tail", "turns")

    def __init__(self, id: int, stream_id: int, queue: RunQueue, image: Image, tail: int) -> None:
        super().__init__(id, stream_id, queue)
        self.image = image
        self.tail = tail
        self.root: Any = None  # the Model at the root of its model's tree, once added
        self.starter: ModelSq | None = None
        self.branch: tuple[int, int] | None = None
        self.merged: Merged | None = None  # this run is that of a merged program, and this SQ leads it
        self.turns: dict[int, int] = {}  # by slot of a WHILE: how many iterations began in this run

    def __repr__(self) -> str:
        return f"<SQ {self.id} of model stream {self.stream_id} {self.state.name}, head {self.head}/{self.tail}>"
