"""A Stopwatch: how long something took, without the time for which the system had the thread off its core.

A busy machine makes every task look slow now and then; what a task costs does not change by that. Where the system
does not say when it took a thread off its core, time is what the clock on the wall says.
"""

from __future__ import annotations

from time import thread_time_ns
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Stopwatch"]


def _counter() -> Callable[[], int]:
    """How often the calling thread was taken off its core against its will; always 0 where that is not known."""
    try:
        from resource import RUSAGE_THREAD, getrusage
    except ImportError:
        return lambda: 0
    return lambda: getrusage(RUSAGE_THREAD).ru_nivcsw


taken_off = _counter()


@final
class Stopwatch:
    """Runs from `restart` on, in one thread. A restart costs a microsecond: for what is seldom or slow."""

    __slots__ = ("_cpu_ns", "_taken_off")

    def __init__(self) -> None:
        self.restart()

    def __repr__(self) -> str:
        return f"<Stopwatch {self.own(1 << 62)} ns>"

    def restart(self) -> None:
        self._taken_off, self._cpu_ns = taken_off(), thread_time_ns()

    def own(self, spent_ns: int) -> int:
        """What the thread had for itself of the `spent_ns` that have just gone by, no further back than the restart.

        At most that: if it was taken off its core, its time on it since the restart. Time asleep of its own will
        counts as long as it was not.
        """
        return spent_ns if taken_off() == self._taken_off else min(spent_ns, thread_time_ns() - self._cpu_ns)
