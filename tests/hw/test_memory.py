"""Memory: bounds, use after free, views, copies and host buffers."""

from __future__ import annotations

import array
import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.memory import DEVICE_BASE, HOST_BASE, Memory, MemoryFault, NoMemory

GIB = 1 << 30


@pytest.fixture
def memory() -> Memory:
    return Memory(1 << 20)


def test_what_is_written_is_read(memory: Memory) -> None:
    base = memory.malloc(16)
    assert base >= DEVICE_BASE
    assert memory.read(base, 16) == bytes(16)
    memory.write(base + 4, b"abcd")
    memory.fill(base + 8, 0xEE, 2)
    assert memory.read(base, 12) == b"\0\0\0\0abcd\xee\xee\0\0"
    assert memory.extent(base + 15) == (base, 16)
    assert memory.extent(base + 16) is None
    assert memory.extent(base - 1) is None


def test_used_bytes_returns_to_where_it_was(memory: Memory) -> None:
    first = memory.malloc(100)
    bases = [memory.malloc(size) for size in (1, 77, 4096)]
    assert memory.used_bytes == 100 + 1 + 77 + 4096
    for base in bases:
        memory.free(base)
    assert memory.used_bytes == 100
    memory.free(first)
    assert memory.used_bytes == 0
    assert repr(memory) == "<Memory 0 of 1048576 bytes, 0 allocations>"


def test_capacity(memory: Memory) -> None:
    base = memory.malloc(1 << 20)
    with pytest.raises(NoMemory, match="malloc of 1 bytes: 1048576 of 1048576 in use") as info:
        memory.malloc(1)
    assert (info.value.nbytes, info.value.used, info.value.capacity) == (1, 1 << 20, 1 << 20)
    memory.free(base)
    assert memory.malloc(1 << 20) != base
    with pytest.raises(ValueError, match="at least 1"):
        memory.malloc(0)


def test_the_process_running_out_is_no_memory() -> None:
    with pytest.raises(NoMemory):
        Memory(1 << 62).malloc(1 << 60)


def test_addresses_are_aligned_and_never_reused(memory: Memory) -> None:
    seen = set()
    for size in (1, 3, 64, 1000):
        base = memory.malloc(size)
        assert base % 512 == 0
        assert memory.view(base, (1,), np.uint8).__array_interface__["data"][0] % 64 == 0
        memory.free(base)
        seen.add(base)
    assert len(seen) == 4


def test_an_allocation_larger_than_a_window_is_one_range() -> None:
    memory = Memory(8 * GIB)
    base, after = memory.malloc(2 * GIB), memory.malloc(8)
    memory.write(base + GIB - 2, b"wxyz")  # across the inner boundary
    assert memory.read(base + GIB - 2, 4) == b"wxyz"
    assert memory.extent(base + 2 * GIB - 1) == (base, 2 * GIB)
    assert after > base + 2 * GIB
    with pytest.raises(MemoryFault):
        memory.read(base + 2 * GIB - 1, 2)
    memory.free(base)
    assert memory.extent(base + GIB + 5) is None
    assert memory.extent(after) == (after, 8)


# -- faults ----------------------------------------------------------------------------------------------------------


def test_out_of_bounds_names_address_range_and_owner(memory: Memory) -> None:
    base = memory.malloc(64)
    with pytest.raises(MemoryFault) as info:
        memory.read(base + 60, 8)
    fault = info.value
    assert (fault.address, fault.nbytes, fault.base, fault.size, fault.freed) == (base + 60, 8, base, 64, False)
    assert str(fault) == (
        f"read of [{base + 60:#x}, {base + 68:#x}): allocation [{base:#x}, {base + 64:#x}), "
        "out of bounds; keep inside one allocation"
    )


def test_use_after_free_says_so(memory: Memory) -> None:
    base = memory.malloc(64)
    memory.free(base)
    with pytest.raises(MemoryFault, match="freed; do not use it after free") as info:
        memory.write(base + 8, b"x")
    assert (info.value.base, info.value.size, info.value.freed) == (base, 64, True)
    assert f"[{base:#x}, {base + 64:#x})" in str(info.value)
    assert "\n" not in str(info.value)


def test_double_free_and_free_of_the_middle(memory: Memory) -> None:
    base = memory.malloc(64)
    with pytest.raises(MemoryFault, match=r"free of .*not the base of a live allocation"):
        memory.free(base + 8)
    memory.free(base)
    with pytest.raises(MemoryFault, match="freed"):
        memory.free(base)
    assert memory.used_bytes == 0


def test_a_free_long_ago_is_still_a_free() -> None:
    memory = Memory(1 << 20)
    first = memory.malloc(8)
    memory.free(first)
    for _ in range(5000):
        memory.free(memory.malloc(8))
    with pytest.raises(MemoryFault, match="freed long ago") as info:
        memory.read(first, 1)
    assert info.value.freed
    assert info.value.base is None


@pytest.mark.parametrize("address", [0, 8, DEVICE_BASE - 1, DEVICE_BASE, HOST_BASE, -5])
def test_an_address_nobody_got(memory: Memory, address: int) -> None:
    with pytest.raises(MemoryFault, match="no allocation, never allocated") as info:
        memory.read(address, 1)
    assert not info.value.freed


def test_negative_length_is_a_fault(memory: Memory) -> None:
    with pytest.raises(MemoryFault):
        memory.read(memory.malloc(8), -1)


def test_zero_bytes_are_legal_up_to_the_end(memory: Memory) -> None:
    base = memory.malloc(8)
    assert memory.read(base + 8, 0) == b""
    with pytest.raises(MemoryFault):
        memory.read(base + 9, 0)


# -- views -----------------------------------------------------------------------------------------------------------


def test_a_view_aliases(memory: Memory) -> None:
    base = memory.malloc(64)
    view = memory.view(base + 16, (2, 3), np.float32)
    view[1, 2] = 1.5
    assert memory.read(base + 36, 4) == np.float32(1.5).tobytes()
    memory.fill(base, 0, 64)
    assert not view.any()
    assert memory.view(base, 8, "i8").shape == (8,)
    assert memory.view(base, (), "f8").shape == ()


def test_an_unaligned_view_is_a_fault(memory: Memory) -> None:
    base = memory.malloc(64)
    with pytest.raises(MemoryFault, match=r"view of .*not aligned to 4 bytes for float32"):
        memory.view(base + 2, (1,), np.float32)
    assert memory.view(base + 2, (1,), np.uint16).shape == (1,)
    with pytest.raises(MemoryFault, match="out of bounds"):
        memory.view(base, (17,), np.float32)
    with pytest.raises(TypeError, match="no Python objects"):
        memory.view(base, (1,), object)


def test_rows(memory: Memory) -> None:
    base = memory.malloc(3 * 16)
    memory.rows_view(base + 4, 16, 8, 3, write=True)[:] = 7
    rows = np.frombuffer(memory.read(base, 48), np.uint8).reshape(3, 16)
    assert (rows[:, 4:12] == 7).all()
    assert not rows[:, :4].any()
    assert memory.rows_view(base, 16, 0, 3).shape == (3, 0)
    with pytest.raises(MemoryFault):
        memory.rows_view(base + 9, 16, 8, 3)
    with pytest.raises(ValueError, match="width 17 exceeds pitch 16"):
        memory.rows_view(base, 16, 17, 1)


def test_cells(memory: Memory) -> None:
    base = memory.malloc(16)
    memory.store_u64(base, (1 << 64) - 2)
    assert memory.load_i64(base) == -2
    assert memory.load_u64(base) == (1 << 64) - 2
    assert (memory.load_u32(base + 4), memory.load_i32(base + 4)) == ((1 << 32) - 1, -1)
    memory.store_u8(base + 3, 5)
    assert memory.load_u8(base + 3) == 5
    assert memory.load_u32(base + 1) == 0xFF05FFFF  # at any alignment
    for bad in (lambda: memory.load_i64(base + 9), lambda: memory.store_u64(base + 9, 0)):
        with pytest.raises(MemoryFault):
            bad()


# -- copies and host buffers -----------------------------------------------------------------------------------------


def test_copies_between_device_and_host(memory: Memory) -> None:
    base, source, target = memory.malloc(8), np.arange(8, dtype=np.uint8), bytearray(8)
    src, dst = memory.host_register(source), memory.host_register(target)
    assert memory.is_host(src)
    assert not memory.is_host(base)
    assert memory.used_bytes == 8
    memory.copy(base, src, 8)
    memory.copy(dst + 1, base, 4)
    assert target == bytes([0, 0, 1, 2, 3, 0, 0, 0])
    source[0] = 99  # the buffer itself, not a snapshot
    memory.copy(base, src, 8)
    assert memory.read(base, 1) == b"c"
    memory.copy(dst, src, 8)
    assert bytes(target) == source.tobytes()
    memory.host_unregister(src)
    with pytest.raises(MemoryFault, match="freed"):
        memory.copy(base, src, 1)
    memory.host_unregister(dst)


def test_overlapping_copies(memory: Memory) -> None:
    base = memory.malloc(8)
    memory.write(base, b"abcdefgh")
    memory.copy(base + 2, base, 6)
    assert memory.read(base, 8) == b"ababcdef"
    memory.copy(base, base + 2, 6)
    assert memory.read(base, 8) == b"abcdefef"


def test_a_read_only_host_buffer_is_a_source_only(memory: Memory) -> None:
    base, host = memory.malloc(4), memory.host_register(b"wxyz")
    memory.copy(base, host, 4)
    assert memory.read(base, 4) == b"wxyz"
    for write in (
        lambda: memory.copy(host, base, 4),
        lambda: memory.fill(host, 0, 1),
        lambda: memory.write(host, b"a"),
        lambda: memory.bytes_view(host, 4, write=True),
    ):
        with pytest.raises(MemoryFault, match="a read-only host buffer"):
            write()


def test_what_can_be_registered(memory: Memory) -> None:
    scalar = np.array(7, np.int32)
    assert memory.read(memory.host_register(scalar), 4) == scalar.tobytes()
    assert memory.read(memory.host_register(array.array("d", [1.0])), 8) == np.float64(1).tobytes()
    grid = np.zeros((4, 4), np.float16)
    assert memory.extent(memory.host_register(grid)) is not None
    with pytest.raises(ValueError, match="non-contiguous"):
        memory.host_register(grid[:, ::2])
    with pytest.raises(ValueError, match="non-contiguous"):
        memory.host_register(memoryview(bytearray(8))[::2])
    with pytest.raises(ValueError, match="empty"):
        memory.host_register(b"")
    with pytest.raises(TypeError):
        memory.host_register(3)
    with pytest.raises(TypeError, match="Python objects"):
        memory.host_register(np.array([None]))


def test_a_registered_buffer_is_kept_alive(memory: Memory) -> None:
    host = memory.host_register(bytearray(b"keep me"))
    gc.collect()
    assert memory.read(host, 7) == b"keep me"


def test_free_and_unregister_are_not_the_same(memory: Memory) -> None:
    base, host = memory.malloc(8), memory.host_register(bytearray(8))
    with pytest.raises(MemoryFault, match="unregistered, not freed"):
        memory.free(host)
    with pytest.raises(MemoryFault, match="freed, not unregistered"):
        memory.host_unregister(base)


@pytest.mark.parametrize(
    "source",
    [b"\1\0\2\0", np.array([1, 2], "<u2"), np.array([1, 9, 2, 9], "<u2")[::2], array.array("H", [1, 2])],
    ids=["bytes", "array", "strided", "array.array"],
)
def test_write_takes_any_buffer(memory: Memory, source: object) -> None:
    base = memory.malloc(4)
    memory.write(base, source)
    assert memory.read(base, 4) == b"\1\0\2\0"
    memory.write(base, memoryview(b"\7-\7-\7-\7-")[::2])
    assert memory.read(base, 4) == b"\7\7\7\7"
    memory.write(base, b"")


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 255)),
        max_size=20,
    )
)
def test_memory_behaves_as_a_bytearray(moves: list[tuple[int, int, int, int, int]]) -> None:
    memory, model = Memory(64), bytearray(32)
    base = memory.malloc(32)
    for verb, at, to, nbytes, value in moves:
        if at + nbytes > 32 or (verb == 2 and to + nbytes > 32):
            with pytest.raises(MemoryFault):
                memory.copy(base + to, base + at, nbytes)
        elif verb == 0:
            memory.fill(base + at, value, nbytes)
            model[at : at + nbytes] = bytes([value]) * nbytes
        elif verb == 1:
            memory.write(base + at, bytes([value, 1]) * (nbytes // 2))
            model[at : at + nbytes // 2 * 2] = bytes([value, 1]) * (nbytes // 2)
        else:
            memory.copy(base + to, base + at, nbytes)
            model[to : to + nbytes] = model[at : at + nbytes]
        assert memory.read(base, 32) == model
