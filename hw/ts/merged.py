"""A merged program: all SQs of a light model without branches as one list of calls, in an order its events allow.

Not a schedule of its own: it is one that round robin could have taken, found once on paper by following the waits and
records of the decoded images. A run of it parks nowhere; what cannot be merged runs SQ by SQ (`replay`).
"""

from __future__ import annotations

from collections import deque
from operator import length_hint
from typing import TYPE_CHECKING, Any, final

from hw.ts.fault import FAILURES
from hw.ts.program import OP_CONTROL, OP_RUN, OP_SLOW, PART_NS, SEGMENT_TASKS, entry_of, pass_event

if TYPE_CHECKING:
    from collections.abc import Generator

    from hw.engines.core import Pair
    from hw.ts.decoder import Cell
    from hw.ts.machine import Machine
    from hw.ts.model import Model
    from hw.ts.program import Image
    from hw.ts.sq import ModelSq

__all__ = ["Merged", "merge", "run_merged"]


@final
class Merged:
    """The program and where each call of it comes from.

    Invariants: `chunks` hold `size` calls each (the last one fewer) and `origins` beside them their (SQ, slot);
    `positions[image]` is the index of each slot's call, -1 for a wait or a private event, which the order answers;
    `valid` is False once a change to an image was more than another call in a slot of the same kind.
    """

    __slots__ = ("chunks", "lead", "origins", "positions", "size", "sqs", "valid")

    def __init__(self, sqs: list[ModelSq], calls: list[Pair], origins: list[tuple[ModelSq, int]], size: int) -> None:
        self.sqs = sqs
        self.size = size
        self.lead = sqs[0]
        self.valid = True
        cuts = range(0, len(calls), size)
        self.chunks = [calls[cut : cut + size] for cut in cuts]
        self.origins = [origins[cut : cut + size] for cut in cuts]
        self.positions: dict[Image, list[int]] = {sq.image: [-1] * sq.tail for sq in sqs}
        for at, (sq, slot) in enumerate(origins):
            self.positions[sq.image][slot] = at

    def __repr__(self) -> str:
        return f"<Merged {len(self.sqs)} SQs, {sum(map(len, self.chunks))} calls{'' if self.valid else ', outdated'}>"

    def patch(self, image: Image, slot: int, old: Cell | None, new: Cell) -> None:
        """A slot of one of the images changed: a plain call takes the place of one; anything else ends the program."""
        positions = self.positions[image]
        at = positions[slot] if slot < len(positions) else -1
        if (
            at < 0
            or not (isinstance(new, tuple) and isinstance(old, tuple))
            or _ordering(image, old)
            or _ordering(image, new)
        ):
            self.valid = False
        else:
            self.chunks[at // self.size][at % self.size] = new


def _ordering(image: Image, cell: Pair) -> bool:
    """Whether a call touches registers: another one in its place could ask for another order."""
    return cell[0] in image.decoder.on_loop


def merge(m: Machine, model: Model) -> Merged | None:
    """The merged program of a model whose SQs are all bound, or None: it has one SQ, branches, waits for something
    that the model itself does not record first, or segments that are not known to be light."""
    sqs = model.heads or []
    if model.unmergeable or len(sqs) < 2 or len(sqs) != len(model.sqs):
        return None
    longest = 1
    for sq in sqs:
        for op, segment, _ in sq.image.program(sq.tail):
            if op == OP_CONTROL:
                continue  # the order below says whether it can be
            if not segment.inline:
                return None  # not measured yet, or heavy: then its streams gain by running side by side
            longest = max(longest, segment.mean_ns)
    found = _order(m, model, sqs)
    if found is None:
        model.unmergeable = True
        return None
    merged = Merged(sqs, *found, size=max(1, min(SEGMENT_TASKS, PART_NS // longest)))
    for sq in sqs:
        sq.image.merged = merged
    return merged


def _order(m: Machine, model: Model, sqs: list[ModelSq]) -> tuple[list[Pair], list[tuple[ModelSq, int]]] | None:
    """Run the SQs on paper, round robin: each goes on until it waits for an event that is not recorded yet."""
    record, reset, notify = m.decoder.calls_that_order
    calls: list[Pair] = []
    origins: list[tuple[ModelSq, int]] = []
    recorded: set[Any] = set()
    waiting = deque((sq, 0) for sq in sqs)
    stuck = 0
    while waiting:
        sq, slot = waiting.popleft()
        first, cells = slot, sq.image.cells
        while slot < sq.tail:
            cell = cells[slot]
            entry = cell if isinstance(cell, tuple) else entry_of(cell) if cell is not None else None
            if entry is None:
                return None
            fn: Any = entry[0]
            values: Any = entry[1]
            if fn is pass_event:
                if values[0] not in recorded:
                    break
                slot += 1
                continue
            if fn is record or fn is reset:
                recorded.add(values[0]) if fn is record else recorded.discard(values[0])
                if values[0].private:
                    slot += 1  # the order has answered all who ask
                    continue
            elif fn is notify:
                if values[0] is not model.notify:
                    return None
            elif not isinstance(cell, tuple) or fn in m.decoder.on_loop:
                return None
            calls.append(entry)
            origins.append((sq, slot))
            slot += 1
        if slot < sq.tail:
            stuck = stuck + 1 if slot == first else 0
            if stuck > len(waiting):
                return None
            waiting.append((sq, slot))
        else:
            stuck = 0
    return calls, origins


def run_merged(m: Machine, lead: ModelSq) -> Generator[None, None, tuple[ModelSq, int, BaseException] | bool]:
    """One run, in the coroutine of the lead SQ. True: over. False: stopped, or gone on SQ by SQ: look at `head` again.
    A tuple: the task at that SQ's slot raised that."""
    merged, queue, serial = lead.merged, m.queue, lead.serial
    assert merged is not None
    lead.stale = False
    last = len(merged.chunks) - 1
    for number, chunk in enumerate(merged.chunks):
        calls = iter(chunk)
        try:
            for fn, values in calls:
                fn(*values)
        except FAILURES as failure:
            sq, slot = merged.origins[number][len(chunk) - length_hint(calls) - 1]
            return sq, slot, failure
        queue.budget -= len(chunk)
        if lead.stopping:
            return True
        if queue.budget > 0 or number == last or not queue.over():
            continue
        if queue.late:
            _measure_again(merged)
        lead.make_ready()
        yield
        if lead.serial != serial:
            return False
        if not merged.valid or m.careful:
            _split(m, merged, number + 1)
            return False
        lead.stale = False
    return True


def _measure_again(merged: Merged) -> None:
    """Calls were much heavier than they were thought: the next run goes SQ by SQ and looks at the clock."""
    merged.valid = False
    for sq in merged.sqs:
        steps = sq.image.steps or []
        for at, (op, segment, calls) in enumerate(steps):
            if op == OP_RUN:
                steps[at] = (OP_SLOW, segment, calls)
                segment.parts = []


def _split(m: Machine, merged: Merged, number: int) -> None:
    """Go on SQ by SQ behind `number` chunks: every SQ starts behind its last call that ran."""
    heads = dict.fromkeys(merged.sqs, 0)
    for origins in merged.origins[:number]:
        for sq, slot in origins:
            heads[sq] = slot + 1
    record, reset, _ = m.decoder.calls_that_order
    for call in (record, reset):
        for sq, head in heads.items():
            for cell in sq.image.cells[:head]:
                if isinstance(cell, tuple) and cell[0] is call and cell[1][0].private:
                    call(cell[1][0])  # what the order made unnecessary, the streams by themselves will look at
    for sq, head in heads.items():
        if sq is merged.lead:
            sq.merged, sq.head = None, head
        elif head < sq.tail:
            m.models.activate(sq, head)
