"""The scheduler of the null engine: there is nothing to schedule, so a doorbell is a completion.

It stands behind the same driver as `scheduler` and keeps the same books (rings, bindings, models); no SQ ever runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from hw.chips import Cqe, CqeKind
from hw.engines.null import consume
from hw.ts.machine import Machine
from hw.ts.sq import CLOSED, ModelSq, RingSq, RunQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.chips import Chip
    from hw.clock import Clock
    from hw.memory import Memory
    from hw.observe import Observer
    from hw.ring import SqRing
    from hw.ts.program import Image
    from hw.ts.sq import Sq

__all__ = ["NullScheduler"]


@final
class NullScheduler:
    """Completes everything, does nothing."""

    def __init__(self, chip: Chip, memory: Memory, clock: Clock) -> None:
        self.queue = RunQueue(lambda: None)
        self.machine = Machine(chip, memory, clock, self.queue)
        self.listener: Callable[[Cqe], None] | None = None
        self.cq_filter: Callable[[bytes], bool] | None = None
        self.on_stuck: Callable[[], None] | None = None

    def __repr__(self) -> str:
        return f"<NullScheduler {len(self.machine.rings)} rings>"

    def run_pass(self) -> None:
        """Nothing is ever ready."""

    def nudge(self) -> None:
        """Time never jumps."""

    def drain(self) -> None:
        while (cqe := self.machine.cq.take(self.cq_filter)) is not None:
            if self.listener is not None:
                self.listener(cqe)

    def open_ring(self, id: int, stream_id: int, ring: SqRing) -> None:
        ident = self.machine.chip.ident(stream_id, 0)
        self.machine.rings[id] = RingSq(id, stream_id, self.queue, ring, ident)

    def doorbell(self, sq: RingSq) -> None:
        machine = self.machine
        sq.head = sq.reported = consume(machine.chip, machine.args, sq.ring)
        machine.cq.post(CqeKind.HEAD, 0, sq.id, sq.stream_id, 0, sq.head, -1, -1)
        self.drain()

    def abort_ring(self, sq: RingSq) -> None:
        """Nothing is ever queued."""

    def close_ring(self, sq: RingSq) -> None:
        sq.state = CLOSED
        del self.machine.rings[sq.id]

    def bind(self, id: int, stream_id: int, image: Image, tail: int) -> None:
        sq = ModelSq(id, stream_id, self.queue, image, tail)
        image.sqs.append(sq)
        self.machine.models.bind(sq)

    def unbind(self, id: int) -> None:
        sq = self.machine.models.unbind(id)
        sq.image.sqs.remove(sq)
        sq.state = CLOSED

    def abort_model(self, model_id: int) -> None:
        """No model ever runs."""

    def observe(self, observer: Observer, *, on: bool) -> None:
        observers = self.machine.observers
        (observers.add if on else observers.remove)(observer)

    def all_sqs(self) -> list[Sq]:
        return [*self.machine.rings.values(), *self.machine.models.sqs.values()]

    def waiting(self) -> int:
        return 0

    def assist(self) -> None:
        """Nothing is ever left to run."""

    def idle(self) -> bool:
        return True

    def resting(self) -> bool:
        return True

    def close(self) -> None:
        for sq in self.all_sqs():
            sq.state = CLOSED
