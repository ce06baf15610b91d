"""aclmdlRICapture functions: capture, task groups, conditional tasks. Holds no logic; codes are `aclrt.graph`'s."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from aclrt.acl.handles import given, handle, null, optional
from aclrt.graph import capture, cond, task_edit, task_group, task_update
from aclrt.graph.capture_stream import CaptureStream
from aclrt.graph.cond import CondHandle, CondTaskParams
from aclrt.graph.task_group import TaskGroup
from aclrt.model.model import Model
from aclrt.stream.context import current
from aclrt.stream.stream import Stream

if TYPE_CHECKING:
    from aclrt.base.enums import CaptureMode
    from aclrt.graph.capture import CaptureInfo
    from aclrt.graph.capture_model import CaptureModel

aclmdlRICondTaskParams = CondTaskParams


def aclmdlRICaptureBegin(stream: Stream | None, mode: int) -> None:
    """Begin a capture on `stream`. Errors: 100000, 107017, 107000, 507000, 107002, 107003, 107005, 207000, 107027,
    207010.

    Source: acl_semantics 4.1.
    """
    capture.begin(current(), handle(stream, Stream, "aclmdlRICaptureBegin", "stream"), index(mode))


def aclmdlRICaptureToModelRIBegin(stream: Stream | None, modelRI: Model | None, mode: int) -> None:
    """Begin the capture of a conditional task's branch.

    Errors: as Begin, 107000 (no branch), 107026 (captured before).
    """
    asked = "aclmdlRICaptureToModelRIBegin"
    model = handle(modelRI, Model, asked, "modelRI")
    capture.begin_to_model(current(), handle(stream, Stream, asked, "stream"), model, index(mode))


def aclmdlRICaptureEnd(stream: Stream | None) -> CaptureModel:
    """End the capture that `stream` began. Errors: 100000, 107029, 107036, 107038, 507903, 107045, 107025, 107033,
    107024.

    Source: acl_semantics 4.2, 4.4.
    """
    return capture.end(current(), handle(stream, Stream, "aclmdlRICaptureEnd", "stream"))


def aclmdlRICaptureGetInfo(stream: Stream | None) -> CaptureInfo:
    """The stream's capture status and model. Allowed at any time. Errors: 100000, 107017."""
    return capture.get_info(handle(stream, Stream, "aclmdlRICaptureGetInfo", "stream"))


def aclmdlRICaptureThreadExchangeMode(mode: int | None) -> CaptureMode:
    """Set this host thread's exchange mode; returns the old one. Errors: 100000, 107000, 107002. acl_semantics 4.5."""
    return capture.exchange_mode(current(), index(given(mode, "aclmdlRICaptureThreadExchangeMode", "mode")))


def rtStreamAddToModel(stm: Stream | None, captureMdl: Model | None) -> None:
    """Add a stream to an open capture: it needs no join, and each run is fenced by notifies (acl_semantics 5.8)."""
    asked = "rtStreamAddToModel"
    capture.add_stream(current(), optional(stm, Stream, asked, "stm"), optional(captureMdl, Model, asked, "captureMdl"))


def aclmdlRICheckCaptureForUpdate(stream: Stream | CaptureStream | None) -> None:
    """Whether the graph captured on `stream` can be edited now (seed acl-graph 2.1, 4).

    Errors: 100000, 107017, 107027, 107005, 107002, 107003, 107029, 207000, 107040.
    """
    if not isinstance(stream, CaptureStream):
        stream = handle(stream, Stream, "aclmdlRICheckCaptureForUpdate", "stream")
    task_edit.check_capture_for_update(current(), stream)


def aclmdlRICaptureTaskGrpBegin(stream: Stream | None) -> None:
    """Open a task group on a capturing stream.

    Errors: 100000, 107017, 107029, 107003, 107033, 107034. acl_semantics 8.1.
    """
    task_group.begin(current(), handle(stream, Stream, "aclmdlRICaptureTaskGrpBegin", "stream"))


def aclmdlRICaptureTaskGrpEnd(stream: Stream | None) -> TaskGroup:
    """Close the group.

    Errors: 100000, 107017, 107029, 107033, 507000, and what broke the group: 507009, 107034, 507903.
    """
    return task_group.end(current(), handle(stream, Stream, "aclmdlRICaptureTaskGrpEnd", "stream"))


def aclmdlRICaptureTaskUpdateBegin(stream: Stream | None, handle_: TaskGroup | None) -> None:
    """Open an update of a group on a stream that is not capturing. Errors: 100000, 107017, 107027, 107005, 107033."""
    asked = "aclmdlRICaptureTaskUpdateBegin"
    target = handle(stream, Stream, asked, "stream")
    task_update.update_begin(current(), target, handle(handle_, TaskGroup, asked, "handle"))


def aclmdlRICaptureTaskUpdateEnd(stream: Stream | None) -> None:
    """Close the update.

    Errors: 100000, 107017, 107027, 107005, 107033, 507000 when fewer launches came than recorded.
    """
    task_update.update_end(current(), handle(stream, Stream, "aclmdlRICaptureTaskUpdateEnd", "stream"))


def aclmdlRICondHandleCreate(modelRI: Model | None, defaultLaunchValue: int, flag: int) -> CondHandle:
    """A condition cell of a capturing model.

    Errors: 100000, 107017, 107000, 207000, 107002, 107004. acl_semantics 9.1.
    """
    model = handle(modelRI, Model, "aclmdlRICondHandleCreate", "modelRI")
    return cond.create(current(), model, index(defaultLaunchValue), index(flag))


def aclmdlRICondHandleGetCondPtr(handle_: CondHandle | None) -> int:
    """The device address of the 8-byte cell. Errors: 100000, 107017."""
    return cond.get_ptr(handle(handle_, CondHandle, "aclmdlRICondHandleGetCondPtr", "handle"))


def aclmdlRIAddCondTask(params: CondTaskParams, stream: Stream | None, flags: int = 0) -> list[CaptureModel]:
    """Add a conditional task; returns its branches, which `params.modelRIArray` holds too. acl_semantics 9.2.

    Errors: 100000, 107017, 107000, 107002, 107003, 107029, 207000.
    """
    asked = "aclmdlRIAddCondTask"
    if params is None:
        null(asked, "params")
    target = handle(stream, Stream, asked, "stream")
    if not isinstance(params, CondTaskParams):
        raise TypeError(f"{asked}: params must be aclmdlRICondTaskParams, not {type(params).__name__}")
    optional(params.handle, CondHandle, asked, "params.handle")
    return cond.add_task(current(), params, target, index(flags))
