"""Device time: an integer count of nanoseconds and the timers armed on it.

A clock is not a scheduler: the virtual one moves only when the task scheduler, having found nothing to run,
tells it to jump. On the wall clock timers are the event loop's own.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from itertools import count
from typing import TYPE_CHECKING, Protocol, final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Clock", "Timer", "VirtualClock", "WallClock"]


@final
class Timer:
    """One armed call. ``cancel()`` any number of times; after it fired, cancelling does nothing."""

    __slots__ = ("_call", "_handle", "device", "when_ns")

    def __init__(self, when_ns: int, call: Callable[[], None], *, device: bool = False) -> None:
        self.when_ns = when_ns
        self.device = device
        self._call: Callable[[], None] | None = call
        self._handle: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Timer at {self.when_ns} ns {'done' if self._call is None else 'armed'}>"

    @property
    def armed(self) -> bool:
        return self._call is not None

    def cancel(self) -> None:
        self._call = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def bind(self, handle: asyncio.TimerHandle) -> None:
        """The loop's handle behind a wall-clock timer."""
        self._handle = handle

    def fire(self) -> None:
        call, self._call, self._handle = self._call, None, None
        if call is not None:
            call()


class Clock(Protocol):
    """Device time as the rest of the device sees it."""

    virtual: bool
    origin_ns: int
    stamp: Callable[[], int]  # device time + origin_ns, as cheaply as it can be had

    def now_ns(self) -> int:
        """Device time in ns since the chip was opened."""

    def call_at(self, when_ns: int, call: Callable[[], None], *, device: bool = False) -> Timer:
        """Call `call` once device time has reached `when_ns` (now, if it has). `device`: armed by the device itself,
        so that its firing tells the host nothing."""


@final
class WallClock:
    """Time that passes by itself. Timers need a running loop, which is where they fire."""

    virtual = False

    def __init__(self) -> None:
        self.stamp: Callable[[], int] = time.perf_counter_ns
        self.origin_ns = time.perf_counter_ns()

    def __repr__(self) -> str:
        return f"<WallClock {self.now_ns()} ns>"

    def now_ns(self) -> int:
        return time.perf_counter_ns() - self.origin_ns

    def call_at(self, when_ns: int, call: Callable[[], None], *, device: bool = False) -> Timer:
        timer = Timer(when_ns, call)
        delay = max(0, when_ns - self.now_ns()) / 1e9
        timer.bind(asyncio.get_running_loop().call_later(delay, timer.fire))
        return timer


@final
class VirtualClock:
    """Time that stands still until ``jump``. Two timers of one instant fire in the order they were armed."""

    virtual = True

    def __init__(self, on_arm: Callable[[], None] | None = None) -> None:
        self._now = 0
        self.origin_ns = 0
        self.stamp: Callable[[], int] = self.now_ns
        self._heap: list[tuple[int, int, Timer]] = []
        self._serial = count()
        # Called when the host arms a timer, so that a device at rest looks at its deadlines again.
        self.on_arm = on_arm
        self.told_host = False  # the last jump fired a timer that the host armed

    def __repr__(self) -> str:
        return f"<VirtualClock {self._now} ns, next {self.next_ns()}>"

    def now_ns(self) -> int:
        return self._now

    def call_at(self, when_ns: int, call: Callable[[], None], *, device: bool = False) -> Timer:
        timer = Timer(max(when_ns, self._now), call, device=device)
        heapq.heappush(self._heap, (timer.when_ns, next(self._serial), timer))
        if self.on_arm is not None and not device:
            self.on_arm()
        return timer

    def next_ns(self) -> int | None:
        """The next deadline, or None. Cancelled timers are swept here, so they never hold time back."""
        heap = self._heap
        while heap and not heap[0][2].armed:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def jump(self) -> bool:
        """Move to the next deadline and fire everything due then; False when there is none."""
        when = self.next_ns()
        if when is None:
            return False
        self._now = when
        self.told_host = False
        heap = self._heap
        while heap and heap[0][0] <= when:
            timer = heapq.heappop(heap)[2]
            self.told_host |= timer.armed and not timer.device
            timer.fire()
        return True
