"""A counted hold on one event register of the device. Not an Event: an Event may move from register to register."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.stream.npu import Npu
    from aclrt.stream.stream import Stream


@final
class Register:
    """An event id with the number of holders; the last one to drop it frees the id.

    Invariant: `id is None` exactly when `holders == 0`.
    """

    __slots__ = ("holders", "id", "npu", "time_ns")

    def __init__(self, npu: Npu, asked: str) -> None:
        self.npu = npu
        self.id: int | None = npu.alloc(IdKind.EVENT, asked)
        self.holders = 1
        self.time_ns: int | None = None  # when it was last recorded, kept after the id is gone

    def hold(self) -> Register:
        self.holders += 1
        return self

    def drop(self) -> None:
        self.holders -= 1
        if self.holders == 0 and self.id is not None:
            self.time_ns = self.npu.driver.event_time_ns(self.id)
            self.npu.driver.free(IdKind.EVENT, self.id)
            self.id = None

    def hold_until(self, stream: Stream) -> None:
        """Hold for the task just submitted on `stream`, until it is done."""
        self.hold()
        stream.own(self.drop)

    def recorded_ns(self) -> int | None:
        """Device time of the last record."""
        return self.npu.driver.event_time_ns(self.id) if self.id is not None else self.time_ns


@final
class Cell:
    """One 8-byte memory cell of a software-mode event, counted like a Register."""

    __slots__ = ("address", "holders", "npu")

    def __init__(self, npu: Npu, asked: str) -> None:
        self.npu = npu
        self.address = npu.malloc(8, asked)
        self.holders = 1

    def hold(self) -> Cell:
        self.holders += 1
        return self

    def drop(self) -> None:
        self.holders -= 1
        if self.holders == 0:
            self.npu.driver.free(self.address)

    def hold_until(self, stream: Stream) -> None:
        self.hold()
        stream.own(self.drop)


@final
class Mark:
    """One record of an event: where it was submitted, and the register or cell it sets.

    `stream` is None for a record that an executing graph publishes (an external record).
    """

    __slots__ = ("at", "position", "stream")

    def __init__(self, at: Register | Cell, stream: Stream | None, position: int) -> None:
        self.at = at
        self.stream = stream
        self.position = position

    @property
    def done(self) -> bool:
        """True once the device executed the record (known for records on a stream)."""
        return self.stream is not None and self.stream.completed >= self.position
