"""What may watch the task scheduler: the observer protocol, and the set of those attached.

An observer sees; it does not steer (that is the policy) and it cannot change what runs. With none attached the
scheduler runs loops that have no calls to make here.
"""

from __future__ import annotations

from typing import Any, Protocol, final

__all__ = ["Observer", "ObserverBase", "Observers"]


class Observer(Protocol):
    """Called by the TS, synchronously, at the point it names. `sqe` is the decoded SQE (kind and fields);
    `status` is a Status; `reason` is a tuple as in ``Wait.what``."""

    def task_start(self, sq: int, slot: int, sqe: Any) -> None: ...
    def task_end(self, sq: int, slot: int, sqe: Any, status: int) -> None: ...
    def parked(self, sq: int, reason: tuple[Any, ...]) -> None: ...
    def woken(self, sq: int) -> None: ...
    def model_start(self, model: int, sq: int) -> None: ...
    def model_end(self, model: int, status: int) -> None: ...


class ObserverBase:
    """An observer that looks at nothing; derive and override what is of interest."""

    def task_start(self, sq: int, slot: int, sqe: Any) -> None: ...
    def task_end(self, sq: int, slot: int, sqe: Any, status: int) -> None: ...
    def parked(self, sq: int, reason: tuple[Any, ...]) -> None: ...
    def woken(self, sq: int) -> None: ...
    def model_start(self, model: int, sq: int) -> None: ...
    def model_end(self, model: int, status: int) -> None: ...


@final
class Observers:
    """The attached observers, itself an observer that tells them all in the order they were attached."""

    __slots__ = ("_all",)

    def __init__(self) -> None:
        self._all: tuple[Observer, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._all)

    def __repr__(self) -> str:
        return f"<Observers {len(self._all)} attached>"

    def add(self, observer: Observer) -> None:
        self._all = (*self._all, observer)

    def remove(self, observer: Observer) -> None:
        """Detach; ValueError when it is not attached."""
        if observer not in self._all:
            raise ValueError(f"unobserve: {observer!r} is not attached; observe() it first")
        self._all = tuple(o for o in self._all if o is not observer)

    def task_start(self, sq: int, slot: int, sqe: Any) -> None:
        for o in self._all:
            o.task_start(sq, slot, sqe)

    def task_end(self, sq: int, slot: int, sqe: Any, status: int) -> None:
        for o in self._all:
            o.task_end(sq, slot, sqe, status)

    def parked(self, sq: int, reason: tuple[Any, ...]) -> None:
        for o in self._all:
            o.parked(sq, reason)

    def woken(self, sq: int) -> None:
        for o in self._all:
            o.woken(sq)

    def model_start(self, model: int, sq: int) -> None:
        for o in self._all:
            o.model_start(model, sq)

    def model_end(self, model: int, status: int) -> None:
        for o in self._all:
            o.model_end(model, status)
