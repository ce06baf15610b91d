"""A Label: a place in a model's stream that goto and switch tasks jump to. Not a task, and not the device's jump.

A label gets its device cell from a list, is set once in a stream, and from load-complete on the cell says where that is
(seed model-module 4.1, "Label 控制流设置流程"; acl_semantics 1.8, 10.9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.place import here
from aclrt.stream import context as contexts
from aclrt.stream.checks import resolve
from aclrt.stream.transfer import device_address
from aclrt.task.task import LabelGotoOp, LabelSetOp, LabelSwitchOp
from hw.driver import IdKind, pack_label, pack_label_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aclrt.stream.context import Context
    from aclrt.stream.npu import Npu
    from aclrt.stream.stream import Stream
    from aclrt.task.task import Task

MAX_LABELS = 65535
NOWHERE = 0xFFFFFFFF  # the SQ of a cell whose label is not set: the device reports a jump to it
CELL_BYTES = 8


@final
class LabelAllocator:
    """Hands out the label ids of one owner: a Context, or a model for labels made for it (seed: labelAllocator_)."""

    __slots__ = ("ids", "npu")

    def __init__(self, npu: Npu) -> None:
        self.npu = npu
        self.ids: set[int] = set()

    def alloc(self, asked: str) -> int:
        """507000 when the device has no label id left."""
        label_id = self.npu.alloc(IdKind.LABEL, asked)
        self.ids.add(label_id)
        return label_id

    def free(self, label_id: int) -> None:
        """Give one id back; nothing for an id released before."""
        if label_id in self.ids:
            self.ids.remove(label_id)
            self.npu.driver.free(IdKind.LABEL, label_id)

    def release(self) -> None:
        """Give every id back."""
        for label_id in sorted(self.ids):
            self.npu.driver.free(IdKind.LABEL, label_id)
        self.ids.clear()

    def __repr__(self) -> str:
        return f"<LabelAllocator {len(self.ids)} ids out>"


@final
class Label:
    """One label.

    Invariants: `address` is None exactly while the label is in no list; `task`, `stream` and `model` are set together,
    once, and only in a bound stream (`model` alone may be given at creation: the label is then for that model only).
    """

    __slots__ = (
        "address",
        "alive",
        "allocator",
        "context",
        "id",
        "labels",
        "model",
        "owner",
        "place",
        "stream",
        "task",
    )

    def __init__(self, context: Context, allocator: LabelAllocator, owner: Any) -> None:
        self.context = context
        self.allocator = allocator
        self.owner = owner  # the model it was made for, or None: any model's
        self.id = allocator.alloc("aclrtCreateLabel")
        self.labels: LabelList | None = None
        self.address: int | None = None  # of its device cell (devDstAddr_)
        self.model: Any = owner
        self.stream: Stream | None = None
        self.task: Task | None = None
        self.alive = True
        self.place = here()

    def unset(self) -> None:
        """The stream it was set in dropped its tasks: it may be set again."""
        if self.stream is not None and self.stream.kept is not None and self in self.stream.kept.labels:
            self.stream.kept.labels.remove(self)
        self.task = self.stream = None
        self.model = self.owner
        if self.address is not None:
            self.context.npu.driver.write(self.address, pack_label(NOWHERE, 0))

    def __repr__(self) -> str:
        if not self.alive:
            state = "destroyed"
        elif self.stream is not None:
            state = f"set in stream {self.stream.id}"
        else:
            state = "not set"
        return f"<Label {self.id} {state}{'' if self.address is not None else ', in no list'}>"


@final
class LabelList:
    """Labels in order, with their device copy: `count` addresses of cells, then the cells themselves."""

    __slots__ = ("address", "alive", "context", "labels")

    def __init__(self, context: Context, labels: Sequence[Label]) -> None:
        self.context = context
        self.labels = tuple(labels)
        count = len(labels)
        self.address = context.npu.malloc(2 * CELL_BYTES * count, "aclrtCreateLabelList")
        cells = [self.address + CELL_BYTES * (count + at) for at in range(count)]
        driver = context.npu.driver
        driver.write(self.address, pack_label_list(cells) + pack_label(NOWHERE, 0) * count)
        for label, cell in zip(labels, cells, strict=True):
            label.labels = self
            label.address = cell
        self.alive = True

    def discard(self) -> None:
        if self.alive:
            self.alive = False
            for label in self.labels:
                if label.labels is self:
                    label.labels = label.address = None
            self.context.npu.driver.free(self.address)

    def __repr__(self) -> str:
        return f"<LabelList of {len(self.labels)}{'' if self.alive else ' destroyed'}>"


def _check_label(label: Label, asked: str) -> None:
    if not label.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, f"label {label.id} is destroyed", "use a live label")


def _check_list(labels: LabelList, asked: str) -> None:
    if not labels.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, "the label list is destroyed", "use a live list")


def _check_context(label: Label, context: Context, asked: str) -> None:
    if label.context is not context:
        raise fail(
            Code.RT_LABEL_CONTEXT,
            asked,
            f"label {label.id} belongs to another context",
            "make its context current first",
        )


def _internal(asked: str, met: str, todo: str) -> Exception:
    return fail(Code.RT_INTERNAL_ERROR, asked, met, todo)


def create(ctx: Context | None, model: Any = None) -> Label:
    """aclrtCreateLabel. With `model` the id is from that model's allocator and the label is set in its streams only.

    Errors: 107002, 507000 (no id left).
    """
    ctx = contexts.require(ctx, "aclrtCreateLabel")
    if ctx.label_allocator is None:
        ctx.label_allocator = LabelAllocator(ctx.npu)
    label = Label(ctx, model.label_allocator if model is not None else ctx.label_allocator, model)
    ctx.labels.add(label)
    return label


def destroy(ctx: Context | None, label: Label) -> None:
    """aclrtDestroyLabel. Errors: 107017, 107002, 507031 (another context)."""
    asked = "aclrtDestroyLabel"
    _check_label(label, asked)
    _check_context(label, contexts.require(ctx, asked), asked)
    discard(label)


def discard(label: Label) -> None:
    """Let go of the label's id; a task that marks its place stays, and so does its cell."""
    if not label.alive:
        return
    label.alive = False
    if label.stream is not None and label.stream.kept is not None and label in label.stream.kept.labels:
        label.stream.kept.labels.remove(label)
    if label.model is not None:
        label.model.labels.pop(label.id, None)
    label.allocator.free(label.id)
    label.context.labels.discard(label)


def create_list(ctx: Context | None, labels: Sequence[Label]) -> LabelList:
    """aclrtCreateLabelList: gives each label its device address.

    Errors in order: 107000 (none, or more than 65,535), 107002, 107017, 507031, 507000 (in a list already), 207001.
    """
    asked = "aclrtCreateLabelList"
    if not 1 <= len(labels) <= MAX_LABELS:
        raise fail(Code.RT_PARAM_INVALID, asked, f"{len(labels)} labels", f"give 1 to {MAX_LABELS}")
    ctx = contexts.require(ctx, asked)
    for label in labels:
        _check_label(label, asked)
        _check_context(label, ctx, asked)
        if label.labels is not None or labels.count(label) > 1:
            raise _internal(asked, f"{label!r} is in a list already", "a label belongs to one list")
    made = LabelList(ctx, labels)
    ctx.label_lists.add(made)
    return made


def destroy_list(ctx: Context | None, labels: LabelList) -> None:
    """aclrtDestroyLabelList: frees the device copy; the labels may join another list. Errors: 107017, 107002."""
    _check_list(labels, "aclrtDestroyLabelList")
    contexts.require(ctx, "aclrtDestroyLabelList")
    labels.discard()
    labels.context.label_lists.discard(labels)


def _bound(ctx: Context | None, stream: Stream | None, asked: str) -> Stream:
    """107002, 107003, 207000 (a branch is being captured), 107005 (not bound to a model)."""
    stream = resolve(ctx, stream, asked)
    contexts.require_same(ctx, stream, asked)
    if stream.capture is not None and stream.capture.model.is_sub:
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT,
            asked,
            f"stream {stream.id} captures a conditional branch",
            "use a normal model",
        )
    if stream.model is None:
        raise fail(Code.RT_STREAM_MODEL, asked, f"stream {stream.id} is not bound to a model", "bind it first")
    return stream


def set_label(ctx: Context | None, label: Label, stream: Stream | None) -> None:
    """aclrtSetLabel: jumps to the label go on with the stream's next task.

    Errors in order: 107017, 107002, 507031, 107003, 207000, 107005, 507000 (made for another model, set already, in no
    list).
    Source: acl_semantics 1.8.
    """
    asked = "aclrtSetLabel"
    _check_label(label, asked)
    _check_context(label, contexts.require(ctx, asked), asked)
    stream = _bound(ctx, stream, asked)
    if label.model is not None and label.model is not stream.model:
        raise _internal(asked, f"{label!r} belongs to {label.model.title()}", "use a label of this model")
    if label.task is not None:
        raise _internal(asked, f"{label!r} is set already", "set a label once")
    if label.address is None:
        raise _internal(asked, f"{label!r} has no device address", "put it into a label list first")
    assert stream.model is not None
    assert stream.kept is not None
    label.task = stream.submit(LabelSetOp(label=label))  # a bound stream's sink gives the task back
    label.stream = stream
    label.model = stream.model
    label.model.labels[label.id] = label
    stream.kept.labels.append(label)


def goto(ctx: Context | None, label: Label, stream: Stream | None) -> None:
    """rtLabelGoto: when the stream gets here it goes on at the label; if that is in another stream, that one starts
    there and this one ends.

    Errors in order: 107017, 107002, 507031, 107003, 207000, 107005, 507000 (of another model, in no list).
    """
    asked = "rtLabelGoto"
    _check_label(label, asked)
    _check_context(label, contexts.require(ctx, asked), asked)
    stream = _bound(ctx, stream, asked)
    if label.model is not None and label.model is not stream.model:
        raise _internal(asked, f"{label!r} belongs to {label.model.title()}", "use a label of this model")
    if label.address is None:
        raise _internal(asked, f"{label!r} has no device address", "put it into a label list first")
    stream.submit(LabelGotoOp(address=label.address))


def switch_by_index(ctx: Context | None, ptr: Any, maximum: int, labels: LabelList, stream: Stream | None) -> None:
    """aclrtSwitchLabelByIndex: the 32-bit index at device address `ptr` is read, unsigned, when the stream gets here;
    one at or beyond `maximum` means the last label.

    Errors in order: 107017, 107000 (maximum 0, not device memory), 107002, 107003, 207000, 107005.
    """
    asked = "aclrtSwitchLabelByIndex"
    _check_list(labels, asked)
    if maximum <= 0:
        raise fail(Code.RT_PARAM_INVALID, asked, f"maxValue is {maximum}", "give the number of labels in the list")
    stream = _bound(ctx, stream, asked)
    index = device_address(stream.npu, ptr, 4, asked)
    count = min(maximum, len(labels.labels))
    stream.submit(LabelSwitchOp(index=index, maximum=count, list_address=labels.address))


def discard_all(context: Context) -> None:
    """Free every label and list of a context that is closing."""
    for labels in list(context.label_lists):
        labels.discard()
    for label in list(context.labels):
        discard(label)
    context.label_lists.clear()
