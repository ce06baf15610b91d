"""Editing the tasks of a captured graph: TaskSetParams, TaskDisable, and aclmdlRIUpdate, which gives effect to both.

Not the update of a task group, which patches SQEs while the graph may run (`graph.task_update`).
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import ModelStatus, TaskType
from aclrt.base.errors import AclError, fail
from aclrt.base.place import here
from aclrt.graph import software_sq
from aclrt.graph.capture_model import CaptureModel
from aclrt.graph.capture_stream import CaptureStream
from aclrt.graph.patches import drop_arguments, flying_to, give_up_image
from aclrt.graph.task_params import check_task, model_of
from aclrt.model.model import check_handle as check_model
from aclrt.stream import context as contexts
from aclrt.stream.checks import check_handle, refuse_capturing
from aclrt.task.kernel import Kernel
from aclrt.task.task import KernelOp, Nop, UpdateFlag, ValueWaitOp, ValueWriteOp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aclrt.graph.task_structs import KernelTaskParams, TaskParams
    from aclrt.model.model import Model
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream
    from aclrt.task.queue import TaskQueue
    from aclrt.task.task import Op, Task

S = ModelStatus


def check_updatable(model: CaptureModel, asked: str) -> None:
    """107040 unless the graph is READY or UPDATING and no run of it is outstanding (seed acl-graph "CanUpdate")."""
    if model.status not in (S.READY, S.UPDATING):
        raise fail(
            Code.RT_MODEL_UPDATE_FAILED,
            asked,
            f"{model.title()} is {model.status.name}",
            "only a READY graph is edited",
        )
    if model.runs:
        raise fail(
            Code.RT_MODEL_UPDATE_FAILED,
            asked,
            f"{model.title()} has {model.runs} runs outstanding",
            "synchronize them first",
        )


def _editable(task: Task | None, asked: str) -> tuple[Task, CaptureModel]:
    """The entry checks of every edit, in their order; none of them changes the graph's status (acl_semantics 8.4)."""
    task = check_task(task, asked)
    model = model_of(task)
    if model is None:
        raise fail(Code.RT_INTERNAL_ERROR, asked, f"{task!r} is in no model", "edit tasks of a captured graph")
    if not isinstance(model, CaptureModel):
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT, asked, f"{model.title()} is a built model", "edit tasks of a captured graph"
        )
    model.check_root(asked)
    check_updatable(model, asked)
    return task, model


def _bad(asked: str, met: str, todo: str) -> AclError:
    return fail(Code.RT_PARAM_INVALID, asked, met, todo)


# --- edits ---------------------------------------------------------------------------------------------------------


def set_params(task: Task | None, params: TaskParams | None) -> None:
    """aclmdlRITaskSetParams: what the task does from the next aclmdlRIUpdate on; the last call on a task wins.

    `params.type` chooses: KERNEL for a task that is an AI core kernel, VALUE_WRITE or VALUE_WAIT for any typed task.
    Errors that leave the graph alone: 107000 (NULL), 107017, 507000, 207000, 107040. Errors after which it is FAULT:
    107000 (type, taskGrp, opInfo, missing funcHandle or args). Source: acl_semantics 8.4.
    """
    asked = "aclmdlRITaskSetParams"
    if params is None:
        raise _bad(asked, "params is NULL", "give parameters")
    task, model = _editable(task, asked)
    try:
        cfg = params.kernelTaskParams.cfg if params.type == TaskType.KERNEL else None
        configured = attributes(cfg) if cfg is not None else None
        op = _new_op(model, task, params, asked)
    except AclError:
        _fault(model)
        raise
    model.move("edit")
    _replace(model, task, op)
    task.flag = UpdateFlag.UPDATE
    if isinstance(op, KernelOp):
        if configured is not None:
            model.launch_attributes[task] = configured
    else:
        model.launch_attributes.pop(task, None)


def _fault(model: CaptureModel) -> None:
    model.move("edit")
    model.move("fail")


def _new_op(model: CaptureModel, task: Task, params: TaskParams, asked: str) -> Op:
    if params.type == TaskType.KERNEL:
        return _kernel_op(model, task, params, asked)
    if params.type not in (TaskType.VALUE_WRITE, TaskType.VALUE_WAIT):
        raise _bad(asked, f"type is {params.type}", "set KERNEL, VALUE_WRITE or VALUE_WAIT")
    if task.type is TaskType.DEFAULT:
        raise _bad(asked, f"{task!r} has no type", "edit tasks that aclmdlRITaskGetType knows")
    if params.taskGrp is not None or params.opInfoPtr is not None or params.opInfoSize:
        raise _bad(asked, "taskGrp or opInfo is set", "leave them empty for a value task")
    if params.type == TaskType.VALUE_WRITE:
        write = params.valueWriteTaskParams
        return ValueWriteOp(address=_address(write.devAddr), value=index(write.value))
    wait = params.valueWaitTaskParams
    flag = index(wait.flag) & 3  # not validated, as in C: the SQE has two bits for it
    return ValueWaitOp(address=_address(wait.devAddr), value=index(wait.value), flag=flag)


def _address(where: Any) -> int:
    """A device address, or the device array at it; whether there is memory is not validated, as in C."""
    return _unsigned(getattr(where, "address", where), 64, "devAddr")


def _unsigned(value: Any, bits: int, name: str) -> int:
    """A number that the C field can hold. TypeError, ValueError; the graph stays as it is then."""
    number = index(value)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"aclmdlRITaskSetParams: {name} is {number}; give 0 to 2**{bits} - 1")
    return number


def _kernel_op(model: CaptureModel, task: Task, params: TaskParams, asked: str) -> KernelOp:
    new: KernelTaskParams = params.kernelTaskParams
    if task.type is not TaskType.KERNEL:
        raise _bad(asked, f"{task!r} is no AI core kernel", "only a kernel task becomes another kernel")
    if params.taskGrp is not None:
        raise _bad(asked, f"the task is in {params.taskGrp!r}", "clear taskGrp to edit it, or update the group")
    if new.funcHandle is None or new.args is None:
        raise _bad(asked, "funcHandle or args is NULL", "give a kernel and its arguments")
    if not isinstance(new.funcHandle, Kernel):
        raise TypeError(
            f"{asked}: funcHandle must be a kernel made by @aclrt.kernel, not {type(new.funcHandle).__name__}"
        )
    driver = model.npu.driver
    args, blocks = tuple(new.args), _unsigned(new.numBlocks, 32, "numBlocks")
    bound = new.funcHandle.bind(driver, args)
    handle = driver.args_put(bound.values, bound.bases)
    model.keep_arguments(handle)
    return KernelOp(
        kernel=new.funcHandle, args=args, blocks=blocks, program=new.funcHandle.program(driver), handle=handle
    )


def attributes(cfg: Any) -> dict[int, int]:
    """A launch configuration as {attribute id: value}: a mapping, or pairs, or objects with `id` and `value`."""
    entries: Iterable[Any] = cfg.items() if hasattr(cfg, "items") else getattr(cfg, "attrs", cfg)
    pairs = [(entry.id, entry.value) if hasattr(entry, "id") else entry for entry in entries]
    return {int(key): int(value) for key, value in pairs}


def _replace(model: CaptureModel, task: Task, op: Op) -> None:
    """Give the task its new operation. The graph cannot run before it is sent again, so old arguments can go now."""
    old, task.op = task.op, op
    if isinstance(old, KernelOp):
        _let_go(model, task, old)


def _let_go(model: CaptureModel, task: Task, old: KernelOp) -> None:
    if task.group is not None:
        task.group.patches(task).edited(model, old)
    else:
        drop_arguments(model, old.handle)


def disable(task: Task | None) -> None:
    """aclmdlRITaskDisable: the task leaves the schedule at the next aclmdlRIUpdate; until then it can be set again.

    Errors as `set_params`; 107000 for a task without type makes the graph FAULT.
    """
    asked = "aclmdlRITaskDisable"
    task, model = _editable(task, asked)
    if task.type is TaskType.DEFAULT:
        _fault(model)
        raise _bad(asked, f"{task!r} has no type", "disable tasks that aclmdlRITaskGetType knows")
    model.move("edit")
    task.flag = UpdateFlag.DISABLE


# --- putting edits into effect -------------------------------------------------------------------------------------


def update(model: Model | None) -> None:
    """aclmdlRIUpdate: rebuild every stream from its edited tasks; the next execute sends all SQEs again.

    READY: nothing to do. Disabled tasks are gone, their handles invalid; an emptied stream keeps one NOP.
    Errors: 107000 (NULL), 107017, 207000 (built model, branch), 107040 (not UPDATING); 107040 (more updates than the
    device counts) and 507002 (a stream of more SQEs than an SQ takes) leave the graph FAULT. Source: acl_semantics 8.4.
    """
    asked = "aclmdlRIUpdate"
    if model is None:
        raise _bad(asked, "modelRI is NULL", "give a model")
    check_model(model, asked)
    if not isinstance(model, CaptureModel):
        raise fail(Code.RT_FEATURE_NOT_SUPPORT, asked, f"{model.title()} is a built model", "update captured graphs")
    model.check_root(asked)
    if model.status is S.READY:
        return
    if model.status is not S.UPDATING:
        raise fail(
            Code.RT_MODEL_UPDATE_FAILED,
            asked,
            f"{model.title()} is {model.status.name}",
            "set or disable tasks of a READY graph first",
        )
    check_updatable(model, asked)
    try:
        _check_room(model, asked)
    except AclError:
        model.move("fail")
        raise
    model.npu.model_updates += 1
    software_sq.release(model)
    for queue in model.queues:
        if flying_to(model, queue):  # they know slots of the old order
            give_up_image(model, queue)
    for queue in model.queues:
        _rebuild(model, queue)
    model.move("update")


def _check_room(model: CaptureModel, asked: str) -> None:
    spec = model.npu.spec
    if model.npu.model_updates >= spec.update_limit:
        raise fail(
            Code.RT_MODEL_UPDATE_FAILED,
            asked,
            f"the device counted {spec.update_limit} updates",
            "capture the graph again",
        )
    for queue in model.queues:
        sqes = sum(task.op.sqes(spec.wait_sqes) for task in queue.tasks if task.flag is not UpdateFlag.DISABLE)
        if sqes >= spec.sq_depth:
            raise fail(
                Code.RT_STREAM_TASK_FULL,
                asked,
                f"stream {queue.stream_id} would hold {sqes} SQEs of {spec.sq_depth}",
                "set fewer waits",
            )


def _rebuild(model: CaptureModel, queue: TaskQueue) -> None:
    """Drop disabled tasks, take the others with their current operation, give every task its slot again."""
    wait_sqes = model.npu.spec.wait_sqes
    kept: list[Task] = []
    for task in queue.tasks:
        if task.group is not None:
            task.group.patches(task).take_back()
        if task.flag is UpdateFlag.DISABLE:
            task.alive = False
            if isinstance(task.op, KernelOp):
                _let_go(model, task, task.op)
            model.launch_attributes.pop(task, None)
        else:
            task.flag = UpdateFlag.KEEP
            task.nsqe = task.op.sqes(wait_sqes)
            kept.append(task)
    queue.tasks = kept
    queue.restamp()
    queue.sent = False
    for task in kept:
        if task.group is not None:
            task.group.patches(task).settle(model)
    if not kept:
        queue.append(Nop(), model.next_seq(), here(), wait_sqes)


def check_capture_for_update(ctx: Context | None, stream: Stream | CaptureStream) -> None:
    """aclmdlRICheckCaptureForUpdate: whether the graph captured on `stream` can be edited now (seed acl-graph 2.1, 4).

    `stream` is a user stream (its latest capture in this context counts) or one of aclmdlRIGetStreams.
    Errors: 107017, 107027 (still capturing), 107005 (bound to a built model), 107002, 107003, 107029 (never captured,
    or the graph is gone), 207000 (branch), 107040 (UPDATING is fine; FAULT or running is not).
    """
    asked = "aclmdlRICheckCaptureForUpdate"
    model: CaptureModel | None
    if isinstance(stream, CaptureStream):
        if not stream.alive:
            raise fail(Code.RT_INVALID_HANDLE, asked, f"{stream!r}", "its graph is destroyed")
        model = stream.model
    else:
        check_handle(stream, asked)
        refuse_capturing(stream, asked)
        if stream.model is not None:
            raise fail(
                Code.RT_STREAM_MODEL,
                asked,
                f"stream {stream.id} is bound to {stream.model.title()}",
                "give a captured stream",
            )
        contexts.require_same(ctx, stream, asked)
        model = _captured_on(stream)
    if model is None:
        raise fail(Code.RT_STREAM_NOT_CAPTURED, asked, f"no graph was captured on stream {stream.id}", "capture one")
    model.check_root(asked)
    check_updatable(model, asked)


def _captured_on(stream: Stream) -> CaptureModel | None:
    for model in reversed(stream.context.models):
        if isinstance(model, CaptureModel) and any(hidden.user is stream for hidden in model.streams):
            return model
    return None
