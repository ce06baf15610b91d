"""The device's id pools: streams, SQs, events, notifies, models, labels.

Not objects: an id is a small integer here, what it stands for is known above. The lowest free id comes first, so
that one program gives one numbering.
"""

from __future__ import annotations

import enum
from heapq import heappop, heappush
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hw.chips.spec import ChipSpec


class IdKind(enum.Enum):
    """What there are ids of. SQ is the pool of software-SQ models; a user stream's own SQ is outside it."""

    STREAM = "stream"
    SQ = "sq"
    EVENT = "event"
    NOTIFY = "notify"
    MODEL = "model"
    LABEL = "label"


class NoResource(Exception):
    """Every id of `kind` is held; `limit` is how many there are (a field of the chip's spec)."""

    def __init__(self, kind: IdKind, limit: int) -> None:
        self.kind = kind
        self.limit = limit
        super().__init__(f"alloc {kind.value} id: all {limit} are held; free one or raise the limit")


class IdError(ValueError):
    """An id was freed that is not held."""


@final
class IdPool:
    """Ids 0 .. limit-1 of one kind."""

    __slots__ = ("_free", "_held", "_next", "kind", "limit")

    def __init__(self, kind: IdKind, limit: int) -> None:
        self.kind = kind
        self.limit = limit
        # Invariant: every id below _next is in exactly one of _held and _free; none at or above it is in either.
        self._next = 0
        self._free: list[int] = []  # a heap
        self._held: set[int] = set()

    def __repr__(self) -> str:
        return f"<IdPool {self.kind.value}, {len(self._held)} of {self.limit} held>"

    def alloc(self) -> int:
        """The lowest free id. Raises NoResource when there is none."""
        if self._free:
            taken = heappop(self._free)
        elif self._next < self.limit:
            taken = self._next
            self._next += 1
        else:
            raise NoResource(self.kind, self.limit)
        self._held.add(taken)
        return taken

    def free(self, taken: int) -> None:
        """Give `taken` back. Raises IdError if it is not held."""
        if taken not in self._held:
            raise IdError(f"free {self.kind.value} id {taken}: it is not held; free an id once")
        self._held.remove(taken)
        heappush(self._free, taken)

    @property
    def held(self) -> int:
        """How many ids are held."""
        return len(self._held)

    @property
    def left(self) -> int:
        """How many more `alloc` can give."""
        return self.limit - len(self._held)

    def __contains__(self, taken: object) -> bool:
        return taken in self._held


def pools(spec: ChipSpec) -> Mapping[IdKind, IdPool]:
    """One pool of each kind, as large as the chip's spec says."""
    limits = {
        IdKind.STREAM: spec.max_streams,
        IdKind.SQ: spec.max_sqs,
        IdKind.EVENT: spec.max_events,
        IdKind.NOTIFY: spec.max_notifies,
        IdKind.MODEL: spec.max_models,
        IdKind.LABEL: spec.max_labels,
    }
    return {kind: IdPool(kind, limits[kind]) for kind in IdKind}
