"""The argument table: what a kernel SQE's args handle stands for (the seeds' argument loader records).

It is not memory: an entry holds ready arrays and scalars, and the bases of the allocations that its arrays view,
so that a free can poison it. A replay looks at none of this: decode caches hold the entry's tuple itself.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hw.memory import MemoryFault

__all__ = ["ArgTable", "Args", "Gone", "Poison", "SlotUser"]

# A user of an entry: (image id, slot). Called to have the slot's decode cache look at the entry again.
SlotUser = tuple[int, int]
_NOBODY, _MANY = 0, 0xFFFFFFFF


class Gone(Exception):
    """A slot names a program or an argument entry that the device does not have (any more): bad bytes."""


class Poison:
    """Stands where an args tuple stood: unpacking it into a call raises, at that task and nowhere else."""

    __slots__ = ("cause",)

    def __init__(self, cause: Exception) -> None:
        self.cause = cause

    def __iter__(self) -> Iterator[Any]:
        # A fresh exception each time: one object raised twice would carry the traceback of both runs.
        cause = self.cause
        fresh = cause.__class__.__new__(cause.__class__, *cause.args)
        fresh.args = cause.args
        fresh.__dict__.update(cause.__dict__)
        raise fresh

    def __repr__(self) -> str:
        return f"<Poison {self.cause}>"


Args = tuple[Any, ...] | Poison
_NONE = Poison(Gone("args handle: no such entry; it was dropped, or never put"))


@final
class ArgTable:
    """Entries by handle, 1 .. ; handle 0 is never given out.

    Invariants: `values[h]` is a tuple if and only if h is live and no array of it views freed memory; a live h with
    `_indexed[h]` set is in `_by_base` under each of its bases.
    """

    def __init__(self) -> None:
        self.values: list[Args] = [_NONE]
        self._bases: list[tuple[int, ...]] = [()]
        self._free: list[int] = []
        self._indexed = bytearray(b"\x01")
        self._by_base: dict[int, array[int]] = {}
        # Which image slot uses the entry: one in two flat arrays (image 0: none), more than one in `_many`.
        self.user_image = array("I", [_NOBODY])
        self.user_slot = array("I", [0])
        self._many: dict[int, set[SlotUser]] = {}
        # Called with each user of an entry that changed, and answers whether it still is one; set by the owner of the
        # images.
        self.on_change: Callable[[int, int, int], bool] | None = None

    def __len__(self) -> int:
        return len(self.values) - 1 - len(self._free)

    def __repr__(self) -> str:
        return f"<ArgTable {len(self)} entries>"

    def put(self, values: tuple[Any, ...], bases: tuple[int, ...]) -> int:
        """A new entry; `values` as the kernel is called with, `bases` of the allocations its arrays view."""
        if self._free:
            handle = self._free.pop()
            self.values[handle] = values
            self._bases[handle] = bases
            if self.user_image[handle] != _NOBODY:  # an image still names the entry that was dropped
                self._changed(handle)
        else:
            handle = len(self.values)
            self.values.append(values)
            self._bases.append(bases)
            self._indexed.append(0)
            self.user_image.append(_NOBODY)
            self.user_slot.append(0)
        self._indexed[handle] = 0
        return handle

    def get(self, handle: int) -> tuple[Any, ...]:
        """The entry's values. KeyError when there is none, MemoryFault when it views freed memory."""
        values = self.values[handle] if 0 < handle < len(self.values) else _NONE
        if isinstance(values, Poison):
            if values is _NONE:
                raise KeyError(f"args handle {handle}: no such entry; put it first")
            raise values.cause
        return values

    def set(self, handle: int, values: tuple[Any, ...], bases: tuple[int, ...]) -> None:
        """Replace an entry; every decode cache that holds it follows. KeyError when there is none."""
        if not self.live(handle):
            raise KeyError(f"args handle {handle}: no such entry; put it first")
        self.values[handle] = values
        if bases != self._bases[handle]:
            self._bases[handle] = bases
            self._indexed[handle] = 0
        self._changed(handle)

    def drop(self, handle: int) -> None:
        """End an entry. KeyError when there is none. A slot that still names it fails when it is run."""
        if not self.live(handle):
            raise KeyError(f"args handle {handle}: no such entry; drop it once")
        self.values[handle] = _NONE
        self._changed(handle)
        self._free.append(handle)

    def retire(self, handle: int) -> None:
        """End an entry that one task used and has run: `drop` without its questions."""
        if handle < len(self.values) and self.values[handle] is not _NONE:
            self.values[handle] = _NONE
            if self.user_image[handle] != _NOBODY:
                self._changed(handle)
            self._free.append(handle)

    def live(self, handle: int) -> bool:
        return 0 < handle < len(self.values) and self.values[handle] is not _NONE

    def at(self, handle: int) -> Args:
        """What stands behind a handle in an SQE: a tuple, or the poison that says why there is none."""
        return self.values[handle] if handle < len(self.values) else _NONE

    def used_by(self, handle: int, image: int, slot: int) -> None:
        """Note that a decode cache holds this entry."""
        known = self.user_image[handle]
        if known == _NOBODY:
            self.user_image[handle] = image
            self.user_slot[handle] = slot
        elif known == _MANY:
            self._many[handle].add((image, slot))
        elif (known, self.user_slot[handle]) != (image, slot):
            self._many[handle] = {(known, self.user_slot[handle]), (image, slot)}
            self.user_image[handle] = _MANY

    def memory_freed(self, base: int, fault: MemoryFault) -> None:
        """The allocation at `base` ended: every entry that views it is poisoned, whoever holds it follows."""
        for handle in self._viewers(base):
            if self.live(handle) and base in self._bases[handle]:
                self.values[handle] = Poison(fault)
                self._changed(handle)

    def _viewers(self, base: int) -> list[int]:
        # The index by base is brought up to date only here: a launch pays nothing for the frees of others.
        indexed, at = self._indexed, 0
        while (at := indexed.find(0, at)) >= 0:
            indexed[at] = 1
            for viewed in self._bases[at]:
                known = self._by_base.setdefault(viewed, array("I"))
                known.append(at)
                if len(known) > 2 * len(self.values) + 64:  # handles come again: most of these are the same few
                    self._by_base[viewed] = array("I", [h for h in {*known} if viewed in self._bases[h]])
        return list(self._by_base.pop(base, ()))

    def _changed(self, handle: int) -> None:
        known = self.user_image[handle]
        if known == _NOBODY or self.on_change is None:
            return
        users = sorted(self._many[handle]) if known == _MANY else [(known, self.user_slot[handle])]
        gone = frozenset(user for user in users if not self.on_change(*user, handle))
        if gone:
            self._forget(handle, gone)

    def _forget(self, handle: int, gone: frozenset[SlotUser]) -> None:
        """These slots name another entry by now, or their image is no more: handles come again, ever new images use
        them."""
        if self.user_image[handle] == _MANY and (left := self._many[handle] - gone):
            self._many[handle] = left
            return
        self._many.pop(handle, None)
        self.user_image[handle] = _NOBODY
