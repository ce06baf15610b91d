"""Software SQ: device resources of a captured graph, taken at its first execute, recycled when others need them.

Not the run itself (`model.execute`). Phases and their order: seed acl-graph 4.2 "BuildSqCq", acl_semantics 7.2-7.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.place import here
from aclrt.graph import external
from aclrt.graph.capture_model import CaptureModel
from aclrt.graph.patches import give_up_image
from aclrt.model.held import Shortage
from aclrt.task.lower import encode, send_queue
from aclrt.task.task import ActiveOp, CondOp, NotifyRecordOp, SwitchOp
from hw.chips import SqeKind
from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.model.model import NotifyId
    from aclrt.task.queue import TaskQueue


def build(root: CaptureModel) -> None:
    """BuildSqCq. Does nothing for a model that still holds its SQs (repeat execution).

    Errors: 107000 (no stream), 207005 (more SQs than the pool has), 207009. Raises Shortage when only running models
    could give what is missing; the run is then held until one ends. A failure leaves the model as it was.
    """
    if root.bound:
        return
    models = root.everything()
    queues = [queue for model in models for queue in model.queues]
    if not queues:
        raise fail(Code.RT_PARAM_INVALID, f"execute {root.title()}", "it has no streams", "capture something")
    limit = root.npu.driver.limit(IdKind.SQ)
    if len(queues) > limit:
        raise fail(
            Code.RT_RESOURCE_ALLOC_FAIL,
            f"execute {root.title()}",
            f"it needs {len(queues)} SQs with its branches, the pool has {limit} (SQ/CQ resource)",
            "split the graph",
        )
    try:
        _end_graphs(models)
        external.assign(root)
        _take_sqs(root, queues)
        _fill(root, queues)
    except BaseException:
        _give_back(root, queues)
        raise
    try:
        _load(models)
        _refresh(models)
    except BaseException:
        release(root)
        raise
    root.plain = not (root.added or root.externals or any(model.cond_handles for model in models))
    for model in models:
        model.bound = True
        model.build_count += 1


def _end_graphs(models: list[CaptureModel]) -> None:
    """Phase 1: an end-graph notify for the root and one per conditional task; the record task at the first execute."""
    root = models[0]
    need = int(root.end_notify.id is None) + sum(
        handle.notify.id is None for model in models for handle in model.cond_handles if handle.models
    )
    _make_room(root, IdKind.NOTIFY, need)
    root.alloc_end_notify()
    for model in models:
        for handle in model.cond_handles:
            if handle.models:
                handle.alloc_notify()
        if not model.streams:
            raise fail(
                Code.RT_INTERNAL_ERROR,
                f"execute {root.title()}",
                f"{model.title()} was never captured",
                "capture every branch",
            )
        notify: NotifyId = model.end_notify if model is root else model.parent_handle.notify
        _append_end_record(model, notify)


def _append_end_record(model: CaptureModel, notify: NotifyId) -> None:
    """The end-graph record at the tail of the last original stream, once in the model's life."""
    tail = next((stream for stream in model.streams if stream.original and stream.last), None)
    if tail is None:
        return
    tasks = tail.queue.tasks
    if tasks and isinstance(tasks[-1].op, NotifyRecordOp) and tasks[-1].op.notify is notify:
        return
    tail.queue.append(NotifyRecordOp(notify=notify), model.next_seq(), here(), model.npu.spec.wait_sqes)


def _take_sqs(root: CaptureModel, queues: list[TaskQueue]) -> None:
    """Phase 2a: SQs from the pool, recycling idle models."""
    _make_room(root, IdKind.SQ, len(queues))
    for queue in queues:
        queue.sq = root.npu.alloc(IdKind.SQ, f"execute {root.title()}")
        root.npu.queues[queue.sq] = queue


def _fill(root: CaptureModel, queues: list[TaskQueue]) -> None:
    """Phase 2b: SQ memory, filled once; the SQs bound to it in one batch (SqSwitchStreamBatch, ConfigSqTail)."""
    driver = root.npu.driver
    for queue in queues:
        if queue.image is not None and queue.image_slots < queue.sqe_count:
            give_up_image(queue.owner.model, queue)
        if queue.image is None:
            queue.image_slots = max(queue.sqe_count, 1)
            queue.image = driver.image_alloc(queue.image_slots)
        if not queue.sent and queue.tasks:
            send_queue(driver, queue, queue.image, f"execute {root.title()}")
        queue.sent = True
    driver.sq_bind(
        [
            (queue.sq, queue.stream_id, queue.image, queue.sqe_count)
            for queue in queues
            if queue.sq is not None and queue.image is not None
        ]
    )


def _load(models: list[CaptureModel]) -> None:
    """Phase 3: the device learns which SQs make up each model and which notify ends it (load complete)."""
    root = models[0]
    for model in models:
        heads = set(map(id, model.heads))
        for queue in model.queues:
            assert queue.sq is not None
            model.control(SqeKind.MODEL_ADD, model=model.id, root=root.id, sq=queue.sq, head=int(id(queue) in heads))
        notify = root.end_notify if model is root else model.parent_handle.notify
        assert notify.id is not None
        model.control(SqeKind.MODEL_LOAD, model=model.id, notify=notify.id)
        model.loaded = True


def _refresh(models: list[CaptureModel]) -> None:
    """Phases 3 to 5: SQEs that name notify ids and SQs are written again, then the branch tables of conditional
    tasks."""
    driver = models[0].npu.driver
    for model in models:
        for queue in model.queues:
            assert queue.image is not None
            for task in queue.tasks:
                op = task.op
                if isinstance(op, (ActiveOp, SwitchOp, CondOp)) or (
                    isinstance(op, NotifyRecordOp) and task is queue.tasks[-1]
                ):
                    driver.image_write(queue.image, task.slot, encode(driver, op, queue.stream_id, task.task_id))
        for handle in model.cond_handles:
            if handle.models:
                handle.refresh()


def _give_back(root: CaptureModel, queues: list[TaskQueue]) -> None:
    """Undo phases 1 and 2, in which the device was told of no SQ."""
    for queue in queues:
        if queue.sq is not None:
            del root.npu.queues[queue.sq]
            root.npu.driver.free(IdKind.SQ, queue.sq)
            queue.sq = None
    release(root)


def release(root: CaptureModel) -> int:
    """ReleaseSqCqAndNotifyId: SQs and notify ids of the model and its branches go back; SQ memory stays filled."""
    freed = 0
    for model in reversed(root.everything()):
        freed += model.unbind_sqs()
        for handle in model.cond_handles:
            handle.free_notify()
    root.free_end_notify()
    return freed


def _make_room(root: CaptureModel, kind: IdKind, need: int) -> None:
    """TryRecycleCaptureModelResource: idle graphs in order of creation give up what they hold until `need` is free."""
    driver = root.npu.driver

    def short() -> bool:
        return driver.limit(kind) - driver.held(kind) < need

    busy = False
    for context in root.npu.contexts:
        for victim in list(context.models):
            if not short():
                return
            if not isinstance(victim, CaptureModel) or victim is root or not victim.bound:
                continue
            if victim.pins or driver.model_busy(victim.id):
                busy = True
                if not victim.pins:  # its last SQs are just stopping, which no run will tell
                    root.npu.try_again_soon()
            else:
                release(victim)
    if not short():
        return
    if busy:
        raise Shortage(kind)
    root.npu.exhausted(kind, f"execute {root.title()}")
