"""A completion as it lies in the CQ ring, 64 bytes, and decoded.

Not a policy: when a completion is posted is the TS's business, what it means to a waiter the host's.
"""

from __future__ import annotations

import enum
import struct
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from hw.chips.layout import Buffer

CQE_BYTES = 64

NONE = -1
"""What `fault` and `callback` hold when the completion has none; also `stream_id` and `sq` of a CONTROL CQE."""


class CqeKind(enum.IntEnum):
    """Why a CQE was posted."""

    HEAD = 1  # an SQ's head moved to `position`
    TASK = 2  # a task with SqeFlag.WR_CQE succeeded
    ERROR = 3  # a task failed: `status`, `fault`
    CALLBACK = 4  # a HOSTFUNC was reached: `callback`
    CONTROL = 5  # the answer to a control SQE


class Status(enum.IntEnum):
    """Outcome of a task as the TS reports it (acl_semantics 11.3); the host maps it to a code."""

    OK = 0
    AICORE_EXCEPTION = 1
    AIV_EXCEPTION = 2
    AICPU_EXCEPTION = 3
    AICORE_TIMEOUT = 4
    AIV_TIMEOUT = 5
    AICPU_TIMEOUT = 6
    SDMA_ERROR = 7
    SDMA_TIMEOUT = 8
    TASK_TIMEOUT = 9  # an event or notify wait ran out of time
    MODEL_FAILED = 10  # a task of the model failed; the fault is that task's
    MODEL_ABORTED = 11
    STREAM_ABORTED = 12
    ILLEGAL_PARAM = 13  # an SQ that runs was activated, and the like
    SQE_ERROR = 14  # the slot's bytes are no SQE


class Cqe(msgspec.Struct, gc=False):
    """One completion. `position` counts slots since the SQ was opened (model SQs: the slot)."""

    kind: CqeKind
    sq: int = NONE
    stream_id: int = NONE
    task_id: int = 0
    position: int = 0
    status: Status = Status.OK
    fault: int = NONE
    callback: int = NONE

    def __repr__(self) -> str:
        text = f"<Cqe {self.kind.name} sq {self.sq} stream {self.stream_id} task {self.task_id} at {self.position}"
        fault = f" fault {self.fault}" if self.fault != NONE else ""
        callback = f" callback {self.callback}" if self.callback != NONE else ""
        return f"{text} {self.status.name}{fault}{callback}>"


CQE_STRUCT = struct.Struct("<BBxxiiIqii32x")
"""(kind, status, sq, stream_id, task_id, position, fault, callback) in 64 bytes, for ``pack_into`` a CQ ring."""

assert CQE_STRUCT.size == CQE_BYTES

_KINDS = {int(kind): kind for kind in CqeKind}
_STATUSES = {int(status): status for status in Status}


def encode_cqe(cqe: Cqe) -> bytes:
    """64 bytes."""
    return CQE_STRUCT.pack(
        cqe.kind, cqe.status, cqe.sq, cqe.stream_id, cqe.task_id, cqe.position, cqe.fault, cqe.callback
    )


def decode_cqe(memory: Buffer, offset: int = 0) -> Cqe:
    """The CQE in the 64 bytes at `offset`. ValueError for a kind or status that is none."""
    kind, status, sq, stream_id, task_id, position, fault, callback = CQE_STRUCT.unpack_from(memory, offset)
    try:
        return Cqe(_KINDS[kind], sq, stream_id, task_id, position, _STATUSES[status], fault, callback)
    except LookupError:
        raise ValueError(f"CQE at byte {offset}: kind {kind}, status {status} is no completion") from None
