"""A Completion: a one-shot outcome with any number of independent waiters. Not a future: cancelling a wait ends that
wait alone, never the outcome and never another waiter.

Each `await` has a future of its own. One shared future would be cancelled for all by the first cancelled waiter;
`asyncio.shield` avoids that at twice the cost.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@final
class CompletionState(Enum):
    """PENDING -> DONE or FAILED, once."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


@final
class Completion:
    """Awaitable by several tasks, repeatedly; raises the failure, if that is the outcome. Belongs to one event loop.

    Invariants: `_waiters` and `_callbacks` are None unless PENDING; `error` is not None exactly when FAILED;
    `observed` is True once somebody was handed the outcome.
    """

    __slots__ = ("__weakref__", "_callbacks", "_error", "_state", "_waiters", "observed")

    def __init__(self) -> None:
        self._state = CompletionState.PENDING
        self._error: BaseException | None = None
        self._waiters: dict[asyncio.Future[BaseException | None], None] | None = None  # in order of arrival
        self._callbacks: list[Callable[[Completion], object]] | None = None
        self.observed = False

    # --- the outcome -----------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """True once there is an outcome."""
        return self._state is not CompletionState.PENDING

    @property
    def failed(self) -> bool:
        return self._state is CompletionState.FAILED

    @property
    def error(self) -> BaseException | None:
        """The failure, or None. Looking at it does not count as observing it."""
        return self._error

    def set(self) -> None:
        """Complete with success. A second outcome is a RuntimeError: it would be a fault of ours."""
        self._finish(CompletionState.DONE, None)

    def fail(self, error: BaseException) -> None:
        """Complete with a failure, raised at every wait."""
        self._finish(CompletionState.FAILED, error)

    def copy(self, other: Completion) -> None:
        """Take over the outcome of `other`, which has one; nothing happens if this has one already."""
        if self.done:
            return
        other.observed = True  # handed on: whoever waits for this one is told
        self._finish(other._state, other._error)

    def result(self) -> None:
        """Raise the failure, if that is the outcome. RuntimeError while pending."""
        if self._state is CompletionState.PENDING:
            raise RuntimeError("result of a Completion: it is pending; await it")
        self.observed = True
        if self._error is not None:
            # The traceback kept with the error would otherwise grow by a frame with each wait.
            raise self._error.with_traceback(None)

    def _finish(self, state: CompletionState, error: BaseException | None) -> None:
        if self._state is not CompletionState.PENDING:
            raise RuntimeError(f"complete a Completion: it is {self._state.value} already; it has one outcome")
        assert (error is not None) is (state is CompletionState.FAILED)
        self._state, self._error = state, error
        waiters, self._waiters = self._waiters, None
        callbacks, self._callbacks = self._callbacks, None
        if waiters:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        for callback in callbacks or ():
            self._call(callback)

    # --- those who wait --------------------------------------------------------------------------------------------

    @property
    def waiters(self) -> int:
        """How many waits are in progress."""
        return len(self._waiters) if self._waiters else 0

    def __await__(self) -> Generator[Any, None, None]:
        if self._state is CompletionState.PENDING:
            waiter: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
            if self._waiters is None:
                self._waiters = {}
            self._waiters[waiter] = None
            try:
                interruption = yield from waiter
            finally:
                if self._waiters is not None:
                    self._waiters.pop(waiter, None)
            if interruption is not None:
                raise interruption.with_traceback(None)
        self.result()

    def interrupt(self, error: BaseException) -> int:
        """End the waits in progress with `error` and return their number. Completes nothing: a later wait waits again.

        The error travels as the future's result: as its exception, a waiter cancelled in the same pass of the loop
        would leave a future whose exception nobody retrieved.
        """
        waiters, self._waiters = self._waiters, None
        ended = 0
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(error)
                ended += 1
        return ended

    def add_callback(self, fn: Callable[[Completion], object]) -> None:
        """Call `fn(self)` when the outcome is there, before any waiter wakes; at once if it is there already.

        Callbacks run in the order they were added. What one raises goes to the loop's exception handler: the others,
        and the device's completions behind this one, are not its affair.
        """
        if self._state is not CompletionState.PENDING:
            self._call(fn)
        elif self._callbacks is None:
            self._callbacks = [fn]
        else:
            self._callbacks.append(fn)

    def remove_callback(self, fn: Callable[[Completion], object]) -> int:
        """Take `fn` off the callbacks; returns how often it was there."""
        if not self._callbacks:
            return 0
        kept = [callback for callback in self._callbacks if callback != fn]
        removed = len(self._callbacks) - len(kept)
        self._callbacks = kept
        return removed

    def _call(self, fn: Callable[[Completion], object]) -> None:
        try:
            fn(self)
        except Exception as error:
            context = {"message": f"callback of {self!r} raised", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)

    def __repr__(self) -> str:
        if self._state is CompletionState.PENDING:
            return f"<Completion pending, {self.waiters} waiters>"
        return f"<Completion {self._state.value}{f': {self._error!r}' if self._error is not None else ''}>"
