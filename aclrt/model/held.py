"""A held stream: tasks kept at the host, in order, until the resources of a run among them are free.

Not a capture: everything here runs, only later.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, final

from aclrt.task.task import KernelOp, Op

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.stream.stream import Stream
    from aclrt.task.kernel import Kernel


@final
class HeldSink:
    """Takes the place of a stream's live sink while a gate is shut.

    Invariant: `stream.submitted` counts held tasks as if they were in the ring, so positions handed out stay true when the
    tasks are sent later in the same order.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.live = stream.live
        self.entries: deque[Op | Callable[[], bool]] = deque()

    @classmethod
    def on(cls, stream: Stream) -> HeldSink:
        """The sink holding this stream, put in place if need be."""
        if isinstance(stream.live, cls):
            return stream.live
        held = stream.live = cls(stream)
        stream.choose_sink()
        stream.npu.short.append(held.resume)
        return held

    def gate(self, opens: Callable[[], bool]) -> None:
        """Everything after this point waits until `opens()` is True."""
        self.entries.append(opens)

    def append(self, stream: Stream, op: Op) -> None:
        self.entries.append(op)
        stream.submitted += op.sqes(stream.npu.spec.wait_sqes)

    def kernel(self, stream: Stream, kernel: Kernel, args: tuple[Any, ...], blocks: int) -> None:
        npu = stream.npu
        bound = kernel.bind(npu.driver, args)
        handle = npu.driver.args_put(bound.values, bound.bases)
        self.append(stream, KernelOp(kernel=kernel, args=args, blocks=blocks, program=kernel.program(npu.driver), handle=handle))

    def resume(self) -> bool:
        """Send what can be sent. True when nothing is held any more and the live sink is back."""
        stream = self.stream
        if not stream.alive:
            return True
        promised = stream.submitted
        while self.entries:
            entry = self.entries[0]
            if isinstance(entry, Op):
                self.live.append(stream, entry)
            elif not entry():
                stream.submitted = promised
                return False
            self.entries.popleft()
        stream.submitted = promised
        stream.live = self.live
        stream.choose_sink()
        return True

