"""Checks every call on a stream shares: the handle, the default stream, capturing, time-outs. Decides, never acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aclrt.base import errors
from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.host_thread import another_loop, require_task
from aclrt.stream import context as contexts

if TYPE_CHECKING:
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream
    from aclrt.task.kernel import Kernel


def require_loop(stream: Stream) -> None:
    """RuntimeError outside a task of the event loop that opened the stream's device."""
    if require_task().get_loop() is not stream.launcher.loop:
        another_loop()


def check_handle(stream: Stream, asked: str) -> None:
    """107017 for a destroyed stream."""
    if not stream.alive:
        if stream.npu.closed:
            raise errors.fail(
                Code.RT_INVALID_HANDLE,
                asked,
                f"stream {stream.id} is gone, {stream.npu.gone()}",
                "open the device again",
            )
        raise errors.fail(Code.RT_INVALID_HANDLE, asked, f"stream {stream.id} is destroyed", "use a live stream")


def captured(stream: Stream) -> str:
    """ "stream 3 (joined at f.py:7 through event 2 recorded at f.py:6)", for refusals."""
    how = f" ({stream.capture.joined_how()})" if stream.capture is not None else ""
    return f"stream {stream.id}{how}"


def refuse_capturing(stream: Stream, asked: str) -> None:
    """107027 on a capturing stream, with how it came to be captured."""
    if stream.capture is not None:
        raise errors.fail(
            Code.RT_STREAM_CAPTURED,
            asked,
            f"stream {stream.id} is capturing {stream.capture.model.title()} ({stream.capture.joined_how()})",
            "end the capture first",
        )


def refuse_updating(stream: Stream, asked: str) -> None:
    """507009 on a stream with an open task update: it takes launches of the group's kernels only (acl_semantics
    8.2)."""
    if stream.update_sink is not None:
        raise errors.fail(
            Code.RT_TASK_TYPE_NOT_SUPPORT,
            f"{asked} on stream {stream.id}",
            f"it updates {stream.updating!r}",
            "end the update first",
        )


def resolve(ctx: Context | None, stream: Stream | None, asked: str) -> Stream:
    """The stream a call means: NULL is the current context's default stream; a destroyed one is 107017."""
    if stream is not None:
        check_handle(stream, asked)
        return stream
    return contexts.require(ctx, asked).default_stream()


def check_blocks(kernel: Kernel, blocks: int) -> None:
    """107000 for a number of blocks that is not 1 to 2**32-1; TypeError for what is no int."""
    if not isinstance(blocks, int | np.integer):
        raise TypeError(f"launch of {kernel.name}: blocks is {blocks!r}; give a whole number")
    if not 1 <= blocks <= 0xFFFF_FFFF:
        asked, todo = f"launch of {kernel.name}", "give at least 1, at most 4294967295"
        raise errors.fail(Code.RT_PARAM_INVALID, asked, f"blocks is {blocks}", todo)


def check_timeout(timeout_ms: int, asked: str) -> None:
    """107000 for a time-out of 0 or below -1."""
    if timeout_ms == 0 or timeout_ms < -1:
        raise errors.fail(
            Code.RT_PARAM_INVALID, asked, f"timeout is {timeout_ms}", "give milliseconds above 0, or -1 for no limit"
        )


def launch_in(ctx: Context | None, stream: Stream | None, kernel: Kernel, args: tuple[Any, ...], blocks: int) -> None:
    """aclrtLaunchKernel: the stream of a call, then the launch. Errors: 107017, 107000 (no blocks), 107002, 107003."""
    asked = "aclrtLaunchKernel"
    stream = resolve(ctx, stream, asked)
    if blocks == 0:
        raise errors.fail(Code.RT_PARAM_INVALID, asked, "numBlocks is 0", "give at least 1")
    if stream.context is not ctx:
        contexts.require_same(ctx, stream, asked)
    stream.start(kernel, args, blocks)
