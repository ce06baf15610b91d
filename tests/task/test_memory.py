"""Arrays on device memory and pinned host buffers."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from aclrt.base.errors import AclError, OutOfMemoryError
from aclrt.base.host_thread import set_current_context
from aclrt.task.memory import DeviceArray, HostBuffer, allocate, upload, view, window
from hw.memory import MemoryFault
from tests.task.fakes import FakeContext, FakeDriver


@pytest.fixture
def ctx() -> FakeContext:
    return FakeContext()


@pytest.fixture
def driver(ctx: FakeContext) -> FakeDriver:
    return ctx.npu.driver


async def test_upload_and_read_back(ctx: FakeContext, driver: FakeDriver) -> None:
    x = upload(ctx, np.arange(12, dtype="f4").reshape(3, 4))
    assert (x.shape, x.dtype, x.nbytes, x.size, x.ndim) == ((3, 4), np.dtype("f4"), 48, 12, 2)
    assert driver.read(x.address, 48) == np.arange(12, dtype="f4").tobytes()
    host = x.numpy()
    host[0, 0] = 99  # a copy
    assert x.numpy()[0, 0] == 0
    assert repr(x) == f"<DeviceArray {x.address:#x} float32[3, 4] owning>"


async def test_empty_is_zeroed_and_scalars_and_nothing_have_addresses(ctx: FakeContext) -> None:
    assert allocate(ctx, (2, 2), np.int64).numpy().tolist() == [[0, 0], [0, 0]]
    assert allocate(ctx, 3, "u1").shape == (3,)
    scalar, nothing = upload(ctx, 2.5), allocate(ctx, (0, 4), "f4")
    assert (scalar.shape, scalar.numpy()) == ((), 2.5)
    assert (nothing.nbytes, nothing.numpy().shape) == (0, (0, 4))
    nothing.assign(np.empty((0, 4)))


async def test_upload_keeps_or_sets_the_dtype(ctx: FakeContext) -> None:
    assert upload(ctx, [1, 2]).dtype == np.int64
    assert upload(ctx, [1, 2], "f2").dtype == np.float16
    x = upload(ctx, [1.0, 2.0])
    assert upload(ctx, x).numpy().tolist() == [1.0, 2.0]
    assert upload(ctx, np.arange(6).reshape(2, 3).T).numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


async def test_assign_broadcasts_and_casts_within_a_kind(ctx: FakeContext) -> None:
    x = allocate(ctx, (2, 3), "f4")
    x.assign(7)
    assert x.numpy().tolist() == [[7, 7, 7]] * 2
    x.assign(np.array([1, 2, 3], "f8"))
    assert x.numpy().tolist() == [[1, 2, 3]] * 2
    x.assign(upload(ctx, np.ones((2, 3), "f4")))
    assert x.numpy().sum() == 6
    with pytest.raises(TypeError):
        x.assign(1j)
    with pytest.raises(ValueError, match="broadcast"):
        x.assign(np.ones(4))
    assert x.numpy().sum() == 6


async def test_assign_is_seen_by_value_waits(ctx: FakeContext, driver: FakeDriver) -> None:
    writes: list[int] = []
    driver.memory.on_write = lambda address, nbytes: writes.append(address)
    x = allocate(ctx, 4, "f4")
    x.assign(1)
    x[1::2].assign(2)
    assert writes == [x.address, x.address + 4]
    assert x.numpy().tolist() == [1, 2, 1, 2]


async def test_slices_share_the_memory(ctx: FakeContext) -> None:
    x = upload(ctx, np.arange(24, dtype="i4").reshape(4, 6))
    part = x[1:3, 2]
    assert (part.address, part.shape, part.base) == (x.address + 4 * 8, (2,), x.base)
    assert not part.contiguous
    assert x[1].contiguous
    part.assign([-1, -2])
    assert x.numpy()[1:3, 2].tolist() == [-1, -2]
    assert x[2, 3].numpy() == 15
    assert x[..., ::-1].numpy()[0].tolist() == [5, 4, 3, 2, 1, 0]
    assert x[None, -1, ...].shape == (1, 6)
    assert x[1:][1:][0].address == x.address + 4 * 12
    assert repr(x[0]).endswith("int32[6] window>")


@pytest.mark.parametrize("index", [[0, 1], np.array([0]), True, (0, [1]), 1.0, "f"])
async def test_an_index_that_copies_is_refused(ctx: FakeContext, index: object) -> None:
    with pytest.raises(TypeError, match="slice <DeviceArray"):
        upload(ctx, np.zeros((2, 2)))[index]  # type: ignore[index]


async def test_index_out_of_range(ctx: FakeContext) -> None:
    with pytest.raises(IndexError):
        upload(ctx, [1, 2])[2]


async def test_free_ends_every_window(ctx: FakeContext, driver: FakeDriver) -> None:
    x = upload(ctx, np.ones(8, "f4"))
    part, typed = x[2:4], window(ctx, x.address, 2, "f8")
    assert driver.memory.used_bytes == 32
    x.free()
    assert driver.memory.used_bytes == 0
    for array in (x, part, typed):
        assert array.freed
        assert "freed>" in repr(array)
        for use in (array.numpy, lambda array=array: array.assign(0), array.__dlpack__, lambda a=array: np.asarray(a)):
            with pytest.raises(AclError) as caught:
                use()
            assert caught.value.code == 107000
            assert f"{array.address:#x}" in str(caught.value)
    with pytest.raises(AclError, match="107000"):
        x.free()


async def test_only_the_owner_frees(ctx: FakeContext) -> None:
    x = upload(ctx, np.ones(8))
    with pytest.raises(AclError, match="owns nothing"):
        x[1:].free()
    assert not x.freed


async def test_shortage_is_a_memory_error(ctx: FakeContext, driver: FakeDriver) -> None:
    with pytest.raises(MemoryError) as caught:
        allocate(ctx, 1 << 21, "u1")
    assert isinstance(caught.value, OutOfMemoryError)
    assert driver.memory.used_bytes == 0


async def test_dtype_of_objects_and_negative_shapes(ctx: FakeContext, driver: FakeDriver) -> None:
    with pytest.raises(TypeError, match="Python objects"):
        upload(ctx, np.array([None]))
    with pytest.raises(ValueError, match="negative"):
        allocate(ctx, (2, -1), "f4")
    assert driver.memory.used_bytes == 0


async def test_unsafe_calls_ask_first_and_lose_nothing(ctx: FakeContext, driver: FakeDriver) -> None:
    x = upload(ctx, np.ones(4, "f4"))
    ctx.refusing = True
    for use in (x.numpy, lambda: x.assign(0), lambda: np.asarray(x), lambda: upload(ctx, [1.0])):
        with pytest.raises(AclError) as caught:
            use()
        assert caught.value.code == 107030
    assert driver.memory.used_bytes == 16
    allocate(ctx, 4, "f4")  # memory may be taken in any mode (acl_semantics 4.5)
    ctx.refusing = False
    assert x.numpy().tolist() == [1, 1, 1, 1]
    assert ctx.asked[-1] == "DeviceArray.numpy"


async def test_numpy_interchange(ctx: FakeContext) -> None:
    x = upload(ctx, np.arange(4, dtype="f4"))
    assert np.asarray(x, "f8").tolist() == [0, 1, 2, 3]
    assert np.array(x).dtype == np.float32
    with pytest.raises(ValueError, match="copy=False"):
        np.array(x, copy=False)
    assert not hasattr(x, "__array_interface__")
    shared = np.from_dlpack(x)  # type: ignore[arg-type]
    shared[0] = 9
    assert x.numpy()[0] == 9
    assert x.__dlpack_device__() == (1, 0)


async def test_window_shares_an_allocation(ctx: FakeContext, driver: FakeDriver) -> None:
    address = driver.malloc(64)
    w = window(ctx, address + 16, (2, 2), "f4")
    w.assign([[1, 2], [3, 4]])
    assert driver.read(address + 16, 16) == np.array([1, 2, 3, 4], "f4").tobytes()
    assert (w.base, w.address) == (address, address + 16)
    with pytest.raises(AclError, match="owns nothing"):
        w.free()


async def test_window_outside_is_refused_with_its_cause(ctx: FakeContext, driver: FakeDriver) -> None:
    address = driver.malloc(64)
    gone = driver.malloc(64)
    driver.free(gone)
    for bad, n in ((address, 17), (address + 64, 1), (address - 4, 1), (gone, 1), (0, 1)):
        with pytest.raises(AclError) as caught:
            window(ctx, bad, n, "f4")
        assert caught.value.code == 107000
        assert isinstance(caught.value.__cause__, MemoryFault)
    with pytest.raises(AclError) as caught:
        window(ctx, address + 2, 1, "f4")
    assert caught.value.code == 107008
    with pytest.raises(TypeError, match="address"):
        window(ctx, "0x10", 1, "f4")  # type: ignore[arg-type]


async def test_view_needs_a_current_context(ctx: FakeContext, driver: FakeDriver) -> None:
    with pytest.raises(AclError) as caught:
        view(driver.malloc(4), 1, "f4")
    assert caught.value.code == 107002
    set_current_context(ctx)
    w = view(driver.malloc(4), 1, "f4")
    assert isinstance(w, DeviceArray)
    assert w.owner is ctx


async def test_calls_from_a_worker_thread_are_refused(ctx: FakeContext) -> None:
    x = upload(ctx, [1.0])
    for use in (x.numpy, x.free, lambda: x.assign(0), lambda: upload(ctx, [1.0]), lambda: view(x.address, 1, "f8")):
        with pytest.raises(RuntimeError, match="host thread is an asyncio task"):
            await asyncio.to_thread(use)
    assert x.numpy() == [1.0]


async def test_host_buffer_is_a_writable_buffer(driver: FakeDriver) -> None:
    buffer = HostBuffer(driver, 16)
    assert (len(buffer), buffer.nbytes, bytes(buffer)) == (16, 16, bytes(16))
    values = buffer.numpy("f4")
    values[:] = [1, 2, 3, 4]
    memoryview(buffer)[0:4] = np.float32(5).tobytes()
    assert buffer.numpy("f4").tolist() == [5, 2, 3, 4]
    assert driver.read(buffer.address, 16) == bytes(buffer)
    driver.write(buffer.address, np.zeros(4, "f4"))
    assert values.tolist() == [0, 0, 0, 0]
    with pytest.raises(BufferError):
        buffer.append(1)  # its address would move
    with pytest.raises(ValueError, match="multiple"):
        HostBuffer(driver, 3).numpy("f4")


async def test_freed_host_buffer(driver: FakeDriver) -> None:
    buffer = HostBuffer(driver, 16)
    buffer.free()
    assert buffer.freed
    assert driver.extent(buffer.address) is None
    assert repr(buffer) == f"<HostBuffer {buffer.address:#x} 16 bytes freed>"
    for use in (buffer.free, buffer.numpy):
        with pytest.raises(AclError, match="107000"):
            use()
