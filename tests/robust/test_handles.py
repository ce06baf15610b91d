"""Destroyed handles, handles of another kind, what is no handle: at every handle parameter of every function."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import aclrt
from aclrt import acl

from .bench import held, refused
from .calls import FUNCTIONS, HANDLES, Things

KINDS = {"s", "graph", "event", "notify", "label", "label_list", "handle", "task"}
PARAMETERS = [
    (name, position, parameter)
    for name in FUNCTIONS
    for position, parameter in enumerate(inspect.signature(getattr(acl, name)).parameters)
    if HANDLES.get(parameter) in KINDS
]
ELSEWHERE = {("aclrtSwitchLabelByIndex", "stream")}  # its label list is refused first (recorded order)


async def make(name: str, args: list[Any]) -> None:
    answer = getattr(acl, name)(*args)
    if inspect.isawaitable(answer):
        await answer


@pytest.mark.parametrize("wrong", ["destroyed", "another kind", "no handle"])
async def test_every_handle_parameter(wrong: str) -> None:
    """One device for all of them: none may change anything, whatever was called before."""
    assert len(PARAMETERS) > 80
    async with aclrt.open_device() as dev:
        gone, live = Things(dev), Things(dev)
        await gone.destroy()
        before = held(dev)
        for name, position, parameter in PARAMETERS:
            args = live.arguments(name)
            if wrong == "no handle":
                args[position] = 7
                with pytest.raises(TypeError, match=name):
                    await make(name, args)
                continue
            if wrong == "destroyed":
                args[position] = gone.argument(name, parameter)
            else:
                args[position] = live.event if args[position] is live.notify else live.notify
            with pytest.raises(aclrt.AclError) as caught:
                await make(name, args)
            code, text = caught.value.code, str(caught.value)
            assert code == 107017 or ((name, parameter) in ELSEWHERE and code == 107000), (name, parameter, text)
            assert text.endswith(f"[{code}]"), name
            assert "\n" not in text, name
        assert held(dev) == before


async def test_a_destroyed_handle_stays_destroyed_when_its_number_is_given_out_again() -> None:
    async with aclrt.open_device() as dev:
        old = dev.stream()
        number = old.id
        await acl.aclrtDestroyStream(old)
        new = dev.stream()
        assert new.id == number
        with refused(107017, "destroyed"):
            old.record()
        event = dev.event(external=True)
        acl.aclrtDestroyEvent(event)
        assert dev.event(external=True).id is not None
        with refused(107017, "destroyed"):
            new.wait(event)


async def test_contexts() -> None:
    async with aclrt.open_device(1):
        primary = acl.aclrtGetCurrentContext()
        context = acl.aclrtCreateContext(1)
        stream = acl.aclrtCreateStream()
        await make("aclrtDestroyContext", [context])
        with refused(107002):
            acl.aclrtCreateStream()
        with refused(107000):
            acl.aclrtSetCurrentContext(context)
        with refused(107000):
            await make("aclrtDestroyContext", [context])
        acl.aclrtSetCurrentContext(primary)
        with refused(107017):
            acl.aclrtStreamQuery(stream)
        with refused(107002):
            await make("aclrtDestroyContext", [primary])
        with refused(107017):
            acl.aclrtSetCurrentContext(stream)


async def test_destroying_twice() -> None:
    async with aclrt.open_device() as dev:
        things = Things(dev)
        await things.destroy()
        before = held(dev)
        for name, value in (
            ("aclrtDestroyStream", things.s),
            ("aclrtDestroyStreamForce", things.s),
            ("aclmdlRIDestroy", things.graph),
            ("aclrtDestroyEvent", things.event),
            ("aclrtDestroyNotify", things.notify),
            ("aclrtDestroyLabel", things.label),
            ("aclrtDestroyLabelList", things.label_list),
        ):
            with refused(107017):
                await make(name, [value])
        for name, value in (("aclrtFree", things.address), ("aclrtFreeHost", things.pinned)):
            with refused(107000):
                await make(name, [value])
        await things.graph.close()
        assert held(dev) == before
