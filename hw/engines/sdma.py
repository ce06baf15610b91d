"""The copy engine: copies, strided copies, sets and value writes between any two addresses.

Not an allocator and not ordered: it moves bytes when called. `entry` makes the ready call of a slot once, so that
a replay resolves no address; the bases it resolved are returned with it, for whoever must hear of their end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from hw.chips import Sqe, SqeKind
from hw.engines.args import Poison
from hw.memory import Memory, MemoryFault

if TYPE_CHECKING:
    from hw.engines.core import Pair

__all__ = ["Sdma"]

SETUP_NS = 1_000
BYTES_PER_NS = 64
"""Device time of a copy under the virtual clock: SETUP_NS plus a nanosecond for each 64 bytes."""


@final
class Sdma:
    """Copies and sets on one device's memory."""

    KINDS = frozenset({SqeKind.MEMCPY, SqeKind.MEMCPY2D, SqeKind.MEMSET, SqeKind.WRITE_VALUE})

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def entry(self, sqe: Sqe) -> tuple[Pair, tuple[int, ...]]:
        """The ready call of a slot of KINDS and the bases it views; a poison (and no bases) for bad addresses."""
        try:
            return self._entry(sqe)
        except (MemoryFault, ValueError) as exc:
            return (np.copyto, Poison(exc)), ()

    def _entry(self, sqe: Sqe) -> tuple[Pair, tuple[int, ...]]:
        memory, f = self._memory, sqe.fields
        if sqe.kind is SqeKind.MEMSET:
            dst = memory.bytes_view(f["dst"], f["nbytes"], write=True)
            return (np.copyto, (dst, f["value"])), self._bases(f["dst"])
        if sqe.kind is SqeKind.WRITE_VALUE:
            width = f["width"]
            data = np.frombuffer(f["value"].to_bytes(8, "little")[:width], np.uint8)
            dst = memory.bytes_view(f["address"], width, write=True)
            return (np.copyto, (dst, data)), self._bases(f["address"])
        if sqe.kind is SqeKind.MEMCPY2D:
            width, height = f["width"], f["height"]
            dst = memory.rows_view(f["dst"], f["dpitch"], width, height, write=True)
            src = memory.rows_view(f["src"], f["spitch"], width, height)
        else:
            dst = memory.bytes_view(f["dst"], f["nbytes"], write=True)
            src = memory.bytes_view(f["src"], f["nbytes"])
        return (np.copyto, (dst, src)), self._bases(f["dst"], f["src"])

    def run(self, sqe: Sqe) -> None:
        """Do a slot of KINDS now, with nothing kept: the eager path."""
        memory, f = self._memory, sqe.fields
        if sqe.kind is SqeKind.MEMCPY:
            memory.device_copy(f["dst"], f["src"], f["nbytes"])
        elif sqe.kind is SqeKind.MEMSET:
            memory.device_fill(f["dst"], f["value"], f["nbytes"])
        else:
            (fn, values), _ = self._entry(sqe)
            fn(*values)

    def _bases(self, *addresses: int) -> tuple[int, ...]:
        extents = (self._memory.extent(address) for address in addresses)
        return tuple(extent[0] for extent in extents if extent is not None)

    def cost_ns(self, sqe: Sqe) -> int:
        """Device time of a slot of KINDS under the virtual clock."""
        if sqe.kind is SqeKind.WRITE_VALUE:
            return 0
        nbytes = sqe["width"] * sqe["height"] if sqe.kind is SqeKind.MEMCPY2D else sqe["nbytes"]
        return SETUP_NS + nbytes // BYTES_PER_NS
