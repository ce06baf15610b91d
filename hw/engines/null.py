"""The null engine: every SQE completes with success when its doorbell rings, and nothing is interpreted.

No byte moves, no kernel runs, nothing waits. It exists for tests of codes and of order. The argument entries of
one-shot tasks are still given back: ids and tables are the real ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.chips import Chip, SqeFlag, SqeKind

if TYPE_CHECKING:
    from hw.engines.args import ArgTable
    from hw.ring import SqRing

__all__ = ["consume"]


def consume(chip: Chip, args: ArgTable, ring: SqRing) -> int:
    """Complete everything in a ring, its backlog included; the new head position."""
    scan, buffer, depth = chip.kernel_scan.unpack_from, ring.buffer, ring.depth
    while True:
        for position in range(ring.head, ring.tail):
            kind, flags, _, _, handle = scan(buffer, position % depth << 6)
            if flags & SqeFlag.ONE_SHOT and kind == SqeKind.KERNEL:
                args.retire(handle)
        ring.head = ring.tail
        if not ring.refill():
            return ring.head
