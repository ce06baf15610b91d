"""aclrtMalloc, aclrtMemcpy, aclrtMemset and aclrtValue functions. Holds no logic; codes are `aclrt.stream.transfer`'s.

An address is an int from aclrtMalloc, a DeviceArray, a HostBuffer or any Python buffer (pageable host memory). Sizes
are bytes.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from aclrt.acl.handles import given, handle, member, optional
from aclrt.base.enums import MemcpyKind
from aclrt.stream import allocation, transfer
from aclrt.stream.context import current
from aclrt.stream.stream import Stream
from aclrt.task.memory import HostBuffer

if TYPE_CHECKING:
    from aclrt.stream.copy_end import Address


def aclrtMalloc(size: int, policy: int = 0) -> int:
    """Device memory: its address. Allowed during any capture. Errors: 100000 for size 0, 107002, 207001."""
    return allocation.malloc(current(), index(size), index(policy))


def aclrtFree(devPtr: int | None) -> None:
    """Free device memory at once, captured uses or not. Errors: 100000, 107000 for an address malloc did not return."""
    allocation.free(current(), given(devPtr, "aclrtFree", "devPtr"))


def aclrtMallocHost(size: int) -> HostBuffer:
    """Pinned host memory. Errors: 100000 for size 0, 107002."""
    return allocation.malloc_host(current(), index(size))


def aclrtFreeHost(hostPtr: HostBuffer | None) -> None:
    """Free pinned host memory. Errors: 100000."""
    allocation.free_host(current(), handle(hostPtr, HostBuffer, "aclrtFreeHost", "hostPtr"))


async def aclrtMemcpy(dst: Address | None, destMax: int, src: Address | None, count: int, kind: int) -> None:
    """Copy now. An unsafe call: 107030 when an open capture's mode forbids it.

    Errors: 100000, 107000. acl_semantics 1.9.
    """
    asked = "aclrtMemcpy"
    if index(count):
        dst, src = given(dst, asked, "dst"), given(src, asked, "src")
    await transfer.memcpy(current(), dst, index(destMax), src, index(count), member(kind, MemcpyKind, asked, "kind"))


def aclrtMemcpyAsync(
    dst: Address | None, destMax: int, src: Address | None, count: int, kind: int, stream: Stream | None
) -> None:
    """Copy on a stream; the source is read when the copy runs.

    Pageable host memory: 107000 captured, 107041 by mode.
    """
    asked = "aclrtMemcpyAsync"
    if index(count):
        dst, src = given(dst, asked, "dst"), given(src, asked, "src")
    how = member(kind, MemcpyKind, asked, "kind")
    transfer.memcpy_async(
        current(), dst, index(destMax), src, index(count), how, optional(stream, Stream, asked, "stream")
    )


def aclrtMemcpyAsyncWithCondition(
    dst: Address | None, destMax: int, src: Address | None, count: int, kind: int, stream: Stream | None
) -> None:
    """As aclrtMemcpyAsync, but a copy that pageable memory makes synchronous is accepted where the mode allows it."""
    asked = "aclrtMemcpyAsyncWithCondition"
    if index(count):
        dst, src = given(dst, asked, "dst"), given(src, asked, "src")
    how = member(kind, MemcpyKind, asked, "kind")
    target = optional(stream, Stream, asked, "stream")
    transfer.memcpy_async_with_condition(current(), dst, index(destMax), src, index(count), how, target)


async def aclrtMemcpy2d(
    dst: Address | None, dpitch: int, src: Address | None, spitch: int, width: int, height: int, kind: int
) -> None:
    """Copy `height` rows of `width` bytes now. An unsafe call: 107030. Errors: 100000, 107000."""
    asked = "aclrtMemcpy2d"
    dst, src = given(dst, asked, "dst"), given(src, asked, "src")
    how = member(kind, MemcpyKind, asked, "kind")
    await transfer.memcpy2d(current(), dst, index(dpitch), src, index(spitch), index(width), index(height), how)


def aclrtMemcpy2dAsync(
    dst: Address | None,
    dpitch: int,
    src: Address | None,
    spitch: int,
    width: int,
    height: int,
    kind: int,
    stream: Stream | None,
) -> None:
    """Copy rows on a stream; pageable host memory as in aclrtMemcpyAsync."""
    asked = "aclrtMemcpy2dAsync"
    dst, src = given(dst, asked, "dst"), given(src, asked, "src")
    how = member(kind, MemcpyKind, asked, "kind")
    target = optional(stream, Stream, asked, "stream")
    transfer.memcpy2d_async(current(), dst, index(dpitch), src, index(spitch), index(width), index(height), how, target)


async def aclrtMemset(devPtr: Address | None, maxCount: int, value: int, count: int) -> None:
    """Set bytes now. An unsafe call: 107030. Errors: 100000, 107000."""
    if index(count):
        devPtr = given(devPtr, "aclrtMemset", "devPtr")
    await transfer.memset(current(), devPtr, index(maxCount), index(value), index(count))


def aclrtMemsetAsync(devPtr: Address | None, maxCount: int, value: int, count: int, stream: Stream | None) -> None:
    """Set bytes on a stream. Errors: 100000, 107000, 107017, 107003."""
    asked = "aclrtMemsetAsync"
    if index(count):
        devPtr = given(devPtr, asked, "devPtr")
    target = optional(stream, Stream, asked, "stream")
    transfer.memset_async(current(), devPtr, index(maxCount), index(value), index(count), target)


def aclrtValueWrite(devAddr: Address | None, value: int, flag: int, stream: Stream | None) -> None:
    """Write 64 bits when the stream gets there.

    Errors: 100000, 107017, 107000 (flag, not device memory), 107002, 107003.
    """
    asked = "aclrtValueWrite"
    address = given(devAddr, asked, "devAddr")
    transfer.value_write(current(), address, index(value), index(flag), optional(stream, Stream, asked, "stream"))


def aclrtValueWait(devAddr: Address | None, value: int, flag: int, stream: Stream | None) -> None:
    """Wait until 64 bits compare by `ValueWaitFlag`; there is no time-out. Errors: as aclrtValueWrite."""
    asked = "aclrtValueWait"
    address = given(devAddr, asked, "devAddr")
    transfer.value_wait(current(), address, index(value), index(flag), optional(stream, Stream, asked, "stream"))
