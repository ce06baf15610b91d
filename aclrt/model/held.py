"""A held stream: tasks kept at the host, in order, until the resources of a run among them are free.

Not a capture: everything here runs, only later; and not the decision, which is the gates' own (`model.execute`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, final

from aclrt.base.errors import AclError
from aclrt.task.task import KernelOp, Nop, Op
from hw.driver import IdKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.model.execute import Run
    from aclrt.stream.stream import Stream
    from aclrt.task.kernel import Kernel
    from hw.clock import Timer


class Shortage(Exception):
    """Resources are missing that running models will give back: told by a build to an execute, never to a caller."""

    def __init__(self, kind: IdKind) -> None:
        super().__init__(kind.name)
        self.kind = kind


@final
class HeldSink:
    """Takes the place of a stream's live sink while a gate is shut.

    Invariant: `stream.submitted` counts held tasks as if they were in the ring, so positions handed out stay true when
    the tasks are sent later in the same order.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.live = stream.live
        self.entries: deque[Op | HeldRun] = deque()
        self.sqes = 0  # of the operations in `entries`

    @classmethod
    def on(cls, stream: Stream) -> HeldSink:
        """The sink holding this stream, put in place if need be."""
        if isinstance(stream.live, cls):
            return stream.live
        held = stream.live = cls(stream)
        stream.choose_sink()
        stream.npu.short.append(held)
        return held

    def gate(self, run: HeldRun) -> None:
        """Everything after this point waits until the run has what it needs."""
        self.entries.append(run)

    def append(self, stream: Stream, op: Op) -> None:
        nsqe = op.sqes(stream.npu.spec.wait_sqes)
        self.entries.append(op)
        self.sqes += nsqe
        stream.submitted += nsqe

    def kernel(self, stream: Stream, kernel: Kernel, args: tuple[Any, ...], blocks: int) -> None:
        npu = stream.npu
        bound = kernel.bind(npu.driver, args)
        handle = npu.driver.args_put(bound.values, bound.bases)
        program = kernel.program(npu.driver)
        self.append(stream, KernelOp(kernel=kernel, args=args, blocks=blocks, program=program, handle=handle))
        stream.when(stream.submitted, lambda: npu.driver.args_drop(handle))

    def void(self, ops: tuple[Op, ...]) -> None:
        """What a run would have done is not done: its operations become NOPs of the same place."""
        for index, entry in enumerate(self.entries):
            if any(entry is op for op in ops):
                self.entries[index] = Nop()

    def drop(self, error: AclError) -> None:
        """The stream is being aborted: forget everything held; the runs among it end with `error`.

        NOPs take the places, for the abort to drop like all that is queued: events recorded here and waits for this
        stream know their positions.
        """
        stream, sqes = self.stream, self.sqes
        self.entries.clear()
        self.sqes = 0
        stream.npu.short.remove(self)
        promised = stream.submitted
        stream.live = self.live
        stream.choose_sink()
        stream.submitted = promised - sqes
        stream.lose(stream.submitted, promised, error)
        for _ in range(sqes):
            self.live.append(stream, Nop())

    def explain(self) -> str:
        """What the stream is held by, in one line."""
        first = self.entries[0] if self.entries else None
        text = f"stream {self.stream.id} is held at the host, {len(self.entries)} entries"
        if isinstance(first, HeldRun) and first.missing is not None:
            text += f": {first.run} waits for {first.missing.name} resources, {self.stream.npu.usage(first.missing)}"
        return text

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
                self.sqes -= entry.sqes(stream.npu.spec.wait_sqes)
            elif not entry.open():
                stream.submitted = promised
                return False
            self.entries.popleft()
        stream.submitted = promised
        stream.live = self.live
        stream.choose_sink()
        return True


@final
class HeldRun:
    """A run kept at the host, with all that follows on its stream, until its resources are free (acl_semantics 7.4).

    It pins nothing while it waits: what the model holds may go to others and is taken anew when the gate opens. A run
    behind another held one is held too, whatever it needs, so that it cannot keep from that one what it waits for.
    """

    __slots__ = ("_expired", "_ops", "_prepare", "_timer", "missing", "run", "sink")

    def __init__(self, run: Run, ops: tuple[Op, ...], prepare: Callable[[], None], shortage: Shortage | None) -> None:
        npu = run.model.npu
        self.run = run
        self.sink = HeldSink.on(run.stream)
        self.sink.gate(self)
        self._ops = ops
        self._prepare = prepare
        self.missing = shortage.kind if shortage is not None else None  # what it was short of when it last asked
        self._expired = False
        self._timer: Timer | None = None
        if shortage is not None and shortage.kind is IdKind.NOTIFY:  # for SQs the runtime waits without limit
            clock = npu.driver.clock
            self._timer = clock.call_at(clock.now_ns() + npu.spec.recycle_wait_ms * 1_000_000, self._expire)

    def open(self) -> bool:
        """Ask for the resources again; True when the stream may go on, with the run or, if it cannot be, without."""
        try:
            self._prepare()
        except Shortage as shortage:
            self.missing = shortage.kind
            if not self._expired:
                return False
            self._give_up(_exhausted(self.run, shortage.kind))
        except AclError as error:
            self._give_up(error)
        else:
            self.run.pin()
        if self._timer is not None:
            self._timer.cancel()
        return True

    def _give_up(self, error: AclError) -> None:
        self.sink.void(self._ops)
        self.run.stream.failed(self.run.position, error)

    def _expire(self) -> None:
        self._expired = True
        self.run.model.npu.resources_freed()

    def __repr__(self) -> str:
        return f"<HeldRun {self.run!r}>"


def _exhausted(run: Run, kind: IdKind) -> AclError:
    """What the run ends with when nothing came free in time."""
    try:
        run.model.npu.exhausted(kind, str(run))
    except AclError as error:
        return error
