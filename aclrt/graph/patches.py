"""The patches of one grouped task: SQE bytes on their way to its slot, and the argument entries the slot may name.

Not an update window (`graph.task_update`): windows come and go, what they sent may land much later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from aclrt.task.lower import encode
from aclrt.task.task import KernelOp, PatchOp
from hw.chips import SQE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.graph.capture_model import CaptureModel
    from aclrt.stream.stream import Stream
    from aclrt.task.queue import TaskQueue
    from aclrt.task.task import Task


@final
class Patches:
    """Everything updates did to one task.

    Invariants: `entries` holds every argument entry that the slot may name now or once `flying` is empty, and the model
    keeps each of them; `host` is the operation of the host's SQE copy while it differs from the task's, else None.
    """

    __slots__ = ("entries", "flying", "host", "set_params", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.host: KernelOp | None = None
        self.set_params = (
            False  # TaskSetParams was used on it: from then on it is always re-sent from its own parameters
        )
        self.flying: list[Patch] = []
        self.entries: set[int] = set()

    def apply(self, model: CaptureModel, stream: Stream, op: KernelOp) -> None:
        """Make `op` the task's operation. What was sent to the device is changed by a task on `stream`; what was not is
        changed here and now, so that a first execute uses `op` at once (acl_semantics 8.2)."""
        task, old = self.task, self.task.op
        assert isinstance(old, KernelOp)
        task.op = op
        model.keep_arguments(op.handle)
        self.entries |= {old.handle, op.handle}
        if not task.queue.sent:
            self.host = None  # the host copy is what was changed
            self.settle(model)
            return
        if self.host is None and not self.set_params:
            self.host = old
        patch = Patch(self, model, op)
        self.flying.append(patch)
        patch.send(stream)

    def landed(self, patch: Patch, model: CaptureModel) -> None:
        """The device executed `patch`, or dropped it with its stream."""
        self.flying.remove(patch)
        if model.alive:
            self.settle(model)

    def settle(self, model: CaptureModel) -> None:
        """Give back the argument entries that neither the slot nor a later patch can name any more."""
        task, driver = self.task, model.npu.driver
        named = {patch.handle for patch in self.flying}
        for op in (task.op, self.host):
            if task.alive and isinstance(op, KernelOp):
                named.add(op.handle)
        if task.queue.sent and task.queue.image is not None:
            # Patches of several streams may land in another order than their reports: the bytes say what is there.
            slot = driver.image_read(task.queue.image, task.slot, 1)
            named.add(driver.chip.decode(slot).fields.get("args", 0))
        for handle in self.entries - named:
            self.entries.discard(handle)
            drop_arguments(model, handle)

    def edited(self, model: CaptureModel, old: KernelOp) -> None:
        """TaskSetParams replaced the operation `old`: the host copy no longer matters, now or ever."""
        self.set_params = True
        self.host = None
        self.entries.add(old.handle)
        self.settle(model)

    def take_back(self) -> None:
        """aclmdlRIUpdate re-sends a task from the host's SQE copy, which no patch has touched (acl_semantics 8.3)."""
        if self.host is not None and not self.set_params:
            self.task.op = self.host
        self.host = None

    def __repr__(self) -> str:
        return f"<Patches of {self.task!r}, {len(self.flying)} on their way, {len(self.entries)} argument entries>"


@final
class Patch:
    """One patch on its way: new SQE bytes in host memory, read by the device when the update stream gets there."""

    __slots__ = ("handle", "image", "model", "on_landed", "patches", "slot", "sqe")

    def __init__(self, patches: Patches, model: CaptureModel, op: KernelOp) -> None:
        task = patches.task
        assert task.queue.image is not None
        self.patches = patches
        self.model = model
        self.handle = op.handle
        self.image = task.queue.image
        self.slot = task.slot
        self.sqe = bytearray(encode(model.npu.driver, op, task.queue.stream_id, task.task_id))
        self.on_landed: Callable[[], None] | None = None

    def send(self, stream: Stream) -> None:
        """Submit the copy; past the stream's update window, which refuses tasks of the user only."""
        driver = self.model.npu.driver
        source = driver.host_register(self.sqe)
        stream.live.append(
            stream, PatchOp(image=self.image, slot=self.slot, source=source, slots=len(self.sqe) // SQE_BYTES)
        )

        def land() -> None:
            driver.host_unregister(source)
            self.patches.landed(self, self.model)
            if self.on_landed is not None:
                self.on_landed()

        stream.when(stream.submitted, land)


def flying_to(model: CaptureModel, queue: TaskQueue) -> list[Patch]:
    """Patches on their way to the SQE memory that `queue` has now."""
    if queue.image is None:
        return []
    return [patch for group in model.groups for patch in group.flying() if patch.image == queue.image]


def give_up_image(model: CaptureModel, queue: TaskQueue) -> None:
    """Take the SQE memory from a queue that no SQ runs, and free it: now, or when the last patch on its way to it has
    landed. Freed before, its id would be another graph's, and the patch would land in that."""
    if queue.image is None:
        return
    driver, left = model.npu.driver, flying_to(model, queue)
    image, queue.image, queue.image_slots, queue.sent = queue.image, None, 0, False
    if not left:
        driver.image_free(image)
        return

    def landed(patch: Patch) -> None:
        left.remove(patch)
        if not left:
            driver.image_free(image)

    for patch in left:
        patch.on_landed = lambda patch=patch: landed(patch)


def drop_arguments(model: CaptureModel, handle: int) -> None:
    """End an argument entry the model kept; nothing if it is gone already."""
    if handle in model.argument_handles:
        model.argument_handles.discard(handle)
        model.npu.driver.args_drop(handle)
