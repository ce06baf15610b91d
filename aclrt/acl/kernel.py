"""Kernel launches, host functions and callbacks. Holds no logic; codes are `aclrt.stream`'s."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from aclrt.acl.handles import member, null, optional
from aclrt.base.enums import CallbackBlockType
from aclrt.stream import callback as callbacks
from aclrt.stream import checks
from aclrt.stream.context import current
from aclrt.stream.stream import Stream
from aclrt.task.kernel import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def aclrtLaunchKernel(func: Kernel | None, numBlocks: int, args: Sequence[Any] | None, stream: Stream | None) -> None:
    """Launch a `@aclrt.kernel` with device arrays and scalars. None as stream is the default stream.

    Errors: 100000 (func or args None), 107000 (numBlocks 0), 107017, 107002, 107003, and what a capture or an open
    update refuses (107034, 507000). Source: acl_semantics 1.10.
    """
    if func is None or args is None:
        null("aclrtLaunchKernel", "func" if func is None else "args")
    if func.__class__ is not Kernel:
        raise TypeError(f"aclrtLaunchKernel: func must be a kernel made by @aclrt.kernel, not {type(func).__name__}")
    if stream.__class__ is not Stream:
        stream = optional(stream, Stream, "aclrtLaunchKernel", "stream")
    checks.launch_in(current(), stream, func, tuple(args), numBlocks)


def aclrtLaunchHostFunc(stream: Stream | None, fn: Callable[[Any], object] | None, args: Any = None) -> None:
    """Call `fn(args)` on the loop's thread, outside any task, when the stream gets there.

    Errors: 107000, 107011, 107017.
    """
    target = optional(stream, Stream, "aclrtLaunchHostFunc", "stream")
    callbacks.launch_host_func(current(), target, _function(fn, "aclrtLaunchHostFunc"), args)


def aclrtLaunchCallback(
    fn: Callable[[Any], object] | None, userData: Any, blockType: int, stream: Stream | None
) -> None:
    """Run `fn(userData)` in aclrtProcessReport of the subscribed task.

    Errors: 100000, 107000, 107011, 107015, 107017.
    """
    asked = "aclrtLaunchCallback"
    block = member(blockType, CallbackBlockType, asked, "blockType")
    callbacks.launch_callback(
        current(), _function(fn, asked), userData, block, optional(stream, Stream, asked, "stream")
    )


def aclrtSubscribeReport(threadId: int, stream: Stream | None) -> None:
    """Let the task whose `aclrt.host_thread_id()` this is process the stream's callbacks. Errors: 107011, 107017."""
    callbacks.subscribe(current(), index(threadId), optional(stream, Stream, "aclrtSubscribeReport", "stream"))


def aclrtUnSubscribeReport(threadId: int, stream: Stream | None) -> None:
    """Take the subscription back. Errors: 107011, 107012, 107017."""
    callbacks.unsubscribe(current(), index(threadId), optional(stream, Stream, "aclrtUnSubscribeReport", "stream"))


async def aclrtProcessReport(timeout: int) -> None:
    """Wait at most `timeout` ms (-1 for ever) for one callback and run it. Errors: 100000 (timeout), 107012, 507012."""
    await callbacks.process(current(), index(timeout))


def _function(fn: Callable[[Any], object] | None, asked: str) -> Callable[[Any], object] | None:
    """A callable, or NULL, which the floor below refuses (107000)."""
    if fn is not None and not callable(fn):
        raise TypeError(f"{asked}: fn must be callable, not {type(fn).__name__}")
    return fn


__all__ = [
    "aclrtLaunchCallback",
    "aclrtLaunchHostFunc",
    "aclrtLaunchKernel",
    "aclrtProcessReport",
    "aclrtSubscribeReport",
    "aclrtUnSubscribeReport",
]
