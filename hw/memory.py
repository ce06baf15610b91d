"""The device's memory and the host buffers registered with it: addresses, bounds and who must hear of a free.

Not a type system and not a copy engine: addresses and bytes only. One numpy buffer per allocation, so that a view
of device memory is an ordinary array; addresses are 64 bits and never given out twice, so that a stale one is found.
"""

from __future__ import annotations

import struct
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Bytes = npt.NDArray[np.uint8]

WINDOW_BITS = 30
"""An allocation owns whole windows of 2**30 bytes of address space: finding it is one dict look-up, and what is left
of its last window (at least GUARD bytes) is its guard gap."""

GUARD = 4096
DEVICE_BASE = 0x1000_0000_0000
HOST_BASE = 1 << 62  # registered host buffers; below 2**63, so that an int64 cell can hold every address
ALIGNMENT = 64  # of every allocation's first byte, in the process too
_TOMBSTONES = 4096

_U32, _U64, _I32, _I64 = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<i"), struct.Struct("<q")


class MemoryFault(Exception):
    """An access outside every live allocation, a bad free, or a view that is not aligned.

    `base`, `size` and `freed` tell of the allocation that owns (or owned) the address; base None: there is none.
    """

    def __init__(self, what: str, address: int, nbytes: int, base: int | None, size: int, state: str) -> None:
        self.address = address
        self.nbytes = nbytes
        self.base = base
        self.size = size
        self.freed = state.startswith("freed")
        where = f"[{address:#x}, {address + nbytes:#x})" if nbytes else f"{address:#x}"
        owner = f"allocation [{base:#x}, {base + size:#x})" if base is not None else "no allocation"
        super().__init__(f"{what} {where}: {owner}, {state}")


class NoMemory(Exception):
    """malloc asked for more than is left."""

    def __init__(self, nbytes: int, used: int, capacity: int) -> None:
        self.nbytes, self.used, self.capacity = nbytes, used, capacity
        super().__init__(f"malloc of {nbytes} bytes: {used} of {capacity} in use; free some or raise device_memory")


class MemoryUser(Protocol):
    """What `Memory.watch` takes: hashable by identity, weakly referable (a slots class needs ``__weakref__``)."""

    def memory_freed(self, base: int) -> None: ...


@final
class Allocation:
    """One live range: ``buffer`` (uint8) and ``data`` (a memoryview) are its bytes."""

    __slots__ = ("base", "buffer", "data", "size", "writable")

    def __init__(self, base: int, buffer: Bytes) -> None:
        self.base = base
        self.size = buffer.nbytes
        self.buffer = buffer
        self.data: memoryview = buffer.data
        self.writable = not self.data.readonly


@final
class Memory:
    """`capacity` bytes of device memory, and a separate range for registered host buffers.

    Host-side writes (`write`, `fill`, `copy`) tell `on_write`; the ``device_*`` twins, for the engines, do not.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used_bytes = 0  # live device bytes, as asked for in malloc
        self.on_write: Callable[[int, int], None] | None = None  # (address, nbytes), after a host-side write
        # Invariant: every window of a live allocation maps to it, and _next_* are above every window ever mapped.
        self._windows: dict[int, Allocation] = {}
        self._next_device = DEVICE_BASE
        self._next_host = HOST_BASE
        self._live = 0
        self._watchers: dict[int, weakref.WeakKeyDictionary[MemoryUser, None]] = {}  # by base, live ones only
        self._tombstones: OrderedDict[int, int] = OrderedDict()  # base -> size of what was freed lately

    def __repr__(self) -> str:
        return f"<Memory {self.used_bytes} of {self.capacity} bytes, {self._live} allocations>"

    # -- allocations ---------------------------------------------------------------------------------------------

    def malloc(self, nbytes: int) -> int:
        """Address of `nbytes` new zeroed bytes. NoMemory when fewer are left; ValueError for 0 or less."""
        if nbytes <= 0:
            raise ValueError(f"malloc of {nbytes} bytes: an allocation has at least 1")
        if nbytes > self.capacity - self.used_bytes:
            raise NoMemory(nbytes, self.used_bytes, self.capacity)
        try:
            buffer = _aligned(nbytes)
        except MemoryError:
            raise NoMemory(nbytes, self.used_bytes, self.capacity) from None
        base = self._next_device
        self._next_device = self._map(Allocation(base, buffer))
        self.used_bytes += nbytes
        return base

    def free(self, address: int) -> None:
        """End the allocation at `address` and tell its watchers. MemoryFault unless it is the base of a live one."""
        if address >= HOST_BASE:
            raise self._fault("free of", address, 0, "host memory is unregistered, not freed")
        self._end("free of", address)

    def host_register(self, buffer: object) -> int:
        """Address of a host buffer (any contiguous Python buffer), which is kept alive until unregistered.

        A read-only buffer can be a source only. ValueError for an empty or a non-contiguous one, TypeError for an
        object that is no buffer.
        """
        data = as_bytes(buffer)
        if not data.nbytes:
            raise ValueError("host_register of an empty buffer: there is nothing to address")
        base = self._next_host
        self._next_host = self._map(Allocation(base, data))
        return base

    def host_unregister(self, address: int) -> None:
        """End the registration at `address`; its watchers are told. MemoryFault unless it is a live one's base."""
        if address < HOST_BASE:
            raise self._fault("host_unregister of", address, 0, "device memory is freed, not unregistered")
        self._end("host_unregister of", address)

    def clear(self) -> None:
        """End every allocation and registration (device reset); watchers are told. Addresses are not reused."""
        for base in sorted({owner.base for owner in self._windows.values()}):
            self._end("clear of", base)

    def extent(self, address: int) -> tuple[int, int] | None:
        """(base, size) of the live allocation that holds the byte at `address`; None if there is none."""
        owner = self._windows.get(address >> WINDOW_BITS)
        if owner is None or address >= owner.base + owner.size:
            return None
        return owner.base, owner.size

    def is_host(self, address: int) -> bool:
        """Whether `address` lies in the range of registered host buffers (live or not)."""
        return address >= HOST_BASE

    def watch(self, base: int, user: MemoryUser) -> None:
        """Call ``user.memory_freed(base)`` when the allocation at `base` ends; `user` is held weakly.

        Watching twice is watching once. MemoryFault if `base` is not the base of a live allocation.
        """
        users = self._watchers.get(base)
        if users is None:
            owner = self._windows.get(base >> WINDOW_BITS)
            if owner is None or owner.base != base:
                raise self._fault("watch of", base, 0, "not the base of a live allocation")
            users = self._watchers[base] = weakref.WeakKeyDictionary()
        users[user] = None

    def unwatch(self, base: int, user: MemoryUser) -> None:
        """Undo `watch`; nothing happens if there is nothing to undo."""
        users = self._watchers.get(base)
        if users is not None:
            users.pop(user, None)
            if not users:
                del self._watchers[base]

    # -- the host's accesses -------------------------------------------------------------------------------------

    def read(self, address: int, nbytes: int) -> bytes:
        """A copy of `nbytes` bytes at `address`. MemoryFault if they are not inside one live allocation."""
        owner, at = self._find("read of", address, nbytes)
        return owner.data[at : at + nbytes].tobytes()

    def write(self, address: int, buffer: object) -> None:
        """Copy a Python buffer (any layout) to `address`; tells `on_write`. MemoryFault as for `read`."""
        nbytes = self.device_write(address, buffer)
        if self.on_write is not None:
            self.on_write(address, nbytes)

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Set `nbytes` bytes at `address` to `value` (0..255); tells `on_write`."""
        self.device_fill(address, value, nbytes)
        if self.on_write is not None:
            self.on_write(address, nbytes)

    def copy(self, dst: int, src: int, nbytes: int) -> None:
        """Move `nbytes` bytes between any two addresses; overlap is allowed; tells `on_write`."""
        self.device_copy(dst, src, nbytes)
        if self.on_write is not None:
            self.on_write(dst, nbytes)

    def view(self, address: int, shape: int | Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An array on the bytes at `address`, not a copy; writes through it tell nobody.

        MemoryFault if the bytes are not inside one live allocation, or `address` is not aligned for `dtype`.
        A view outlives its allocation as an array, not as device memory.
        """
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise TypeError(f"view of {address:#x} as {kind}: device memory holds no Python objects")
        dims = (shape,) if isinstance(shape, int) else tuple(shape)
        nbytes = kind.itemsize
        for dim in dims:
            nbytes *= dim
        owner, at = self._find("view of", address, nbytes)
        if at % kind.alignment:
            raise self._fault("view of", address, nbytes, f"not aligned to {kind.alignment} bytes for {kind}")
        return np.ndarray(dims, kind, owner.buffer, at)

    # -- the engines' accesses -----------------------------------------------------------------------------------

    def device_write(self, address: int, buffer: object) -> int:
        """As `write`, untold; returns how many bytes were written."""
        data = as_bytes(buffer, gather=True)
        owner, at = self._find("write of", address, data.nbytes, write=True)
        owner.buffer[at : at + data.nbytes] = data
        return data.nbytes

    def device_fill(self, address: int, value: int, nbytes: int) -> None:
        """As `fill`, untold."""
        owner, at = self._find("fill of", address, nbytes, write=True)
        owner.buffer[at : at + nbytes] = value

    def device_copy(self, dst: int, src: int, nbytes: int) -> None:
        """As `copy`, untold."""
        source, s = self._find("copy from", src, nbytes)
        target, d = self._find("copy to", dst, nbytes, write=True)
        target.data[d : d + nbytes] = source.data[s : s + nbytes]

    def bytes_view(self, address: int, nbytes: int, *, write: bool = False) -> Bytes:
        """The bytes at `address` as an array, for a decode cache; `write` refuses a read-only host buffer now."""
        owner, at = self._find("write of" if write else "read of", address, nbytes, write=write)
        return owner.buffer[at : at + nbytes]

    def rows_view(self, address: int, pitch: int, width: int, height: int, *, write: bool = False) -> Bytes:
        """`height` rows of `width` bytes, `pitch` bytes from row to row, as an array of shape (height, width).

        ValueError if width exceeds pitch; MemoryFault as for `read`.
        """
        if width > pitch:
            raise ValueError(f"2-D access at {address:#x}: width {width} exceeds pitch {pitch}")
        nbytes = (height - 1) * pitch + width if height and width else 0
        owner, at = self._find("2-D write of" if write else "2-D read of", address, nbytes, write=write)
        return np.ndarray((height, width), np.uint8, owner.buffer, at, (pitch, 1))

    # Cells of the TS and its pollers: little endian, at any alignment, MemoryFault as for `read`.

    def load_u8(self, address: int) -> int:
        owner, at = self._find("load of", address, 1)
        return owner.data[at]

    def load_u32(self, address: int) -> int:
        owner, at = self._find("load of", address, 4)
        return int(_U32.unpack_from(owner.data, at)[0])

    def load_i32(self, address: int) -> int:
        owner, at = self._find("load of", address, 4)
        return int(_I32.unpack_from(owner.data, at)[0])

    def load_u64(self, address: int) -> int:
        owner, at = self._find("load of", address, 8)
        return int(_U64.unpack_from(owner.data, at)[0])

    def load_i64(self, address: int) -> int:
        owner, at = self._find("load of", address, 8)
        return int(_I64.unpack_from(owner.data, at)[0])

    def store_u8(self, address: int, value: int) -> None:
        owner, at = self._find("store to", address, 1, write=True)
        owner.data[at] = value

    def store_u64(self, address: int, value: int) -> None:
        owner, at = self._find("store to", address, 8, write=True)
        _U64.pack_into(owner.data, at, value)

    # -- inside --------------------------------------------------------------------------------------------------

    def _find(self, what: str, address: int, nbytes: int, *, write: bool = False) -> tuple[Allocation, int]:
        """The live allocation of [address, address + nbytes) and the offset in it. One past the end is legal for 0."""
        owner = self._windows.get(address >> WINDOW_BITS)
        if owner is None or nbytes < 0 or (at := address - owner.base) + nbytes > owner.size:
            raise self._fault(what, address, nbytes, "out of bounds; keep inside one allocation")
        if write and not owner.writable:
            raise self._fault(what, address, nbytes, "a read-only host buffer; register a writable one")
        return owner, at

    def _map(self, owner: Allocation) -> int:
        """Enter the windows of `owner`; returns the first address after them."""
        end = owner.base + owner.size + GUARD
        last = (end - 1) >> WINDOW_BITS
        for window in range(owner.base >> WINDOW_BITS, last + 1):
            self._windows[window] = owner
        self._live += 1
        return (last + 1) << WINDOW_BITS

    def _end(self, what: str, base: int) -> None:
        owner = self._windows.get(base >> WINDOW_BITS)
        if owner is None or owner.base != base:
            raise self._fault(what, base, 0, "not the base of a live allocation; pass what malloc returned, once")
        for window in range(base >> WINDOW_BITS, ((base + owner.size + GUARD - 1) >> WINDOW_BITS) + 1):
            del self._windows[window]
        self._live -= 1
        if base < HOST_BASE:
            self.used_bytes -= owner.size
        self._tombstones[base] = owner.size
        if len(self._tombstones) > _TOMBSTONES:
            self._tombstones.popitem(last=False)
        # The range is gone before anyone hears of it: a watcher that looks again finds it freed.
        for user in list(self._watchers.pop(base, ())):
            user.memory_freed(base)

    def _fault(self, what: str, address: int, nbytes: int, state: str) -> MemoryFault:
        owner = self._windows.get(address >> WINDOW_BITS)
        if owner is not None:
            return MemoryFault(what, address, nbytes, owner.base, owner.size, state)
        for base in reversed(self._tombstones):
            size = self._tombstones[base]
            if base <= address < base + size + GUARD:
                return MemoryFault(what, address, nbytes, base, size, "freed; do not use it after free")
        given = DEVICE_BASE <= address < self._next_device or HOST_BASE <= address < self._next_host
        if given:
            return MemoryFault(what, address, nbytes, None, 0, "freed long ago; do not use it after free")
        return MemoryFault(what, address, nbytes, None, 0, "never allocated; pass an address that malloc returned")


def as_bytes(buffer: object, *, gather: bool = False) -> Bytes:
    """The bytes of a Python buffer as a flat uint8 array that shares them.

    A non-contiguous one is a ValueError, or with `gather` a copy in C order. TypeError for what is no buffer.
    """
    if isinstance(buffer, np.ndarray):
        if not buffer.flags.c_contiguous:
            if not gather:
                raise ValueError("a non-contiguous array has no one address; copy it first")
            buffer = np.ascontiguousarray(buffer)
        if buffer.dtype.hasobject:
            raise TypeError("an array of Python objects has no bytes to copy")
        return buffer.reshape(-1).view(np.uint8)
    data = memoryview(buffer)  # type: ignore[arg-type]
    if not data.c_contiguous:
        if not gather:
            raise ValueError("a non-contiguous buffer has no one address; copy it first")
        return np.frombuffer(data.tobytes(), np.uint8)
    return np.frombuffer(data, np.uint8) if data.nbytes else np.empty(0, np.uint8)


def _aligned(nbytes: int) -> Bytes:
    """`nbytes` zeroed bytes whose first one is aligned in the process, so that address alignment is real alignment."""
    raw = np.zeros(nbytes + ALIGNMENT, np.uint8)
    skip = -int(raw.__array_interface__["data"][0]) % ALIGNMENT
    return raw[skip : skip + nbytes]
