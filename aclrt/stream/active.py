"""Tasks with which one stream of a model starts another: activate, and switch on two values in device memory.

Not jumps inside streams (`stream.label`). Source: acl_semantics 1.6, 10.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.stream import context as contexts
from aclrt.stream.checks import check_handle
from aclrt.stream.transfer import device_address
from aclrt.task.task import ActiveOp, SwitchOp

if TYPE_CHECKING:
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream

OPERAND_BYTES = {0: 4, 1: 8}  # INT32, INT64


def _require_bound(stream: Stream, asked: str) -> None:
    if stream.model is None:
        raise fail(
            Code.RT_STREAM_MODEL, asked, f"stream {stream.id} is not bound to a model", "bind both streams first"
        )


def active(ctx: Context | None, active: Stream, stream: Stream) -> None:
    """aclrtActiveStream: when `stream` gets here, `active` starts from its first task; one that still runs is a
    failure of the run (507011).

    Errors in order: 107017, 107002, 107005 (`stream`, then `active`, not bound), 107003.
    """
    asked = "aclrtActiveStream"
    check_handle(active, asked)
    check_handle(stream, asked)
    contexts.require(ctx, asked)
    _require_bound(stream, asked)
    _require_bound(active, asked)
    contexts.require_same(ctx, stream, asked)
    assert active.queue is not None
    stream.submit(ActiveOp(target=active.queue))


def switch(
    ctx: Context | None, left: Any, cond: int, right: Any, dtype: int, true_stream: Stream, stream: Stream
) -> None:
    """aclrtSwitchStream: when `left` op `right` holds, `true_stream` starts and `stream` ends here; else it goes on.

    `left` and `right` are device addresses of INT32 (dtype 0) or INT64 (1) values, read when the task runs, compared
    signed; `cond` is EQ 0, NE 1, GT 2, GE 3, LT 4, LE 5.
    Errors in order: 107017, 107000 (cond, dtype, not device memory), 107005 (`true_stream`, then `stream`), 107002,
    107003.
    """
    asked = "aclrtSwitchStream"
    check_handle(true_stream, asked)
    check_handle(stream, asked)
    if not 0 <= cond <= 5:
        raise fail(Code.RT_PARAM_INVALID, asked, f"cond is {cond}", "use EQUAL 0 to LESS_OR_EQUAL 5")
    if dtype not in OPERAND_BYTES:
        raise fail(Code.RT_PARAM_INVALID, asked, f"dataType is {dtype}", "use INT32 0 or INT64 1")
    _require_bound(true_stream, asked)
    _require_bound(stream, asked)
    contexts.require_same(ctx, stream, asked)
    nbytes = OPERAND_BYTES[dtype]
    operands = [device_address(stream.npu, value, nbytes, asked) for value in (left, right)]
    assert true_stream.queue is not None
    stream.submit(SwitchOp(left=operands[0], right=operands[1], cond=cond, dtype=dtype, target=true_stream.queue))
