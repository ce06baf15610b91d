"""`if_`, `if_else`, `while_` and `switch` as blocks: what they capture, and what a mistake inside one leaves behind."""

# ruff: noqa: PT012 - a capture block is one statement in spirit
from __future__ import annotations

import asyncio
import sys
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl


@aclrt.kernel
def add(x: aclrt.InOut[np.int64], value: int) -> None:
    x += value


@aclrt.kernel
def below(x: aclrt.In[np.int64], limit: int, cell: aclrt.Out[np.uint64]) -> None:
    cell[0] = x[0] < limit


@aclrt.kernel
def parity(x: aclrt.In[np.int64], cell: aclrt.Out[np.uint64]) -> None:
    cell[0] = x[0] % 2


def line() -> int:
    """The caller's line."""
    return sys._getframe(1).f_lineno


def integer(dev: aclrt.Device) -> aclrt.DeviceArray:
    return dev.array(np.zeros(1, np.int64))


async def test_while_runs_until_the_body_writes_zero() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            go = graph.condition(default=1)
            assert go.buffer.shape == (1,)
            assert go.buffer.dtype == np.uint64
            async with graph.while_(go) as body:
                body.launch(add, x, 1)
                body.launch(below, x, 10, go.buffer)
            s.launch(add, x, 100)  # after the loop
        await graph.replay(s)
        assert x.numpy()[0] == 110
        await graph.replay(s)  # the default starts the loop again: one turn
        assert x.numpy()[0] == 211


async def test_if_and_if_else() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            odd, any_ = graph.condition(), graph.condition()
            s.launch(parity, x, odd.buffer)
            yes, no = graph.if_else(odd)
            async with yes as b:
                b.launch(add, x, 1)
            async with no as b:
                b.launch(add, x, 10)
            async with graph.if_(any_) as b:
                b.launch(add, x, 100)
        await graph.replay(s)
        assert x.numpy()[0] == 10
        x.assign(3)
        any_.buffer.assign(5)
        await graph.replay(s)
        assert x.numpy()[0] == 104


async def test_switch_out_of_range_runs_nothing() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            case = graph.condition()
            for index, branch in enumerate(graph.switch(case, 3)):
                async with branch as b:
                    b.launch(add, x, 10**index)
        for value, expected in ((0, 1), (1, 10), (2, 100), (3, 0), (2**63, 0), (2**64 - 1, 0)):
            x.assign(0)
            case.buffer.assign(value)
            await graph.replay(s)
            assert x.numpy()[0] == expected


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_five_levels_deep(chip: str) -> None:
    """WHILE > IF > SWITCH > WHILE > IF, each reached only through the ones around it."""
    async with aclrt.open_device(chip=chip) as dev:
        s, outer, inner, leaf = dev.stream(), integer(dev), integer(dev), integer(dev)
        async with aclrt.capture(s) as graph:
            go = graph.condition(default=1)
            async with graph.while_(go) as level1:
                level1.launch(add, outer, 1)
                odd = graph.condition()
                level1.launch(parity, outer, odd.buffer)
                async with graph.if_(odd, on=level1) as level2:
                    case = graph.condition(default=1)
                    zero, one = graph.switch(case, 2, on=level2)
                    async with zero as never:
                        never.launch(add, leaf, 10**6)
                    async with one as level3:
                        again = graph.condition(default=1)
                        async with graph.while_(again, on=level3) as level4:
                            level4.launch(add, inner, 1)
                            even = graph.condition()
                            level4.launch(parity, inner, even.buffer)
                            async with graph.if_(even, on=level4) as level5:
                                level5.launch(add, leaf, 1)
                            level4.launch(below, inner, 4, again.buffer)
                level1.launch(below, outer, 6, go.buffer)
        await graph.replay(s)
        # 6 turns outside, 1, 3 and 5 are odd; the inner WHILE counts to 4 the first time and then finds its cell 0: a
        # default is set once per replay of the root
        assert [int(a.numpy()[0]) for a in (outer, inner, leaf)] == [6, 4, 2]


async def test_a_condition_belongs_where_its_task_goes() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            first, second, third = graph.condition(default=1), graph.condition(default=1), graph.condition(default=1)
            async with graph.if_(first) as outer:
                async with graph.if_(second, on=outer) as inner:
                    inner.launch(add, x, 1)
                own = graph.condition(default=1, on=outer)
                async with graph.if_(own) as inner:  # no `on`: where the condition was made
                    inner.launch(add, x, 10)
            async with graph.if_(third) as b:
                b.launch(add, x, 100)
            with pytest.raises(aclrt.AclError, match="107000"):
                graph.if_(first)  # drives a task already
        assert second.handle.model is own.handle.model is first.handle.models[0]
        await graph.replay(s)
        assert x.numpy()[0] == 111


async def test_on_a_joined_stream() -> None:
    async with aclrt.open_device() as dev:
        s, side, x = dev.stream(), dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            go = graph.condition(default=1)
            async with s.fork(side) as (b,):
                async with graph.if_(go, on=b) as body:
                    body.launch(add, x, 1)
        await graph.replay(s)
        assert x.numpy()[0] == 1


async def test_a_branch_forks_and_joins() -> None:
    async with aclrt.open_device() as dev:
        s, side, x, y = dev.stream(), dev.stream(), integer(dev), integer(dev)
        async with aclrt.capture(s) as graph:
            go = graph.condition(default=1)
            async with graph.while_(go) as body:
                async with body.fork(side) as (b,):
                    body.launch(add, x, 1)
                    b.launch(add, y, 2)
                body.launch(below, x, 50, go.buffer)
        await graph.replay(s)
        assert (x.numpy()[0], y.numpy()[0]) == (50, 100)


async def test_a_branch_not_entered_is_named_with_its_line() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        with pytest.raises(aclrt.AclError) as caught:
            async with aclrt.capture(s) as graph:
                yes, _ = graph.if_else(graph.condition())
                here = line() - 1
                async with yes as b:
                    b.launch(add, x, 1)
        assert caught.value.code == 107045
        assert f"branch 1 (else) of the IF at {__file__}:{here}" in str(caught.value)
        assert acl.aclmdlRICaptureGetInfo(s) == (0, None)
        x.assign(1)  # no mode is left counted


@pytest.mark.parametrize("failure", [ValueError("mine"), asyncio.CancelledError(), KeyboardInterrupt()])
async def test_an_exception_in_a_branch_propagates_unchanged(failure: BaseException) -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        before = held(dev)
        with pytest.raises(type(failure)) as caught:
            async with aclrt.capture(s) as graph:
                async with graph.while_(graph.condition()) as body:
                    async with graph.if_(graph.condition(), on=body) as inner:
                        inner.launch(add, x, 1)
                        raise failure
        assert caught.value is failure
        assert not s.capturing
        assert not body.capturing
        assert not inner.capturing
        x.assign(1)
        after = held(dev)
        assert {kind: after[kind] - before[kind] for kind in before if after[kind] != before[kind]} == {"STREAM": 2}


async def test_an_exception_caught_inside_the_capture_leaves_the_branch_empty() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            branch = graph.if_(graph.condition(default=1))
            with pytest.raises(ValueError, match="no"):
                async with branch as b:
                    b.launch(add, x, 1)
                    raise ValueError("no")
            async with branch as b:
                b.launch(add, x, 10)
        await graph.replay(s)
        assert x.numpy()[0] == 10


async def test_a_branch_whose_end_fails_counts_as_never_entered() -> None:
    async with aclrt.open_device() as dev:
        s, side, x = dev.stream(), dev.stream(), integer(dev)
        with pytest.raises(aclrt.AclError, match="107045"):
            async with aclrt.capture(s) as graph:
                with pytest.raises(aclrt.AclError, match="107025"):
                    async with graph.if_(graph.condition(default=1)) as b:
                        side.wait(b.record())
                        side.launch(add, x, 1)
        assert not side.capturing


async def test_branch_streams_are_reused_and_closed_to_other_work() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            used = []
            for branch in graph.switch(graph.condition(), 5):
                async with branch as b:
                    used.append(b)
            assert len(set(map(id, used))) == 1
            with pytest.raises(aclrt.AclError, match="107029"):
                used[0].launch(add, x, 1)
            with pytest.raises(aclrt.AclError, match="107026"):
                async with branch:
                    pass
        await graph.replay(s)
        assert x.numpy()[0] == 0


async def test_wrong_use() -> None:
    async with aclrt.open_device() as dev:
        s, other = dev.stream(), dev.stream()
        async with aclrt.capture(other) as second:
            foreign = second.condition()
        async with aclrt.capture(s) as graph:
            with pytest.raises(TypeError, match=r"graph\.condition"):
                graph.if_(5)
            with pytest.raises(ValueError, match=r"2\*\*32"):
                graph.condition(default=-1)
            with pytest.raises(aclrt.AclError, match="107000"):
                graph.if_(foreign)
            with pytest.raises(aclrt.AclError, match="107029"):
                graph.if_(graph.condition(), on=other)
            with pytest.raises(aclrt.AclError, match="107000"):
                graph.switch(graph.condition(), 0)
        with pytest.raises(aclrt.AclError, match="107000"):
            graph.condition()


def held(dev: aclrt.Device) -> dict[str, int]:
    """Ids held of each kind."""
    from hw.driver import IdKind

    driver: Any = acl.aclrtGetCurrentContext().npu.driver
    return {kind.name: driver.held(kind) for kind in IdKind} | {"memory": driver.used_bytes}
