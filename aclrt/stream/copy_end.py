"""One end of a copy: where its bytes are, and the host object to keep. Not the copy (`stream.transfer`)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.task.memory import DeviceArray, HostBuffer

if TYPE_CHECKING:
    from aclrt.stream.npu import Npu

type_error = "give a device address, a DeviceArray, a HostBuffer, a numpy array or a writable buffer"
Address = Any
"""int (device address), DeviceArray, HostBuffer, or any Python buffer (pageable host memory)."""


class Location(Enum):
    """Where the bytes of one end of a copy are (acl_semantics 1.9)."""

    DEVICE = "device"
    PINNED = "pinned"
    PAGEABLE = "pageable"


class End(NamedTuple):
    """One end of a copy. `buffer` is the host object to keep (and, pageable, to register while the copy runs)."""

    location: Location
    address: int
    buffer: Any
    nbytes: int | None  # None when only an address is known


def classify(npu: Npu, value: Address, asked: str) -> End:
    """Find out what one end of a copy is. TypeError for what has no bytes; 107000 for a freed buffer, or memory of
    another device."""
    if isinstance(value, DeviceArray):
        value.check(asked)
        if value.driver is not npu.driver:
            raise fail(Code.RT_PARAM_INVALID, asked, f"{value!r} of another device", "copy through host memory")
        if not value.contiguous:
            raise TypeError(f"{asked}: {value!r} is strided; copy a contiguous array")
        return End(Location.DEVICE, value.address, None, value.nbytes)
    if isinstance(value, HostBuffer):
        return _pinned(npu, value, 0, value.nbytes, asked)
    if isinstance(value, int | np.integer):
        extent = npu.driver.extent(int(value))
        where = Location.PINNED if npu.driver.is_host(int(value)) else Location.DEVICE
        left = extent[0] + extent[1] - int(value) if extent is not None else None
        return End(where, int(value), None, left)
    data = host_bytes(value, asked)
    pinned = pinned_owner(value) if data.size else None
    if pinned is not None:
        offset = data.ctypes.data - np.frombuffer(pinned, np.uint8).ctypes.data
        return _pinned(npu, pinned, offset, data.nbytes, asked)
    return End(Location.PAGEABLE, 0, data, data.nbytes)


def _pinned(npu: Npu, buffer: HostBuffer, offset: int, nbytes: int, asked: str) -> End:
    buffer.check(asked)
    return End(Location.PINNED, buffer.address_on(npu.driver) + offset, buffer, nbytes)


def host_bytes(value: Any, asked: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of a Python buffer, flat and shared. TypeError for what has none, is strided, or holds objects."""
    if not isinstance(value, np.ndarray):
        try:
            view = memoryview(value)
        except TypeError:
            raise TypeError(f"{asked}: {type(value).__name__} has no bytes to copy; {type_error}") from None
        if not view.c_contiguous:
            raise TypeError(f"{asked}: the {type(value).__name__} is strided; copy a contiguous one")
        return np.frombuffer(view, np.uint8) if view.nbytes else np.empty(0, np.uint8)
    if not value.flags.c_contiguous:
        raise TypeError(f"{asked}: the numpy array is strided; copy a contiguous array")
    if value.dtype.hasobject:
        raise TypeError(f"{asked}: the numpy array holds Python objects, which have no bytes to copy")
    return value.reshape(-1).view(np.uint8) if value.nbytes else np.empty(0, np.uint8)


def size_of(value: Address) -> int:
    """Bytes of a DeviceArray, HostBuffer, numpy array or other buffer."""
    if isinstance(value, int | np.integer):
        raise TypeError(f"copy: {value:#x} is an address, which has no size; make it a window with aclrt.view")
    if isinstance(value, DeviceArray | HostBuffer | np.ndarray):
        return value.nbytes
    return host_bytes(value, "copy").nbytes


def pinned_owner(value: Any) -> HostBuffer | None:
    """The pinned buffer that a numpy array or a memoryview is a view of, if it is one."""
    owner: Any = value
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner if isinstance(owner, HostBuffer) else None
