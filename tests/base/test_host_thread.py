"""A host thread is an asyncio task: one record each, never a neighbour's, and none outside."""

from __future__ import annotations

import asyncio
import threading

import anyio
import pytest

from aclrt.base.enums import CaptureMode
from aclrt.base.host_thread import (
    HostThread,
    current_context,
    host_function,
    host_thread,
    host_thread_id,
    outside_tasks,
    require_task,
    set_current_context,
)


async def test_one_record_per_task() -> None:
    mine = host_thread()
    await asyncio.sleep(0)
    assert host_thread() is mine
    assert host_thread_id() == mine.id
    assert mine.exchange_mode is CaptureMode.GLOBAL
    assert mine.modes.strictest is None


async def test_children_start_their_own() -> None:
    mine = host_thread()
    mine.exchange_mode = CaptureMode.RELAXED
    mine.modes.enter(CaptureMode.GLOBAL)

    async def child() -> HostThread:
        return host_thread()

    records = [await asyncio.create_task(child()), *await asyncio.gather(child(), child())]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(child()) for _ in range(2)]
    async with anyio.create_task_group() as anyio_group:

        async def collect() -> None:
            records.append(host_thread())

        anyio_group.start_soon(collect)
    records += [task.result() for task in tasks]
    assert len({record.id for record in [mine, *records]}) == len(records) + 1
    assert all(record.exchange_mode is CaptureMode.GLOBAL for record in records)
    assert all(record.modes.strictest is None for record in records)
    assert host_thread() is mine


async def test_timeout_keeps_the_thread() -> None:
    mine = host_thread()
    async with asyncio.timeout(10):
        await asyncio.sleep(0)
        assert host_thread() is mine
    with anyio.CancelScope():
        await asyncio.sleep(0)
        assert host_thread() is mine


async def test_record_dies_with_its_task() -> None:
    import gc
    import weakref

    async def child() -> weakref.ref[HostThread]:
        return weakref.ref(host_thread())

    record = await asyncio.create_task(child())
    await asyncio.sleep(0)
    gc.collect()
    assert record() is None


async def test_current_context_is_inherited() -> None:
    outer, inner = object(), object()
    set_current_context(outer)

    async def child() -> object:
        seen = current_context()
        set_current_context(inner)
        return seen

    assert await asyncio.create_task(child()) is outer
    assert current_context() is outer
    set_current_context(None)
    assert current_context() is None


def test_outside_a_loop() -> None:
    with pytest.raises(RuntimeError, match="thread without a running event loop"):
        host_thread()
    with pytest.raises(RuntimeError, match="call it from one"):
        require_task()


async def test_worker_thread_is_refused() -> None:
    host_thread()
    with pytest.raises(RuntimeError, match="thread without a running event loop"):
        await asyncio.to_thread(host_thread)
    with pytest.raises(RuntimeError, match="thread without a running event loop"):
        await anyio.to_thread.run_sync(require_task)


async def test_loop_callback_is_refused() -> None:
    loop = asyncio.get_running_loop()
    seen: asyncio.Future[str] = loop.create_future()

    def callback() -> None:
        try:
            host_thread()
        except RuntimeError as error:
            seen.set_result(str(error))

    host_thread()
    loop.call_soon(callback)
    assert "callback of the event loop" in await seen


async def test_host_function_is_refused_even_inside_a_task() -> None:
    mine = host_thread()
    with host_function():
        with pytest.raises(RuntimeError, match="a host function"):
            host_thread()
        with outside_tasks("a kernel"), pytest.raises(RuntimeError, match="a kernel"):
            require_task()
        with pytest.raises(RuntimeError, match="a host function"):
            require_task()
        task = asyncio.create_task(asyncio.sleep(0, None))
    await task
    assert host_thread() is mine


async def test_task_made_by_a_host_function_may_call() -> None:
    async def child() -> int:
        return host_thread_id()

    with host_function():
        task = asyncio.create_task(child())
    assert await task > 0


async def test_host_function_bars_its_own_os_thread_alone() -> None:
    async def other_loop() -> int:
        return host_thread_id()

    results: list[int] = []
    with host_function():
        thread = threading.Thread(target=lambda: results.append(asyncio.run(other_loop())))
        thread.start()
        thread.join()
    assert results


async def test_repr_names_the_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.set_name("alice")
    assert repr(host_thread()).endswith("of alice, exchange GLOBAL, <ModeCounts none>>")
