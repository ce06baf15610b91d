"""Conditional tasks underneath: their SQEs and resources, and what the device decides by the condition's value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.base.enums import CondHandleFlag, CondType
from hw.chips import SqeKind
from hw.driver import IdKind, SeededRandom


@aclrt.kernel
def add(x: aclrt.InOut[np.int64], value: int) -> None:
    x += value


@aclrt.kernel
def below(x: aclrt.In[np.int64], limit: int, cell: aclrt.Out[np.uint64]) -> None:
    cell[0] = x[0] < limit


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


@pytest.mark.parametrize("seed", range(5))
async def test_a_body_of_several_streams_and_cascades_under_any_schedule(seed: int) -> None:
    async with aclrt.open_device(limits={"sq_depth": 35}, policy=SeededRandom(seed)) as dev:
        s, side, x, y = dev.stream(), dev.stream(), integer(dev), integer(dev)
        async with aclrt.capture(s) as graph:
            go = graph.condition(default=1)
            async with graph.while_(go) as body:
                async with body.fork(side) as (b,):
                    for _ in range(4):
                        body.launch(add, x, 1)
                        b.launch(add, y, 1)
                body.launch(below, x, 16, go.buffer)
        assert len(go.handle.models[0].streams) > 4
        for _ in range(2):
            x.assign(0)
            y.assign(0)
            await graph.replay(s)
            assert (x.numpy()[0], y.numpy()[0]) == (16, 16)


async def test_an_update_of_the_parent_moves_the_conditional_task() -> None:
    async with aclrt.open_device() as dev:
        s, x = dev.stream(), integer(dev)
        cell = dev.array(np.zeros(1, np.uint64))
        async with aclrt.capture(s) as graph:
            acl.aclrtValueWrite(cell.address, 7, 0, s)
            go = graph.condition(default=1)
            async with graph.while_(go) as body:
                body.launch(add, x, 1)
                body.launch(below, x, 5, go.buffer)
        await graph.replay(s)
        (queue,) = graph.queues
        acl.aclmdlRITaskDisable(acl.aclmdlRIGetTasksByStream(acl.aclmdlRIGetStreams(graph)[0])[0])
        acl.aclmdlRIUpdate(graph)
        assert queue.tasks[0].op.handle is go.handle
        x.assign(0)
        await graph.replay(s)
        assert x.numpy()[0] == 5


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
