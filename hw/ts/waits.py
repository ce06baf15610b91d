"""Who waits for what: a plain listing of parked SQs. It explains nothing; the host turns it into words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from hw.ts.control import describe
from hw.ts.sq import PARKED, ModelSq

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hw.ts.machine import Machine
    from hw.ts.sq import Sq

__all__ = ["SqStatus", "Wait", "status", "waits"]


class Wait(msgspec.Struct, frozen=True):
    """One parked SQ. `slot` is a position of a user SQ or a slot of a model SQ; `kind` names the SQE kind; `what` is
    ("event", id), ("notify", id), ("model", id), ("value", address, current or None, wanted), ("branch", n),
    ("core", name), ("clock", until_ns) or ("worker",). `root` is the model it runs for, -1 for a user SQ."""

    sq: int
    stream_id: int
    slot: int
    kind: str
    what: tuple[Any, ...]
    root: int = -1


class SqStatus(msgspec.Struct, frozen=True):
    """Where an SQ stands. `state` is IDLE, READY, RUNNING, PARKED or CLOSED; `what` as in Wait, () unless PARKED."""

    state: str
    head: int
    tail: int
    what: tuple[Any, ...]


def waits(m: Machine, sqs: Iterable[Sq]) -> list[Wait]:
    found = []
    for sq in sqs:
        if sq.state is PARKED:
            kind, what = describe(m, sq)
            root = sq.root.id if isinstance(sq, ModelSq) and sq.root is not None else -1
            found.append(Wait(sq.id, sq.stream_id, sq.head, kind, what, root))
    return found


def status(m: Machine, id: int) -> SqStatus:
    """Of a user or model SQ. KeyError when there is none."""
    sq = m.rings.get(id) or m.models.sqs.get(id)
    if sq is None:
        raise KeyError(f"SQ {id}: no such SQ; open or bind it first")
    return SqStatus(sq.state.name, sq.head, sq.tail, describe(m, sq)[1] if sq.state is PARKED else ())
