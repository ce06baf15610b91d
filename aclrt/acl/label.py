"""Labels, and the streams that switch and activate each other inside a model. Holds no logic."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

from aclrt.acl.handles import given, handle, null
from aclrt.stream import active as activation
from aclrt.stream import label as labels_
from aclrt.stream.context import current
from aclrt.stream.label import Label, LabelList
from aclrt.stream.stream import Stream

if TYPE_CHECKING:
    from aclrt.stream.copy_end import Address


def aclrtCreateLabel() -> Label:
    """A label, not yet set. Errors: 107002, 507000 when none is left."""
    return labels_.create(current())


def aclrtDestroyLabel(label: Label | None) -> None:
    """Free the label's id. Errors: 100000, 107017."""
    labels_.destroy(current(), handle(label, Label, "aclrtDestroyLabel", "label"))


def aclrtCreateLabelList(labels: Sequence[Label] | None) -> LabelList:
    """Give each label its device address, in order.

    Errors: 100000, 107000 (none or over 65,535), 507000 (in a list).
    """
    asked = "aclrtCreateLabelList"
    given_labels = given(labels, asked, "labels")
    if not isinstance(given_labels, Sequence) or isinstance(given_labels, str):
        raise TypeError(f"{asked}: labels must be a sequence of Label, not {type(given_labels).__name__}")
    members = [handle(label, Label, asked, "label") for label in given_labels]
    return labels_.create_list(current(), members)


def aclrtDestroyLabelList(labelList: LabelList | None) -> None:
    """Free the device copy. Errors: 100000, 107017."""
    labels_.destroy_list(current(), handle(labelList, LabelList, "aclrtDestroyLabelList", "labelList"))


def aclrtSetLabel(label: Label | None, stream: Stream | None) -> None:
    """Set the label here in a model's stream. Errors: 100000, 107017, 507031, 107003, 207000, 107005, 507000."""
    label = handle(label, Label, "aclrtSetLabel", "label")
    labels_.set_label(current(), label, handle(stream, Stream, "aclrtSetLabel", "stream"))


def aclrtSwitchLabelByIndex(
    ptr: Address | None, maxValue: int, labelList: LabelList | None, stream: Stream | None
) -> None:
    """Go on at the label whose 32-bit index `ptr` holds when the stream gets here. Errors: 100000, 107000, 107005."""
    asked = "aclrtSwitchLabelByIndex"
    address, labels = given(ptr, asked, "ptr"), handle(labelList, LabelList, asked, "labelList")
    labels_.switch_by_index(current(), address, index(maxValue), labels, handle(stream, Stream, asked, "stream"))


def rtLabelGoto(lbl: Label | None, stm: Stream | None) -> None:
    """Go on at the label when the stream gets here (runtime layer; no acl name exists). Errors: as aclrtSetLabel."""
    asked = "rtLabelGoto"
    labels_.goto(current(), handle(lbl, Label, asked, "lbl"), handle(stm, Stream, asked, "stm"))


def aclrtActiveStream(activeStream: Stream | None, stream: Stream | None) -> None:
    """Start `activeStream` when `stream` gets here; both of a model. Errors: 100000, 107017, 107002, 107005, 107003."""
    asked = "aclrtActiveStream"
    activation.active(
        current(), handle(activeStream, Stream, asked, "activeStream"), handle(stream, Stream, asked, "stream")
    )


def aclrtSwitchStream(
    leftValue: Address | None,
    cond: int,
    rightValue: Address | None,
    dataType: int,
    trueStream: Stream | None,
    falseStream: Stream | None,
    stream: Stream | None,
) -> None:
    """Compare two values on the device; when true start `trueStream` and stop here, else go on. `falseStream` must be
    None.

    Errors: 100000, 107000 (cond, dataType), 107017, 107005, 107002, 107003. Source: acl_semantics 1.6, 10.6.
    """
    asked = "aclrtSwitchStream"
    left, right = given(leftValue, asked, "leftValue"), given(rightValue, asked, "rightValue")
    true, here = handle(trueStream, Stream, asked, "trueStream"), handle(stream, Stream, asked, "stream")
    if falseStream is not None:
        null(asked, "unused falseStream")
    activation.switch(current(), left, index(cond), right, index(dataType), true, here)
