"""The rings between driver and task scheduler: 64-byte SQEs down, 64-byte CQEs up.

They hold bytes and positions and nothing else: who reads them, and when, is the scheduler's and the driver's
business.
"""

from __future__ import annotations

import mmap
from collections import deque
from typing import TYPE_CHECKING, final

from hw.chips import CQE_BYTES, CQE_STRUCT, SQE_BYTES, Cqe, decode_cqe

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CqRing", "SqRing"]


@final
class SqRing:
    """The ring of one user SQ. Positions count slots since it was opened and only grow.

    Invariants: head <= tail <= head + depth; slot p of the ring is at byte (p % depth) * 64; the backlog (what found
    the ring full, host memory) is non-empty only while the ring is full or about to be refilled.
    """

    __slots__ = ("backlog", "buffer", "depth", "head", "tail")

    def __init__(self, depth: int) -> None:
        if depth < 1:
            raise ValueError(f"SQ ring of {depth} slots: a ring has at least 1")
        self.depth = depth
        # Anonymous pages: a ring is large, and most of it is never touched.
        self.buffer = memoryview(mmap.mmap(-1, depth * SQE_BYTES))
        self.head = 0
        self.tail = 0
        self.backlog: deque[bytes] = deque()

    def __repr__(self) -> str:
        return f"<SqRing head {self.head} tail {self.tail} of {self.depth}, {len(self.backlog)} behind>"

    @property
    def position(self) -> int:
        """The position after everything submitted, the backlog included."""
        return self.tail + len(self.backlog)

    def push(self, sqes: bytes) -> int:
        """Take the slots of one task or several; the position after them. What does not fit waits in the backlog."""
        tail = self.tail
        if len(sqes) == SQE_BYTES and not self.backlog and tail - self.head < self.depth:
            at = tail % self.depth * SQE_BYTES
            self.buffer[at : at + SQE_BYTES] = sqes
            self.tail = tail = tail + 1
            return tail
        if len(sqes) % SQE_BYTES or not sqes:
            raise ValueError(f"submit of {len(sqes)} bytes: a task is one or more slots of {SQE_BYTES} bytes")
        slots = len(sqes) // SQE_BYTES
        if not self.backlog and tail - self.head + slots <= self.depth:
            at, end = tail % self.depth * SQE_BYTES, len(self.buffer)
            if at + len(sqes) <= end:
                self.buffer[at : at + len(sqes)] = sqes
            else:
                self.buffer[at:end] = sqes[: end - at]
                self.buffer[: at + len(sqes) - end] = sqes[end - at :]
            self.tail = tail + slots
            return self.tail
        self.backlog.extend(sqes[at : at + SQE_BYTES] for at in range(0, len(sqes), SQE_BYTES))
        self.refill()
        return self.position

    def refill(self) -> bool:
        """Move what fits from the backlog into the ring; True if the tail moved."""
        backlog, depth = self.backlog, self.depth
        room = min(depth - (self.tail - self.head), len(backlog))
        for _ in range(room):
            at = self.tail % depth * SQE_BYTES
            self.buffer[at : at + SQE_BYTES] = backlog.popleft()
            self.tail += 1
        return room > 0

    def drop(self) -> None:
        """Forget everything queued: head and backlog go to the position after it."""
        self.tail += len(self.backlog)
        self.backlog.clear()
        self.head = self.tail


@final
class CqRing:
    """The completion ring of a device. It is drained after each pass of the scheduler; when it is full before that,
    the writer drains it first, so no completion is ever overwritten."""

    __slots__ = ("_buffer", "_depth", "_head", "_tail", "on_full")

    def __init__(self, depth: int = 1024) -> None:
        self._depth = depth
        self._buffer = bytearray(depth * CQE_BYTES)
        self._head = 0
        self._tail = 0
        self.on_full: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        return self._tail - self._head

    def __repr__(self) -> str:
        return f"<CqRing {len(self)} of {self._depth}>"

    def post(
        self, kind: int, status: int, sq: int, stream_id: int, task_id: int, position: int, fault: int, callback: int
    ) -> None:
        if self._tail - self._head >= self._depth:
            self.on_full()
        CQE_STRUCT.pack_into(
            self._buffer,
            self._tail % self._depth * CQE_BYTES,
            kind,
            status,
            sq,
            stream_id,
            task_id,
            position,
            fault,
            callback,
        )
        self._tail += 1

    def take(self, keep: Callable[[bytes], bool] | None) -> Cqe | None:
        """The oldest completion, off the ring; None when there is none. Those `keep` answers False to are lost."""
        while self._head != self._tail:
            at = self._head % self._depth * CQE_BYTES
            self._head += 1
            if keep is None or keep(bytes(self._buffer[at : at + CQE_BYTES])):
                return decode_cqe(self._buffer, at)
        return None
