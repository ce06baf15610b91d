"""Branches that fail, are aborted, or run a hundred thousand times."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

import aclrt
from tests.timeline import settle


@aclrt.kernel
def add(x: aclrt.InOut[np.int64], value: int) -> None:
    x += value


@aclrt.kernel
def below(x: aclrt.In[np.int64], limit: int, cell: aclrt.Out[np.uint64]) -> None:
    cell[0] = x[0] < limit


@aclrt.kernel
def count(x: aclrt.InOut[np.int64], cell: aclrt.Out[np.uint64]) -> None:
    """One turn of a WHILE of `x` turns."""
    x -= 1
    cell[0] = x[0] > 0


@aclrt.kernel
def turn(x: aclrt.In[np.int64], cell: aclrt.Out[np.uint64]) -> None:
    cell[0] = x[0] != 12


@aclrt.kernel
def fail_at(x: aclrt.In[np.int64], value: int) -> None:
    if x[0] == value:
        raise ZeroDivisionError(f"x is {value}")


def integer(dev: aclrt.Device, value: int = 0) -> aclrt.DeviceArray:
    return dev.array(np.array([value]))


# --- faults and abort ------------------------------------------------------------------------------------------------


async def test_a_fault_names_branch_and_iteration() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            go = graph.condition(default=1)
            async with graph.while_(go) as body:
                yes, no = graph.if_else(graph.condition(default=0, on=body))
                async with yes:
                    pass
                async with no as b:
                    b.launch(fail_at, x, 3)
                body.launch(add, x, 1)
                body.launch(below, x, 10, go.buffer)
        run = graph.launch(s)
        with pytest.raises(aclrt.AclError) as caught:
            await run
        assert caught.value.code == 507011
        text = str(caught.value)
        assert f"branch 1 (else) of the IF at {__file__}" in text
        assert f"in iteration 3 of the WHILE at {__file__}" in text
        core = caught.value.__cause__
        assert isinstance(core, aclrt.AclError)
        assert core.code == 507035
        assert isinstance(core.__cause__, ZeroDivisionError)
        assert x.numpy()[0] == 3
        with pytest.raises(aclrt.AclError, match="507011"):
            await s.synchronize()
        with pytest.raises(aclrt.AclError, match="507011"):  # FAULT
            graph.launch(s)


async def test_iterations_are_counted_anew_in_each_run_of_a_loop() -> None:
    """Two runs of the root; in the second the inner loop fails in its turn 1, in turn 2 of the outer."""
    async with aclrt.open_device() as dev:
        s, x, y = dev.stream(), integer(dev), integer(dev)
        async with aclrt.capture(s) as graph:
            outer, inner = graph.condition(default=1), graph.condition()
            async with graph.while_(outer) as body:
                body.fill(y, 0)
                body.launch(below, y, 3, inner.buffer)
                async with graph.while_(inner, on=body) as b:
                    b.launch(add, y, 1)
                    b.launch(add, x, 1)
                    b.launch(fail_at, x, 100)
                    b.launch(below, y, 3, inner.buffer)
                body.launch(turn, x, outer.buffer)
        await graph.replay(s)
        assert x.numpy()[0] == 12
        x.assign(92)
        with pytest.raises(aclrt.AclError, match="507011") as caught:
            await graph.replay(s)
        words = [part.split(" at ")[0] for part in str(caught.value).split(", ") if part.startswith("in iteration")]
        assert words == ["in iteration 1 of the WHILE", "in iteration 2 of the WHILE"]


async def test_a_graph_whose_branch_failed_runs_again_where_execution_errors_leave_it_ready() -> None:
    async with aclrt.open_device(on_execute_error="ready") as dev:
        s, x = dev.stream(), integer(dev, 3)
        async with aclrt.capture(s) as graph:
            async with graph.if_(graph.condition(default=1)) as b:
                b.launch(fail_at, x, 3)
                b.launch(add, x, 1)
        for value, ends in ((3, 3), (5, 6), (3, 3), (7, 8)):
            x.assign(value)
            run = graph.launch(s)
            if value == 3:
                with pytest.raises(aclrt.AclError, match="507011"):
                    await run
                with pytest.raises(aclrt.AclError, match="507011"):
                    await s.synchronize()
            else:
                await run
            assert x.numpy()[0] == ends


async def test_abort_inside_an_endless_while() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            async with graph.while_(graph.condition(default=1)) as body:
                body.launch(add, x, 1)
        for _ in range(2):
            run = graph.launch(s)
            await settle()
            assert x.numpy()[0] > 0
            await graph.abort()
            with pytest.raises(aclrt.AclError, match="507023"):
                await run
            with pytest.raises(aclrt.AclError, match="507023"):
                await s.synchronize()
            reached = x.numpy()[0]
            await settle()
            assert x.numpy()[0] == reached
        await graph.close()


async def test_leaving_the_device_stops_an_endless_while() -> None:
    started = time.perf_counter()
    with pytest.raises(ValueError, match="out"):  # noqa: PT012
        async with aclrt.open_device() as dev:
            s, x = dev.stream(), integer(dev)
            async with aclrt.capture(s) as graph:
                async with graph.while_(graph.condition(default=1)) as body:
                    body.launch(add, x, 1)
            graph.launch(s)
            await settle()
            raise ValueError("out")
    assert time.perf_counter() - started < 2


# --- what an iteration costs -----------------------------------------------------------------------------------------


async def test_a_hundred_thousand_iterations_leave_the_loop_free() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev, 100_000)
        async with aclrt.capture(s) as graph:
            go = graph.condition(default=1)
            async with graph.while_(go) as body:
                body.launch(count, x, go.buffer)
        gaps: list[float] = []

        async def tick() -> None:
            last = time.perf_counter()
            while not run.done:
                await asyncio.sleep(0)
                now = time.perf_counter()
                gaps.append(now - last)
                last = now

        run = graph.launch(s)
        await asyncio.gather(run, tick())
        assert x.numpy()[0] == 0
        assert len(gaps) > 50
        assert float(np.quantile(gaps, 0.99)) < 0.02


async def test_an_iteration_costs_a_third_of_an_awaited_replay() -> None:
    """The same body as a WHILE of n turns, and as a graph that the host replays n times, awaiting each."""
    n = 2_000
    async with aclrt.open_device() as dev:
        s, x, cell = dev.stream(), integer(dev), dev.array(np.ones(1, np.uint64))
        async with aclrt.capture(s) as loop:
            go = loop.condition(default=1)
            async with loop.while_(go) as body:
                body.launch(count, x, go.buffer)
        async with aclrt.capture(s) as once:
            s.launch(count, x, cell)

        async def on_device() -> None:
            x.assign(n)
            await loop.replay(s)

        async def on_host() -> None:
            x.assign(n)
            while cell.data[0]:  # as a host loop without a synchronous copy would
                await once.replay(s)
            cell.assign(1)

        times: dict[str, float] = {}
        for how in (on_device, on_host, on_device, on_host, on_device, on_host):
            started = time.perf_counter()
            await how()
            assert x.numpy()[0] == 0
            times[how.__name__] = min(times.get(how.__name__, 1e9), time.perf_counter() - started)
        assert times["on_host"] >= 3 * times["on_device"], times
