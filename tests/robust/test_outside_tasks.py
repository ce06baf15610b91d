"""Calls from outside any task (a worker thread, a loop callback, a host function) are refused, every public one."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .bench import add, array, held, until
from .calls import FUNCTIONS, Things

if TYPE_CHECKING:
    from collections.abc import Callable

NO_LOOP = "aclrt runs in an asyncio event loop"
ANYWHERE = {"aclrtGetDeviceCount"}  # a constant


def verbs_of(things: Things) -> dict[str, Callable[[], Any]]:
    """Every public verb of the Pythonic face."""
    dev, s, graph, x = things.dev, things.s, things.graph, things.x
    return {
        "open_device": lambda: aclrt.open_device(1).__aenter__(),
        "dev.stream": dev.stream,
        "dev.default_stream": lambda: dev.default_stream,
        "dev.event": dev.event,
        "dev.event external": lambda: dev.event(external=True),
        "dev.notify": dev.notify,
        "dev.array": lambda: dev.array(np.ones(3)),
        "dev.empty": lambda: dev.empty(3),
        "dev.synchronize": dev.synchronize,
        "dev.rebuild": dev.rebuild,
        "dev.close": dev.close,
        "array.numpy": x.numpy,
        "array.assign": lambda: x.assign(0),
        "array.free": x.free,
        "view": lambda: aclrt.view(things.address, (8,), "f4"),
        "stream.launch": lambda: s.launch(add, x, 1.0),
        "stream.launch, again": lambda: s.launch(add, x, 1.0),
        "stream.record": s.record,
        "stream.record event": lambda: s.record(things.event),
        "stream.record notify": lambda: s.record(things.notify),
        "stream.wait": lambda: s.wait(things.event),
        "stream.wait notify": lambda: s.wait(things.notify),
        "stream.reset": lambda: s.reset(things.event),
        "stream.copy": lambda: s.copy(x, things.y),
        "stream.copy pageable": lambda: s.copy(x, np.ones(8, "f4")),
        "stream.fill": lambda: s.fill(x, 0),
        "stream.callback": lambda: s.callback(print),
        "stream.task_group": lambda: s.task_group().__enter__(),
        "stream.fork": lambda: s.fork(dev.default_stream).__aenter__(),
        "stream.synchronize": s.synchronize,
        "event.synchronize": things.event.synchronize,
        "capture": lambda: aclrt.capture(s).__aenter__(),
        "graph.launch": lambda: graph.launch(s),
        "graph.replay": lambda: graph.replay(s),
        "graph.abort": graph.abort,
        "graph.close": graph.close,
        "graph.update": lambda: graph.update(things.group, on=s).__aenter__(),
        "graph.commit": graph.commit,
        "graph.rename": lambda: graph.rename("never"),
        "graph.condition": graph.condition,
        "pinned.numpy": lambda: acl.aclrtFreeHost(things.pinned),
        "host_thread_id": aclrt.host_thread_id,
    }


def run_to_first_wait(call: Callable[[], Any]) -> Any:
    """The call, and of a coroutine what it does before it waits for anything."""
    made = call()
    if inspect.iscoroutine(made):
        try:
            made.send(None)
        except StopIteration:
            return None
        finally:
            made.close()
    return made


def refusal(call: Callable[[], Any]) -> str:
    """How a call was refused; "" when it was let through; the error's type first when that is not the one due."""
    try:
        run_to_first_wait(call)
    except Exception as error:
        return str(error) if type(error) is RuntimeError else f"{type(error).__name__}: {error}"
    return ""


def all_refusals(things: Things) -> dict[str, str]:
    calls: dict[str, Callable[[], Any]] = {
        name: (lambda name=name: getattr(acl, name)(*things.arguments(name)))  # type: ignore[misc]
        for name in FUNCTIONS
        if name not in ANYWHERE
    }
    return {name: refusal(call) for name, call in {**calls, **verbs_of(things)}.items()}


def let_through(found: dict[str, str], where: str) -> dict[str, str]:
    """Those not refused for the right reason. Without a loop, the calls that open one say that first."""
    assert len(found) > 130
    return {name: text for name, text in found.items() if where not in text and NO_LOOP not in text}


async def test_a_worker_thread() -> None:
    async with aclrt.open_device() as dev:
        things = Things(dev)
        await things.s.synchronize()
        before = held(dev)
        assert let_through(await asyncio.to_thread(all_refusals, things), "a thread without a running event loop") == {}
        assert held(dev) == before


async def test_a_task_of_another_loop() -> None:
    """It is a host thread, but the device belongs to the loop that opened it."""
    async with aclrt.open_device() as dev:
        things = Things(dev)
        await things.s.synchronize()
        verbs = verbs_of(things)

        async def main() -> list[str]:
            names = ["stream.launch", "stream.record event", "stream.copy", "graph.launch", "stream.synchronize"]
            return [refusal(verbs[name]) for name in names]

        for text in await asyncio.to_thread(asyncio.run, main()):
            assert "a task of another event loop" in text
        await things.s.synchronize()


async def test_a_callback_of_the_loop() -> None:
    async with aclrt.open_device() as dev:
        things = Things(dev)
        found: dict[str, str] = {}
        before = held(dev)
        asyncio.get_running_loop().call_soon(lambda: found.update(all_refusals(things)))
        await until(lambda: bool(found))
        assert let_through(found, "a callback of the event loop") == {}
        assert held(dev) == before


async def test_a_host_function() -> None:
    async with aclrt.open_device() as dev:
        things = Things(dev)
        found: dict[str, str] = {}
        things.s.callback(lambda: found.update(all_refusals(things)))
        await things.s.synchronize()
        assert let_through(found, "a host function") == {}


async def test_a_callback_that_process_report_runs() -> None:
    """It runs on the stack of a task and is refused all the same."""
    async with aclrt.open_device() as dev:
        things = Things(dev)
        found: dict[str, str] = {}
        acl.aclrtSubscribeReport(aclrt.host_thread_id(), things.s)
        acl.aclrtLaunchCallback(lambda _: found.update(all_refusals(things)), None, 1, things.s)
        await acl.aclrtProcessReport(1000)
        await things.s.synchronize()
        assert let_through(found, "a host function") == {}
        acl.aclrtUnSubscribeReport(aclrt.host_thread_id(), things.s)


async def test_a_kernel() -> None:
    """A kernel is the device's: it knows no host. On the loop's thread and on a worker's."""
    found: dict[str, str] = {}
    things: list[Things] = []

    def calls(x: aclrt.InOut[np.float32]) -> None:
        found.update(all_refusals(things[0]))

    async with aclrt.open_device() as dev:
        things.append(Things(dev))
        s = things[0].s
        for offload, where in ((False, "a callback of the event loop"), (True, "a thread without a running event")):
            s.launch(aclrt.kernel(calls, offload=offload), things[0].x)
            await s.synchronize()
            assert let_through(found, where) == {}
            found.clear()


async def test_what_a_callback_starts_as_a_task_may_call() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), array(dev)
        made: list[asyncio.Task[None]] = []

        async def work() -> None:
            s.launch(add, x, 1.0)
            await s.synchronize()

        s.callback(lambda: made.append(asyncio.get_running_loop().create_task(work())))
        await s.synchronize()
        await made[0]
        assert x.numpy()[0] == 1


@pytest.mark.parametrize("name", sorted(ANYWHERE))
async def test_what_may_be_called_anywhere(name: str) -> None:
    assert await asyncio.to_thread(getattr(acl, name)) == 8
