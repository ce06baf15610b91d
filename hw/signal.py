"""A signal: the one thing an SQ parks on, and the list of those parked there.

It is not a register (it holds no bit) and not a future (it carries no value and fires many times): whoever
is woken looks at the register again, because another sleeper may have taken what it wanted.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Signal", "Sleeper"]


class Sleeper(Protocol):
    """What can park: the SQ."""

    def wake(self) -> None: ...


class Signal:
    """The sleepers of one register, model or core pool, in the order they parked."""

    __slots__ = ("sleepers",)

    def __init__(self) -> None:
        self.sleepers: list[Sleeper] = []

    def fire(self) -> None:
        """Wake every sleeper, first come first served. The list is emptied first: a sleeper may park again."""
        sleepers = self.sleepers
        self.sleepers = []
        for sleeper in sleepers:
            sleeper.wake()

    def forget(self, sleeper: Sleeper) -> None:
        """Drop a sleeper that is stopped while parked; unknown ones are none of our business (already woken)."""
        if sleeper in self.sleepers:
            self.sleepers.remove(sleeper)
