"""One slot decoded: the call it is, or the step it is. Holds no slot and runs nothing.

A plain task becomes a ready (fn, args) pair; everything that waits, branches or is no SQE becomes a `Step`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from hw.chips import SQE_BYTES, Chip, Sqe, SqeError, SqeFlag, SqeKind
from hw.engines.args import ArgTable, Gone, Poison
from hw.engines.core import Kernels, nop

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.chips.layout import Buffer
    from hw.engines.core import Pair
    from hw.engines.sdma import Sdma
    from hw.memory import Memory
    from hw.registers import Event, EventFile, Notify, NotifyFile

__all__ = ["Cell", "Decoder", "Step", "Viewer", "same_cell"]

_NS_PER_MS = 1_000_000
_WR_CQE = int(SqeFlag.WR_CQE)
_NOP: Pair = (nop, ())


class Viewer(Protocol):
    """Who keeps the cells: told what they view, so that a free can reach them."""

    id: int

    def views(self, slot: int, bases: tuple[int, ...]) -> None: ...


@final
class Step:
    """One decoded SQE that is not simply called: a wait, a branch, bad bytes, or a task that posts a CQE.

    `pair` is the ready call of the latter; `cell` the register of a wait; `sqe` None: the bytes are no SQE.
    """

    __slots__ = (
        "cell",
        "count",
        "keep",
        "kind",
        "pair",
        "parsed",
        "run",
        "slot",
        "span",
        "sqe",
        "timeout_ns",
        "why",
        "window",
    )

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
        # What its function keeps from run to run: the words of device memory it looks at, and what they said.
        self.window: Any = None
        self.parsed: Any = None

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
        self.calls_that_order = (self._record_event, self._reset_event, self._record_notify)
        self.on_loop = frozenset({self._record_event, self._reset_event, self._record_notify, self._record_external})

    def decode(self, buffer: Buffer, slot: int, image: Viewer | None = None) -> Cell:
        """The cell of a slot of `buffer`. With `image`, what the cell views is noted, so that it can be poisoned."""
        try:
            sqe = self.chip.decode(buffer, slot * SQE_BYTES)
        except SqeError as exc:
            return Step(slot, None, str(exc))
        return self.cell(sqe, slot, image)

    def cell(self, sqe: Sqe, slot: int, image: Viewer | None = None) -> Cell:
        """The cell of a decoded SQE."""
        try:
            return self._cell(sqe, slot, image)
        except ValueError as exc:  # a register the chip does not have
            step = Step(slot, sqe, str(exc))
            step.pair = (nop, Poison(Gone(str(exc))))
            return step

    def _cell(self, sqe: Sqe, slot: int, image: Viewer | None) -> Cell:
        make = self.plain.get(sqe.kind)
        pair: Pair | None = None
        if make is not None:
            pair = make(sqe)
            if image is not None and sqe.kind in (SqeKind.KERNEL, SqeKind.FUSION):
                handle = sqe["args"]
                if handle < len(self.args.values):  # a dropped one too: its handle may be given out again
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
