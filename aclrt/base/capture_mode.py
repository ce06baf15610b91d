"""The rule for unsafe calls, and the counts of open captures it reads. Knows no stream and no thread.

Source: acl_semantics 4.5 (recorded: enum-mode3, enum-mode5).
"""

from __future__ import annotations

from typing import final

from aclrt.base.enums import CaptureMode


@final
class ModeCounts:
    """How many captures are open in each mode, for one context or one host thread.

    Invariant: `strictest` is the smallest mode with a count above 0, None without any (the runtime's MAX).
    """

    __slots__ = ("_counts", "strictest")

    def __init__(self) -> None:
        self._counts = [0, 0, 0]
        self.strictest: CaptureMode | None = None

    def enter(self, mode: CaptureMode) -> None:
        """A capture of `mode` began."""
        self._counts[mode] += 1
        self._settle()

    def exit(self, mode: CaptureMode) -> None:
        """A capture of `mode` ended. No effect where none is counted: a capture may be ended elsewhere."""
        if self._counts[mode]:
            self._counts[mode] -= 1
            self._settle()

    def count(self, mode: CaptureMode) -> int:
        """How many captures are open in `mode`."""
        return self._counts[mode]

    def _settle(self) -> None:
        self.strictest = next((mode for mode in CaptureMode if self._counts[mode]), None)

    def __repr__(self) -> str:
        held = ", ".join(f"{mode.name} {self._counts[mode]}" for mode in CaptureMode if self._counts[mode])
        return f"<ModeCounts {held or 'none'}>"


def unsafe_allowed(context: CaptureMode | None, thread: CaptureMode | None, exchange: CaptureMode) -> bool:
    """Whether an unsafe call may run now.

    `context` is the strictest mode of the captures open in the caller's Context, `thread` of those its host thread
    began (None: none), `exchange` the thread's exchange mode.
    """
    if context is None or exchange is CaptureMode.RELAXED:
        return True
    if exchange is CaptureMode.GLOBAL:
        return context is not CaptureMode.GLOBAL and thread is not CaptureMode.THREAD_LOCAL
    return thread is None or thread is CaptureMode.RELAXED
