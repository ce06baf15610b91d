"""Host functions that raise, that call, that come in order; callbacks processed by a subscribed task."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

import aclrt
from aclrt import acl
from tests.timeline import settle

from .bench import Boom, add, array, code_of, refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(params=["v100", "v200"])
async def dev(request: pytest.FixtureRequest) -> AsyncIterator[aclrt.Device]:
    async with aclrt.open_device(chip=request.param) as device:
        yield device


async def failure(awaitable: Any) -> aclrt.AclError:
    with pytest.raises(aclrt.AclError) as caught:
        await awaitable
    return caught.value


async def test_a_host_function_that_raises(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)

    def fn(_: object) -> None:
        raise Boom("host")

    acl.aclrtLaunchHostFunc(s, fn, None)
    s.launch(add, x, 1.0)
    error = await failure(s.synchronize())
    assert error.code == 507000
    assert isinstance(error.__cause__, Boom)
    assert "fn" in str(error)
    assert x.numpy()[0] == 1
    await s.synchronize()


async def test_a_host_function_in_a_graph(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    bad = [True]

    def fn() -> None:
        if bad:
            raise Boom("host")

    async with aclrt.capture(s) as graph:
        s.callback(fn)
        s.launch(add, x, 1.0)
    error = await failure(graph.replay(s))
    assert error.code == 507000
    assert isinstance(error.__cause__, Boom)
    assert await code_of(s.synchronize()) == 507000
    with refused(507011, "FAULT"):
        graph.launch(s)
    assert x.numpy()[0] == 1


async def test_a_callback_in_process_report_that_raises(dev: aclrt.Device) -> None:
    s, x, me = dev.stream(), array(dev), aclrt.host_thread_id()

    def fn(_: object) -> None:
        raise Boom("report")

    acl.aclrtSubscribeReport(me, s)
    acl.aclrtLaunchCallback(fn, None, acl.ACL_CALLBACK_BLOCK, s)
    s.launch(add, x, 1.0)
    waiting = asyncio.create_task(code_of(s.synchronize()))
    await acl.aclrtProcessReport(60_000)  # not the caller's failure: the stream's
    assert await waiting == 507000
    assert x.numpy()[0] == 1
    acl.aclrtUnSubscribeReport(me, s)


async def test_a_host_function_that_raises_in_stop_mode(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)

    def fn() -> None:
        raise Boom("host")

    acl.aclrtSetStreamFailureMode(s, acl.ACL_STOP_ON_FAILURE)
    s.callback(fn)
    s.launch(add, x, 1.0)
    assert [await code_of(s.synchronize()) for _ in range(2)] == [507000, 507000]
    with refused(507000):
        s.launch(add, x, 1.0)
    assert x.numpy()[0] == 0


async def test_they_run_in_stream_order_once_per_replay(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    seen: list[float] = []

    def look() -> None:
        seen.append(float(x.data[0]))  # the device's memory itself: a host function may make no calls

    async with aclrt.capture(s) as graph:
        s.callback(look)
        s.launch(add, x, 1.0)
        s.callback(look)
        s.launch(add, x, 1.0)
        s.callback(look)
    assert seen == []
    for _ in range(2):
        await graph.replay(s)
    assert seen == [0, 1, 2, 2, 3, 4]
    s.callback(look)
    await s.synchronize()
    assert seen[6:] == [4]


async def test_it_is_outside_any_task_and_on_the_thread_of_the_loop(dev: aclrt.Device) -> None:
    s = dev.stream()
    found: list[object] = []
    s.callback(lambda: found.extend((asyncio.current_task(), threading.get_ident())))
    await s.synchronize()
    assert found == [None, threading.get_ident()]


async def test_the_stream_waits_for_it_and_others_do_not(dev: aclrt.Device) -> None:
    s, other, x, y, me = dev.stream(), dev.stream(), array(dev), array(dev), aclrt.host_thread_id()
    acl.aclrtSubscribeReport(me, s)
    acl.aclrtLaunchCallback(lambda _: None, None, acl.ACL_CALLBACK_BLOCK, s)
    s.launch(add, x, 1.0)
    other.launch(add, y, 1.0)
    await other.synchronize()
    await settle()
    assert (x.numpy()[0], y.numpy()[0]) == (0, 1)  # nobody processed reports yet
    await acl.aclrtProcessReport(60_000)
    await s.synchronize()
    assert x.numpy()[0] == 1
    acl.aclrtUnSubscribeReport(me, s)


async def test_a_host_function_that_runs_the_loop_no_further_is_no_deadlock(dev: aclrt.Device) -> None:
    """It may wake what waits in the application."""
    s, woken = dev.stream(), asyncio.Event()
    s.callback(woken.set)
    await woken.wait()
    await s.synchronize()


async def test_cancelled_error_in_a_host_function_is_a_failure_like_another(dev: aclrt.Device) -> None:
    s = dev.stream()

    def fn() -> None:
        raise asyncio.CancelledError("not of any task")

    s.callback(fn)
    assert await code_of(s.synchronize()) == 507000
    async with aclrt.capture(s) as graph:
        s.callback(fn)
    assert await code_of(graph.replay(s)) == 507000
    assert await code_of(s.synchronize()) == 507000
