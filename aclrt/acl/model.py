"""aclmdlRI functions of built and captured models: build, execute, lists, task parameters, debug output.

Holds no logic.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from aclrt.acl.handles import given, handle, needed, null, optional
from aclrt.graph import debug, task_edit, task_params
from aclrt.graph.capture_stream import CaptureStream
from aclrt.graph.task_structs import TaskParams
from aclrt.model import build, listing, names, stop
from aclrt.model import execute as runs
from aclrt.model.model import Model
from aclrt.stream.context import current
from aclrt.stream.stream import Stream
from aclrt.task.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.base.enums import TaskType
    from aclrt.graph.task_structs import TimeoutUs
    from aclrt.model.execute import Run

aclmdlRITaskParams = TaskParams


def aclmdlRIBuildBegin(flag: int = 0) -> Model:
    """An empty normal model. Errors: 107000 (flag not 0), 107002, 207010."""
    return build.begin(current(), index(flag))


def aclmdlRIBindStream(modelRI: Model | None, stream: Stream | None, flag: int) -> None:
    """Bind a persistent stream; HEAD streams start with the model. Check order: acl_semantics 1.2, recorded.

    Errors: 100000, 107000, 107017, 107005, 107027, 507000, 207000, 107002, 107004.
    """
    asked = "aclmdlRIBindStream"
    model = handle(modelRI, Model, asked, "modelRI")
    build.bind(current(), model, optional(stream, Stream, asked, "stream"), index(flag))


def aclmdlRIUnbindStream(modelRI: Model | None, stream: Stream | None) -> None:
    """Take a stream out of the model. Errors: 100000, 107017, 107000 (capture model), 107027, 107005."""
    asked = "aclmdlRIUnbindStream"
    build.unbind(current(), handle(modelRI, Model, asked, "modelRI"), optional(stream, Stream, asked, "stream"))


def aclmdlRIEndTask(modelRI: Model | None, stream: Stream | None) -> None:
    """Mark the stream whose end ends a run. Errors: 100000, 107017, 107000, 107027, 107003, 107004, 507000."""
    asked = "aclmdlRIEndTask"
    build.end_task(current(), handle(modelRI, Model, asked, "modelRI"), optional(stream, Stream, asked, "stream"))


def aclmdlRIBuildEnd(modelRI: Model | None, reserve: None = None) -> None:
    """Complete the model. Errors: 100000 (also a `reserve` that is not None), 107017, 107000, 107005, 507011."""
    model = handle(modelRI, Model, "aclmdlRIBuildEnd", "modelRI")
    if reserve is not None:
        null("aclmdlRIBuildEnd", "unused reserve")
    build.build_end(current(), model)


async def aclmdlRIExecute(modelRI: Model | None, timeout: int = -1) -> None:
    """Run a built model to its end, at most `timeout` ms of device time.

    Errors: 100000, 107017, 107000, 507011, 507046.
    """
    await runs.execute(current(), handle(modelRI, Model, "aclmdlRIExecute", "modelRI"), index(timeout))


def aclmdlRIExecuteAsync(modelRI: Model | None, stream: Stream | None) -> Run:
    """Enqueue a run; what it returns can be awaited any number of times, or dropped. Check order: acl_semantics 1.3.

    Errors: 100000, 107017, 107000, 107027, 207000, 107002, 107004, 107026, 507011, 207005, 107003.
    """
    asked = "aclmdlRIExecuteAsync"
    return runs.execute_async(
        current(), handle(modelRI, Model, asked, "modelRI"), optional(stream, Stream, asked, "stream")
    )


async def aclmdlRIDestroy(modelRI: Model | None) -> None:
    """Destroy a model that is not capturing. Errors: 100000, 107017, 207000, 107002, 107004, 107026, 107037."""
    await stop.destroy(current(), handle(modelRI, Model, "aclmdlRIDestroy", "modelRI"))


async def aclmdlRIAbort(modelRI: Model | None) -> None:
    """Stop the model's runs; they report 507023. Errors: 107000, 107017, 207000, 107004, 107019."""
    await stop.abort(current(), needed(modelRI, Model, "aclmdlRIAbort", "modelRI"))


def aclmdlRISetName(modelRI: Model | None, name: str | None) -> None:
    """Name the model. Errors: 100000, 107017, 107002, 107004."""
    model = handle(modelRI, Model, "aclmdlRISetName", "modelRI")
    names.set_name(current(), model, _text(name, "aclmdlRISetName", "name"))


def aclmdlRIGetName(modelRI: Model | None, maxLen: int = 513) -> str:
    """The model's name, empty without one. Errors: 100000, 107017, 107000 (maxLen 0), 507000 (maxLen too small)."""
    return names.get_name(current(), handle(modelRI, Model, "aclmdlRIGetName", "modelRI"), index(maxLen))


def aclmdlRIGetId(modelRI: Model | None) -> int:
    """The model's device id. Errors: 100000, 107017."""
    return names.get_id(handle(modelRI, Model, "aclmdlRIGetId", "modelRI"))


def aclmdlRIDestroyRegisterCallback(
    modelRI: Model | None, func: Callable[[Any], object] | None, userData: Any = None
) -> None:
    """Call `func(userData)` when the model is destroyed. Errors: 107000 (NULL, registered twice), 107017, 207000."""
    asked = "aclmdlRIDestroyRegisterCallback"
    names.register_callback(needed(modelRI, Model, asked, "modelRI"), func, userData)


def aclmdlRIDestroyUnregisterCallback(modelRI: Model | None, func: Callable[[Any], object] | None) -> None:
    """Take a destroy callback back. Errors: 107000 (NULL, unknown), 107017, 207000."""
    names.unregister_callback(needed(modelRI, Model, "aclmdlRIDestroyUnregisterCallback", "modelRI"), func)


def aclmdlRIGetStreams(modelRI: Model | None, numStreams: int | None = None) -> list[Any]:
    """The model's streams, newest first. `numStreams` is the room C gives: 107039 when there are more.

    Errors: 107000 (NULL), 107017, 107004, 207000, 107039.
    """
    model = needed(modelRI, Model, "aclmdlRIGetStreams", "modelRI")
    return listing.get_streams(current(), model, None if numStreams is None else index(numStreams))


def aclmdlRIGetTasksByStream(stream: Stream | CaptureStream | None, numTasks: int | None = None) -> list[Task]:
    """The tasks of a model's stream in order of submission.

    Errors: 107000 (NULL, no model's stream), 107017, 207000, 107039.
    """
    if not isinstance(stream, CaptureStream):
        stream = needed(stream, Stream, "aclmdlRIGetTasksByStream", "stream")
    return listing.get_tasks(stream, None if numTasks is None else index(numTasks))


def aclmdlRITaskGetType(task: Task | None) -> TaskType:
    """The task's type. Errors: 107000, 107017, 207000."""
    return task_params.get_type(needed(task, Task, "aclmdlRITaskGetType", "task"))


def aclmdlRITaskGetSeqId(task: Task | None) -> int:
    """The task's number in its model, from 0 in order of submission. Errors: 107000, 107017, 207000."""
    return task_params.get_seq_id(needed(task, Task, "aclmdlRITaskGetSeqId", "task"))


def aclmdlRITaskGetParams(task: Task | None) -> TaskParams:
    """What the task does. Errors: 107000 (NULL, no such type), 107017, 207000. acl_semantics 8.4."""
    return task_params.get_params(needed(task, Task, "aclmdlRITaskGetParams", "task"))


def aclmdlRITaskSetParams(task: Task | None, params: TaskParams | None) -> None:
    """Change what the task does from the next aclmdlRIUpdate on. Errors: 107000, 107017, 207000, 107040."""
    target = needed(task, Task, "aclmdlRITaskSetParams", "task")
    task_edit.set_params(target, needed(params, TaskParams, "aclmdlRITaskSetParams", "params"))


def aclmdlRITaskDisable(task: Task | None) -> None:
    """Take the task out at the next aclmdlRIUpdate. Errors: 107000, 107017, 207000, 107040."""
    task_edit.disable(needed(task, Task, "aclmdlRITaskDisable", "task"))


def aclmdlRIKernelTaskGetAttribute(task: Task | None, attrId: int) -> int | TimeoutUs:
    """A launch attribute of a kernel task. Errors: 100000, 107017, 107000 (no kernel; no such attribute)."""
    return task_params.get_attribute(handle(task, Task, "aclmdlRIKernelTaskGetAttribute", "task"), index(attrId))


def aclmdlRIUpdate(modelRI: Model | None) -> None:
    """Put changed tasks into effect. Errors: 107000, 107017, 207000, 107040, 507002. acl_semantics 8.4."""
    task_edit.update(needed(modelRI, Model, "aclmdlRIUpdate", "modelRI"))


def aclmdlRIDebugPrint(modelRI: Model | None) -> None:
    """Log the model's streams and tasks (logger `aclrt.debug`). Errors: 100000, 107017, 107002, 107004."""
    debug.debug_print(current(), handle(modelRI, Model, "aclmdlRIDebugPrint", "modelRI"))


def aclmdlRIDebugJsonPrint(modelRI: Model | None, path: str | None, flags: int = 0) -> None:
    """Write the model as JSON; flag 1 adds task details. Errors: 100000, 107017, 107002, 107004, 107000 (path)."""
    asked = "aclmdlRIDebugJsonPrint"
    model = handle(modelRI, Model, asked, "modelRI")
    debug.json_print(current(), model, _text(path, asked, "path"), index(flags))


def aclmdlRIDebugDotPrint(modelRI: Model | None, path: str | None) -> None:
    """Write the model as dot text (seed acl-graph). Errors: as aclmdlRIDebugJsonPrint."""
    asked = "aclmdlRIDebugDotPrint"
    model = handle(modelRI, Model, asked, "modelRI")
    debug.dot_print(current(), model, _text(path, asked, "path"))


def _text(value: str | None, asked: str, name: str) -> str:
    text = given(value, asked, name)
    if not isinstance(text, str):
        raise TypeError(f"{asked}: {name} must be a str, not {type(text).__name__}")
    return text
