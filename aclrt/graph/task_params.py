"""What one task of a model is: its type, number, parameters, launch attributes. Changes none (`graph.task_edit`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import KernelAttr, TaskType
from aclrt.base.errors import fail
from aclrt.base.host_thread import require_task
from aclrt.graph.capture_model import CaptureModel
from aclrt.graph.task_structs import (
    EventRecordTaskParams,
    EventResetTaskParams,
    EventWaitTaskParams,
    KernelTaskParams,
    TaskParams,
    TimeoutUs,
    ValueWaitTaskParams,
    ValueWriteTaskParams,
)
from aclrt.task import task as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.model.model import Model

EXTERNAL = 1
ATTRIBUTES: dict[int, int] = {
    KernelAttr.SCHEM_MODE: 0,
    KernelAttr.LOCAL_MEMORY_SIZE: 0,
    KernelAttr.DATA_DUMP: 0,
    KernelAttr.TIMEOUT: 0,
}
"""Attributes of a kernel task that can be read, with the value of a launch without configuration (recorded)."""


def check_task(task: t.Task | None, asked: str) -> t.Task:
    """107000 for NULL, 107017 for a task that was removed or whose model is gone, RuntimeError outside a task."""
    require_task()
    if task is None:
        raise fail(Code.RT_PARAM_INVALID, asked, "task is NULL", "give a task of aclmdlRIGetTasksByStream")
    if not task.alive or not task.queue.owner.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, f"{task!r} is gone", "list the tasks again")
    return task


def model_of(task: t.Task) -> Model | None:
    """The model a task belongs to; None for a task of a persistent stream that is not bound."""
    model: Model | None = task.queue.owner.model
    return model


def check_member(graph: CaptureModel, task: t.Task) -> None:
    """107000 for a task of another model than `graph`, whose handle would change that one. TypeError for no task."""
    if not isinstance(task, t.Task):
        raise TypeError(f"{graph.title()}: {task!r} is not a task; take one of graph.tasks()")
    owner = model_of(task)
    if owner is not None and owner is not graph:
        met, todo = f"{task!r} is of {owner.title()}", "ask that graph"
        raise fail(Code.RT_PARAM_INVALID, f"a task of {graph.title()}", met, todo)


def _of_root(task: t.Task | None, asked: str) -> tuple[t.Task, Model | None]:
    task = check_task(task, asked)
    model = model_of(task)
    if model is not None:
        model.check_root(asked)
    return task, model


def get_type(task: t.Task | None) -> TaskType:
    """aclmdlRITaskGetType; DEFAULT for whatever has no parameters. Errors: 107000, 107017, 207000 (branch)."""
    return _of_root(task, "aclmdlRITaskGetType")[0].type


def get_seq_id(task: t.Task | None) -> int:
    """aclmdlRITaskGetSeqId: counts over all the graph's streams. Errors: 107000, 107017, 207000 (branch, built one)."""
    asked = "aclmdlRITaskGetSeqId"
    task, model = _of_root(task, asked)
    if not isinstance(model, CaptureModel):
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT, asked, f"{task!r} is not of a captured graph", "built models count no tasks"
        )
    return task.seq


def _kernel(op: t.KernelOp) -> dict[str, Any]:
    return {"kernelTaskParams": KernelTaskParams(funcHandle=op.kernel, args=list(op.args), numBlocks=op.blocks)}


def _flags(event: Any) -> int:
    return int(getattr(event, "flags", 0))


def _record(op: t.EventRecordOp | t.ExternalRecordOp) -> dict[str, Any]:
    own = op.capture or op.event if isinstance(op, t.EventRecordOp) else op.event
    flag = EXTERNAL if isinstance(op, t.ExternalRecordOp) else 0
    return {"eventRecordTaskParams": EventRecordTaskParams(own, _flags(getattr(own, "event", own)), flag)}


def _wait(op: t.EventWaitOp | t.ExternalWaitOp) -> dict[str, Any]:
    own = op.capture or op.event if isinstance(op, t.EventWaitOp) else op.event
    flag = EXTERNAL if isinstance(op, t.ExternalWaitOp) else 0
    return {"eventWaitTaskParams": EventWaitTaskParams(own, _flags(getattr(own, "event", own)), flag)}


READ: dict[type[t.Op], tuple[TaskType, Callable[[Any], dict[str, Any]]]] = {
    t.KernelOp: (TaskType.KERNEL, _kernel),
    t.EventRecordOp: (TaskType.EVENT_RECORD, _record),
    t.EventWaitOp: (TaskType.EVENT_WAIT, _wait),
    t.ExternalRecordOp: (TaskType.EVENT_RECORD, _record),  # DEFAULT by TaskGetType, but with parameters (recorded)
    t.ExternalWaitOp: (TaskType.EVENT_WAIT, _wait),
    t.EventResetOp: (TaskType.EVENT_RESET, lambda op: {"eventResetTaskParams": EventResetTaskParams(op.event, 0, 0)}),
    t.ValueWriteOp: (
        TaskType.VALUE_WRITE,
        lambda op: {"valueWriteTaskParams": ValueWriteTaskParams(op.address, op.value)},
    ),
    t.ValueWaitOp: (
        TaskType.VALUE_WAIT,
        lambda op: {"valueWaitTaskParams": ValueWaitTaskParams(op.address, op.value, op.flag)},
    ),
}


def get_params(task: t.Task | None) -> TaskParams:
    """aclmdlRITaskGetParams, in any state of the model. Errors: 107000 (NULL, no such type), 107017, 207000.

    An event's task gives its own hidden event, which no event call takes. Source: acl_semantics 8.4.
    """
    asked = "aclmdlRITaskGetParams"
    task, model = _of_root(task, asked)
    found = READ.get(type(task.op))
    if found is None or (isinstance(task.op, t.KernelOp) and task.type is TaskType.DEFAULT):
        raise fail(Code.RT_PARAM_INVALID, asked, f"{task!r} has no parameters", "ask aclmdlRITaskGetType first")
    if model is not None and not isinstance(model, CaptureModel):
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT, asked, f"{task!r} is of a built model", "only captured graphs have parameters"
        )
    kind, read = found
    return TaskParams(type=kind, taskGrp=task.group, **read(task.op))


def get_attribute(task: t.Task | None, attribute: int) -> int | TimeoutUs:
    """aclmdlRIKernelTaskGetAttribute: a launch attribute by aclrtLaunchKernelAttrId, as TaskSetParams configured it.

    Errors: 107000 (no AI core kernel; ENGINE_TYPE, NUMBLOCKS_OFFSET, BLOCK_TASK_PREFETCH or an unknown id), 107017.
    """
    asked = "aclmdlRIKernelTaskGetAttribute"
    task = check_task(task, asked)
    if task.type is not TaskType.KERNEL:
        raise fail(Code.RT_PARAM_INVALID, asked, f"{task!r} is no AI core kernel", "ask aclmdlRITaskGetType first")
    configured: dict[int, int] = {}
    model = model_of(task)
    if isinstance(model, CaptureModel):
        configured = model.launch_attributes.get(task, configured)
    if attribute == KernelAttr.TIMEOUT_US:
        micros = configured.get(attribute, 0)
        return TimeoutUs(micros & 0xFFFFFFFF, micros >> 32)
    if attribute not in ATTRIBUTES:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"attribute {attribute} cannot be read",
            "give SCHEM_MODE, LOCAL_MEMORY_SIZE, DATA_DUMP or TIMEOUT",
        )
    return configured.get(attribute, ATTRIBUTES[attribute])
