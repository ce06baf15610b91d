"""Which ready SQ runs next: the choice of the task scheduler, as an object.

A policy is not an observer and holds no SQ: it is shown the ids of the ready SQs, oldest first, and names an
index. The same choices give the same run, so `taken` of one run is the script of the next.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Protocol, final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Policy", "RoundRobin", "Scripted", "SeededRandom"]


class Policy(Protocol):
    """`slice_tasks`: how many tasks an SQ runs before the choice is made again."""

    slice_tasks: int

    def choose(self, ready: Sequence[int]) -> int:
        """The index, in `ready`, of the SQ to run next. `ready` has at least one entry."""


@final
class RoundRobin:
    """The oldest ready SQ, always. The scheduler knows this class and does not ask it."""

    slice_tasks = 512

    def __repr__(self) -> str:
        return "RoundRobin()"

    def choose(self, ready: Sequence[int]) -> int:
        return 0


@final
class SeededRandom:
    """Any ready SQ, by a seed: one seed, one schedule."""

    def __init__(self, seed: int, *, slice_tasks: int = 1) -> None:
        self.seed = seed
        self.slice_tasks = slice_tasks
        self.taken: list[int] = []  # every choice made, as Scripted() takes them
        self._random = random.Random(seed)

    def __repr__(self) -> str:
        return f"SeededRandom({self.seed}, slice_tasks={self.slice_tasks})"

    def choose(self, ready: Sequence[int]) -> int:
        index = self._random.randrange(len(ready)) if len(ready) > 1 else 0
        self.taken.append(index)
        return index


@final
class Scripted:
    """The choices of a list, taken modulo the number ready; after its end, the oldest."""

    def __init__(self, choices: Iterable[int], *, slice_tasks: int = 1) -> None:
        self.choices = list(choices)
        self.slice_tasks = slice_tasks
        self.taken: list[int] = []

    def __repr__(self) -> str:
        return f"Scripted({len(self.taken)} of {len(self.choices)} choices made, slice_tasks={self.slice_tasks})"

    def choose(self, ready: Sequence[int]) -> int:
        step = len(self.taken)
        index = self.choices[step] % len(ready) if step < len(self.choices) else 0
        self.taken.append(index)
        return index
