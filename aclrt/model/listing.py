"""The lists of a model: its streams, newest first, and the tasks of one of them. Reads; changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.host_thread import require_task
from aclrt.model.model import check_handle, require_same

if TYPE_CHECKING:
    from aclrt.model.model import Model
    from aclrt.stream.context import Context
    from aclrt.task.task import Task


def get_streams(ctx: Context | None, model: Model | None, room: int | None = None) -> list[Any]:
    """aclmdlRIGetStreams: user streams of a normal model, hidden streams of a graph, newest first; slaves of a split
    stream are not shown. `room` is how many the caller takes.

    Errors: 107000 (NULL), 107017, 207000 (branch), 107002, 107004, 107039 (more than `room`). Source: acl_semantics
    1.4.
    """
    asked = "aclmdlRIGetStreams"
    if model is None:
        raise fail(Code.RT_PARAM_INVALID, asked, "the model is NULL", "give a model")
    check_handle(model, asked)
    model.check_root(asked)
    require_same(ctx, model, asked)
    streams = [queue.owner for queue in model.queues]
    _check_room(len(streams), room, asked)
    return streams


def get_tasks(stream: Any, room: int | None = None) -> list[Task]:
    """aclmdlRIGetTasksByStream: the tasks of a model's stream in order of submission.

    Errors: 107000 (NULL, a stream of no model), 107017, 107039 (more than `room`). Source: acl_semantics 1.4, recorded.
    """
    asked = "aclmdlRIGetTasksByStream"
    require_task()
    if stream is None:
        raise fail(Code.RT_PARAM_INVALID, asked, "the stream is NULL", "give a stream of aclmdlRIGetStreams")
    if not stream.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, f"{stream!r} is destroyed", "list the streams of a live model")
    if stream.model is None:
        raise fail(
            Code.RT_PARAM_INVALID, asked, f"{stream!r} belongs to no model", "give a stream of aclmdlRIGetStreams"
        )
    tasks = list(stream.queue.tasks)
    _check_room(len(tasks), room, asked)
    return tasks


def _check_room(count: int, room: int | None, asked: str) -> None:
    if room is not None and count > room:
        raise fail(
            Code.RT_INSUFFICIENT_INPUT_ARRAY, asked, f"{count} entries, room for {room}", "ask for the number first"
        )
