"""A field table that reads like a datasheet page, and the ``struct.Struct`` it yields.

Not a codec: which table belongs to which SQE kind is the chip's knowledge (``v100``, ``v200``).
"""

from __future__ import annotations

import struct
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, final

from hw.chips.spec import SQE_BYTES

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

Buffer = bytes | bytearray | memoryview

_FORMATS = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i4": "i", "i8": "q"}


class Field(NamedTuple):
    """One field: little endian, packed right after the one before it. A name of "" is padding (zero)."""

    name: str
    code: str  # u1 u2 u4 u8 i4 i8: signedness and bytes
    default: int | None = None  # what `pack` writes when the caller gives nothing; None: the caller must
    allowed: Container[int] | None = None  # None: every value of the width

    @property
    def nbytes(self) -> int:
        return int(self.code[1:])


@final
class Layout:
    """The fields of one 64-byte slot in order; the rest of the slot is zero.

    `struct` packs and unpacks exactly `names`, in that order; its size is always 64.
    """

    __slots__ = ("_checked", "_defaults", "_get", "_offsets", "fields", "names", "struct")

    def __init__(self, fields: Iterable[Field]) -> None:
        self.fields = tuple(fields)
        self.names = tuple(field.name for field in self.fields if field.name)
        self._offsets: dict[str, int] = {}
        text, offset = "<", 0
        for field in self.fields:
            text += _FORMATS[field.code] if field.name else f"{field.nbytes}x"
            if field.name:
                self._offsets[field.name] = offset
            offset += field.nbytes
        assert len(self._offsets) == len(self.names) >= 2, "names are unique"
        assert offset <= SQE_BYTES
        self.struct = struct.Struct(f"{text}{SQE_BYTES - offset}x")
        self._defaults = {f.name: f.default for f in self.fields if f.name and f.default is not None}
        self._checked = tuple((i, f) for i, f in enumerate(f for f in self.fields if f.name) if f.allowed is not None)
        self._get = itemgetter(*self.names)

    def offset(self, name: str) -> int:
        """Byte offset of a field in the slot. KeyError for a name that is not in the table."""
        return self._offsets[name]

    def pack(self, values: Mapping[str, int]) -> bytes:
        """64 bytes. TypeError for a missing or unknown field, ValueError for a value the field cannot hold."""
        full: dict[str, int] = {**self._defaults, **values}
        if len(full) != len(self.names):
            self._refuse_names(full)
        try:
            row: tuple[int, ...] = self._get(full)
            packed = self.struct.pack(*row)
        except KeyError:
            self._refuse_names(full)
            raise
        except struct.error:
            self._refuse_values(full)
            raise
        self.check(row)
        return packed

    def unpack_from(self, buffer: Buffer, offset: int = 0) -> tuple[int, ...]:
        """Values in the order of `names`, unchecked (see `check`)."""
        return self.struct.unpack_from(buffer, offset)

    def check(self, row: tuple[int, ...]) -> None:
        """ValueError naming the first field whose value is not one of those allowed."""
        for index, field in self._checked:
            allowed = field.allowed
            if allowed is not None and row[index] not in allowed:
                raise ValueError(f"field {field.name}={row[index]} is not a legal value")

    def _refuse_names(self, full: Mapping[str, int]) -> None:
        missing = [name for name in self.names if name not in full]
        unknown = [name for name in full if name not in self._offsets]
        if missing or unknown:
            raise TypeError(f"fields missing: {missing}, unknown: {unknown}; the table has {list(self.names)}")

    def _refuse_values(self, full: Mapping[str, int]) -> None:
        for field in self.fields:
            if not field.name:
                continue
            try:
                struct.pack("<" + _FORMATS[field.code], full[field.name])
            except struct.error as exc:
                raise ValueError(f"field {field.name}={full[field.name]!r} does not fit {field.code}") from exc
