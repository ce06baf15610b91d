"""Who waits for whom on one device, told from the driver's parked SQs and the host's books. Detects nothing by
itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aclrt.views import waits as texts
from aclrt.views.waitgraph import HostWaitListing, SignalListing, Target, TargetKind, WaitListing
from hw.chips import SQE_BYTES, Sqe, SqeError, SqeKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aclrt.stream.npu import Npu
    from hw.driver import FaultRecord, Wait

SCAN = 4096
"""Queued SQEs of one SQ that are searched for the signal somebody waits for."""


def explain(npu: Npu) -> str:
    """The who-waits-for-whom text: one line per parked stream and per host wait, then the cycles."""
    waits = [_wait(npu, wait) for wait in npu.driver.waits()]
    hosts = [_host_wait(what) for what in npu.waits.values()]
    return "\n".join([texts.explain(waits, hosts, list(_signals(npu))), *(held.explain() for held in npu.short)])


def _host_wait(what: Any) -> HostWaitListing:
    """A wait of the host: for a run, which is where its execute stream is, or for the call that `what` names."""
    stream = getattr(what, "stream", None)
    target = Target(TargetKind.END) if stream is None else Target(TargetKind.STREAM, stream.id)
    return HostWaitListing(task=str(what), target=target)


def headline(npu: Npu) -> str:
    """The root of a hang on one line; "" when every wait may still end."""
    return texts.headline([_wait(npu, wait) for wait in npu.driver.waits()], list(_signals(npu)))


def _wait(npu: Npu, wait: Wait) -> WaitListing:
    task, place = _task_at(npu, wait.sq, wait.slot)
    queue = npu.queues.get(wait.sq)
    model = queue.owner.model if queue is not None else None
    owner = queue.owner if queue is not None else npu.streams.get(wait.sq)
    how = owner.joined_how() if owner is not None and hasattr(owner, "joined_how") else ""
    return WaitListing(
        stream_id=wait.stream_id if queue is None else queue.stream_id,
        target=_target(wait),
        origin=how,
        model_id=model.root.id
        if model is not None and hasattr(model, "root")
        else wait.root
        if wait.root >= 0
        else None,
        model_name=model.name if model is not None else "",
        task=task or wait.kind,
        place=place,
    )


def _target(wait: Wait) -> Target:
    what: tuple[Any, ...] = wait.what or ("worker",)
    if what[0] == "event":
        return Target(TargetKind.EVENT, what[1])
    if what[0] == "notify":
        return Target(TargetKind.NOTIFY, what[1])
    if what[0] == "model":
        return Target(TargetKind.MODEL, what[1])
    if what[0] == "value":
        kind = TargetKind.EXTERNAL if wait.kind == SqeKind.EXT_WAIT.name else TargetKind.VALUE
        return Target(kind, what[1] or 0, f"is {what[2]}, wanted {what[3]}")
    if what[0] == "core":
        return Target(TargetKind.CORE, 0, f"{what[1]} cores are busy")
    if what[0] == "clock":
        return Target(TargetKind.TIME, 0, f"until {what[1]} ns")
    return Target(TargetKind.KERNEL, 0, " ".join(map(str, what)))


def _task_at(npu: Npu, sq: int, slot: int) -> tuple[str, str]:
    """("task 12 EVENT_WAIT", "file:line") of a slot of a model SQ; user SQs keep no tasks."""
    queue = npu.queues.get(sq)
    if queue is None:
        return "", ""
    for task in queue.tasks:
        if task.slot <= slot < task.slot + task.nsqe:
            return f"task {task.task_id} {task.op.type_name}", str(task.place) if task.place is not None else ""
    return "", ""


def _signals(npu: Npu) -> Iterator[SignalListing]:
    """What is queued behind the heads of user and model SQs and would satisfy a wait."""
    wanted = {_target(wait).key for wait in npu.driver.waits()}
    for sq, owner in npu.streams.items():
        stream_id = getattr(owner, "id", sq)
        for sqe in _queued(npu, sq):
            target = _signal(sqe)
            if target is not None and target.key in wanted:
                yield SignalListing(target=target, stream_id=stream_id, task=sqe.kind.name)
    for sq, queue in npu.queues.items():
        status = npu.driver.sq_status(sq)
        if status.state == "IDLE":
            continue
        for sqe, slot in _image(npu, queue.image, status.head, status.tail):
            target = _signal(sqe)
            if target is not None and target.key in wanted:
                task, place = _task_at(npu, sq, slot)
                yield SignalListing(target=target, stream_id=queue.stream_id, task=task or sqe.kind.name, place=place)


def _signal(sqe: Sqe) -> Target | None:
    if sqe.kind is SqeKind.EVENT_RECORD:
        return Target(TargetKind.EVENT, sqe["event_id"])
    if sqe.kind is SqeKind.NOTIFY_RECORD:
        return Target(TargetKind.NOTIFY, sqe["notify_id"])
    if sqe.kind is SqeKind.WRITE_VALUE:
        return Target(TargetKind.VALUE, sqe["address"])
    return None


def _queued(npu: Npu, sq: int) -> Iterator[Sqe]:
    ring = npu.driver.sq_memory(sq)
    depth = len(ring) // SQE_BYTES
    status = npu.driver.sq_status(sq)
    for position in range(status.head, min(status.tail, status.head + SCAN)):
        try:
            yield npu.driver.chip.decode(
                bytes(ring[(position % depth) * SQE_BYTES : (position % depth + 1) * SQE_BYTES])
            )
        except SqeError:
            continue  # bytes that are no SQE signal nothing


def _image(npu: Npu, image: int | None, head: int, tail: int) -> Iterator[tuple[Sqe, int]]:
    if image is None:
        return
    data = npu.driver.image_read(image, head, min(tail - head, SCAN))
    for number in range(len(data) // SQE_BYTES):
        try:
            yield npu.driver.chip.decode(data[number * SQE_BYTES : (number + 1) * SQE_BYTES]), head + number
        except SqeError:
            continue


def locate(npu: Npu, record: FaultRecord) -> str:
    """Where a failed task was launched, and in which branch and iteration: for the message of its failure."""
    queue = npu.queues.get(record.sq)
    if queue is None:
        owner: Any = npu.streams.get(record.sq)
        place = owner.place_of(record.slot) if owner is not None else ""
        return f"stream {record.stream_id}" + (f", launched at {place}" if place else "")
    task, place = _task_at(npu, record.sq, record.slot)
    model = queue.owner.model
    branch_of = getattr(model, "parent_handle", None)  # a normal model has none
    path = branch_of.where(record.cond) if branch_of is not None else ""
    return (
        f"{model.title()}, stream {queue.stream_id}, {task or 'a task'}"
        + (f", launched at {place}" if place else "")
        + (f", {path}" if path else "")
    )
