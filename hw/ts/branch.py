"""Where a model SQ goes other than on: conditions, switches, labels, activation of other SQs.

All of it is read from device memory when the task runs. Nothing here executes tasks; a branch only moves heads and
starts SQs.
"""

from __future__ import annotations

import operator
import struct
from typing import TYPE_CHECKING, Literal, final

from hw.chips import Compare, CondType, SqeKind, Status, SwitchType
from hw.ts.control import CONTROL, END, NEXT, PARK
from hw.ts.decoder import Step
from hw.ts.fault import TaskFault
from hw.ts.sq import IDLE, ModelSq, Sq

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hw.memory import Memory
    from hw.ts.machine import Machine

__all__ = ["HANDLERS", "pack_cond_table", "pack_label", "pack_label_list"]

_ENTRY = struct.Struct("<II")
"""Cond table entry: (index of the branch's first SQ id, in u32 words from the table's start; how many)."""

_LABEL = struct.Struct("<II")
"""A label cell: (SQ id, slot)."""


def pack_cond_table(branches: Sequence[Sequence[int]]) -> bytes:
    """The table of a COND: for each branch the ids of the SQs it starts (the head SQs of its sub model).

    One entry of two u32 a branch, then the SQ ids as u32.
    """
    at = 2 * len(branches)
    head, ids = b"", b""
    for branch in branches:
        head += _ENTRY.pack(at, len(branch))
        ids += struct.pack(f"<{len(branch)}I", *branch)
        at += len(branch)
    return head + ids


def pack_label(sq: int, slot: int) -> bytes:
    """The 8 bytes of a label cell: where LABEL_GOTO and LABEL_SWITCH land."""
    return _LABEL.pack(sq, slot)


def pack_label_list(addresses: Sequence[int]) -> bytes:
    """The list of a LABEL_SWITCH: the u64 addresses of its labels' cells."""
    return struct.pack(f"<{len(addresses)}Q", *addresses)


def start(m: Machine, sq: Sq, target_id: int, head: int = 0) -> ModelSq:
    """Start another SQ; ILLEGAL_PARAM when it is not bound or still runs (acl_semantics 10.6)."""
    target = m.models.sqs.get(target_id)
    if target is None:
        raise TaskFault(Status.ILLEGAL_PARAM, f"SQ {target_id} is not bound")
    if target.state is not IDLE:
        raise TaskFault(Status.ILLEGAL_PARAM, f"SQ {target_id} runs; only a finished SQ is started")
    m.models.activate(target, head)
    if isinstance(sq, ModelSq):
        target.starter, target.branch = sq.starter, sq.branch
    return target


def _needs_model(sq: Sq) -> None:
    """A user SQ has no slots to jump to and no run to end."""
    if not isinstance(sq, ModelSq):
        raise TaskFault(Status.ILLEGAL_PARAM, "branches need a model's SQ")


def stream_active(m: Machine, sq: Sq, step: Step) -> int:
    assert step.sqe is not None
    start(m, sq, step.sqe["sq"])
    return NEXT


_COMPARE: dict[int, Callable[[int, int], bool]] = {
    Compare.EQ: operator.eq,
    Compare.NE: operator.ne,
    Compare.GT: operator.gt,
    Compare.GE: operator.ge,
    Compare.LT: operator.lt,
    Compare.LE: operator.le,
}


def stream_switch(m: Machine, sq: Sq, step: Step) -> int:
    """True: the other SQ starts and this one's run is over. False: on with the next task."""
    assert step.sqe is not None
    f = step.sqe.fields
    _needs_model(sq)
    load = m.memory.load_i32 if f["dtype"] == SwitchType.INT32 else m.memory.load_i64
    if not _COMPARE[f["cond"]](load(f["left"]), load(f["right"])):
        return NEXT
    start(m, sq, f["true_sq"])
    return END


def jump(m: Machine, sq: Sq, address: int) -> int:
    """To the label whose cell is at `address`: in this SQ, or by starting the label's SQ there and ending this."""
    _needs_model(sq)
    target, slot = _LABEL.unpack(m.memory.read(address, _LABEL.size))
    if target == sq.id:
        return int(slot)
    start(m, sq, target, slot)
    return END


def label_goto(m: Machine, sq: Sq, step: Step) -> int:
    assert step.sqe is not None
    return jump(m, sq, step.sqe["address"])


def label_switch(m: Machine, sq: Sq, step: Step) -> int:
    """To the label of an index read unsigned; beyond the end is the last one (acl_semantics 10.9)."""
    assert step.sqe is not None
    f = step.sqe.fields
    if f["max"] == 0:
        raise TaskFault(Status.ILLEGAL_PARAM, "the label list is empty")
    index = min(m.memory.load_u32(f["index"]), f["max"] - 1)
    return jump(m, sq, m.memory.load_u64(f["list"] + 8 * index))


@final
class Window:
    """A few words of device memory that a branch looks at in every run: found once, gone when the memory is freed."""

    __slots__ = ("__weakref__", "data")

    def __init__(self, memory: Memory, address: int, nbytes: int, code: Literal["q", "I"]) -> None:
        self.data: memoryview | None = memory.bytes_view(address, nbytes).data.cast(code)
        extent = memory.extent(address)
        if extent is not None:
            memory.watch(extent[0], self)

    def memory_freed(self, base: int) -> None:
        """Called by the memory: the next look finds out the long way, as a fault of its task."""
        self.data = None


def _cell(m: Machine, step: Step) -> int:
    """The condition cell, signed."""
    window: Window | None = step.window
    if window is None or window.data is None:
        assert step.sqe is not None
        step.window = window = Window(m.memory, step.sqe["cell"], 8, "q")
    assert window.data is not None
    return int(window.data[0])


def condition(m: Machine, sq: Sq, step: Step) -> int:
    """Read the cell, start the branch it names; the notify wait behind waits for its end (acl_semantics 9.3)."""
    _needs_model(sq)
    assert isinstance(sq, ModelSq)
    assert step.sqe is not None
    f = step.sqe.fields
    value, size, ctype = _cell(m, step), f["size"], f["ctype"]
    if ctype == CondType.SWITCH:
        branch = value if 0 <= value < size else -1
    elif value != 0:
        branch = 0
    else:
        branch = 1 if ctype == CondType.IF and size > 1 else -1
    if branch < 0 or branch >= size:
        return _past_condition(sq, step)
    sqs = m.models.sqs
    try:
        targets = [sqs[id] for id in _branch(m, step, f["table"], branch)]
    except KeyError as exc:
        raise TaskFault(Status.ILLEGAL_PARAM, f"branch {branch}: SQ {exc} of the sub model is not bound") from None
    for target in targets:
        if target.state is not IDLE:
            # The branch of the turn before has recorded its end-graph notify and is at its very last slots.
            sq.park(step, None)
            sq.what = ("branch", branch)
            m.poll_for(sq, lambda: all(target.state is IDLE for target in targets))
            return PARK
    turn = sq.turns[step.slot] = sq.turns.get(step.slot, -1) + 1
    for target in targets:
        m.models.activate(target, 0)
        target.starter, target.branch = sq, (branch, turn)
    return NEXT


def _branch(m: Machine, step: Step, table: int, branch: int) -> tuple[int, ...]:
    """The SQ ids of a branch. They are kept with the bytes that said so, and those are looked at in every run."""
    kept = step.parsed
    if kept is not None and kept[0] == branch:
        _, entry, ids, raw, found = kept
        if entry.data is not None and ids.data is not None and bytes(entry.data) + bytes(ids.data) == raw:
            known: tuple[int, ...] = found
            return known
    entry = Window(m.memory, table + _ENTRY.size * branch, _ENTRY.size, "I")
    assert entry.data is not None
    first, count = entry.data
    ids = Window(m.memory, table + 4 * first, 4 * count, "I") if count else entry
    assert ids.data is not None
    found = tuple(ids.data) if count else ()
    step.parsed = (branch, entry, ids, bytes(entry.data) + bytes(ids.data), found)
    return found


def _past_condition(sq: ModelSq, step: Step) -> int:
    """The slot behind the condition's notify wait and jump back."""
    assert step.sqe is not None
    slot = step.slot + step.span
    followers = (SqeKind.NOTIFY_WAIT, SqeKind.JUMP_BACK)
    for kind in followers if step.sqe["ctype"] == CondType.WHILE else followers[:1]:
        cell = sq.image.cells[slot] if slot < len(sq.image.cells) else None
        if isinstance(cell, Step) and cell.kind is kind:
            slot += cell.span
    return slot


def jump_back(m: Machine, sq: Sq, step: Step) -> int:
    """The second look of a WHILE: non-zero goes back to the condition, which looks again."""
    assert step.sqe is not None
    if _cell(m, step) == 0:
        return NEXT
    return max(0, step.slot - step.sqe["back"])


HANDLERS = {
    **CONTROL,
    SqeKind.STREAM_ACTIVE: stream_active,
    SqeKind.STREAM_SWITCH: stream_switch,
    SqeKind.LABEL_GOTO: label_goto,
    SqeKind.LABEL_SWITCH: label_switch,
    SqeKind.COND: condition,
    SqeKind.JUMP_BACK: jump_back,
}
"""Every kind that is not simply called."""
