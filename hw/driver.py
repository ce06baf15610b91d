"""The driver: the only door between the host library and the device. Integers and bytes go in, CQEs come out.

It schedules nothing and knows no host object: ids, addresses, handles, positions, 64-byte SQEs and CQEs. What it
does not do itself it hands to the part that does (`Memory`, `ArgTable`, the scheduler) without adding to it.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, final

from hw import ids
from hw.chips import Chip, Core, Cqe
from hw.engines.core import Kernel
from hw.ids import IdError, IdKind, NoResource
from hw.memory import Memory, MemoryFault, NoMemory
from hw.ring import SqRing
from hw.ts.branch import pack_cond_table, pack_label, pack_label_list
from hw.ts.control import maintain
from hw.ts.fault import FaultRecord
from hw.ts.null import NullScheduler
from hw.ts.policy import Policy, RoundRobin, Scripted, SeededRandom
from hw.ts.scheduler import Scheduler
from hw.ts.sq import IDLE, ModelSq, RingSq
from hw.ts.waits import SqStatus, Wait, status, waits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hw.clock import Clock
    from hw.observe import Observer

__all__ = [
    "Driver",
    "FaultRecord",
    "IdError",
    "IdKind",
    "MemoryFault",
    "NoMemory",
    "NoResource",
    "Policy",
    "RoundRobin",
    "Scripted",
    "SeededRandom",
    "SqStatus",
    "Wait",
    "pack_cond_table",
    "pack_label",
    "pack_label_list",
]


@final
class Driver:
    """One open chip. Made by ``hw.open_chip``. All of it is called on the thread of one event loop.

    Memory, passed through to `hw.memory.Memory`: `malloc`, `read`, `write`, `fill`, `copy`, `view`, `extent`,
    `host_register`, `is_host`, `watch`. Argument table, to `hw.engines.args.ArgTable`: `args_put`, `args_set`,
    `args_get`, `args_drop`. Images, to `hw.ts.images.Images`: `image_alloc`, `image_free`, `image_write`, `image_read`,
    `image_check`.
    """

    def __init__(self, chip: Chip, clock: Clock, *, engine: str, policy: Policy | None) -> None:
        self.chip = chip
        self.clock = clock
        self._ids = ids.pools(chip.spec)
        self._memory = memory = Memory(chip.spec.device_memory)
        null = engine == "null"
        self._ts = ts = NullScheduler(chip, memory, clock) if null else Scheduler(chip, memory, clock, policy)
        self._m = m = ts.machine
        # User SQs have ids of their own, above the pool of model SQs.
        self._next_ring = chip.spec.max_sqs
        self._free_rings: list[int] = []
        # The hot calls go straight to the part that does them.
        self.malloc, self.read, self.write, self.fill = memory.malloc, memory.read, memory.write, memory.fill
        self.copy, self.view, self.extent = memory.copy, memory.view, memory.extent
        self.host_register, self.watch, self.is_host = memory.host_register, memory.watch, memory.is_host
        self.args_put, self.args_set, self.args_get = m.args.put, m.args.set, m.args.get
        self.args_drop = m.args.drop
        self.image_alloc, self.image_free, self.image_check = m.images.alloc, m.images.free, m.images.check
        self.image_write, self.image_read = m.images.write, m.images.read
        self._rings = m.rings
        self._pack = chip.kernel_pack.pack_into
        self._word = chip.kernel_word(0)
        self._shift, self._mask = chip.task_shift, chip.task_mask
        self.deferred = 0  # hosts that collected tasks and will submit them before the loop is idle
        self._watched = clock.virtual  # every doorbell counts, also one for an SQ that is not idle

    def __repr__(self) -> str:
        return f"<Driver {self.chip.spec.name} {self.clock!r}, {self._ts!r}, {self._memory!r}>"

    # -- ids ------------------------------------------------------------------------------------------------------

    def alloc(self, kind: IdKind) -> int:
        """The lowest free id. NoResource when all are held. An event or notify register starts clear."""
        id = self._ids[kind].alloc()
        if kind is IdKind.EVENT:
            self._m.events.renew(id)
        elif kind is IdKind.NOTIFY:
            self._m.notifies.renew(id)
        return id

    def free(self, kind_or_address: IdKind | int, id: int | None = None) -> None:
        """``free(kind, id)`` gives an id back (IdError unless held); ``free(address)`` ends an allocation
        (MemoryFault unless it is a live one's base) and poisons what views it."""
        if isinstance(kind_or_address, IdKind):
            assert id is not None
            self._ids[kind_or_address].free(id)
            return
        extent = self._memory.extent(kind_or_address)
        self._memory.free(kind_or_address)
        self._poison(extent)

    def held(self, kind: IdKind) -> int:
        return self._ids[kind].held

    def limit(self, kind: IdKind) -> int:
        return self._ids[kind].limit

    # -- memory ---------------------------------------------------------------------------------------------------

    @property
    def used_bytes(self) -> int:
        return self._memory.used_bytes

    def host_unregister(self, address: int) -> None:
        """End a registration (MemoryFault unless `address` is a live one's); what views it is poisoned."""
        extent = self._memory.extent(address)
        self._memory.host_unregister(address)
        self._poison(extent)

    def _poison(self, extent: tuple[int, int] | None) -> None:
        assert extent is not None
        base, size = extent
        fault = MemoryFault("kernel argument in", base, size, base, size, "freed; do not use it after free")
        self._m.args.memory_freed(base, fault)

    # -- kernels --------------------------------------------------------------------------------------------------

    def load(
        self,
        fn: Callable[..., Any],
        *,
        core: Core = Core.AIV,
        name: str = "",
        cost_ns: int | Callable[..., int] | None = None,
        offload: bool | None = None,
    ) -> int:
        """Register a kernel; its program id. `cost_ns`: device time of a run under the virtual clock, a number or a
        function of the run's arguments; None: 1,000. `offload`: always (True) or never (False) on a worker thread;
        None: by measurement, from about 200 us on."""
        kernel = Kernel(fn, Core(core), name or getattr(fn, "__name__", "kernel"), cost_ns, offload)
        return self._m.kernels.load(kernel)

    def unload(self, program: int) -> None:
        """End a program that nothing queued and no image names any more. KeyError when there is none."""
        self._m.kernels.unload(program)

    # -- user SQs -------------------------------------------------------------------------------------------------

    def sq_open(self, stream_id: int, depth: int | None = None) -> int:
        """A user stream's SQ with a ring of `depth` slots (the chip's rtsq_depth); its id, outside the SQ pool."""
        if self._free_rings:
            id = heapq.heappop(self._free_rings)
        else:
            id, self._next_ring = self._next_ring, self._next_ring + 1
        self._ts.open_ring(id, stream_id, SqRing(depth or self.chip.spec.rtsq_depth))
        return id

    def sq_close(self, sq: int) -> None:
        """Drop what is queued and end the SQ."""
        self._ts.close_ring(self._ring(sq))
        heapq.heappush(self._free_rings, sq)

    def submit(self, sq: int, sqe: bytes) -> int:
        """Queue one task, or several, and ring the doorbell; the position after it. Never blocks: what finds the
        ring full waits in host memory."""
        q = self._rings.get(sq) or self._ring(sq)
        position = q.ring.push(sqe)
        if q.state is IDLE or self._watched:
            self._ts.doorbell(q)
        return position

    def submit_kernel(self, sq: int, task_id: int, core: int, program: int, args: int, blocks: int, flags: int) -> int:
        """`submit` of one KERNEL task, packed straight into the ring."""
        q = self._rings[sq]
        ring = q.ring
        tail = ring.tail
        if tail - ring.head >= ring.depth or ring.backlog:
            ident = q.ident | (task_id & self._mask) << self._shift
            word = self._word | flags << 8
            return self.submit(sq, self.chip.kernel_pack.pack(word, ident, core, program, args, blocks))
        self._pack(
            ring.buffer,
            tail % ring.depth << 6,
            self._word | flags << 8,
            q.ident | (task_id & self._mask) << self._shift,
            core,
            program,
            args,
            blocks,
        )
        ring.tail = tail = tail + 1
        if q.state is IDLE or self._watched:
            self._ts.doorbell(q)
        return tail

    def sq_stop_on_error(self, sq: int, on: bool) -> None:
        """With `on`, the first failing task is the last to run; turned off, what is queued runs."""
        q = self._ring(sq)
        q.stop_on_error = on
        if not on and q.failed:
            q.failed = False
            self._ts.doorbell(q)

    def sq_abort(self, sq: int) -> None:
        """Drop what is queued and stop at the task boundary. If anything was lost, an ERROR CQE (STREAM_ABORTED, no
        fault) says so before the head report that covers it."""
        self._ts.abort_ring(self._ring(sq))
        self._ts.drain()

    def sq_status(self, sq: int) -> SqStatus:
        """Where a user or model SQ stands. KeyError when there is none."""
        return status(self._m, sq)

    def sq_memory(self, sq: int) -> memoryview:
        """The bytes of a user SQ's ring, slot p at (p % depth) * 64. What is written there is what runs."""
        return self._ring(sq).ring.buffer

    def _ring(self, sq: int) -> RingSq:
        q = self._rings.get(sq)
        if q is None:
            raise KeyError(f"SQ {sq}: no such user SQ; open it first")
        return q

    # -- images and model SQs -------------------------------------------------------------------------------------

    def sq_bind(self, bindings: Sequence[tuple[int, int, int, int]]) -> None:
        """Bind model SQs, each (sq, stream id, image, tail): ids of the pool to SQE memory, run up to `tail`."""
        for sq, stream_id, image, tail in bindings:
            if sq in self._m.models.sqs:
                raise ValueError(f"SQ {sq}: already bound; unbind it first")
            memory = self._m.images.get(image)
            if tail > memory.slots:
                raise ValueError(f"SQ {sq}: tail {tail} is beyond image {image} of {memory.slots} slots")
            self._ts.bind(sq, stream_id, memory, tail)

    def sq_unbind(self, sqs: Sequence[int]) -> None:
        """Unbind idle model SQs. KeyError for one that is not bound, ValueError for one that runs."""
        for sq in sqs:
            q: ModelSq = self._m.models.sqs[sq]
            if q.state is not IDLE:
                raise ValueError(f"SQ {sq}: {q.state.name}; unbind it when its run is over")
            self._ts.unbind(sq)

    # -- models ---------------------------------------------------------------------------------------------------

    def control(self, sqe: bytes) -> Cqe:
        """Run MODEL_ADD, MODEL_DEL, MODEL_LOAD or MODEL_DESTROY now; the CQE: OK, ILLEGAL_PARAM (unknown, or the
        model runs) or SQE_ERROR (another kind). SqeError for bytes that are no SQE."""
        return maintain(self._m, sqe)

    def abort_model(self, model: int) -> None:
        """Stop a model's run at the next task boundaries; its end-graph wait ends with MODEL_ABORTED."""
        self._ts.abort_model(model)

    def model_busy(self, model: int) -> bool:
        """From MODEL_EXECUTE until its end-graph wait is passed and all its SQs have stopped."""
        known = self._m.models.models.get(model)
        return known is not None and known.root.busy

    # -- registers ------------------------------------------------------------------------------------------------

    def notify_set(self, id: int) -> None:
        self._m.notifies.record(self._m.notifies.at(id))

    def notify_clear(self, id: int) -> None:
        self._m.notifies.at(id).set = False

    def notify_state(self, id: int) -> tuple[bool, int]:
        """(bit, records counted since the id was allocated)."""
        notify = self._m.notifies.at(id)
        return notify.set, notify.value

    def event_set(self, id: int) -> None:
        self._m.events.record(self._m.events.at(id))

    def event_clear(self, id: int) -> None:
        self._m.events.reset(self._m.events.at(id))

    def event_state(self, id: int) -> bool:
        return self._m.events.at(id).recorded

    def event_private(self, id: int) -> None:
        """The event is one model's alone: nobody asks when it was recorded or waits for it from outside, and it starts
        each run clear. A record need not read the clock, and a merged program need not record it at all. Until the id
        is given out anew."""
        self._m.events.at(id).private = True

    def event_time_ns(self, id: int) -> int:
        """Device time of the last record; 0 before the first one and for a private event."""
        return self._m.events.time_ns(self._m.events.at(id))

    # -- completions ----------------------------------------------------------------------------------------------

    def listen(self, callback: Callable[[Cqe], None] | None) -> None:
        """The one receiver of CQEs. It is called on the loop's thread, after a pass of the TS, and may submit."""
        self._ts.listener = callback

    @property
    def cq_filter(self) -> Callable[[bytes], bool] | None:
        """Test hook: called with a CQE's 64 bytes; False loses that completion."""
        return self._ts.cq_filter

    @cq_filter.setter
    def cq_filter(self, keep: Callable[[bytes], bool] | None) -> None:
        self._ts.cq_filter = keep

    def fault(self, index: int) -> FaultRecord:
        """A record of the error log. KeyError once dropped."""
        return self._m.faults.get(index)

    def fault_drop(self, index: int) -> None:
        self._m.faults.drop(index)

    # -- time, observers, waits -----------------------------------------------------------------------------------

    @property
    def on_stuck(self) -> Callable[[], None] | None:
        """Called once when, under the virtual clock, SQs wait, nothing can run and no deadline is left."""
        return self._ts.on_stuck

    @on_stuck.setter
    def on_stuck(self, call: Callable[[], None] | None) -> None:
        self._ts.on_stuck = call

    def set_execute_timeout(self, timeout_ns: int) -> None:
        """Kernels that cost more fail with the TIMEOUT status of their core; 0: none. Virtual clock only."""
        self._m.execute_timeout_ns = timeout_ns

    def observe(self, observer: Observer) -> None:
        """Attach an observer (hw.observe); SQs notice at their next task boundary."""
        self._ts.observe(observer, on=True)

    def unobserve(self, observer: Observer) -> None:
        self._ts.observe(observer, on=False)

    def nudge(self) -> None:
        """The host waits for something new: under the virtual clock `on_stuck` is called again if need be."""
        self._ts.nudge()

    def waits(self) -> list[Wait]:
        """Every parked SQ and what it is parked on."""
        return waits(self._m, self._ts.all_sqs())

    def waiting(self) -> int:
        """How many SQs are parked."""
        return self._ts.waiting()

    def assist(self) -> None:
        """The host is about to wait for the device: it may run a pass now, in the caller's place."""
        self._ts.assist()

    def idle(self) -> bool:
        """Nothing runs, waits, is queued or collected, and every completion was handed up."""
        return not self.deferred and self._ts.idle()

    def resting(self) -> bool:
        """Nothing will move by itself: idle, or parked on what only a record, a write or a time-out could change."""
        return not self.deferred and self._ts.resting()

    def run_pass(self) -> None:
        """One pass of the TS now: for tests and tools without a running event loop."""
        self._ts.run_pass()

    def close(self) -> None:
        """Stop everything, end the worker threads (waiting for what they run), free the memory. Nothing is reported."""
        self._ts.close()
        self._memory.clear()
