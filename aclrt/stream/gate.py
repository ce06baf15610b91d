"""The gate at which one stream stands while a blocking host function runs. Not the call itself (`stream.callback`).

The calls of one stream never overlap, so one register serves them all (acl_semantics 1.10: an event of the stream).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.stream.npu import Npu


@final
class Gate:
    """An event register (v100) or a notify (v200), taken with the stream's first blocking call.

    Invariants: `id` is None once dropped; `call` numbers the call at which the stream stands, 0 when at none.
    """

    __slots__ = ("_calls", "call", "id", "kind", "npu")

    def __init__(self, npu: Npu) -> None:
        self.npu = npu
        self.kind = IdKind.EVENT if npu.spec.hostfunc_form == "event" else IdKind.NOTIFY
        self.id: int | None = npu.alloc(self.kind, "launch a host function")
        self.call = 0
        self._calls = 0

    def enter(self) -> int:
        """The stream got to a call; its number, for `leave`."""
        self._calls += 1
        self.call = self._calls
        return self.call

    def leave(self, call: int) -> bool:
        """The call is over: the stream goes on. False, and nothing, when it does not stand there any more (aborted)."""
        if call != self.call or self.id is None:
            return False
        self.call = 0
        driver = self.npu.driver
        driver.event_set(self.id) if self.kind is IdKind.EVENT else driver.notify_set(self.id)
        return True

    def clear(self) -> None:
        """What stood here was aborted: the next call starts with a clear register."""
        self.call = 0
        if self.id is not None:
            driver = self.npu.driver
            driver.event_clear(self.id) if self.kind is IdKind.EVENT else driver.notify_clear(self.id)

    def drop(self) -> None:
        if self.id is not None:
            self.npu.driver.free(self.kind, self.id)
            self.id = None

    def __repr__(self) -> str:
        state = "dropped" if self.id is None else f"at call {self.call}" if self.call else "open"
        return f"<Gate {self.kind.value} {self.id} {state}>"
