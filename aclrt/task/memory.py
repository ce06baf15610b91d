"""Arrays on device memory and pinned host buffers: typed windows on addresses. Copies in stream order are not here."""

from __future__ import annotations

import math
from operator import index as as_int
from typing import TYPE_CHECKING, Any, Protocol, cast, final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.host_thread import another_loop, current_context, require_task
from hw.driver import MemoryFault, NoMemory

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from types import EllipsisType

    from aclrt.base.errors import AclError

    Index = int | slice | EllipsisType | None


class MemoryDriver(Protocol):
    """What arrays need of the driver: integers and bytes."""

    def malloc(self, nbytes: int) -> int: ...

    def free(self, address: int) -> None: ...

    def write(self, address: int, buffer: object) -> None: ...

    def view(self, address: int, shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]: ...

    def extent(self, address: int) -> tuple[int, int] | None: ...

    def host_register(self, buffer: object) -> int: ...

    def host_unregister(self, address: int) -> None: ...


class HasDriver(Protocol):
    """The open device behind an owner."""

    @property
    def driver(self) -> Any: ...

    @property
    def closed(self) -> bool: ...

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def gone(self) -> str: ...


class Owner(Protocol):
    """Whose memory it is, a Context: it says whether a synchronous copy may run now (107030)."""

    @property
    def npu(self) -> HasDriver: ...

    def check_unsafe(self, asked: str) -> None: ...


@final
class DeviceArray:
    """A typed window on device memory. Made by `Device.array`, `Device.empty`, `aclrt.view`, and by slicing another.

    One that owns its memory frees it with `free` or with its device, never when it is dropped: a queued or captured
    task may still read it. `shape` counts elements, `nbytes` is their bytes, whatever the strides.

    Invariants: `data` is the numpy view of exactly this window; `base` is the start of the allocation, freed or not.
    """

    __slots__ = ("__weakref__", "_readonly", "address", "base", "data", "driver", "owner", "owning")

    def __init__(self, owner: Owner, address: int, base: int, data: npt.NDArray[Any], *, owning: bool = False) -> None:
        self.owner = owner
        self.driver: MemoryDriver = owner.npu.driver
        self.address = address
        self.base = base
        self.data = data
        self.owning = owning
        self._readonly: npt.NDArray[Any] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.data.size

    @property
    def nbytes(self) -> int:
        return self.data.nbytes

    @property
    def contiguous(self) -> bool:
        """Whether the elements are adjacent in C order, so that (address, nbytes) says it all."""
        return self.data.flags.c_contiguous

    @property
    def freed(self) -> bool:
        """True once the allocation is gone, by whoever freed it."""
        return self.driver.extent(self.base) is None

    @property
    def readonly(self) -> npt.NDArray[Any]:
        """The window as a kernel that only reads it sees it."""
        if self._readonly is None:
            self._readonly = self.data.view()
            self._readonly.flags.writeable = False
        return self._readonly

    def check(self, asked: str) -> None:
        """107000 when the memory is freed."""
        if self.owner.npu.closed:
            raise fail(
                Code.RT_PARAM_INVALID, asked, f"{self!r}, {self.owner.npu.gone()}", "copy what you need before that"
            )
        if self.freed:
            raise fail(Code.RT_PARAM_INVALID, asked, f"{self!r}", "do not use it after free")

    def __getitem__(self, index: Index | tuple[Index, ...]) -> DeviceArray:
        """A window on part of this one, by integers, slices, `...` and None; it owns nothing. TypeError otherwise."""
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            legal = part is None or part is ... or isinstance(part, int | np.integer | slice)
            if not legal or isinstance(part, bool):
                raise TypeError(f"slice {self!r}: {part!r} would need a copy; use integers and slices, or `.numpy()`")
        data = self.data[parts if ... in parts else (*parts, ...)]  # with `...`, full indexing gives an array too
        return DeviceArray(self.owner, self.address + _start(data) - _start(self.data), self.base, data)

    def numpy(self) -> npt.NDArray[Any]:
        """A host copy, taken now, unordered with streams as `aclrtMemcpy` is.

        Errors: 107030 where the capture mode forbids a synchronous copy, 107000 after free. Source: acl_semantics 4.5.
        """
        _here(self.owner)
        self.owner.check_unsafe("DeviceArray.numpy")
        self.check("DeviceArray.numpy")
        return self.data.copy()

    def assign(self, values: npt.ArrayLike | DeviceArray) -> None:
        """Write `values` (broadcast to the shape, cast within their kind) now; errors as for `numpy`."""
        _here(self.owner)
        self.owner.check_unsafe("DeviceArray.assign")
        self.check("DeviceArray.assign")
        if isinstance(values, DeviceArray):
            values.check("DeviceArray.assign")
            values = values.data
        np.copyto(self.data, values, casting="same_kind")
        if self.size:
            # Rewrite the first element through the driver: value waits look again after a host write it has seen.
            self.driver.write(self.address, self.data[(0,) * self.ndim].tobytes())

    def free(self) -> None:
        """Give the memory back. Tasks that still use it fail when they run. 107000 for a window, or a second time."""
        _here(self.owner)
        if not self.owning:
            raise fail(Code.RT_PARAM_INVALID, "DeviceArray.free", f"{self!r} owns nothing", "free the array it windows")
        self.check("DeviceArray.free")
        self.driver.free(self.base)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError(f"array of {self!r}: device memory is copied to the host; do not ask for copy=False")
        host = self.numpy()
        return host if dtype is None else host.astype(dtype, copy=False)

    def __dlpack__(self, **options: Any) -> Any:
        """Zero copy: the consumer sees device memory, and races with running kernels. For tests and interchange."""
        self.check("DeviceArray.__dlpack__")
        export = cast("Callable[..., Any]", self.data.__dlpack__)
        return export(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()  # (kDLCPU, 0): that is what emulated memory is

    def __repr__(self) -> str:
        kind = "owning" if self.owning else "window"
        state = " freed" if self.freed else ""
        return f"<DeviceArray {self.address:#x} {self.dtype}{list(self.shape)} {kind}{state}>"


def _here(owner: Owner) -> None:
    """RuntimeError outside a task of the event loop that opened the device."""
    npu = owner.npu
    if require_task().get_loop() is not npu.loop and not npu.closed:
        another_loop()


def _dims(shape: int | Sequence[int], asked: str) -> tuple[int, ...]:
    """A shape as numpy takes it. TypeError for what is none, ValueError for a negative dimension."""
    try:
        dims = tuple(map(as_int, shape)) if hasattr(shape, "__iter__") else (as_int(shape),)
    except TypeError as error:
        raise TypeError(f"{asked}: shape is {shape!r}; give a whole number or a sequence of them") from error
    if any(dim < 0 for dim in dims):
        raise ValueError(f"{asked}: shape {dims} has a negative dimension")
    return dims


def _start(data: npt.NDArray[Any]) -> int:
    return int(data.__array_interface__["data"][0])


def allocate(owner: Owner, shape: int | Sequence[int], dtype: npt.DTypeLike, asked: str = "empty") -> DeviceArray:
    """A zeroed array that owns its memory. Errors: 207001; TypeError for a dtype of Python objects."""
    _here(owner)
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"{asked}: device memory holds no Python objects, {kind} asked; use a numeric dtype")
    dims = _dims(shape, asked)
    npu = owner.npu
    if npu.closed:
        raise fail(Code.RT_CONTEXT_NULL, asked, f"no current context, {npu.gone()}", "open the device again")
    driver = npu.driver
    nbytes = math.prod(dims) * kind.itemsize
    try:
        base = driver.malloc(max(nbytes, 1))  # an empty array has an address too
    except NoMemory as shortage:
        raise fail(Code.RT_MEMORY_ALLOCATION, asked, str(shortage), "free device memory", cause=shortage) from shortage
    return DeviceArray(owner, base, base, driver.view(base, dims, kind), owning=True)


def upload(owner: Owner, values: npt.ArrayLike | DeviceArray, dtype: npt.DTypeLike | None = None) -> DeviceArray:
    """A new device array holding `values`, copied now. Errors: 107030 (nothing is allocated then), 207001."""
    _here(owner)
    owner.check_unsafe("Device.array")
    if isinstance(values, DeviceArray):
        values.check("Device.array")
        values = values.data
    host = np.asarray(values, dtype=dtype)
    array = allocate(owner, host.shape, host.dtype, "array")
    array.assign(host)
    return array


def window(owner: Owner, address: int, shape: int | Sequence[int], dtype: npt.DTypeLike) -> DeviceArray:
    """A typed window on device memory that owns nothing.

    Errors: 107000 when the bytes are not all inside one live device allocation (the cause is `hw.MemoryFault`), 107008
    when `address` is not aligned for `dtype`. Source: design.md section 3, 9.
    """
    if not isinstance(address, int | np.integer):
        raise TypeError(f"view: address is {type(address).__name__}; give a device address, an int")
    asked = "view"
    driver = owner.npu.driver
    kind = np.dtype(dtype)
    if driver.is_host(int(address)):
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"{address:#x} is pinned host memory",
            "copy it to the device, or use HostBuffer.numpy",
        )
    extent = driver.extent(int(address))
    if extent is not None and (int(address) - extent[0]) % kind.alignment:
        todo = f"give a multiple of {kind.alignment}"
        raise fail(Code.RT_ADDR_UNALIGNED, asked, f"{address:#x} is not aligned for {kind}", todo)
    dims = _dims(shape, asked)
    try:
        data = driver.view(int(address), dims, kind)
    except MemoryFault as fault:
        raise _outside(asked, fault) from fault
    return DeviceArray(owner, int(address), extent[0] if extent is not None else int(address), data)


def _outside(asked: str, fault: MemoryFault) -> AclError:
    return fail(Code.RT_PARAM_INVALID, asked, str(fault), "give a range inside one live allocation", cause=fault)


def view(address: int, shape: int | Sequence[int], dtype: npt.DTypeLike) -> DeviceArray:
    """A typed, non-owning window on memory of the current Context's device, for kernel arguments.

    Errors: those of `window`, and 107002 without a current Context.
    """
    require_task()
    context = current_context()
    if context is None:
        raise fail(Code.RT_CONTEXT_NULL, "view", "no current context", "open a device or call aclrtSetDevice first")
    owner = cast("Owner", context)
    _here(owner)
    return window(owner, address, shape, dtype)


@final
class HostBuffer(bytearray):
    """Pinned host memory of `aclrtMallocHost`: a writable Python buffer that the device can address.

    Invariants: registered with the driver at `address` while not `freed`, and with each driver in `_others` at the
    address there; its length never changes (a registration exports its bytes).
    """

    __slots__ = ("_driver", "_others", "address", "freed")

    def __init__(self, driver: MemoryDriver, nbytes: int) -> None:
        super().__init__(nbytes)
        self._driver = driver
        self._others: WeakKeyDictionary[MemoryDriver, int] = WeakKeyDictionary()
        self.address = driver.host_register(self)
        self.freed = False

    @property
    def nbytes(self) -> int:
        return len(self)

    def numpy(self, dtype: npt.DTypeLike = np.uint8) -> npt.NDArray[Any]:
        """A writable one-dimensional view, not a copy. `dtype` must divide the size (ValueError)."""
        self.check("HostBuffer.numpy")
        return np.frombuffer(self, dtype)

    def address_on(self, driver: MemoryDriver) -> int:
        """Its address for a device: pinned memory serves all, registered with another one at the first use there."""
        if driver is self._driver:
            return self.address
        address = self._others.get(driver)
        if address is None:
            address = self._others[driver] = driver.host_register(self)
        return address

    def check(self, asked: str) -> None:
        """107000 when the buffer is freed."""
        if self.freed:
            raise fail(Code.RT_PARAM_INVALID, asked, f"{self!r}", "do not use it after free")

    def free(self) -> None:
        """Unregister it: copies that still name it fail when they run. 107000 a second time."""
        self.check("HostBuffer.free")
        if self._driver.extent(self.address) is None:
            met = f"{self!r}, its device was closed"
            raise fail(Code.RT_PARAM_INVALID, "HostBuffer.free", met, "free it before that, or let it go")
        self.freed = True
        self._driver.host_unregister(self.address)
        for driver, address in self._others.items():
            if driver.extent(address) is not None:  # else that device is closed
                driver.host_unregister(address)

    def __repr__(self) -> str:
        return f"<HostBuffer {self.address:#x} {len(self)} bytes{' freed' if self.freed else ''}>"
