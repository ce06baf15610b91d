"""A task: one piece of work submitted to a stream, and the vocabulary of operations it can be.

Not bytes (`task.lower` makes those) and not a place in a schedule (`task.queue` keeps that).
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

import msgspec

from aclrt.base.enums import TaskType

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.base.place import Place
    from aclrt.task.kernel import Kernel
    from aclrt.task.queue import TaskQueue


class TaskKind(IntEnum):
    """Task types by the runtime's numbers (acl_semantics 11.1)."""

    KERNEL_AICORE = 0
    KERNEL_AICPU = 1
    EVENT_RECORD = 2
    EVENT_WAIT = 3
    MEMCPY = 5
    MODEL_MAINTAINCE = 12
    MODEL_EXECUTE = 13
    NOTIFY_WAIT = 14
    NOTIFY_RECORD = 15
    STREAM_SWITCH = 18
    STREAM_ACTIVE = 19
    LABEL_SET = 20
    EVENT_RESET = 24
    MEMSET = 32
    KERNEL_AIVEC = 66
    MODEL_TO_AICPU = 68
    HOSTFUNC = 72
    LABEL_SWITCH = 75
    LABEL_GOTO = 77
    NOP = 103
    FUSION = 107
    MEM_WRITE_VALUE = 113
    MEM_WAIT_VALUE = 114
    CAPTURE_CONDITION = 133
    EXT_RECORD = 134
    EXT_WAIT = 135


class HasId(Protocol):
    """Anything the device knows by a number that may change between builds (a notify, an event)."""

    id: int | None


class Op(msgspec.Struct, kw_only=True):
    """One operation. Subclasses carry what the operation needs and nothing of where it was submitted."""

    kind: ClassVar[TaskKind] = TaskKind.NOP
    type: ClassVar[TaskType] = TaskType.DEFAULT
    type_name: ClassVar[str] = "NOP"

    def sqes(self, wait_sqes: int) -> int:
        """How many 64-byte SQEs this takes. `wait_sqes` is the chip's count for a memory wait."""
        return 1


@final
class Nop(Op):
    """Nothing; stands before a task group (prefetch) and for a stream emptied by an update."""


@final
class KernelOp(Op):
    """A kernel with its arguments. `handle` is the entry of the device's argument table (seed: argLoaderRecord_)."""

    kernel: Kernel
    args: tuple[Any, ...]
    blocks: int
    program: int
    handle: int

    @property
    def fused(self) -> bool:
        """True for a `task.fusion.FusedKernel`: one SQE, several parts."""
        return self.kernel.fused

    @property
    def kind(self) -> TaskKind:  # type: ignore[override]
        if self.fused:
            return TaskKind.FUSION
        return KERNEL_KINDS[self.kernel.core]

    @property
    def type(self) -> TaskType:  # type: ignore[override]
        return TaskType.KERNEL if self.kind in GROUPABLE_KINDS else TaskType.DEFAULT

    @property
    def type_name(self) -> str:  # type: ignore[override]
        return (
            "FUSION_KERNEL"
            if self.fused
            else "KERNEL_" + {"aic": "AICORE", "aiv": "AIVEC"}.get(self.kernel.core, "AICPU")
        )


KERNEL_KINDS = {"aic": TaskKind.KERNEL_AICORE, "aiv": TaskKind.KERNEL_AIVEC, "aicpu": TaskKind.KERNEL_AICPU}
GROUPABLE_KINDS = frozenset({TaskKind.KERNEL_AICORE, TaskKind.KERNEL_AIVEC})


@final
class EventRecordOp(Op):
    kind = TaskKind.EVENT_RECORD
    type = TaskType.EVENT_RECORD
    type_name = "EVENT_RECORD"
    event: HasId
    capture: Any = None  # the CaptureEvent this records, when it is one


@final
class EventWaitOp(Op):
    kind = TaskKind.EVENT_WAIT
    type = TaskType.EVENT_WAIT
    type_name = "EVENT_WAIT"
    event: HasId
    timeout_ms: int = 0
    capture: Any = None


@final
class EventResetOp(Op):
    kind = TaskKind.EVENT_RESET
    type = TaskType.EVENT_RESET
    type_name = "EVENT_RESET"
    event: HasId


@final
class NotifyRecordOp(Op):
    kind = TaskKind.NOTIFY_RECORD
    type_name = "NOTIFY_RECORD"
    notify: HasId


@final
class NotifyWaitOp(Op):
    kind = TaskKind.NOTIFY_WAIT
    type_name = "NOTIFY_WAIT"
    notify: HasId
    timeout_ms: int = 0


@final
class ValueWriteOp(Op):
    """Write `value` (64 bits, or its low byte when `width` is 1) to device memory."""

    kind = TaskKind.MEM_WRITE_VALUE
    type = TaskType.VALUE_WRITE
    type_name = "MEM_WRITE_VALUE"
    address: int
    value: int
    width: int = 8


@final
class ValueWaitOp(Op):
    kind = TaskKind.MEM_WAIT_VALUE
    type = TaskType.VALUE_WAIT
    type_name = "MEM_WAIT_VALUE"
    address: int
    value: int
    flag: int
    width: int = 8

    def sqes(self, wait_sqes: int) -> int:
        return wait_sqes


@final
class CopyOp(Op):
    """Copy `nbytes` from `src` to `dst` (device or registered host addresses). `keep` holds host buffers alive."""

    kind = TaskKind.MEMCPY
    type_name = "MEMCPY_ASYNC"
    dst: int
    src: int
    nbytes: int
    keep: tuple[Any, ...] = ()


@final
class Copy2dOp(Op):
    kind = TaskKind.MEMCPY
    type_name = "MEMCPY_ASYNC"
    dst: int
    dpitch: int
    src: int
    spitch: int
    width: int
    height: int
    keep: tuple[Any, ...] = ()


@final
class SetOp(Op):
    kind = TaskKind.MEMSET
    type_name = "MEMSET_ASYNC"
    dst: int
    value: int
    nbytes: int


@final
class HostFuncOp(Op):
    """A host callback; `callback` is its number in the host's callback table."""

    kind = TaskKind.HOSTFUNC
    type_name = "HOSTFUNC_CALLBACK"
    callback: int
    fn: Callable[..., object]


@final
class InnerEventOp(Op):
    """The event wait or reset that a blocking callback adds; owned by the runtime, so its type is DEFAULT."""

    event: HasId
    reset: bool = False

    @property
    def kind(self) -> TaskKind:  # type: ignore[override]
        return TaskKind.EVENT_RESET if self.reset else TaskKind.EVENT_WAIT

    @property
    def type_name(self) -> str:  # type: ignore[override]
        return "EVENT_RESET" if self.reset else "EVENT_WAIT"


@final
class ModelExecuteOp(Op):
    kind = TaskKind.MODEL_EXECUTE
    type_name = "MODEL_EXECUTE"
    model: int


@final
class ModelToAicpuOp(Op):
    """Tell the AI-CPU engine about a model (`model.to_aicpu`); `program` is the engine's own, `handle` its
    arguments."""

    kind = TaskKind.MODEL_TO_AICPU
    type_name = "MODEL_TO_AICPU"
    program: int
    handle: int


@final
class ActiveOp(Op):
    """Start the SQ of `target` from its head (cascade link, aclrtActiveStream)."""

    kind = TaskKind.STREAM_ACTIVE
    type_name = "STREAM_ACTIVE"
    target: TaskQueue


@final
class SwitchOp(Op):
    kind = TaskKind.STREAM_SWITCH
    type_name = "STREAM_SWITCH"
    left: int
    right: int
    cond: int
    dtype: int
    target: TaskQueue


@final
class LabelSetOp(Op):
    kind = TaskKind.LABEL_SET
    type_name = "LABEL_SET"
    label: Any  # stream.label.Label


@final
class LabelGotoOp(Op):
    kind = TaskKind.LABEL_GOTO
    type_name = "STREAM_LABEL_GOTO"
    address: int


@final
class LabelSwitchOp(Op):
    kind = TaskKind.LABEL_SWITCH
    type_name = "STREAM_LABEL_SWITCH_BY_INDEX"
    index: int
    maximum: int
    list_address: int


@final
class CondOp(Op):
    """A condition task: IF and SWITCH take two SQEs, WHILE three (seed acl-graph 4.2)."""

    kind = TaskKind.CAPTURE_CONDITION
    type_name = "CONDITION_OP"
    handle: Any  # graph.cond.CondHandle; typed Any because tasks know no graph

    def sqes(self, wait_sqes: int) -> int:
        return int(self.handle.sqes)


@final
class ExternalRecordOp(Op):
    """Record of an event's external operation flag; the cell it writes is named by the run's refresh table."""

    kind = TaskKind.EXT_RECORD
    type_name = "CAPTURE_RECORD_EXTERNAL"
    event: Any
    table: int = 0  # device address of this task's entry


@final
class ExternalWaitOp(Op):
    kind = TaskKind.EXT_WAIT
    type_name = "CAPTURE_WAIT_EXTERNAL"
    event: Any
    table: int = 0

    def sqes(self, wait_sqes: int) -> int:
        return 3


@final
class PatchOp(Op):
    """Copy new SQE bytes over a captured task's slots (the asynchronous patch of a task update)."""

    kind = TaskKind.MEMCPY
    type_name = "MEMCPY_ASYNC"
    image: int
    slot: int
    source: int
    slots: int


class UpdateFlag(IntEnum):
    """What the next aclmdlRIUpdate does with a task (seed model-module 3.2, TaskInfo.updateFlag)."""

    KEEP = 0
    UPDATE = 1
    DISABLE = 2


@final
class Task:
    """One captured or persistent task: an operation at a place in a queue. The handle aclmdlRIGetTasksByStream
    returns."""

    __slots__ = ("alive", "flag", "group", "nsqe", "op", "place", "queue", "seq", "slot", "task_id")

    def __init__(
        self, op: Op, queue: TaskQueue, task_id: int, seq: int, nsqe: int, slot: int, place: Place | None
    ) -> None:
        self.op = op
        self.queue = queue
        self.task_id = task_id  # per stream
        self.seq = seq  # per model, in order of submission
        self.nsqe = nsqe
        self.slot = slot  # first SQE of this task in the queue's image; restamped by an update
        self.place = place
        self.flag = UpdateFlag.KEEP
        self.group: Any = None  # the TaskGroup that owns it
        self.alive = True  # False once an update disabled and recycled it

    @property
    def kind(self) -> TaskKind:
        return self.op.kind

    @property
    def type(self) -> TaskType:
        return self.op.type

    def __repr__(self) -> str:
        at = f" from {self.place}" if self.place is not None else ""
        return f"<Task {self.task_id} {self.op.type_name} of stream {self.queue.stream_id}{at}>"


class TaskSink(Protocol):
    """Where a stream's tasks go. A stream that is capturing has another sink, not another code path."""

    def append(self, stream: Any, op: Op) -> Task | None:
        """Take one operation; returns its task when the sink keeps one (captured or persistent)."""

    def kernel(self, stream: Any, kernel: Kernel, args: tuple[Any, ...], blocks: int) -> Task | None:
        """Take one kernel launch."""
