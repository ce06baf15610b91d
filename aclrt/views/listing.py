"""The plain listing of a model: its streams, tasks, task groups and edges, as numbers and strings.

Not the model itself: whoever owns the model fills a listing, and the views (`dump`, `dot`) read nothing else.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


@final
class EdgeKind(StrEnum):
    """Why one task of a model comes after another one."""

    ORDER = "order"  # next to each other on one stream
    EVENT = "event"  # event record -> event wait
    NOTIFY = "notify"  # notify record -> notify wait
    ACTIVE = "active"  # STREAM_ACTIVE or STREAM_SWITCH -> first task of the stream it starts
    COND = "cond"  # conditional task -> first task of a branch


@final
class TaskRef(msgspec.Struct, frozen=True, gc=False):
    """Names one task of a listing. `seq` and not the task id: task ids are 16 bits wide and wrap on long streams."""

    stream_id: int
    seq: int


@final
class TaskListing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One task. The fields and their meaning are acl_semantics 12.2's; None or "" means that the task has none."""

    task_id: int
    seq: int  # unique within its stream and rising (the model's sequence id, or the position)
    kind: str  # the type's enum name (acl_semantics 11.1)
    type_name: str  # the text of "Task Type" (acl_semantics 12.2)
    label: str = ""  # kernel name or AI CPU operator
    place: str = ""  # "file:line" of the launch
    event_id: int | None = None
    notify_id: int | None = None
    address: int | None = None  # of a value task, or of the word behind a software event; no other task has one
    numblocks: int | None = None
    mix_type: str | None = None  # "NO_MIX", "MIX_AIC", "MIX_AIV"; AI core and vector kernels only
    task_ration: int | None = None  # cores of the other kind for each block of a mix kernel
    schem_mode: int | None = None
    active_stream_id: int | None = None  # the stream that STREAM_ACTIVE starts
    extend_info: str = ""
    kernel_args: Sequence[int] | None = None  # 64-bit words
    kernel_args_size: int | None = None  # bytes; None: 8 for each word
    placeholders: Sequence[tuple[int, str]] = ()  # (word index, "placeHolderAddr0")


@final
class StreamListing(msgspec.Struct, frozen=True, kw_only=True):
    """One stream of a model, its tasks in submission order."""

    stream_id: int
    tasks: Sequence[TaskListing]
    label: str = ""  # the user's name for it
    origin: str = ""  # how it came into the model: "captured at f.py:3", "joined through event 3 recorded at f.py:9"
    bound: bool = True  # False: dump leaves it out (acl_semantics 12.1: only streams with the bind flag)


@final
class GroupListing(msgspec.Struct, frozen=True):
    """One task group: for each stream the first and the last task in it, as seq. No spans: the group is empty."""

    group_id: int
    spans: Sequence[tuple[int, int, int]]  # (stream id, first seq, last seq)


@final
class EdgeListing(msgspec.Struct, frozen=True):
    """One edge. Order on one stream needs none: the views take it from the task lists."""

    source: TaskRef
    target: TaskRef
    kind: EdgeKind
    label: str = ""  # "event 5"; "": the kind


@final
class BranchListing(msgspec.Struct, frozen=True):
    """A sub-model under the conditional task that runs it."""

    task: TaskRef
    label: str  # "if", "else", "while", "case 2"
    model: ModelListing


@final
class ModelListing(msgspec.Struct, frozen=True, kw_only=True):
    """One model. `streams` in the model's list order, as aclmdlRIGetStreams gives it (acl_semantics 1.4)."""

    model_id: int
    streams: Sequence[StreamListing]
    name: str = ""
    device_id: int = 0
    chip: str = "v100"
    groups: Sequence[GroupListing] = ()
    edges: Sequence[EdgeListing] = ()
    branches: Sequence[BranchListing] = ()

    def task_ids(self) -> dict[TaskRef, int]:
        """The task id of every task that a group span names (groups are listed by seq, printed by task id)."""
        spans = [span for group in self.groups for span in group.spans]
        wanted = {TaskRef(sid, seq) for sid, first, last in spans for seq in (first, last)}
        if not wanted:
            return {}
        return {
            ref: task.task_id
            for stream in self.streams
            for task in stream.tasks
            if (ref := TaskRef(stream.stream_id, task.seq)) in wanted
        }
