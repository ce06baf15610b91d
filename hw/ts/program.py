"""The decode cache: the SQE memory of a model stream (an image) and the program decoded from it.

The bytes are the truth. Every write of a slot decodes that slot and no other, and at any time
``decode(bytes) == cached`` for each slot; a replay decodes nothing. It runs nothing itself.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, final

import numpy as np

from hw.chips import SQE_BYTES, Chip, Sqe, SqeError, SqeFlag, SqeKind
from hw.engines.args import ArgTable, Gone, Poison
from hw.engines.core import Kernels, nop

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.engines.core import Pair
    from hw.engines.sdma import Sdma
    from hw.memory import Memory
    from hw.registers import Event, EventFile, Notify, NotifyFile
    from hw.ts.sq import ModelSq

__all__ = [
    "OP_CONTROL",
    "OP_RUN",
    "OP_SLOW",
    "Cell",
    "Decoder",
    "Image",
    "Parked",
    "Segment",
    "Step",
    "pass_event",
    "same_cell",
]

OP_RUN, OP_SLOW, OP_CONTROL = range(3)
"""What the replay loop tells apart: a light segment, one not measured yet or not light, a control step."""

SEGMENT_TASKS = 512
_NS_PER_MS = 1_000_000
_WR_CQE = int(SqeFlag.WR_CQE)
_KERNEL = int(SqeKind.KERNEL)
_NOP: Pair = (nop, ())


@final
class Step:
    """One decoded SQE that is not simply called: a wait, a branch, bad bytes, or a task that posts a CQE.

    `pair` is the ready call of the latter; `cell` the register of a wait; `sqe` None: the bytes are no SQE.
    """

    __slots__ = ("cell", "count", "keep", "kind", "pair", "parsed", "run", "slot", "span", "sqe", "timeout_ns", "why")

    def __init__(self, slot: int, sqe: Sqe | None, why: str = "") -> None:
        self.slot = slot
        self.sqe = sqe
        self.why = why
        self.kind = sqe.kind if sqe is not None else SqeKind.PLACE_HOLDER
        self.span = sqe.slots or 1 if sqe is not None else 1
        self.cell: Event | Notify | None = None
        self.timeout_ns = 0
        self.count = False  # NOTIFY_WAIT: takes one of the counted records (v200)
        self.keep = False  # NOTIFY_WAIT: leaves the bit set (v200)
        self.run: Any = None  # the function that runs it, once looked up
        self.pair: Pair | None = None
        self.parsed: tuple[bytes, Any] | None = None  # a table in device memory as last read, and what it says

    def __repr__(self) -> str:
        return f"<Step {self.sqe if self.sqe is not None else self.why} at slot {self.slot}>"


Cell = tuple[Any, Any] | Step


@final
class Decoder:
    """From a slot's bytes to the call it is, or the step it is. Holds no slot."""

    def __init__(
        self, chip: Chip, memory: Memory, args: ArgTable, kernels: Kernels, sdma: Sdma, ev: EventFile, nt: NotifyFile
    ) -> None:
        self.chip = chip
        self.memory = memory
        self.args = args
        self.kernels = kernels
        self.sdma = sdma
        self.events = ev
        self.notifies = nt
        # One object for each: two decodes of the same bytes give equal, even identical, functions.
        self._record_event = ev.record
        self._reset_event = ev.reset
        self._record_notify = nt.record
        self._record_external = self._write_external
        self._fuse = kernels.fuse
        plain: dict[SqeKind, Callable[[Sqe], Pair]] = {
            SqeKind.KERNEL: lambda s: (kernels.fn(s["program"]), args.at(s["args"])),
            SqeKind.FUSION: lambda s: (self._fuse, args.at(s["args"])),
            SqeKind.EVENT_RECORD: lambda s: (self._record_event, (ev.at(s["event_id"]),)),
            SqeKind.EVENT_RESET: lambda s: (self._reset_event, (ev.at(s["event_id"]),)),
            SqeKind.NOTIFY_RECORD: lambda s: (self._record_notify, (nt.at(s["notify_id"]),)),
            SqeKind.EXT_RECORD: lambda s: (self._record_external, (s["table"],)),
            SqeKind.NOP: lambda s: _NOP,
            SqeKind.PLACE_HOLDER: lambda s: _NOP,
            SqeKind.LABEL_SET: lambda s: _NOP,
        }
        self.plain = plain
        # Calls that touch registers or run queue: never on a worker thread.
        self.on_loop = frozenset({self._record_event, self._reset_event, self._record_notify, self._record_external})

    def decode(self, buffer: bytearray, slot: int, image: Image | None = None) -> Cell:
        """The cell of a slot of `buffer`. With `image`, what the cell views is noted, so that it can be poisoned."""
        try:
            sqe = self.chip.decode(buffer, slot * SQE_BYTES)
        except SqeError as exc:
            return Step(slot, None, str(exc))
        return self.cell(sqe, slot, image)

    def cell(self, sqe: Sqe, slot: int, image: Image | None = None) -> Cell:
        """The cell of a decoded SQE."""
        try:
            return self._cell(sqe, slot, image)
        except ValueError as exc:  # a register the chip does not have
            step = Step(slot, sqe, str(exc))
            step.pair = (nop, Poison(Gone(str(exc))))
            return step

    def _cell(self, sqe: Sqe, slot: int, image: Image | None) -> Cell:
        make = self.plain.get(sqe.kind)
        pair: Pair | None = None
        if make is not None:
            pair = make(sqe)
            if image is not None and sqe.kind in (SqeKind.KERNEL, SqeKind.FUSION):
                handle = sqe["args"]
                if self.args.live(handle):
                    self.args.used_by(handle, image.id, slot)
        elif sqe.kind in self.sdma.KINDS:
            pair, bases = self.sdma.entry(sqe)
            if image is not None:
                image.views(slot, bases)
        if pair is not None and not sqe.flags & _WR_CQE:
            return pair
        step = Step(slot, sqe)
        step.pair = pair
        if sqe.kind is SqeKind.EVENT_WAIT:
            step.cell = self.events.at(sqe["event_id"])
        elif sqe.kind is SqeKind.NOTIFY_WAIT:
            step.cell = self.notifies.at(sqe["notify_id"])
            step.count = bool(sqe.fields.get("count", 0))
            step.keep = not sqe.fields.get("clear", 1)
        elif sqe.kind is SqeKind.COND:
            step.cell = self.notifies.at(sqe["notify"])
        step.timeout_ns = sqe.fields.get("timeout_ms", 0) * _NS_PER_MS
        return step

    def _write_external(self, table: int) -> None:
        """EXT_RECORD: byte 1 to the cell that the table entry names; entry 0: nobody asked (acl_semantics 5.7)."""
        address = self.memory.load_u64(table)
        if address:
            self.memory.store_u8(address, 1)


class Parked(Exception):
    """A wait among the calls of a segment has to wait: the loop looks at the slot and parks there."""


def pass_event(event: Event) -> None:
    """EVENT_WAIT without a time-out, as a call of a segment: satisfied waits cost no more than that."""
    if not event.recorded:
        raise Parked


def pass_notify(notify: Notify) -> None:
    """NOTIFY_WAIT without a time-out, as a call of a segment. An end-graph notify takes the long way."""
    if not notify.set or notify.on_taken is not None or notify.error is not None:
        raise Parked
    notify.set = False


@final
class Segment:
    """A run of tasks that are called: slots start .. stop-1, one (fn, args) pair each, plain waits among them.
    `parts` is how it is run when it is not light: (on a worker?, from, to) by index, as last measured; empty until
    it was."""

    __slots__ = ("pairs", "parts", "start", "stop")

    def __init__(self, start: int, pairs: list[Any]) -> None:
        self.start = start
        self.stop = start + len(pairs)
        self.pairs = pairs
        self.parts: list[tuple[bool, int, int]] = []

    def __repr__(self) -> str:
        return f"<Segment {self.start}..{self.stop}>"


StepEntry = tuple[int, Any, Any]


@final
class Image:
    """The SQE memory of one model stream and its decode cache.

    Invariants: cells[i] == decode(bytes of slot i), None standing for a slot never written (all zero);
    `steps` is None, or covers slots 0 .. compiled tail in order with `starts` beside it, and its segments hold
    `_entry` of the cells.
    """

    __slots__ = (
        "__weakref__",
        "_by_base",
        "_tail",
        "buffer",
        "cells",
        "decoder",
        "id",
        "slots",
        "sqs",
        "starts",
        "steps",
    )

    def __init__(self, id: int, slots: int, decoder: Decoder) -> None:
        self.id = id
        self.slots = slots
        self.buffer = bytearray(slots * SQE_BYTES)
        self.decoder = decoder
        self.cells: list[Cell | None] = [None] * slots
        self.steps: list[StepEntry] | None = None
        self.starts: list[int] = []
        self._tail = 0
        self.sqs: list[ModelSq] = []  # bound to this image
        self._by_base: dict[int, list[int]] = {}  # slots of copies and sets by the allocations they view

    def __repr__(self) -> str:
        return f"<Image {self.id}, {self.slots} slots, {'compiled' if self.steps is not None else 'not compiled'}>"

    # -- bytes ----------------------------------------------------------------------------------------------------

    def write(self, slot: int, data: bytes) -> None:
        """Put SQEs at a slot and decode exactly those. ValueError outside the image."""
        n, rest = divmod(len(data), SQE_BYTES)
        if rest or slot < 0 or slot + n > self.slots:
            where = f"{len(data)} bytes at slot {slot} of {self.slots}"
            raise ValueError(f"image {self.id}: {where}; write whole slots inside")
        self.buffer[slot * SQE_BYTES : slot * SQE_BYTES + len(data)] = data
        self._decode(slot, n)

    def read(self, slot: int, n: int) -> bytes:
        if slot < 0 or n < 0 or slot + n > self.slots:
            raise ValueError(f"image {self.id}: {n} slots at {slot} of {self.slots}; read inside")
        return bytes(self.buffer[slot * SQE_BYTES : (slot + n) * SQE_BYTES])

    def _decode(self, slot: int, n: int) -> None:
        decoder, at = self.decoder, slot
        args, image = decoder.args, self.id
        fns, values, images, slots = decoder.kernels.fns, args.values, args.user_image, args.user_slot
        known_fns, known_args = len(fns), len(values)
        place = self.cells.__setitem__ if self.steps is None else self._place
        for kind, flags, core, program, handle in decoder.chip.kernel_scan.iter_unpack(
            memoryview(self.buffer)[slot * SQE_BYTES : (slot + n) * SQE_BYTES]
        ):
            cell: Cell
            plain = kind == _KERNEL and not flags & _WR_CQE and core < 3
            if plain and program < known_fns and handle < known_args:
                cell = (fns[program], values[handle])
                if images[handle]:
                    args.used_by(handle, image, at)
                else:
                    images[handle], slots[handle] = image, at
            else:
                cell = decoder.decode(self.buffer, at, self)
            place(at, cell)
            at += 1

    def _place(self, slot: int, cell: Cell) -> None:
        old = self.cells[slot]
        self.cells[slot] = cell
        if self.steps is None:
            return
        pair = _entry(cell)
        if pair is not None and old is not None and _entry(old) is not None and slot < self._tail:
            op, segment, pairs = self.steps[bisect_right(self.starts, slot) - 1]
            if op != OP_CONTROL:
                pairs[slot - segment.start] = pair
                return
        self._forget_steps()

    def _forget_steps(self) -> None:
        self.steps = None
        for sq in self.sqs:
            sq.stale = True

    # -- what the cache views -------------------------------------------------------------------------------------

    def views(self, slot: int, bases: tuple[int, ...]) -> None:
        """A copy or set at `slot` holds arrays of these allocations."""
        for base in bases:
            slots = self._by_base.setdefault(base, [])
            if slot not in slots[-4:]:
                slots.append(slot)
            self.decoder.memory.watch(base, self)

    def memory_freed(self, base: int) -> None:
        """Decode again every copy that viewed it: the cell becomes a poison. Called by the memory."""
        for slot in self._by_base.pop(base, ()):
            self._place(slot, self.decoder.decode(self.buffer, slot, self))

    def args_changed(self, slot: int, handle: int) -> None:
        """The args entry that a slot uses was replaced, poisoned or dropped."""
        kind, _, _, _, named = self.decoder.chip.kernel_scan.unpack_from(self.buffer, slot * SQE_BYTES)
        if kind == SqeKind.FUSION:
            named = self.decoder.chip.decode(self.buffer, slot * SQE_BYTES)["args"]
        if named == handle:  # else the slot was rewritten since
            self._place(slot, self.decoder.decode(self.buffer, slot, self))

    # -- the program ----------------------------------------------------------------------------------------------

    def cell(self, slot: int) -> Cell:
        """What a slot is; one that was never written is bad bytes, found out here."""
        cell = self.cells[slot]
        if cell is None:
            cell = self.cells[slot] = self.decoder.decode(self.buffer, slot, self)
        return cell

    def program(self, tail: int) -> list[StepEntry]:
        """The steps of slots 0 .. tail-1, compiled when something other than a plain task changed."""
        if self.steps is None or tail != self._tail:
            self._compile(tail)
        assert self.steps is not None
        return self.steps

    def _compile(self, tail: int) -> None:
        steps: list[StepEntry] = []
        starts: list[int] = []
        slot = 0
        while slot < tail:
            starts.append(slot)
            pairs: list[Pair] = []
            while slot < tail and len(pairs) < SEGMENT_TASKS and (pair := _entry(self.cell(slot))) is not None:
                pairs.append(pair)
                slot += 1
            if pairs:
                segment = Segment(starts[-1], pairs)
                steps.append((OP_SLOW, segment, pairs))
            else:
                step = self.cell(slot)
                assert isinstance(step, Step)
                steps.append((OP_CONTROL, step, None))
                slot += step.span
        self.steps, self.starts, self._tail = steps, starts, tail

    def locate(self, slot: int) -> tuple[int, int]:
        """(step, tasks to skip in it) of a slot of the compiled program. Inside a task's span: the step after it."""
        index = bisect_right(self.starts, slot) - 1
        if index < 0:
            return 0, 0
        skip = slot - self.starts[index]
        if skip and self.steps is not None:
            op, step, _ = self.steps[index]
            if op == OP_CONTROL or slot >= step.stop:
                return index + 1, 0
        return index, skip


def _entry(cell: Cell) -> Pair | None:
    """What stands for a cell in a segment; None for a step that ends the segment."""
    if isinstance(cell, tuple):
        return cell
    if cell.pair is not None or cell.sqe is None or cell.timeout_ns or cell.sqe.flags & _WR_CQE:
        return None
    if cell.kind is SqeKind.EVENT_WAIT:
        return pass_event, (cell.cell,)
    if cell.kind is SqeKind.NOTIFY_WAIT and not cell.count and not cell.keep:
        return pass_notify, (cell.cell,)
    return None


def same_cell(a: Cell | None, b: Cell | None) -> bool:
    """Whether two cells are the same decode: calls by identity, arrays by what they view."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return a[0] is b[0] and _same_args(a[1], b[1])
    if isinstance(a, Step) and isinstance(b, Step):
        same = (a.slot, a.sqe, a.cell, a.timeout_ns) == (b.slot, b.sqe, b.cell, b.timeout_ns)
        return same and (a.pair is b.pair if a.pair is None or b.pair is None else same_cell(a.pair, b.pair))
    return a is b


def _same_args(a: Any, b: Any) -> bool:
    if isinstance(a, Poison) or isinstance(b, Poison):  # why it fails may change: first out of bounds, later freed
        return isinstance(a, Poison) and isinstance(b, Poison)
    if a is b:
        return True
    return len(a) == len(b) and all(_same_value(x, y) for x, y in zip(a, b, strict=True))


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.flags.writeable or b.flags.writeable:
            return a.__array_interface__ == b.__array_interface__
        return a.tobytes() == b.tobytes()  # the value of a write
    return a is b or a == b


