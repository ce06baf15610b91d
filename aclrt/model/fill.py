"""The batch fill: SQEs of a normal model go to SQ memory and the tails move (seed model-module: SendSqe, ConfigSqTail).

Not the build calls with their checks (`model.build`) and not the layout over SQs (`model.split`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.model import split
from aclrt.task.lower import send_queue
from hw.chips import SqeKind
from hw.driver import IdKind, pack_label

if TYPE_CHECKING:
    from aclrt.model.normal import NormalModel
    from aclrt.stream.persistent import PersistentTasks
    from aclrt.task.queue import TaskQueue


def attach(model: NormalModel, kept: PersistentTasks, *, head: bool) -> None:
    """The device learns that the stream's SQ belongs to the model; it holds no task until `send`. Errors: 507000."""
    kept.queue.sq = split.PERSISTENT_SQ + kept.stream.id
    kept.parts = [kept.queue]
    _put_on_device(kept.parts, 0)
    model.control(SqeKind.MODEL_ADD, model=model.id, root=model.id, sq=kept.queue.sq, head=int(head))
    model.known_to_device = True


def send(model: NormalModel) -> None:
    """Write the SQEs of every stream that has new ones and move its tail; then the label cells and the end-graph notify.

    Errors: 207008 (slave streams), 107037 when tasks were added and the model runs.
    """
    changed = [stream.kept for stream in model.streams if stream.kept and stream.kept.sent_slots != stream.kept.queue.sqe_count]
    if changed and model.npu.driver.model_busy(model.id):
        raise fail(Code.RT_MODEL_RUNNING, f"load {model.title()}", "it runs", "wait for the run before loading new tasks")
    for kept in changed:
        parts = split.lay_out(kept)
        _take_off_device(model, kept, keep_first=True)
        kept.parts = parts
        _put_on_device(parts, None)
        for slave in parts[1:]:
            model.control(SqeKind.MODEL_ADD, model=model.id, root=model.id, sq=slave.sq or 0, head=0)
        kept.sent_slots = kept.queue.sqe_count
    _write_labels(model)
    if model.end_notify.id is not None:
        model.control(SqeKind.MODEL_LOAD, model=model.id, notify=model.end_notify.id)
        model.known_to_device = True


def detach(model: NormalModel, kept: PersistentTasks) -> None:
    """Take the stream's SQs out of the model and free their SQ memory; the tasks stay at the host.

    Errors: 507000 while the model runs; then nothing has changed.
    """
    _take_off_device(model, kept, keep_first=False)
    kept.parts = []
    kept.queue.sq = None
    kept.sent_slots = -1


def _put_on_device(parts: list[TaskQueue], tail: int | None) -> None:
    """SQ memory filled in one write for each SQ, then all SQs bound in one batch. `tail` None: behind the last SQE."""
    npu = parts[0].owner.npu
    driver = npu.driver
    binding: list[tuple[int, int, int, int]] = []
    for part in parts:
        slots = part.sqe_count if tail is None else tail
        part.image_slots = max(slots, 1)
        part.image = driver.image_alloc(part.image_slots)
        if slots:
            send_queue(driver, part, f"load stream {part.owner.id}")
        part.sent = True
        assert part.sq is not None
        npu.queues[part.sq] = part
        binding.append((part.sq, part.stream_id, part.image, slots))
    driver.sq_bind(binding)


def _take_off_device(model: NormalModel, kept: PersistentTasks, *, keep_first: bool) -> None:
    """Unbind the SQs the stream was sent to and free their images and slave streams. With `keep_first` the device goes on
    knowing the stream's own SQ as one of the model."""
    npu = model.npu
    driver = npu.driver
    old = [part for part in kept.parts if part.image is not None]
    gone = old[1:] if keep_first else old
    for part in gone:
        assert part.sq is not None
        model.control(SqeKind.MODEL_DEL, model=model.id, sq=part.sq)
    driver.sq_unbind([part.sq for part in old if part.sq is not None])
    for part in old:
        assert part.sq is not None and part.image is not None
        driver.image_free(part.image)
        del npu.queues[part.sq]
        part.image = None
        part.sent = False
    for slave in old[1:]:
        driver.free(IdKind.STREAM, slave.stream_id)


def _write_labels(model: NormalModel) -> None:
    """Each label's device cell names the SQ and slot where it was set (devDstAddr_)."""
    for label in model.labels.values():
        if label.address is None or label.task is None:
            continue
        part = next((part for part in label.stream.kept.parts if _holds(part, label.task)), None)
        if part is not None and part.sq is not None:
            model.npu.driver.write(label.address, pack_label(part.sq, label.task.slot))


def _holds(part: TaskQueue, task: object) -> bool:
    at = getattr(task, "slot", 0)
    # Tasks are in slot order: the place of `task` is found by bisection on its slot.
    low, high = 0, len(part.tasks)
    while low < high:
        middle = (low + high) // 2
        if part.tasks[middle].slot < at:
            low = middle + 1
        else:
            high = middle
    return low < len(part.tasks) and part.tasks[low] is task
