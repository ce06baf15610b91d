"""A chip: its spec and the codec built from its field tables.

Not an engine and not a device: it turns fields into 64-byte slots and back, and holds no state.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, final

from hw.chips.layout import Buffer, Field, Layout
from hw.chips.spec import SQE_BYTES, ChipSpec
from hw.chips.sqe import NO_STREAM, Sqe, SqeError, SqeKind

if TYPE_CHECKING:
    from collections.abc import Mapping

KERNEL_PACK = struct.Struct("<IIIIII40x")
"""A whole KERNEL slot from (chip.kernel_word(flags), ident, core, program, args, blocks); the rest is zeroed.

ident is ``chip.ident(stream_id, task_id)``, or ``base | (task_id & chip.task_mask) << chip.task_shift`` with
``base = chip.ident(stream_id, 0)`` kept by the SQ. One layout on both chips: only ident differs.
"""

KERNEL_SCAN = struct.Struct("<BB6xIII44x")
"""(type, flags, core, program, args) of a slot; 64 bytes, so ``iter_unpack`` walks a run of slots."""

_HEADER = ("type", "flags", "slots", "stream_id", "task_id")
_HEADER_NO_STREAM = ("type", "flags", "slots", "task_id")

_KINDS_BY_BYTE: tuple[SqeKind | None, ...] = tuple(
    SqeKind(value) if value in SqeKind._value2member_map_ else None for value in range(256)
)


@final
class Chip:
    """Encodes and decodes the SQEs of one chip; immutable.

    `spec` has every limit. `kernel_pack` and `kernel_scan` are the batch path of the TS (see above).
    """

    __slots__ = ("_bodies", "_layouts", "_waits", "kernel_pack", "kernel_scan", "spec", "task_mask", "task_shift")

    def __init__(self, spec: ChipSpec, header: tuple[Field, ...], bodies: Mapping[SqeKind, tuple[Field, ...]]) -> None:
        self.spec = spec
        self._layouts = {kind: Layout((*header, *bodies[kind])) for kind in SqeKind}
        named = tuple(field.name for field in header if field.name)
        has_stream = "stream_id" in named
        assert named == (_HEADER if has_stream else _HEADER_NO_STREAM)
        # Invariant: ident == the little-endian word at offset 4 of every slot.
        self.task_shift = 16 if has_stream else 0
        self.task_mask = 0xFFFF if has_stream else 0xFFFFFFFF
        self._bodies = {kind: layout.names[len(named) :] for kind, layout in self._layouts.items()}
        self._waits = {SqeKind.WAIT_VALUE: spec.wait_sqes, SqeKind.EXT_WAIT: spec.ext_wait_sqes}
        self.kernel_pack = KERNEL_PACK
        self.kernel_scan = KERNEL_SCAN

    def __repr__(self) -> str:
        return f"<Chip {self.spec.name}>"

    def layout(self, kind: SqeKind) -> Layout:
        """The field table of `kind`, header included (offsets for tests and dumps)."""
        return self._layouts[kind]

    def slots(self, kind: SqeKind) -> int:
        """How many slots a task of `kind` takes unless `encode` is told otherwise (acl_semantics 11.1)."""
        return self._waits.get(kind, 1)

    def ident(self, stream_id: int, task_id: int) -> int:
        """The header's second word. Task ids wrap at the header's width, as on the hardware (16 bits on v100)."""
        word = (task_id & self.task_mask) << self.task_shift
        return word | stream_id if self.task_shift else word

    def kernel_word(self, flags: int) -> int:
        """The header's first word of a one-slot KERNEL."""
        return SqeKind.KERNEL | flags << 8 | 1 << 16

    def encode(
        self, kind: SqeKind, *, stream_id: int, task_id: int, flags: int = 0, slots: int | None = None, **fields: int
    ) -> bytes:
        """`slots` * 64 bytes: the task's slot, then PLACE_HOLDERs of the same stream and task.

        `slots` None takes the chip's number for the kind. Raises SqeError when a field is missing, unknown to the
        kind on this chip, or does not fit.
        """
        count = self.slots(kind) if slots is None else slots
        if count < 1:
            raise SqeError(f"{kind.name} SQE in {count} slots: a task takes at least 1")
        head: dict[str, int] = {"type": kind, "flags": flags, "slots": count, "task_id": task_id & self.task_mask}
        if self.task_shift:
            head["stream_id"] = stream_id
        try:
            first = self._layouts[kind].pack({**head, **fields})
            if count == 1:
                return first
            head.update(type=SqeKind.PLACE_HOLDER, flags=0, slots=1)
            return first + self._layouts[SqeKind.PLACE_HOLDER].pack(head) * (count - 1)
        except (TypeError, ValueError) as exc:
            raise SqeError(f"{kind.name} SQE of {self.spec.name}: {exc}") from None

    def decode(self, memory: Buffer, offset: int = 0) -> Sqe:
        """The SQE in the 64 bytes of `memory` at byte `offset`; nothing is copied but the fields.

        Raises SqeError for bytes that are no SQE of this chip: an unknown type, a field outside its values, or
        fewer than 64 bytes left.
        """
        if not 0 <= offset <= len(memory) - SQE_BYTES:
            raise SqeError(f"SQE at byte {offset} of {len(memory)}: a slot is {SQE_BYTES} bytes")
        kind = _KINDS_BY_BYTE[memory[offset]]
        if kind is None:
            raise SqeError(f"SQE of {self.spec.name}: type {memory[offset]} is no kind")
        layout = self._layouts[kind]
        row = layout.struct.unpack_from(memory, offset)
        try:
            layout.check(row)
        except ValueError as exc:
            raise SqeError(f"{kind.name} SQE of {self.spec.name}: {exc}") from None
        names = self._bodies[kind]
        if self.task_shift:
            _, flags, slots, stream_id, task_id = row[:5]
            return Sqe(kind, flags, slots, stream_id, task_id, dict(zip(names, row[5:], strict=True)))
        _, flags, slots, task_id = row[:4]
        return Sqe(kind, flags, slots, NO_STREAM, task_id, dict(zip(names, row[4:], strict=True)))
