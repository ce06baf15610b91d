"""The parameter structs of aclmdlRITask calls, with their C field names. Values only: no call, no state."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from aclrt.base.enums import TaskType


class KernelTaskParams(msgspec.Struct):
    """`funcHandle` is a `@aclrt.kernel`, `args` the list of its arguments, `cfg` launch attributes by id (or None)."""

    funcHandle: Any = None  # noqa: N815 - the C names
    cfg: Any = None
    args: list[Any] | None = None
    isHostArgs: int = 0  # noqa: N815
    argsSize: int = 0  # noqa: N815 - always 0: the arguments are objects here, not bytes
    numBlocks: int = 0  # noqa: N815


class EventRecordTaskParams(msgspec.Struct):
    """`recordFlag` 1: the record of an external operation. `event` is the task's own event, for identity only."""

    event: Any = None
    eventFlag: int = 0  # noqa: N815
    recordFlag: int = 0  # noqa: N815


class EventWaitTaskParams(msgspec.Struct):
    """`waitFlag` 1: the wait of an external operation."""

    event: Any = None
    eventFlag: int = 0  # noqa: N815
    waitFlag: int = 0  # noqa: N815


class EventResetTaskParams(msgspec.Struct):
    event: Any = None
    eventFlag: int = 0  # noqa: N815
    resetFlag: int = 0  # noqa: N815


class ValueWriteTaskParams(msgspec.Struct):
    """Write the 64-bit `value` to device address `devAddr`."""

    devAddr: int = 0  # noqa: N815
    value: int = 0


class ValueWaitTaskParams(msgspec.Struct):
    """Wait until the 64-bit word at `devAddr` and `value` satisfy `flag` (GEQ 0, EQ 1, AND 2, NOR 3)."""

    devAddr: int = 0  # noqa: N815
    value: int = 0
    flag: int = 0


class TaskParams(msgspec.Struct):
    """aclmdlRITaskParams. `type` says which member counts; `taskGrp` is the group that owns the task, or None."""

    type: int = TaskType.DEFAULT
    taskGrp: Any = None  # noqa: N815
    opInfoPtr: Any = None  # noqa: N815
    opInfoSize: int = 0  # noqa: N815
    kernelTaskParams: KernelTaskParams = msgspec.field(default_factory=KernelTaskParams)  # noqa: N815
    eventRecordTaskParams: EventRecordTaskParams = msgspec.field(default_factory=EventRecordTaskParams)  # noqa: N815
    eventWaitTaskParams: EventWaitTaskParams = msgspec.field(default_factory=EventWaitTaskParams)  # noqa: N815
    eventResetTaskParams: EventResetTaskParams = msgspec.field(default_factory=EventResetTaskParams)  # noqa: N815
    valueWriteTaskParams: ValueWriteTaskParams = msgspec.field(default_factory=ValueWriteTaskParams)  # noqa: N815
    valueWaitTaskParams: ValueWaitTaskParams = msgspec.field(default_factory=ValueWaitTaskParams)  # noqa: N815


Params = (
    KernelTaskParams
    | EventRecordTaskParams
    | EventWaitTaskParams
    | EventResetTaskParams
    | ValueWriteTaskParams
    | ValueWaitTaskParams
)
"""What one task does, as the struct of its type."""

MEMBERS: dict[TaskType, tuple[str, type[Params]]] = {
    TaskType.KERNEL: ("kernelTaskParams", KernelTaskParams),
    TaskType.EVENT_RECORD: ("eventRecordTaskParams", EventRecordTaskParams),
    TaskType.EVENT_WAIT: ("eventWaitTaskParams", EventWaitTaskParams),
    TaskType.EVENT_RESET: ("eventResetTaskParams", EventResetTaskParams),
    TaskType.VALUE_WRITE: ("valueWriteTaskParams", ValueWriteTaskParams),
    TaskType.VALUE_WAIT: ("valueWaitTaskParams", ValueWaitTaskParams),
}
"""The member of TaskParams that counts for each type."""


def of(params: TaskParams) -> Params:
    """The struct that counts for `params.type`."""
    found: Params = getattr(params, MEMBERS[TaskType(params.type)][0])
    return found


def wrap(params: Params) -> TaskParams:
    """TaskParams around one struct, of its type. TypeError for anything else."""
    for kind, (member, struct) in MEMBERS.items():
        if type(params) is struct:
            whole = TaskParams(type=kind)
            setattr(whole, member, params)
            return whole
    raise TypeError(f"task parameters must be one of {Params}, not {type(params).__name__}")


class TimeoutUs(NamedTuple):
    """The two halves of the TIMEOUT_US attribute, in microseconds."""

    timeoutLow: int  # noqa: N815
    timeoutHigh: int  # noqa: N815
