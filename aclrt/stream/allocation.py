"""Device and pinned host memory by address: aclrtMalloc, aclrtMallocHost and their frees. Not arrays, not copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.stream import context as contexts
from aclrt.task.memory import DeviceArray, HostBuffer
from hw.driver import MemoryFault

if TYPE_CHECKING:
    from aclrt.stream.context import Context
    from aclrt.stream.copy_end import Address


def malloc(ctx: Context | None, size: int, policy: int = 0) -> int:
    """aclrtMalloc: allowed during any capture, immediate. Errors: 100000 (size 0), 107002, 207001."""
    asked = "aclrtMalloc"
    if size <= 0:
        raise fail(Code.INVALID_PARAM, asked, f"size is {size}", "ask for at least 1 byte")
    return contexts.require(ctx, asked).npu.malloc(-(-(size + 32) // 32) * 32, asked)


def free(ctx: Context | None, address: Address) -> None:
    """aclrtFree. Errors: 107002, 107000 for an address aclrtMalloc did not return or that is freed."""
    asked = "aclrtFree"
    npu = contexts.require(ctx, asked).npu
    if isinstance(address, DeviceArray):
        address.free()
        return
    if not isinstance(address, int | np.integer):
        raise TypeError(f"{asked}: {address!r} is no device address; give what aclrtMalloc returned")
    try:
        npu.driver.free(int(address))
    except MemoryFault as fault:
        raise fail(
            Code.RT_PARAM_INVALID, asked, str(fault), "free an address of aclrtMalloc once", cause=fault
        ) from fault


def malloc_host(ctx: Context | None, size: int) -> HostBuffer:
    """aclrtMallocHost: pinned host memory. Errors: 100000 (size 0), 107002, 207001."""
    asked = "aclrtMallocHost"
    if size <= 0:
        raise fail(Code.INVALID_PARAM, asked, f"size is {size}", "ask for at least 1 byte")
    npu = contexts.require(ctx, asked).npu
    try:
        return HostBuffer(npu.driver, size)
    except (MemoryError, OverflowError) as shortage:
        raise fail(Code.RT_MEMORY_ALLOCATION, asked, f"the host has no {size} bytes", "ask for less") from shortage


def free_host(ctx: Context | None, buffer: HostBuffer) -> None:
    """aclrtFreeHost. Errors: 107002, 107000 when it is freed already."""
    contexts.require(ctx, "aclrtFreeHost")
    buffer.free()
