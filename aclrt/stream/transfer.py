"""Copies, sets and value operations: where the bytes are decides what a capture allows. Not device arrays
themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import MemcpyKind
from aclrt.base.errors import fail
from aclrt.base.host_thread import require_task
from aclrt.stream import context as contexts
from aclrt.stream.checks import captured, resolve
from aclrt.stream.copy_end import Address, End, Location, classify
from aclrt.task.task import Copy2dOp, CopyOp, SetOp, ValueWaitOp, ValueWriteOp

if TYPE_CHECKING:
    from aclrt.stream.context import Context
    from aclrt.stream.npu import Npu
    from aclrt.stream.stream import Stream
    from aclrt.task.task import Op


def _check_count(count: int, maximum: int, asked: str) -> None:
    if count < 0:
        raise fail(Code.RT_PARAM_INVALID, asked, f"{count} bytes asked", "give a size of at least 0")
    if count > maximum:
        raise fail(
            Code.RT_PARAM_INVALID, asked, f"{count} bytes asked, the destination holds {maximum}", "copy fewer bytes"
        )


def _check_ends(dst: End, src: End, counts: tuple[int, int], kind: MemcpyKind, asked: str) -> None:
    """107000 for bytes outside a buffer, a read-only destination, or a kind that the memory contradicts. `counts` are
    the bytes from the first to the last that is touched of each end."""
    for name, end, count in (("destination", dst, counts[0]), ("source", src, counts[1])):
        if end.nbytes is not None and count > end.nbytes:
            raise fail(
                Code.RT_PARAM_INVALID, asked, f"{count} bytes asked, the {name} holds {end.nbytes}", "copy fewer bytes"
            )
        if end.nbytes is None:
            raise fail(
                Code.RT_PARAM_INVALID,
                asked,
                f"the {name} {end.address:#x} is not live memory",
                "give a live device address",
            )
    if dst.location is Location.PAGEABLE and not dst.buffer.flags.writeable:
        raise fail(Code.RT_PARAM_INVALID, asked, "the destination is a read-only buffer", "give a writable one")
    ways = {
        MemcpyKind.HOST_TO_DEVICE: (False, True),
        MemcpyKind.DEVICE_TO_HOST: (True, False),
        MemcpyKind.DEVICE_TO_DEVICE: (True, True),
        MemcpyKind.HOST_TO_HOST: (False, False),
    }
    wanted = ways.get(kind)
    found = (src.location is Location.DEVICE, dst.location is Location.DEVICE)
    if wanted is not None and wanted != found:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"kind is {kind.name}, the source is {src.location.value} and the destination {dst.location.value} memory",
            "give the kind that fits, or ACL_MEMCPY_DEFAULT",
        )


class _Registered:
    """The address of one end while a copy needs it; pageable memory is registered for that long."""

    def __init__(self, npu: Npu, end: End) -> None:
        self.npu = npu
        self.temporary = end.location is Location.PAGEABLE
        self.address = npu.driver.host_register(end.buffer) if self.temporary else end.address

    def done(self) -> None:
        if self.temporary and not self.npu.closed:
            self.npu.driver.host_unregister(self.address)


# --- synchronous, unsafe calls ---------------------------------------------------------------------------------------


async def memcpy(ctx: Context | None, dst: Address, dest_max: int, src: Address, count: int, kind: MemcpyKind) -> None:
    """aclrtMemcpy: now, unordered with streams. Errors: 107000, 107002, 107030. Source: acl_semantics 1.9, 4.5."""
    asked = "aclrtMemcpy"
    require_task()
    if count == 0:
        return
    _check_count(count, dest_max, asked)
    ctx = contexts.require(ctx, asked)
    ends = classify(ctx.npu, dst, asked), classify(ctx.npu, src, asked)
    _check_ends(*ends, (count, count), kind, asked)
    if ends[0].location is ends[1].location is Location.DEVICE and ends[0].address == ends[1].address:
        return
    ctx.check_unsafe(asked)
    _copy_now(ctx.npu, *ends, count)


def _copy_now(npu: Npu, dst: End, src: End, count: int) -> None:
    to, of = _Registered(npu, dst), _Registered(npu, src)
    try:
        npu.driver.copy(to.address, of.address, count)
    finally:
        to.done()
        of.done()


async def memcpy2d(
    ctx: Context | None, dst: Address, dpitch: int, src: Address, spitch: int, width: int, height: int, kind: MemcpyKind
) -> None:
    """aclrtMemcpy2d: rows of `width` bytes, now. Errors: 107000, 107002, 107030."""
    asked = "aclrtMemcpy2d"
    require_task()
    _check_pitches(dpitch, spitch, width, height, asked)
    ctx = contexts.require(ctx, asked)
    ends = classify(ctx.npu, dst, asked), classify(ctx.npu, src, asked)
    _check_ends(*ends, _spans(dpitch, spitch, width, height), kind, asked)
    ctx.check_unsafe(asked)
    to, of = _Registered(ctx.npu, ends[0]), _Registered(ctx.npu, ends[1])
    try:
        for row in range(height):
            ctx.npu.driver.copy(to.address + row * dpitch, of.address + row * spitch, width)
    finally:
        to.done()
        of.done()


def _check_pitches(dpitch: int, spitch: int, width: int, height: int, asked: str) -> None:
    if width <= 0 or height <= 0 or width > dpitch or width > spitch:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"width {width}, height {height}, pitches {dpitch} and {spitch}",
            "give positive sizes and pitches of at least the width",
        )


def _spans(dpitch: int, spitch: int, width: int, height: int) -> tuple[int, int]:
    """Bytes from the first row's start to the last row's end, at the destination and at the source."""
    return (height - 1) * dpitch + width, (height - 1) * spitch + width


async def memset(ctx: Context | None, address: Address, maximum: int, value: int, count: int) -> None:
    """aclrtMemset: now. Errors: 107000, 107002, 107030."""
    asked = "aclrtMemset"
    require_task()
    if count == 0:
        return
    _check_count(count, maximum, asked)
    ctx = contexts.require(ctx, asked)
    ctx.check_unsafe(asked)
    ctx.npu.driver.fill(device_address(ctx.npu, address, count, asked), value & 0xFF, count)


def device_address(npu: Npu, value: Address, count: int, asked: str) -> int:
    """A device address with `count` bytes behind it, or 107000."""
    end = classify(npu, value, asked)
    if end.location is not Location.DEVICE or end.nbytes is None:
        raise fail(Code.RT_PARAM_INVALID, asked, f"{value!r} is not device memory", "give an address of aclrtMalloc")
    if count > end.nbytes:
        raise fail(
            Code.RT_PARAM_INVALID, asked, f"{count} bytes asked, the memory holds {end.nbytes}", "use fewer bytes"
        )
    return end.address


# --- on a stream -----------------------------------------------------------------------------------------------------


def memcpy_async(
    ctx: Context | None, dst: Address, dest_max: int, src: Address, count: int, kind: MemcpyKind, stream: Stream | None
) -> None:
    """aclrtMemcpyAsync: the source is read when the copy runs.

    Pageable host memory: 107000 on a capturing stream in every mode; elsewhere 107041 where an open capture's mode
    forbids a synchronous copy, else an H2D source is read at the call and the copy runs in stream order. Other
    errors: 107000,
    107017, 107002, 107003. Source: acl_semantics 1.9, 4.5; design.md section 3.
    """
    _memcpy_async("aclrtMemcpyAsync", ctx, dst, dest_max, src, count, kind, stream)


def memcpy_async_with_condition(
    ctx: Context | None, dst: Address, dest_max: int, src: Address, count: int, kind: MemcpyKind, stream: Stream | None
) -> None:
    """aclrtMemcpyAsyncWithCondition: as memcpy_async (recorded: the same codes)."""
    _memcpy_async("aclrtMemcpyAsyncWithCondition", ctx, dst, dest_max, src, count, kind, stream)


def _memcpy_async(
    asked: str,
    ctx: Context | None,
    dst: Address,
    dest_max: int,
    src: Address,
    count: int,
    kind: MemcpyKind,
    stream: Stream | None,
) -> None:
    if count == 0:
        return
    _check_count(count, dest_max, asked)
    stream = resolve(ctx, stream, asked)
    ends = classify(stream.npu, dst, asked), classify(stream.npu, src, asked)
    _check_ends(*ends, (count, count), kind, asked)
    if ends[0].location is ends[1].location is Location.DEVICE and ends[0].address == ends[1].address:
        return
    ends = _pageable(contexts.require(ctx, asked), stream, ends[0], ends[1], asked)
    contexts.require_same(ctx, stream, asked)
    _submit(stream, *ends, lambda to, of, keep: CopyOp(dst=to, src=of, nbytes=count, keep=keep))


def _pageable(ctx: Context, stream: Stream, dst: End, src: End, asked: str) -> tuple[End, End]:
    """The rule for pageable host memory; the mode that counts is the calling Context's (recorded).

    An H2D source is snapshotted: the caller may reuse it at once.
    """
    if Location.PAGEABLE not in (dst.location, src.location):
        return dst, src
    if stream.capturing:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"pageable host memory on capturing {captured(stream)}",
            "use memory of aclrtMallocHost",
        )
    ctx.check_unsafe(asked, Code.RT_CAPTURE_MODE_BLOCK_ASYNC)
    if src.location is Location.PAGEABLE:
        src = src._replace(buffer=src.buffer.copy())
    return dst, src


def _submit(stream: Stream, dst: End, src: End, op: Any) -> None:
    """Submit a copy; temporary registrations end with it, or with the model that holds it."""
    to, of = _Registered(stream.npu, dst), _Registered(stream.npu, src)
    made: Op = op(to.address, of.address, (dst.buffer, src.buffer))
    if not (to.temporary or of.temporary):
        stream.submit(made)
        return
    # Such a copy is a synchronous one in stream order: never a task of a model or of an update window (recorded).
    stream.check_failure("copy pageable memory")
    if not stream.takes_tasks:
        stream.npu.driver.copy(to.address, of.address, made.nbytes)  # type: ignore[attr-defined]
    else:
        stream.live.append(stream, made)
    for end in (to, of):
        stream.when(stream.submitted, end.done)


def memcpy2d_async(
    ctx: Context | None,
    dst: Address,
    dpitch: int,
    src: Address,
    spitch: int,
    width: int,
    height: int,
    kind: MemcpyKind,
    stream: Stream | None,
) -> None:
    """aclrtMemcpy2dAsync. Errors: 107000, 107017, 107002, 107003, 107041 as memcpy_async."""
    asked = "aclrtMemcpy2dAsync"
    _check_pitches(dpitch, spitch, width, height, asked)
    stream = resolve(ctx, stream, asked)
    ends = classify(stream.npu, dst, asked), classify(stream.npu, src, asked)
    _check_ends(*ends, _spans(dpitch, spitch, width, height), kind, asked)
    ends = _pageable(contexts.require(ctx, asked), stream, ends[0], ends[1], asked)
    contexts.require_same(ctx, stream, asked)
    _submit(
        stream,
        *ends,
        lambda to, of, keep: Copy2dOp(
            dst=to, dpitch=dpitch, src=of, spitch=spitch, width=width, height=height, keep=keep
        ),
    )


def memset_async(
    ctx: Context | None, address: Address, maximum: int, value: int, count: int, stream: Stream | None
) -> None:
    """aclrtMemsetAsync. Errors: 107000, 107017, 107002, 107003."""
    asked = "aclrtMemsetAsync"
    if count == 0:
        return
    _check_count(count, maximum, asked)
    stream = resolve(ctx, stream, asked)
    contexts.require_same(ctx, stream, asked)
    stream.submit(SetOp(dst=device_address(stream.npu, address, count, asked), value=value & 0xFF, nbytes=count))


def value_write(ctx: Context | None, address: Address, value: int, flag: int, stream: Stream | None) -> None:
    """aclrtValueWrite: 64 bits. Errors: 107017, 107000 (flag, not device memory), 107002, 107003."""
    asked = "aclrtValueWrite"
    stream = resolve(ctx, stream, asked)
    if flag != 0:
        raise fail(Code.RT_PARAM_INVALID, asked, f"flag is {flag}", "give 0")
    cell = device_address(stream.npu, address, 8, asked)
    contexts.require_same(ctx, stream, asked)
    stream.submit(ValueWriteOp(address=cell, value=value))


def value_wait(ctx: Context | None, address: Address, value: int, flag: int, stream: Stream | None) -> None:
    """aclrtValueWait: poll 64 bits for GEQ (signed), EQ, AND, NOR; no time-out. Errors as value_write."""
    asked = "aclrtValueWait"
    stream = resolve(ctx, stream, asked)
    if not 0 <= flag <= 3:
        raise fail(Code.RT_PARAM_INVALID, asked, f"flag is {flag}", "give GEQ 0, EQ 1, AND 2 or NOR 3")
    cell = device_address(stream.npu, address, 8, asked)
    contexts.require_same(ctx, stream, asked)
    stream.submit(ValueWaitOp(address=cell, value=value, flag=flag))
