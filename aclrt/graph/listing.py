"""A model as a plain listing for the views: streams, tasks, groups, edges, branches. Formats nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aclrt.graph.capture_model import CaptureModel
from aclrt.task import task as t
from aclrt.task.memory import DeviceArray
from aclrt.views.listing import (
    BranchListing,
    EdgeKind,
    EdgeListing,
    GroupListing,
    ModelListing,
    StreamListing,
    TaskListing,
    TaskRef,
)

if TYPE_CHECKING:
    from aclrt.model.model import Model
    from aclrt.task.queue import TaskQueue


def list_model(model: Model) -> ModelListing:
    """Everything the debug views print of a model (acl_semantics 12), in model-list order."""
    groups: list[GroupListing] = []
    branches: list[BranchListing] = []
    if isinstance(model, CaptureModel):
        groups = [_group(number, group) for number, group in enumerate(model.groups)]
        branches = [entry for queue in model.queues for task in queue.tasks for entry in _branches(queue, task)]
    return ModelListing(
        model_id=model.id,
        name=model.name,
        device_id=model.npu.index,
        chip=model.npu.spec.name,
        streams=[_stream(queue) for queue in model.queues],
        groups=groups,
        edges=_edges(model),
        branches=branches,
    )


def _stream(queue: TaskQueue) -> StreamListing:
    owner = queue.owner
    user = getattr(owner, "user", None)
    origin = owner.joined_how() if hasattr(owner, "joined_how") else ""
    return StreamListing(
        stream_id=queue.stream_id,
        tasks=[_task(task) for task in queue.tasks],
        label=f"of stream {user.id}" if user is not None else "",
        origin=origin,
    )


def _task(task: t.Task) -> TaskListing:
    op = task.op
    extra: dict[str, Any] = {}
    if isinstance(op, t.KernelOp):
        words, size = kernel_words(op.args)
        extra = {
            "label": op.kernel.name,
            "numblocks": op.blocks,
            "mix_type": "NO_MIX",
            "schem_mode": 0,
            "kernel_args": words,
            "kernel_args_size": size,
        }
    elif isinstance(op, t.EventRecordOp | t.EventWaitOp | t.EventResetOp | t.InnerEventOp):
        extra = {"event_id": op.event.id}
    elif isinstance(op, t.NotifyRecordOp | t.NotifyWaitOp):
        extra = {"notify_id": op.notify.id}
    elif isinstance(op, t.ValueWriteOp | t.ValueWaitOp):
        extra = {"address": op.address}
    elif isinstance(op, t.ActiveOp):
        extra = {"active_stream_id": op.target.stream_id}
    return TaskListing(
        task_id=task.task_id,
        seq=task.seq,
        kind=op.kind.name,
        type_name=op.type_name,
        place=str(task.place) if task.place is not None else "",
        **extra,
    )


def kernel_words(args: tuple[Any, ...]) -> tuple[list[int], int]:
    """A launch's arguments as 64-bit words: addresses of arrays, the bits of scalars. Second: their size in bytes."""
    words = [_word(arg) for arg in args]
    return words, 8 * len(words)


def _word(arg: Any) -> int:
    if isinstance(arg, DeviceArray):
        return arg.address
    raw = np.asarray(arg).tobytes()[:8]
    return int.from_bytes(raw.ljust(8, b"\0"), "little")


def _group(number: int, group: Any) -> GroupListing:
    spans: dict[int, tuple[int, int]] = {}
    for task in group.tasks:
        first, _ = spans.get(task.queue.stream_id, (task.seq, task.seq))
        spans[task.queue.stream_id] = (first, task.seq)
    return GroupListing(number, [(stream, first, last) for stream, (first, last) in spans.items()])


def _branches(queue: TaskQueue, task: t.Task) -> list[BranchListing]:
    if not isinstance(task.op, t.CondOp):
        return []
    handle = task.op.handle
    ref = TaskRef(queue.stream_id, task.seq)
    return [
        BranchListing(ref, handle.branch_name(number), list_model(branch))
        for number, branch in enumerate(handle.models)
    ]


def _edges(model: Model) -> list[EdgeListing]:
    """Event record -> wait, notify record -> wait, activation -> first task."""
    records: dict[int, tuple[TaskRef, EdgeKind, str]] = {}
    edges: list[EdgeListing] = []
    tasks = sorted(
        ((task.seq, queue, task) for queue in model.queues for task in queue.tasks), key=lambda entry: entry[0]
    )
    for _, queue, task in tasks:
        op, ref = task.op, TaskRef(queue.stream_id, task.seq)
        if isinstance(op, t.EventRecordOp):
            records[id(op.event)] = (ref, EdgeKind.EVENT, f"event {op.event.id}")
        elif isinstance(op, t.NotifyRecordOp):
            records[id(op.notify)] = (ref, EdgeKind.NOTIFY, f"notify {op.notify.id}")
        elif isinstance(op, t.EventWaitOp | t.NotifyWaitOp):
            source = records.get(id(op.event if isinstance(op, t.EventWaitOp) else op.notify))
            if source is not None:
                edges.append(EdgeListing(source[0], ref, source[1], source[2]))
        elif isinstance(op, t.ActiveOp | t.SwitchOp) and op.target.tasks:
            edges.append(EdgeListing(ref, TaskRef(op.target.stream_id, op.target.tasks[0].seq), EdgeKind.ACTIVE))
    return edges
