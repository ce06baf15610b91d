"""The event and notify registers: one bit each, a time stamp or a count beside it, and who waits for it.

They are not the host library's events: no flags, no capture, no "has record"; the TS and the driver write
them, SQs park on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from hw.signal import Signal

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.clock import Clock

__all__ = ["Event", "EventFile", "Notify", "NotifyFile"]


@final
class Event(Signal):
    """An event register: set by a record, cleared by a reset; a passing wait leaves it set.

    A `private` one is used by the streams of one model and nobody else; reading the clock costs more than all else a
    record does, so a private record keeps no stamp.
    """

    __slots__ = ("id", "private", "recorded", "stamp")

    def __init__(self, id: int) -> None:
        super().__init__()
        self.id = id
        self.recorded = False
        self.private = False
        self.stamp = 0  # Clock.stamp of the last record; kept by a reset

    def __repr__(self) -> str:
        return f"<Event {self.id} {'recorded' if self.recorded else 'clear'}, {len(self.sleepers)} waiting>"


@final
class Notify(Signal):
    """A notify register: a bit that a record sets and one passing wait takes.

    `value` counts the records since the register was last taken into use (the end-graph counter of seed
    model-module). `error` is what a failed model run leaves for the wait on its end-graph notify: (status,
    fault index); the passing wait takes it with the bit.
    """

    __slots__ = ("error", "id", "on_taken", "set", "value")

    def __init__(self, id: int) -> None:
        super().__init__()
        self.id = id
        self.set = False
        self.value = 0
        self.error: tuple[int, int] | None = None  # not None only while `set`
        self.on_taken: Callable[[], None] | None = None  # a root model's end-graph: its wait is over

    def __repr__(self) -> str:
        return f"<Notify {self.id} {'set' if self.set else 'clear'}, value {self.value}, {len(self.sleepers)} waiting>"


@final
class EventFile:
    """All event registers of a chip, made on first use. An id keeps its register for the chip's life, so that a
    decode cache may hold the register itself."""

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit = limit
        self._clock = clock
        self._stamp = clock.stamp
        self._cells: dict[int, Event] = {}

    def at(self, id: int) -> Event:
        """The register of an id; ValueError when the chip has no such register."""
        cell = self._cells.get(id)
        if cell is None:
            if not 0 <= id < self._limit:
                raise ValueError(f"event register {id}: this chip has {self._limit}; use an id that alloc gave out")
            cell = self._cells[id] = Event(id)
        return cell

    def renew(self, id: int) -> None:
        """An id was given out again: the register starts clear."""
        cell = self._cells.get(id)
        if cell is not None:
            cell.recorded = False
            cell.private = False
            cell.stamp = 0

    def time_ns(self, event: Event) -> int:
        """Device time of the last record; 0 if there was none."""
        return event.stamp - self._clock.origin_ns if event.stamp else 0

    def record(self, event: Event) -> None:
        event.recorded = True
        if not event.private:
            event.stamp = self._stamp()
        if event.sleepers:
            event.fire()

    def reset(self, event: Event) -> None:
        event.recorded = False


@final
class NotifyFile:
    """All notify registers of a chip, made on first use; an id keeps its register for the chip's life."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._cells: dict[int, Notify] = {}

    def at(self, id: int) -> Notify:
        """The register of an id; ValueError when the chip has no such register."""
        cell = self._cells.get(id)
        if cell is None:
            if not 0 <= id < self._limit:
                raise ValueError(f"notify register {id}: this chip has {self._limit}; use an id that alloc gave out")
            cell = self._cells[id] = Notify(id)
        return cell

    def renew(self, id: int) -> None:
        """An id was given out again: the register starts clear, its counter at 0."""
        cell = self._cells.get(id)
        if cell is not None:
            cell.set = False
            cell.value = 0
            cell.error = None
            cell.on_taken = None

    def record(self, notify: Notify) -> None:
        notify.set = True
        notify.value += 1
        if notify.sleepers:
            notify.fire()

    def fail(self, notify: Notify, status: int, fault: int) -> None:
        """Set the register with a failure behind it: the wait it releases ends with `status`."""
        notify.error = (status, fault)
        self.record(notify)
