"""Who hears of a free, and of a write."""

from __future__ import annotations

import gc

import pytest

from hw.memory import Memory, MemoryFault


class Cache:
    """A decode cache as the memory sees it."""

    def __init__(self) -> None:
        self.poisoned: list[int] = []

    def memory_freed(self, base: int) -> None:
        self.poisoned.append(base)


@pytest.fixture
def memory() -> Memory:
    return Memory(1 << 20)


def test_free_tells_the_watchers_once(memory: Memory) -> None:
    base, other = memory.malloc(8), memory.malloc(8)
    cache, idle = Cache(), Cache()
    memory.watch(base, cache)
    memory.watch(base, cache)
    memory.watch(other, cache)
    memory.watch(base, idle)
    memory.unwatch(base, idle)
    memory.unwatch(other, idle)
    memory.free(base)
    assert cache.poisoned == [base]
    assert idle.poisoned == []
    memory.free(other)
    assert cache.poisoned == [base, other]


def test_a_watcher_finds_the_range_gone(memory: Memory) -> None:
    base = memory.malloc(8)
    seen = []

    class Looks:
        def memory_freed(self, freed: int) -> None:
            seen.append((memory.extent(freed), memory.used_bytes))
            memory.malloc(3)

    looks = Looks()
    memory.watch(base, looks)
    memory.free(base)
    assert seen == [(None, 0)]
    assert memory.used_bytes == 3


def test_watchers_are_held_weakly(memory: Memory) -> None:
    base = memory.malloc(8)
    cache = Cache()
    memory.watch(base, cache)
    poisoned = cache.poisoned
    del cache
    gc.collect()
    memory.free(base)
    assert poisoned == []


def test_only_a_live_base_can_be_watched(memory: Memory) -> None:
    base, cache = memory.malloc(8), Cache()
    with pytest.raises(MemoryFault, match="not the base of a live allocation"):
        memory.watch(base + 4, cache)
    memory.free(base)
    with pytest.raises(MemoryFault, match="freed"):
        memory.watch(base, cache)


def test_unregistering_and_clearing_tell_too(memory: Memory) -> None:
    host, base, cache = memory.host_register(bytearray(8)), memory.malloc(8), Cache()
    memory.watch(host, cache)
    memory.watch(base, cache)
    memory.host_unregister(host)
    assert cache.poisoned == [host]
    memory.host_register(bytearray(8))
    memory.clear()
    assert cache.poisoned == [host, base]
    assert memory.used_bytes == 0
    assert memory.extent(base) is None
    assert memory.malloc(8) > base


def test_host_writes_are_told_and_engine_writes_are_not(memory: Memory) -> None:
    base = memory.malloc(16)
    told: list[tuple[int, int]] = []
    memory.on_write = lambda address, nbytes: told.append((address, nbytes))
    memory.write(base, b"abc")
    memory.fill(base + 4, 1, 2)
    memory.copy(base + 8, base, 3)
    assert told == [(base, 3), (base + 4, 2), (base + 8, 3)]
    memory.device_write(base, b"abc")
    memory.device_fill(base, 0, 4)
    memory.device_copy(base, base + 4, 4)
    memory.store_u64(base, 1)
    memory.read(base, 16)
    with pytest.raises(MemoryFault):
        memory.write(base + 15, b"ab")
    assert len(told) == 3
