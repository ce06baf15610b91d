"""The device error log: one record for each task that failed.

A record is not a completion: the CQE carries its index, the host reads it and drops it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, final

import msgspec

from hw.ts.sq import RUNNING

if TYPE_CHECKING:
    from hw.chips import Status
    from hw.ts.sq import Sq

__all__ = ["FAILURES", "INTERRUPTS", "FaultLog", "FaultRecord", "TaskFault", "closing", "cut_off"]


FAILURES = BaseException
"""What a task may raise and that task has failed: a kernel that raises CancelledError cancels nobody, one that raises
GeneratorExit closes nothing."""

INTERRUPTS = (KeyboardInterrupt, SystemExit)
"""Of these, what is not meant for the task alone: at the end of the pass it goes on to whoever runs the loop."""


def closing(sq: Sq, exc: BaseException) -> bool:
    """Whether an SQ's coroutine is being closed where it yielded, as against its task having raised GeneratorExit."""
    return isinstance(exc, GeneratorExit) and sq.state is not RUNNING


class TaskFault(Exception):
    """Raised inside the TS by a control SQE that fails: the status to report, and the exception behind it."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(why)
        self.status = status


class FaultRecord(msgspec.Struct, gc=False):
    """`exception` is what the kernel raised (None when a register or a time-out failed); `slot` is the slot in the
    image of a model SQ, or the position in a user SQ; `cond` is the path of (branch, iteration), outermost first."""

    exception: BaseException | None
    status: Status
    sq: int
    stream_id: int
    task_id: int
    slot: int
    program: str
    cond: list[tuple[int, int]]

    def __repr__(self) -> str:
        path = f" in branch {self.cond}" if self.cond else ""
        name = self.program or "task"
        return f"<Fault {self.status.name} of {name} at slot {self.slot} of SQ {self.sq}{path}: {self.exception!r}>"


def cut_off(exc: BaseException) -> None:
    """Let go of the TS's frames in the traceback of what a task raised; those of the kernel stay.

    An error is kept for long, and often in a cycle with its traceback. Our frames would keep what they have in hand
    until the cycle is found, among it iterators on a ring's bytes, on which the collector of CPython before 3.11.8 and
    3.12.2 crashes (gh-77894).
    """
    trace = exc.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("hw."):
        with suppress(RuntimeError):  # the frame that is handling the failure now
            trace.tb_frame.clear()
        trace = trace.tb_next
    exc.__traceback__ = trace


@final
class FaultLog:
    """Records by index, 0 .. ; an index is never used again."""

    def __init__(self) -> None:
        self._records: dict[int, FaultRecord] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._records)

    def add(self, record: FaultRecord) -> int:
        index = self._next
        self._next += 1
        self._records[index] = record
        return index

    def get(self, index: int) -> FaultRecord:
        """KeyError for an index that was dropped or never given out."""
        record = self._records.get(index)
        if record is None:
            raise KeyError(f"fault {index}: no such record; it was dropped, or never written")
        return record

    def drop(self, index: int) -> None:
        self._records.pop(index, None)
