"""The dump of a model: the log lines of aclmdlRIDebugPrint and the chrome-trace text of aclmdlRIDebugJsonPrint.

Not a record of a run (`trace`), and not the checks of the two calls: handles and flags are judged by who calls.
Formats: acl_semantics 12.1 and 12.2. One deviation: the array is valid JSON also when the last stream has no tasks.
"""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING

from aclrt.views.listing import TaskRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aclrt.views.listing import GroupListing, ModelListing, TaskListing

LOG = logging.getLogger("aclrt.debug")

_WORD = (1 << 64) - 1


def debug_lines(model: ModelListing) -> Iterator[str]:
    """The lines of aclmdlRIDebugPrint in their order: begin, tasks by stream, task groups, end (acl_semantics 12.1)."""
    yield f"aclmdlRIDebugPrint begin, device_id={model.device_id}, model_id={model.model_id}"
    yield from _body_lines(model)
    yield f"aclmdlRIDebugPrint end, device_id={model.device_id}, model_id={model.model_id}"


def debug_print(model: ModelListing) -> None:
    """Write `debug_lines` to the logger "aclrt.debug" at INFO."""
    _log(debug_lines(model))


def json_lines(model: ModelListing, *, verbose: bool = False, pid: int | None = None) -> Iterator[str]:
    """The text of aclmdlRIDebugJsonPrint in pieces; joined without a separator they are the file (acl_semantics 12.2).

    `verbose` adds the kernel arguments. `pid` is this process's unless given.
    """
    pid_text = f'"pid":"{os.getpid() if pid is None else pid} aclGraph"'
    v200 = model.chip == "v200"  # names external events too, and has one duration for every task
    yield "["
    between = "\n"
    for stream in model.streams:
        if not stream.bound:
            continue
        ts = 0
        where = f'"tid":"stream{stream.stream_id}"'
        ids = f'"Model Id":{model.model_id},"Stream Id":{stream.stream_id}'
        for task in stream.tasks:
            dur, step = (9.5, 10) if v200 else _task_time(task.type_name)
            name = _quoted(_task_name(task, external_named=v200))
            yield (
                f'{between}{{"name":{name},{pid_text},{where},"ts":{ts},"dur":{dur},"ph":"X",'
                f'"args":{{{ids},"Task Id":{task.task_id}{_task_args(task, verbose=verbose)}}}}}'
            )
            ts += step
            between = ",\n"
    yield "\n]"


def json_text(model: ModelListing, *, verbose: bool = False, pid: int | None = None) -> str:
    """The whole text of aclmdlRIDebugJsonPrint: a JSON array, no newline at its end. See `json_lines`."""
    return "".join(json_lines(model, verbose=verbose, pid=pid))


def json_print(model: ModelListing, path: str | os.PathLike[str], *, verbose: bool = False) -> None:
    """Truncate `path`, write `json_text` to it, and log the task and group lines, as the shipped call does.

    Errors: OSError when the file cannot be opened or written; the call that asked answers 107000 (acl_semantics 12.2).
    """
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(json_lines(model, verbose=verbose))
    _log(_body_lines(model))


def _log(lines: Iterator[str]) -> None:
    if LOG.isEnabledFor(logging.INFO):
        for line in lines:
            LOG.info("%s", line)


def _body_lines(model: ModelListing) -> Iterator[str]:
    for stream in model.streams:
        if stream.bound:
            head = f"device_id={model.device_id}, stream_id={stream.stream_id}"
            for task in stream.tasks:
                yield f"{head}, task_id={task.task_id}, task_type={task.type_name}{_task_tail(task, model.chip)}"
    task_ids = model.task_ids()
    for group in model.groups:
        yield _group_line(model, group, task_ids)


def _task_tail(task: TaskListing, chip: str) -> str:
    """At most one of event, notify and mix type; v200 also prints the address."""
    if task.event_id is not None:
        tail = f", event_id={task.event_id}"
    elif task.notify_id is not None:
        tail = f", notify_id={task.notify_id}"
    elif task.mix_type is not None:
        tail = f", mix_type={task.mix_type}"
    else:
        tail = ""
    if chip == "v200" and task.address is not None:
        tail += f", dev_addr={task.address:#x}"
    return tail


def _group_line(model: ModelListing, group: GroupListing, task_ids: dict[TaskRef, int]) -> str:
    head = f"device_id={model.device_id}, model_id={model.model_id}, taskGroupId={group.group_id}"
    if not group.spans:
        return f"{head}, the task group is empty"
    spans = (
        f"stream_id={sid}, first task_id={task_ids[TaskRef(sid, first)]}, last task_id={task_ids[TaskRef(sid, last)]}"
        for sid, first, last in group.spans
    )
    return f"{head}, {'; '.join(spans)}"


def _task_name(task: TaskListing, *, external_named: bool) -> str:
    """Kernel or type name, with the number of the event, the notify or the (decimal) address behind it.

    v100 gives external event tasks no number.
    """
    name = task.label or task.type_name
    if not external_named and is_external(task):
        return name
    for number in (task.event_id, task.notify_id, task.address):
        if number is not None:
            return f"{name}_{number}"
    return name


def is_external(task: TaskListing) -> bool:
    """Whether this records or waits for an external event, by either of its type's names."""
    return "EXTERNAL" in task.type_name or task.kind.startswith("EXT_") or "EXTERNAL" in task.kind


def _task_time(type_name: str) -> tuple[float, int]:
    """(dur, step) of v100's time model, which looks at the type's text and nothing else."""
    if type_name == "NOP":
        return 0.5, 1
    if "RECORD" in type_name:
        return 4.5, 5
    if "WAIT" in type_name:
        return 14.5, 15
    return 9.5, 10


def _task_args(task: TaskListing, *, verbose: bool) -> str:
    """The members of "args" behind "Task Id", in the shipped order."""
    kind = task.type_name
    text = f',"Task Type":{_quoted(kind)}'
    if task.extend_info:
        text += f',"ExtendInfo":{_quoted(task.extend_info)}'
    if task.active_stream_id is not None and kind.startswith("STREAM_ACTIVE"):
        text += f',"Active Stream Id":{task.active_stream_id}'
    if task.numblocks is not None:
        text += f',"Numblocks":{task.numblocks}'
    if task.task_ration is not None and kind.startswith("KERNEL_MIX"):
        text += f',"Task Ration":{task.task_ration}'
    if task.schem_mode is not None:
        text += f',"Schem Mode":{task.schem_mode}'
    if verbose and task.kernel_args is not None:
        size = 8 * len(task.kernel_args) if task.kernel_args_size is None else task.kernel_args_size
        if size:
            text += f',"Kernel Args":"{_kernel_args(task, size)}","Kernel Args Size":{size}'
    return text


def _kernel_args(task: TaskListing, size: int) -> str:
    """Whole words only: what `size` leaves over beyond a multiple of 8 bytes is not printed."""
    prefixes = {word: f"({_quoted(text)[1:-1]})" for word, text in task.placeholders}
    words = list(task.kernel_args or ())[: size // 8]
    return " ".join(f"{prefixes.get(i, '')}0x{word & _WORD:016x}" for i, word in enumerate(words))


def _quoted(text: str) -> str:
    # Printable text stays readable, as shipped; the rest (a lone surrogate too) must not break the file's encoding.
    return json.dumps(text, ensure_ascii=not text.isprintable())
