"""The decode cache: the SQE memory of a model stream (an image) and the program decoded from it.

The bytes are the truth. Every write of a slot decodes that slot and no other, and at any time
``decode(bytes) == cached`` for each slot; a replay decodes nothing. It runs nothing itself.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, final

from hw.chips import SQE_BYTES, SqeFlag, SqeKind
from hw.ts.decoder import Cell, Decoder, Step

if TYPE_CHECKING:
    from hw.engines.core import Pair
    from hw.registers import Event, Notify
    from hw.ts.merged import Merged
    from hw.ts.sq import ModelSq

__all__ = ["OP_CONTROL", "OP_RUN", "OP_SLOW", "Image", "Parked", "Segment", "StepEntry", "entry_of", "pass_event"]

OP_RUN, OP_SLOW, OP_CONTROL = range(3)
"""What the replay loop tells apart: a light segment, one not measured yet or not light, a control step."""

SEGMENT_TASKS = 512
PART_NS = 300_000
"""Inline parts are cut so that one holds the loop for about this long."""

_WR_CQE = int(SqeFlag.WR_CQE)
_KERNEL = int(SqeKind.KERNEL)


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
    it was. `times` are the ns of each task as measured once, while a second look is due; `mean_ns` is what a task
    took."""

    __slots__ = ("mean_ns", "pairs", "parts", "start", "stop", "times")

    def __init__(self, start: int, pairs: list[Any]) -> None:
        self.start = start
        self.stop = start + len(pairs)
        self.pairs = pairs
        self.parts: list[tuple[bool, int, int]] = []
        self.times: list[int] = []
        self.mean_ns = 0

    @property
    def inline(self) -> bool:
        """Measured, and no part of it goes to a worker."""
        return bool(self.parts) and not any(on_thread for on_thread, _, _ in self.parts)

    def __repr__(self) -> str:
        return f"<Segment {self.start}..{self.stop}>"


StepEntry = tuple[int, Any, Any]


@final
class Image:
    """The SQE memory of one model stream and its decode cache.

    Invariants: cells[i] == decode(bytes of slot i), None standing for a slot never written (all zero);
    `steps` is None, or covers slots 0 .. compiled tail in order with `starts` beside it, and its segments hold
    `entry_of` of the cells.
    """

    __slots__ = (
        "__weakref__",
        "_by_base",
        "_tail",
        "buffer",
        "cells",
        "decoder",
        "id",
        "merged",
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
        self.merged: Merged | None = None  # the program of a whole model that holds calls of this image
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
        if self.merged is not None and self.merged.valid:
            self.merged.patch(self, slot, old, cell)
        if self.steps is None:
            return
        pair = entry_of(cell)
        if pair is not None and old is not None and entry_of(old) is not None and slot < self._tail:
            op, segment, pairs = self.steps[bisect_right(self.starts, slot) - 1]
            if op != OP_CONTROL:
                pairs[slot - segment.start] = pair
                return
        self._forget_steps()

    def clear_private_events(self) -> None:
        """A run was cut short: the next one starts with the events of its model clear, as the first one did."""
        record = self.decoder.calls_that_order[0]
        for cell in self.cells:
            if isinstance(cell, tuple) and cell[0] is record and cell[1][0].private:
                cell[1][0].recorded = False

    def _forget_steps(self) -> None:
        if self.merged is not None:
            self.merged.valid = False
        self.steps = None
        for sq in self.sqs:
            sq.stale = True
            if sq.root is not None:
                sq.root.unmergeable = False

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

    def args_changed(self, slot: int, handle: int) -> bool:
        """The args entry that a slot uses was replaced, poisoned or dropped. False: the slot was rewritten since."""
        kind, _, _, _, named = self.decoder.chip.kernel_scan.unpack_from(self.buffer, slot * SQE_BYTES)
        if kind == SqeKind.FUSION:
            named = self.decoder.chip.decode(self.buffer, slot * SQE_BYTES)["args"]
        if named != handle:
            return False
        self._place(slot, self.decoder.decode(self.buffer, slot, self))
        return True

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
            step = self.cell(slot)
            # The wait for a branch is never over already: as a step it parks without the detour through Parked.
            alone = isinstance(step, Step) and bool(steps) and getattr(steps[-1][1], "kind", None) is SqeKind.COND
            limit = slot if alone else min(tail, slot + SEGMENT_TASKS)
            while slot < limit and (pair := entry_of(self.cell(slot))) is not None:
                pairs.append(pair)
                slot += 1
            if pairs:
                steps.append((OP_SLOW, Segment(starts[-1], pairs), pairs))
            else:
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


def entry_of(cell: Cell) -> Pair | None:
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
