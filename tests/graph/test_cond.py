"""Conditional tasks underneath: their SQEs and resources, device choices, faults, abort, and what an iteration costs."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.base.enums import CondHandleFlag, CondType
from hw.chips import SqeKind
from hw.driver import IdKind


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
def fail_at(x: aclrt.In[np.int64], value: int) -> None:
    if x[0] == value:
        raise ZeroDivisionError(f"x is {value}")


def integer(dev: aclrt.Device, value: int = 0) -> aclrt.DeviceArray:
    return dev.array(np.array([value]))


def ids(dev: aclrt.Device) -> dict[str, int]:
    driver = dev.npu.driver
    return {kind.name: driver.held(kind) for kind in IdKind} | {"memory": driver.used_bytes}


# --- SQEs and resources ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "size", "slots"), [(CondType.IF, 2, 2), (CondType.SWITCH, 3, 2), (CondType.WHILE, 1, 3)]
)
async def test_the_sqes_of_a_conditional_task(kind: CondType, size: int, slots: int) -> None:
    async with aclrt.open_device() as dev:
        s = dev.stream()
        async with aclrt.capture(s) as graph:
            cond = graph.condition()
            made: Any = {CondType.IF: graph.if_else, CondType.WHILE: graph.while_}.get(
                kind, lambda c: graph.switch(c, size)
            )(cond)
            for branch in made if isinstance(made, tuple) else (made,):
                async with branch:
                    pass
        await graph.replay(s)
        handle, (queue,) = cond.handle, graph.queues
        (task,) = (task for task in queue.tasks if task.kind == 133)
        assert task.nsqe == handle.sqes == slots
        chip, driver = dev.npu.driver.chip, dev.npu.driver
        sqes = [chip.decode(driver.image_read(queue.image, task.slot + i, 1)) for i in range(slots)]
        assert [sqe.kind for sqe in sqes] == [SqeKind.COND, SqeKind.NOTIFY_WAIT, SqeKind.JUMP_BACK][:slots]
        assert sqes[0].fields == {
            "cell": handle.cell,
            "table": handle.table,
            "notify": handle.notify.id,
            "size": size,
            "ctype": kind,
        }
        assert sqes[1]["notify_id"] == handle.notify.id
        if kind is CondType.WHILE:
            assert sqes[2].fields == {"cell": handle.cell, "back": 2}


async def test_branches_share_one_notify_and_go_with_the_parent() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        dev_before = ids(dev)
        async with aclrt.capture(s) as graph:
            for branch in graph.switch(graph.condition(), 4):
                async with branch as b:
                    b.launch(add, x, 1)
                    inner = graph.condition(on=b)
                    async with graph.if_(inner) as c:
                        c.launch(add, x, 1)
        captured = ids(dev)
        await graph.replay(s)
        built = ids(dev)
        assert built["NOTIFY"] - captured["NOTIFY"] == 1 + 1 + 4  # the root's, the SWITCH's, one for each IF
        assert built["SQ"] - captured["SQ"] == 1 + 4 + 4
        await graph.close()
        after = ids(dev)
        spare = len(dev.context.spare_streams)
        assert after.pop("STREAM") == dev_before.pop("STREAM") + spare
        assert after == dev_before


async def test_branches_count_against_the_sq_pool() -> None:
    async with aclrt.open_device(limits={"max_sqs": 4}) as dev:
        s, x = dev.stream(), integer(dev)

        async def graph_of(size: int) -> aclrt.Graph:
            async with aclrt.capture(s) as graph:
                for branch in graph.switch(graph.condition(), size):
                    async with branch as b:
                        b.launch(add, x, 1)
            return graph

        fits, too_large = await graph_of(3), await graph_of(4)
        await fits.replay(s)
        with pytest.raises(aclrt.AclError, match="207005"):
            too_large.launch(s)
        assert x.numpy()[0] == 1


async def test_recycled_branches_are_bound_again() -> None:
    """Two graphs of three SQs in a pool of four take turns; ids change, the SQEs and tables follow."""
    async with aclrt.open_device(limits={"max_sqs": 4}) as dev:
        s, x = dev.stream(), integer(dev)
        graphs, conditions = [], []
        for value in (1, 100):
            async with aclrt.capture(s) as graph:
                cond = graph.condition()
                yes, no = graph.if_else(cond)
                async with yes as b:
                    b.launch(add, x, value)
                async with no as b:
                    b.launch(add, x, -value)
            graphs.append(graph)
            conditions.append(cond)
        total = 0
        for turn in range(6):
            which, choice = turn % 2, turn // 2 % 2
            conditions[which].buffer.assign(choice)
            await graphs[which].replay(s)
            total += (1, 100)[which] * (1 if choice else -1)
            assert x.numpy()[0] == total
        assert graphs[0].build_count == 3


async def test_destroying_a_capturing_graph_frees_its_conditions() -> None:
    async with aclrt.open_device() as dev:
        s = dev.stream()
        before = ids(dev)
        with pytest.raises(aclrt.AclError, match="107045"):  # noqa: PT012
            async with aclrt.capture(s) as graph:
                graph.switch(graph.condition(), 7)
                graph.condition()
        assert ids(dev) == before


async def test_add_fails_whole_when_models_run_out() -> None:
    async with aclrt.open_device(limits={"max_models": 4}) as dev:
        s = dev.stream()
        async with aclrt.capture(s) as graph:
            cond = graph.condition()
            with pytest.raises(aclrt.AclError, match="207010"):
                graph.switch(cond, 4)
            assert dev.npu.driver.held(IdKind.MODEL) == 1
            for branch in graph.switch(cond, 3):  # the handle is free for another try
                async with branch:
                    pass


async def test_handle_reprs_and_defaults() -> None:
    async with aclrt.open_device() as dev:
        s = dev.stream()
        acl.aclmdlRICaptureBegin(s, 1)
        model = acl.aclmdlRICaptureGetInfo(s).modelRI
        handle = acl.aclmdlRICondHandleCreate(model, 2**32 + 5, 1)
        assert handle.default == 5
        assert handle.flag is CondHandleFlag.ASSIGN_DEFAULT
        assert "unused" in repr(handle)
        acl.aclmdlRICaptureEnd(s)
        await acl.aclmdlRIDestroy(model)
        assert "destroyed" in repr(handle)


async def test_a_default_is_written_only_for_a_handle_with_a_task() -> None:
    async with aclrt.open_device() as dev:
        s = dev.stream()
        async with aclrt.capture(s) as graph:
            unused, used = graph.condition(default=5), graph.condition(default=6)
            async with graph.if_(used):
                pass
        await graph.replay(s)
        assert (unused.buffer.numpy()[0], used.buffer.numpy()[0]) == (0, 6)


# --- the official example, its numbers read both ways ----------------------------------------------------------------


@aclrt.kernel
def scaled(a: aclrt.In[np.float32], b: aclrt.In[np.float32], out: aclrt.Out[np.float32], alpha: float) -> None:
    out[:] = a + alpha * b


@pytest.mark.parametrize("default", [None, 0], ids=["flag 0", "ASSIGN_DEFAULT"])
async def test_the_official_example(default: int | None) -> None:
    """3_cond_model (acl_semantics 13): with ASSIGN_DEFAULT what the host wrote is gone, and WHILE runs no turn."""
    a, b = np.arange(1, 9, dtype=np.float32), np.arange(1, 9, dtype=np.float32) / 2
    async with aclrt.open_device() as dev:
        s, x, y, out = dev.stream(), dev.array(a), dev.array(b), dev.array(np.full(8, -1, np.float32))
        zero = dev.array(np.zeros(1, np.uint64))

        async with aclrt.capture(s) as if_graph:
            choice = if_graph.condition(default)
            for branch, alpha in zip(if_graph.if_else(choice), (2.0, 0.5), strict=True):
                async with branch as body:
                    body.launch(scaled, x, y, out, alpha)
        for value in (1, 0):
            choice.buffer.assign(value)
            await if_graph.replay(s)
            assert (out.numpy() == a + (2.0 if default is None and value else 0.5) * b).all()

        async with aclrt.capture(s) as while_graph:
            go = while_graph.condition(default)
            async with while_graph.while_(go) as body:
                body.launch(scaled, x, y, out, 1.0)
                body.copy(go.buffer, zero)
        go.buffer.assign(1)
        await while_graph.replay(s)
        assert (out.numpy() == (a + b if default is None else 1.25 * a)).all()

        async with aclrt.capture(s) as switch_graph:
            case = switch_graph.condition(default)
            for branch, alpha in zip(switch_graph.switch(case, 3), (1.0, 2.0, 0.5), strict=True):
                async with branch as body:
                    body.launch(scaled, x, y, out, alpha)
        for value, alpha in enumerate((1.0, 2.0, 0.5)):
            case.buffer.assign(value)
            await switch_graph.replay(s)
            assert (out.numpy() == a + (alpha if default is None else 1.0) * b).all()


# --- the device decides ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, 2, 1 << 31, 1 << 63, 2**64 - 1])
async def test_any_non_zero_is_true(value: int) -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            cond = graph.condition()
            async with graph.if_(cond) as b:
                b.launch(add, x, 1)
        cond.buffer.assign(np.uint64(value))
        await graph.replay(s)
        assert x.numpy()[0] == 1


async def test_runs_of_one_graph_on_two_streams_do_not_mix() -> None:
    async with aclrt.open_device() as dev:
        s, other, x, total = dev.stream(), dev.stream(), integer(dev), integer(dev)
        async with aclrt.capture(s) as graph:
            go = graph.condition()
            s.fill(x, 0)
            s.launch(below, x, 20, go.buffer)
            async with graph.while_(go) as body:
                body.launch(add, total, 1)
                body.launch(add, x, 1)
                body.launch(below, x, 20, go.buffer)
        runs = [graph.launch(stream) for stream in (s, other) * 3]
        for run in runs:
            await run
        assert total.numpy()[0] == 120


async def test_while_under_the_virtual_clock() -> None:
    @aclrt.kernel(cost_ns=1_000)
    def slow(x: aclrt.InOut[np.int64], cell: aclrt.Out[np.uint64]) -> None:
        x -= 1
        cell[0] = x[0] > 0

    async with aclrt.open_device(clock="virtual") as dev:
        s, x = dev.stream(), integer(dev, 50)
        async with aclrt.capture(s) as graph:
            go = graph.condition(default=1)
            async with graph.while_(go) as body:
                body.launch(slow, x, go.buffer)
        start = dev.now_ns()
        await graph.replay(s)
        assert dev.now_ns() - start == 50_000


async def test_null_device_runs_no_branch() -> None:
    async with aclrt.open_device(engine="null") as dev:
        s, x = dev.stream(), integer(dev)
        async with aclrt.capture(s) as graph:
            async with graph.while_(graph.condition(default=1)) as body:
                body.launch(add, x, 1)
        await graph.replay(s)
        assert x.numpy()[0] == 0


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
            await asyncio.sleep(0.02)
            assert x.numpy()[0] > 0
            await graph.abort()
            with pytest.raises(aclrt.AclError, match="507023"):
                await run
            with pytest.raises(aclrt.AclError, match="507023"):
                await s.synchronize()
            reached = x.numpy()[0]
            await asyncio.sleep(0.005)
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
            await asyncio.sleep(0.01)
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
