"""The batch fill: SQEs of a normal model go to SQ memory and the tails move (seed model-module: SendSqe, ConfigSqTail).

Not the build calls with their checks (`model.build`) and not the layout over SQs (`model.split`).
"""

from __future__ import annotations

from bisect import bisect_left
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
    from aclrt.task.task import Task


def attach(model: NormalModel, kept: PersistentTasks, *, head: bool) -> None:
    """The device learns that the stream's SQ belongs to the model; it holds no task until `send`. Errors: 507000."""
    kept.queue.sq = split.PERSISTENT_SQ + kept.stream.id
    kept.parts = [kept.queue]
    _bind(kept.parts, [model.npu.driver.image_alloc(1)], [0])
    model.control(SqeKind.MODEL_ADD, model=model.id, root=model.id, sq=kept.queue.sq, head=int(head))
    model.known_to_device = True


def send(model: NormalModel) -> None:
    """Write the SQEs of every stream that has new ones and move its tail; then the label cells and the end-graph
    notify.

    Errors: 207008 (slave streams), 507052 (transport), 107037 when tasks were added and the model runs. A stream whose
    tasks could not be sent keeps what it had on the device.
    """
    changed = [
        stream.kept
        for stream in model.streams
        if stream.kept is not None and stream.kept.sent_slots != stream.kept.queue.sqe_count
    ]
    if changed and model.npu.driver.model_busy(model.id):
        todo = "wait for the run before loading new tasks"
        raise fail(Code.RT_MODEL_RUNNING, f"load {model.title()}", "it runs", todo)
    for kept in changed:
        _send_stream(model, kept)
    _write_labels(model)
    if model.end_notify.id is not None:
        model.control(SqeKind.MODEL_LOAD, model=model.id, notify=model.end_notify.id)
        model.known_to_device = True


def _send_stream(model: NormalModel, kept: PersistentTasks) -> None:
    driver = model.npu.driver
    parts = split.lay_out(kept)
    slots = [sum(task.nsqe for task in part.tasks) for part in parts]
    images: list[int] = []
    try:
        for part, count in zip(parts, slots, strict=True):
            images.append(driver.image_alloc(max(count, 1)))
            if count:
                send_queue(driver, part, images[-1], f"load {model.title()}")
    except BaseException:
        for image in images:
            driver.image_free(image)
        for slave in parts[1:]:
            driver.free(IdKind.STREAM, slave.stream_id)
        raise
    _take_off_device(model, kept, keep_first=True)
    kept.parts = parts
    _bind(parts, images, slots)
    for slave in parts[1:]:
        assert slave.sq is not None
        model.control(SqeKind.MODEL_ADD, model=model.id, root=model.id, sq=slave.sq, head=0)
    kept.sent_slots = kept.queue.sqe_count


def detach(model: NormalModel, kept: PersistentTasks) -> None:
    """Take the stream's SQs out of the model and free their SQ memory; the tasks stay at the host.

    Errors: 507000 while the model runs; then nothing has changed.
    """
    _take_off_device(model, kept, keep_first=False)
    kept.parts = []
    kept.queue.sq = None
    kept.sent_slots = -1


def _bind(parts: list[TaskQueue], images: list[int], tails: list[int]) -> None:
    """The SQs of one stream bound to their filled SQ memory in one batch, tails included."""
    npu = parts[0].owner.npu
    binding: list[tuple[int, int, int, int]] = []
    for part, image, tail in zip(parts, images, tails, strict=True):
        part.image, part.image_slots, part.sent = image, max(tail, 1), True
        assert part.sq is not None
        npu.queues[part.sq] = part
        binding.append((part.sq, part.stream_id, image, tail))
    npu.driver.sq_bind(binding)


def _take_off_device(model: NormalModel, kept: PersistentTasks, *, keep_first: bool) -> None:
    """Unbind the SQs the stream was sent to and free their images and slave streams. With `keep_first` the device goes
    on knowing the stream's own SQ as one of the model."""
    npu = model.npu
    driver = npu.driver
    old = [part for part in kept.parts if part.image is not None]
    gone = old[1:] if keep_first else old
    for part in gone:
        assert part.sq is not None
        model.control(SqeKind.MODEL_DEL, model=model.id, sq=part.sq)
    driver.sq_unbind([part.sq for part in old if part.sq is not None])
    for part in old:
        assert part.sq is not None
        assert part.image is not None
        driver.image_free(part.image)
        del npu.queues[part.sq]
        part.image = None
        part.sent = False
    for slave in old[1:]:
        driver.free(IdKind.STREAM, slave.stream_id)


def _write_labels(model: NormalModel) -> None:
    """Each label's device cell names the SQ and slot where it was set (devDstAddr_)."""
    for label in model.labels.values():
        if label.address is None or label.task is None or label.stream is None or label.stream.kept is None:
            continue
        sq = next((part.sq for part in label.stream.kept.parts if _holds(part, label.task)), None)
        if sq is not None:
            model.npu.driver.write(label.address, pack_label(sq, label.task.slot))


def _holds(part: TaskQueue, task: Task) -> bool:
    at = bisect_left(part.tasks, task.slot, key=lambda each: each.slot)
    return at < len(part.tasks) and part.tasks[at] is task
