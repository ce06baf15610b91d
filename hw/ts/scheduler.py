"""The task scheduler: which ready SQ's coroutine goes on, when the event loop gets its turn, when time jumps.

It does not know what a task is. A pass runs ready SQs until there are none or the slice is over, then hands the
completions up; it is a callback of the event loop, never a task of it.
"""

from __future__ import annotations

import asyncio
from time import perf_counter_ns
from typing import TYPE_CHECKING, final

from hw.chips import Chip, Cqe, Status
from hw.clock import VirtualClock
from hw.ts.control import describe
from hw.ts.eager import drop_queued, report, serve_ring
from hw.ts.machine import Machine
from hw.ts.policy import RoundRobin
from hw.ts.replay import serve_model
from hw.ts.sq import CLOSED, IDLE, PARKED, READY, RUNNING, SLICE_NS, ModelSq, RingSq, RunQueue, Sq

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.clock import Clock
    from hw.memory import Memory
    from hw.observe import Observer
    from hw.ring import SqRing
    from hw.ts.policy import Policy
    from hw.ts.program import Image


__all__ = ["QUIET_PASSES", "Scheduler"]

QUIET_PASSES = 16
"""So many passes of the event loop without a word from the host, and virtual time may jump: by then every host task
that the last completions woke has had its turn."""

ASSIST_NS = 4 * SLICE_NS
"""So long the event loop may be without a turn because the waiters have their short runs done in their own place."""

PASS_TASKS = 2048
"""Tasks of one pass where slices count tasks; a turn that only looks and parks counts as one."""


@final
class Scheduler:
    """One device's TS.

    Invariants: `machine.queue.asleep` is False only while a pass is running or scheduled; `_scheduled` is True exactly
    while the event loop holds one.
    """

    def __init__(self, chip: Chip, memory: Memory, clock: Clock, policy: Policy | None) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self.queue = RunQueue(self._kick)
        self.machine = Machine(chip, memory, clock, self.queue)
        self._policy = policy if policy is not None else RoundRobin()
        self._virtual = clock.virtual
        self._fast = isinstance(self._policy, RoundRobin)
        self._inline = self._fast and not clock.virtual
        if not self._fast or clock.virtual:
            self.queue.slice_tasks = max(1, getattr(self._policy, "slice_tasks", 1))
            self.machine.offload = False
        self._mode()
        if isinstance(clock, VirtualClock):
            clock.on_arm = self.nudge
        self.machine.call_threadsafe = self._call_threadsafe
        self.machine.cq.on_full = self.drain
        memory.on_write = self._memory_written
        self.listener: Callable[[Cqe], None] | None = None
        self.cq_filter: Callable[[bytes], bool] | None = None
        self.on_stuck: Callable[[], None] | None = None
        self._moved: list[Sq] = []  # user SQs that had a turn in this pass; their heads are told at its end
        self._scheduled = False
        self._turned_ns = 0  # when the event loop last ran a pass, so had its turn
        self._quiet = 0  # passes without work or a word from the host; only under the virtual clock
        self._stuck_told = False
        self._draining = False
        self._closed = False

    def __repr__(self) -> str:
        return f"<Scheduler {self.queue!r}, {len(self.machine.rings)} rings, {len(self.machine.models.sqs)} model SQs>"

    # -- the event loop -------------------------------------------------------------------------------------------

    def _kick(self) -> None:
        """Schedule a pass. Without a running loop the next `run_pass` is the caller's."""
        if self._closed:
            return
        loop = self._loop
        if loop is None or loop.is_closed():
            try:
                loop = self._loop = asyncio.get_running_loop()
            except RuntimeError:
                return
        self.queue.asleep = False
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._loop_pass)

    def _call_threadsafe(self, call: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(call)

    def nudge(self) -> None:
        """The host said something: time stands still a little longer, and a sleeping device looks around."""
        self._quiet = 0
        self._stuck_told = False
        if self.queue.asleep:
            self._kick()

    def _memory_written(self, address: int, nbytes: int) -> None:
        if self.machine.pollers:
            self.nudge()

    def _loop_pass(self) -> None:
        self._scheduled = False
        self._turned_ns = perf_counter_ns()
        self.run_pass()

    def assist(self) -> None:
        """The host is about to wait: run a pass at once, unless the event loop has been without a turn for ASSIST_NS.

        Saves two turns of the loop for each wait that a short run answers. Never under a policy, an observer or the
        virtual clock, where the schedule must not depend on the time of day.
        """
        may = self._inline and not self.machine.careful and self.queue.ready and not self._draining
        if may and perf_counter_ns() - self._turned_ns < ASSIST_NS:
            self.run_pass()

    def run_pass(self) -> None:
        """Run ready SQs for one slice, hand up the completions, see to it that there is a next pass if one is due."""
        if self._closed:
            return
        queue, machine = self.queue, self.machine
        queue.asleep = False
        try:
            self._turns()
            if machine.pollers:
                machine.poll()
            for sq in self._moved:
                sq.moved = False
                if sq.report is not None:
                    sq.report()
            self._moved.clear()
            if len(machine.cq):
                self._quiet = 0
                self.drain()
                if machine.interrupt is not None:
                    interrupt, machine.interrupt = machine.interrupt, None
                    self._kick()  # whoever goes on with the loop finds a device that does
                    raise interrupt
        finally:  # whatever a listener or an interrupt did, the device is not left deaf
            if queue.ready and not self._closed:
                self._again()
            else:
                queue.asleep = True
        if machine.clock.virtual and queue.asleep:
            self._rest()

    def _again(self) -> None:
        self.queue.asleep = True
        self._kick()

    def _turns(self) -> None:
        queue = self.queue
        ready, moved = queue.ready, self._moved
        queue.open_slice()
        if self.queue.slice_tasks is not None:
            self._counted_turns()
            return
        machine = self.machine
        pollers = machine.pollers
        while ready:
            sq = ready.popleft()
            sq.state = RUNNING
            sq.resume()
            if sq.report is not None and not sq.moved:
                sq.moved = True
                moved.append(sq)
            queue.budget -= 1
            if queue.budget <= 0 and queue.over():
                return
            if pollers and not ready:
                machine.poll()

    def _counted_turns(self) -> None:
        queue, policy, fast = self.queue, self._policy, self._fast
        ready, moved = queue.ready, self._moved
        slice_tasks, left = queue.slice_tasks or 1, PASS_TASKS
        while left > 0:
            if not ready and not (self.machine.pollers and self.machine.poll()):
                return
            index = 0 if fast else policy.choose([sq.id for sq in ready])
            sq = ready[index]
            del ready[index]
            queue.budget = slice_tasks
            sq.state = RUNNING
            sq.resume()
            left -= max(1, slice_tasks - queue.budget)
            if sq.report is not None and not sq.moved:
                sq.moved = True
                moved.append(sq)

    def _rest(self) -> None:
        """Nothing is ready under the virtual clock: wait until the host is quiet, then jump to the next deadline."""
        clock = self.machine.clock
        assert isinstance(clock, VirtualClock)
        self._quiet += 1
        if self._quiet <= QUIET_PASSES:
            self._kick()
        elif clock.jump():
            # A jump that tells the host nothing is followed by the next one at once.
            self._quiet = 0 if clock.told_host else QUIET_PASSES
            self._kick()
        elif not self._stuck_told and self.on_stuck is not None and self.waiting():
            self._stuck_told = True
            self.on_stuck()

    def drain(self) -> None:
        """Hand every completion in the CQ to the listener, in order. What the listener submits runs in a later pass."""
        if self._draining:
            return
        self._draining = True
        try:
            cq, listener = self.machine.cq, self.listener
            while (cqe := cq.take(self.cq_filter)) is not None:
                if listener is not None:
                    listener(cqe)
        finally:
            self._draining = False

    # -- SQs ------------------------------------------------------------------------------------------------------

    def open_ring(self, id: int, stream_id: int, ring: SqRing) -> None:
        machine = self.machine
        sq = RingSq(id, stream_id, self.queue, ring, machine.chip.ident(stream_id, 0))
        coroutine = serve_ring(machine, sq)
        sq.resume, sq.end = coroutine.__next__, coroutine.close
        sq.report = lambda: report(machine, sq)
        machine.rings[id] = sq

    def doorbell(self, sq: RingSq) -> None:
        """There is something in the ring."""
        if sq.state is IDLE and not sq.failed:
            sq.make_ready()
        if self._virtual:
            self.nudge()

    def abort_ring(self, sq: RingSq) -> None:
        """Drop what is queued; what runs on a worker or in device time stops at its end."""
        self.nudge()
        if sq.busy:
            sq.stopping = True
            return
        if sq.state is READY:
            self.queue.ready.remove(sq)
        if sq.state is PARKED:
            sq.unpark()
        self.machine.models.exe_gone(sq)
        sq.state = IDLE
        sq.serial += 1
        sq.stale = True
        drop_queued(self.machine, sq)

    def close_ring(self, sq: RingSq) -> None:
        self.abort_ring(sq)
        if sq.state is READY:  # its task is back from a worker or from its device time, and it had no turn yet
            self.queue.ready.remove(sq)
        sq.state = CLOSED
        sq.end()
        del self.machine.rings[sq.id]

    def bind(self, id: int, stream_id: int, image: Image, tail: int) -> None:
        machine = self.machine
        sq = ModelSq(id, stream_id, self.queue, image, tail)
        coroutine = serve_model(machine, sq)
        sq.resume, sq.end = coroutine.__next__, coroutine.close
        image.sqs.append(sq)
        machine.models.bind(sq)

    def unbind(self, id: int) -> None:
        sq = self.machine.models.unbind(id)
        sq.image.sqs.remove(sq)
        sq.state = CLOSED

    # -- models ---------------------------------------------------------------------------------------------------

    def abort_model(self, model_id: int) -> None:
        """End a model's run: every SQ stops at its task boundary, then its end-graph wait ends with MODEL_ABORTED."""
        model = self.machine.models.models.get(model_id)
        if model is not None:
            self.nudge()
            self.machine.models.fail(model.root, Status.MODEL_ABORTED, -1, None)

    # -- looks ----------------------------------------------------------------------------------------------------

    def _mode(self) -> None:
        machine = self.machine
        careful = bool(machine.observers) or machine.clock.virtual or not self._fast
        if careful != machine.careful:
            machine.careful = careful
            for sq in self.all_sqs():
                sq.stale = True

    def observe(self, observer: Observer, *, on: bool) -> None:
        observers = self.machine.observers
        (observers.add if on else observers.remove)(observer)
        self._mode()

    def all_sqs(self) -> list[Sq]:
        return [*self.machine.rings.values(), *self.machine.models.sqs.values()]

    def waiting(self) -> int:
        """How many SQs are parked."""
        return sum(sq.state is PARKED for sq in self.all_sqs())

    def idle(self) -> bool:
        """Nothing runs, waits or is queued, and no completion is on its way."""
        queued = any(sq.head != sq.ring.position and not sq.failed for sq in self.machine.rings.values())
        return not queued and not len(self.machine.cq) and all(sq.state is IDLE for sq in self.all_sqs())

    def resting(self) -> bool:
        """Nothing is ready, and no parked SQ waits for a core, a worker or its device time."""
        own = ("core", "clock", "worker")
        return (
            not self.queue.ready
            and not len(self.machine.cq)
            and all(
                sq.state is IDLE or (sq.state is PARKED and describe(self.machine, sq)[1][0] not in own)
                for sq in self.all_sqs()
            )
        )

    def close(self) -> None:
        """Stop everything where it is. What runs on a worker thread is waited for; nothing of it is reported."""
        if self._closed:
            return
        self._closed = True
        self.queue.ready.clear()
        self.machine.workers.close()
        for sq in self.all_sqs():
            sq.unpark()
            sq.state = CLOSED
            sq.end()
