"""The tasks that are not simply called: waits, host functions, model execution, updates of SQE memory.

Each is one function that looks at the world and answers NEXT, PARK or END; it is called again, from the start, when
a parked SQ is woken. Branches are next door, in `branch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hw.chips import SQE_BYTES, Cqe, CqeKind, SqeKind, Status, WaitFlag
from hw.registers import Event, Notify
from hw.ts.fault import TaskFault
from hw.ts.merged import merge
from hw.ts.sq import CLOSED, ModelSq, RingSq, Sq

if TYPE_CHECKING:
    from collections.abc import Callable

    from hw.ts.decoder import Step
    from hw.ts.machine import Machine

__all__ = ["CONTROL", "END", "NEXT", "PARK", "Handler", "RunFailed", "describe", "maintain"]

NEXT, PARK, END = -1, -2, -3
"""What a handler answers; a number from 0 up is the slot to go on at."""

_M64 = (1 << 64) - 1


class RunFailed(TaskFault):
    """The end-graph wait of a run that failed: its status and the fault of the task that failed it."""

    def __init__(self, status: Status, fault: int) -> None:
        super().__init__(status, f"the model run ended with {status.name}")
        self.fault = fault


def bad(m: Machine, sq: Sq, step: Step) -> int:
    """Bytes that are no SQE, or a kind that a stream does not carry."""
    raise TaskFault(Status.SQE_ERROR, step.why or f"{step.kind.name} is not for this SQ")


def call(m: Machine, sq: Sq, step: Step) -> int:
    """A plain task that posts a TASK CQE when it succeeds."""
    assert step.pair is not None
    fn, values = step.pair
    fn(*values)
    return NEXT


def timed_out(sq: Sq) -> bool:
    """Whether the wait ran out of time; that ends the wait."""
    if sq.timed_out:
        sq.settle()
        return True
    return False


def event_wait(m: Machine, sq: Sq, step: Step) -> int:
    event = step.cell
    assert isinstance(event, Event)
    if event.recorded:
        if sq.timer is not None or sq.timed_out:
            sq.settle()
        return NEXT
    if timed_out(sq):
        raise TaskFault(Status.TASK_TIMEOUT, f"event {event.id} was not recorded in time")
    sq.park(step, event)
    if step.timeout_ns:
        sq.arm(m.clock, step.timeout_ns)
    return PARK


def notify_wait(m: Machine, sq: Sq, step: Step) -> int:
    notify = step.cell
    assert isinstance(notify, Notify)
    if notify.set:
        if sq.timer is not None or sq.timed_out:
            sq.settle()
        return take(notify, step)
    if timed_out(sq):
        if notify.on_taken is not None:
            notify.on_taken()
        raise TaskFault(Status.TASK_TIMEOUT, f"notify {notify.id} was not recorded in time")
    sq.park(step, notify)
    if step.timeout_ns:
        sq.arm(m.clock, step.timeout_ns)
    return PARK


def take(notify: Notify, step: Step) -> int:
    """Pass a set notify: the bit goes, or in count mode one of the counted records does (v200)."""
    if step.count:
        notify.value -= 1
        notify.set = notify.value > 0
    elif not step.keep:
        notify.set = False
    if notify.on_taken is not None:
        notify.on_taken()
    if notify.error is not None:
        (status, fault), notify.error = notify.error, None
        raise RunFailed(Status(status), fault)
    return NEXT


def value_test(m: Machine, step: Step) -> Callable[[], bool]:
    """The comparison of a WAIT_VALUE (acl_semantics 1.9): GEQ is signed 64-bit (a single byte is zero-extended), NOR
    is 'not all bits of cell | value are set'."""
    assert step.sqe is not None
    f = step.sqe.fields
    address, value, flag, wide = f["address"], f["value"], f["flag"], f["width"] == 8
    load = m.memory.load_u64 if wide else m.memory.load_u8
    ones = _M64 if wide else 0xFF
    sign = (ones >> 1) + 1 if wide else 0
    value &= ones
    if flag == WaitFlag.EQ:
        return lambda: load(address) == value
    if flag == WaitFlag.AND:
        return lambda: load(address) & value != 0
    if flag == WaitFlag.NOR:
        return lambda: load(address) | value != ones
    return lambda: load(address) ^ sign >= value ^ sign


def external_test(m: Machine, step: Step) -> Callable[[], bool]:
    """EXT_WAIT: table entry and cell are read anew at each poll; entry 0 passes (acl_semantics 5.7)."""
    assert step.sqe is not None
    table, memory = step.sqe["table"], m.memory

    def test() -> bool:
        address = memory.load_u64(table)
        return address == 0 or memory.load_u8(address) >= 1

    return test


def value_wait(m: Machine, sq: Sq, step: Step) -> int:
    if step.parsed is None:
        step.parsed = (external_test if step.kind is SqeKind.EXT_WAIT else value_test)(m, step)
    test: Callable[[], bool] = step.parsed
    if test():
        return NEXT
    sq.park(step, None)
    m.poll_for(sq, test)
    return PARK


def host_function(m: Machine, sq: Sq, step: Step) -> int:
    assert step.sqe is not None
    if sq.report is not None:
        sq.report()  # the host learns of what came before the callback first
    elif isinstance(sq, ModelSq) and sq.root is not None:
        last, sq.root.last = sq.root.last, None
        if last is not None and last.exe.report is not None and last.exe.state is not CLOSED:
            last.exe.report()  # of the end of the run before, too: the host cleans up behind that
    m.post_task(CqeKind.CALLBACK, sq, step.sqe.task_id, position_after(sq, step), step.sqe["callback"])
    return NEXT


def position_after(sq: Sq, step: Step) -> int:
    """What a CQE says of a task's place: for a user SQ what submit returned, for a model SQ the slot."""
    return sq.head + step.span if isinstance(sq, RingSq) else step.slot


def model_execute(m: Machine, sq: Sq, step: Step) -> int:
    """Start a model, or sleep on it while it or one of its SQs is busy: executions never overlap."""
    assert step.sqe is not None
    model = m.models.models.get(step.sqe["model"])
    if model is None or not model.loaded or model.root is not model:
        raise TaskFault(Status.ILLEGAL_PARAM, f"model {step.sqe['model']} is not a loaded root model")
    if model.busy:
        sq.park(step, model)
        return PARK
    if not m.models.ready(model):
        raise TaskFault(Status.ILLEGAL_PARAM, f"model {model.id} has SQs that are not bound")
    if model.merged is None or not model.merged.valid:
        model.merged = merge(m, model) if not m.careful else None
        if model.merged is not None:
            m.queue.open_slice()  # the look for an order is not time that the tasks took
    m.models.start(model, sq)
    return NEXT


def sqe_update(m: Machine, sq: Sq, step: Step) -> int:
    """Patch the SQE memory of a model: the bytes go through the image, so the decode cache follows."""
    assert step.sqe is not None
    f = step.sqe.fields
    image = m.images.find(f["image"])
    if image is None:
        raise TaskFault(Status.ILLEGAL_PARAM, f"image {f['image']} does not exist")
    try:
        image.write(f["slot"], m.memory.read(f["source"], f["n"] * SQE_BYTES))
    except ValueError as exc:
        raise TaskFault(Status.ILLEGAL_PARAM, str(exc)) from None
    return NEXT


def maintain(m: Machine, sqe_bytes: bytes) -> Cqe:
    """Run one model maintenance SQE of the control SQ; the CQE that answers it.

    ILLEGAL_PARAM: the model or SQ is unknown, or the model runs. SQE_ERROR: not a maintenance SQE.
    """
    sqe = m.chip.decode(sqe_bytes)
    models, f, good = m.models, sqe.fields, True
    if sqe.kind is SqeKind.MODEL_ADD:
        models.add(f["model"], f["root"], f["sq"], head=bool(f["head"]))
    elif sqe.kind is SqeKind.MODEL_DEL:
        good = models.remove(f["model"], f["sq"])
    elif sqe.kind is SqeKind.MODEL_LOAD:
        models.load(f["model"], m.notifies.at(f["notify"]))
    elif sqe.kind is SqeKind.MODEL_DESTROY:
        good = models.destroy(f["model"])
    else:
        return Cqe(CqeKind.CONTROL, task_id=sqe.task_id, status=Status.SQE_ERROR)
    return Cqe(CqeKind.CONTROL, task_id=sqe.task_id, status=Status.OK if good else Status.ILLEGAL_PARAM)


Handler = Any  # Callable[[Machine, Sq, Step], int]; the branch handlers ask for a ModelSq

CONTROL: dict[SqeKind, Handler] = {
    SqeKind.EVENT_WAIT: event_wait,
    SqeKind.NOTIFY_WAIT: notify_wait,
    SqeKind.WAIT_VALUE: value_wait,
    SqeKind.EXT_WAIT: value_wait,
    SqeKind.HOSTFUNC: host_function,
    SqeKind.MODEL_EXECUTE: model_execute,
    SqeKind.SQE_UPDATE: sqe_update,
}


def describe(m: Machine, sq: Sq) -> tuple[str, tuple[Any, ...]]:
    """(kind, what) of a parked SQ, as ``Wait`` lists it."""
    step = sq.step
    if sq.busy or step is None or step.sqe is None:
        return ("TASK", sq.what or ("worker",))
    f, kind = step.sqe.fields, step.kind
    if kind is SqeKind.EVENT_WAIT:
        return (kind.name, ("event", f["event_id"]))
    if kind is SqeKind.NOTIFY_WAIT:
        return (kind.name, ("notify", f["notify_id"]))
    if kind is SqeKind.MODEL_EXECUTE:
        return (kind.name, ("model", f["model"]))
    address, wanted = (f["table"], 1) if kind is SqeKind.EXT_WAIT else (f.get("address", 0), f.get("value", 0))
    if kind not in (SqeKind.EXT_WAIT, SqeKind.WAIT_VALUE):
        return (kind.name, sq.what)
    try:
        cell = m.memory.load_u64(address) if kind is SqeKind.EXT_WAIT else address
        load = m.memory.load_u64 if f.get("width", 1) == 8 else m.memory.load_u8
        current: int | None = load(cell) if cell else None
    except Exception:  # a listing never fails: the cell was freed under the wait, which says so when it runs
        cell, current = address, None
    return (kind.name, ("value", cell, current, wanted))
