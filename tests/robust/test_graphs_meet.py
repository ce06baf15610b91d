"""Graphs that meet each other: recycled ids and SQs, patches on their way, the wrong graph, odd parameters, ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.graph.task_structs import KernelTaskParams, ValueWaitTaskParams, ValueWriteTaskParams

from .bench import add, array, double, held

if TYPE_CHECKING:
    from collections.abc import Callable

CHIPS = pytest.mark.parametrize("chip", ["v100", "v200", "310p"])


@aclrt.kernel
def three(x: aclrt.InOut[np.float32], a: float, b: float) -> None:
    x *= a + b


async def grouped(stream: aclrt.Stream, x: aclrt.DeviceArray) -> tuple[aclrt.Graph, aclrt.TaskGroup]:
    """A graph of one task, in a group, that adds one."""
    async with aclrt.capture(stream) as graph:
        with stream.task_group() as group:
            stream.launch(add, x, 1.0)
    return graph, group


# --- patches on their way ------------------------------------------------------------------------------------------


@CHIPS
@pytest.mark.parametrize("how", ["close", "rebuild"])
async def test_a_patch_on_its_way_never_lands_in_another_graph(chip: str, how: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        stream, side, gate, x, y = dev.stream(), dev.stream(), dev.notify(), array(dev), array(dev)
        old, group = await grouped(stream, x)
        await old.replay(stream)
        side.wait(gate)
        async with old.update(group, on=side) as u:
            u.launch(three, x, 3.0, 4.0)
        await (old.close() if how == "close" else dev.rebuild())
        young, _ = await grouped(stream, y)  # the SQE memory of the old one may be had again
        await young.replay(stream)
        stream.record(gate)
        await side.synchronize()  # the patch has landed
        await young.replay(stream)
        assert (y.numpy() == 2).all()
        if how == "rebuild":
            await old.replay(stream)
            assert (x.numpy() == 7).all()


async def test_sqe_memory_is_free_when_the_last_patch_has_landed() -> None:
    async with aclrt.open_device() as dev:
        stream, sides, gate, x = dev.stream(), [dev.stream(), dev.stream()], dev.notify(), array(dev)
        images = dev.npu.driver._m.images._images
        graph, group = await grouped(stream, x)
        await graph.replay(stream)
        for side in sides:
            side.wait(gate)
            async with graph.update(group, on=side) as u:
                u.launch(double, x)
        await graph.close()
        assert len(images) == 1
        landings = [asyncio.create_task(side.synchronize()) for side in sides]
        stream.record(gate)
        _, waiting = await asyncio.wait(landings, return_when=asyncio.FIRST_COMPLETED)
        assert (len(waiting), len(images)) == (1, 1)
        stream.record(gate)
        await asyncio.wait(waiting)
        assert len(images) == 0


async def test_an_update_before_the_first_run_after_a_rebuild_stays() -> None:
    """The SQEs are not sent, so the host's copy is what is changed (acl_semantics 8.2); aclmdlRIUpdate keeps it."""
    async with aclrt.open_device() as dev:
        stream, side, x, y = dev.stream(), dev.stream(), array(dev), array(dev)
        async with aclrt.capture(stream) as graph:
            with stream.task_group() as group:
                stream.launch(add, x, 1.0)
            stream.launch(add, y, 1.0)
        await graph.replay(stream)
        for amount in (10.0, 100.0):
            async with graph.update(group, on=side) as u:
                u.launch(add, x, amount)
            await side.synchronize()
            if amount == 10.0:
                await graph.replay(stream)
                await dev.rebuild()
        graph.disable(group.tasks[0].queue.tasks[-2])  # the end-graph record is the last task
        graph.commit()
        await graph.replay(stream)
        assert x.numpy()[0] == 1 + 10 + 100
        assert y.numpy()[0] == 2


# --- runs that are queued ------------------------------------------------------------------------------------------


@CHIPS
@pytest.mark.parametrize("clock", ["wall", "virtual"])
async def test_a_queued_replay_keeps_its_sqs(chip: str, clock: Any) -> None:
    async with aclrt.open_device(chip=chip, clock=clock, limits={"max_sqs": 1}) as dev:
        stream, other, gate, x = dev.stream(), dev.stream(), dev.notify(), array(dev)
        first, second = [(await grouped(stream, x))[0] for _ in range(2)]
        await first.replay(stream)
        stream.wait(gate)
        queued = first.launch(stream)  # the second run of it goes the short way
        held = second.launch(other)  # the only SQ is the queued run's
        for _ in range(5):
            await asyncio.sleep(0)
        assert not held.done
        dev.default_stream.record(gate)
        await queued
        await held
        assert (x.numpy() == 3).all()


@CHIPS
async def test_an_image_that_takes_the_id_of_a_larger_one(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        stream, x = dev.stream(), array(dev)

        async def graph_of(tasks: int) -> aclrt.Graph:
            async with aclrt.capture(stream) as graph:
                for _ in range(tasks):
                    stream.launch(add, x, 1.0)
            await graph.replay(stream)
            return graph

        await (await graph_of(10)).close()
        await graph_of(1)
        for _ in range(20):
            stream.launch(add, x, 1.0)  # argument entries of the closed graph come again
        await stream.synchronize()
        await graph_of(20)
        assert np.array_equal(x.numpy(), np.full(8, 51, np.float32))


# --- the wrong graph, the wrong thing ------------------------------------------------------------------------------


async def test_a_graph_changes_only_its_own_tasks() -> None:
    async with aclrt.open_device() as dev:
        stream, side, x = dev.stream(), dev.stream(), array(dev)
        (one, _), (two, foreign) = await grouped(stream, x), await grouped(stream, x)
        task = foreign.tasks[0]
        params = two.params(task)
        with pytest.raises(aclrt.AclError) as caught:
            async with one.update(foreign, on=side) as u:
                u.launch(add, x, 5.0)
        assert caught.value.code == 107000
        calls: list[Callable[[], object]] = [
            lambda: one.params(task),
            lambda: one.set_params(task, params),
            lambda: one.disable(task),
        ]
        for call in calls:
            with pytest.raises(aclrt.AclError) as caught:
                call()
            assert caught.value.code == 107000
        assert [graph.status.name for graph in (one, two)] == ["READY", "READY"]
        await two.replay(stream)
        assert (x.numpy() == 1).all()
        for wrong in (None, side, "group"):
            with pytest.raises(TypeError):
                async with one.update(wrong, on=side):  # type: ignore[arg-type]
                    pass
        with pytest.raises(TypeError):
            async with two.update(foreign, on=None):  # type: ignore[arg-type]
                pass
        with pytest.raises(TypeError):
            one.params(None)  # type: ignore[arg-type]


async def test_a_group_of_a_branch_is_updated_through_the_graph() -> None:
    async with aclrt.open_device() as dev:
        stream, side, x = dev.stream(), dev.stream(), array(dev)
        async with aclrt.capture(stream) as graph:
            async with graph.if_(graph.condition(default=1)) as body:
                with body.task_group() as group:
                    body.launch(add, x, 1.0)
        await graph.replay(stream)
        async with graph.update(group, on=side) as u:
            u.launch(add, x, 10.0)
        await side.synchronize()
        await graph.replay(stream)
        assert (x.numpy() == 11).all()


@pytest.mark.parametrize(
    "params",
    [
        KernelTaskParams(funcHandle=add, numBlocks=-1),
        KernelTaskParams(funcHandle=add, numBlocks=1 << 40),
        KernelTaskParams(funcHandle=add, numBlocks=1, cfg=7),
        ValueWriteTaskParams(devAddr=-8),
        ValueWriteTaskParams(devAddr=1 << 70),
        ValueWriteTaskParams(devAddr=8, value="a"),  # type: ignore[arg-type]
        ValueWaitTaskParams(devAddr="address"),  # type: ignore[arg-type]
        ValueWaitTaskParams(devAddr=8, flag="a"),  # type: ignore[arg-type]
    ],
)
async def test_parameters_that_no_field_can_hold_change_nothing(params: Any) -> None:
    async with aclrt.open_device() as dev:
        stream, x = dev.stream(), array(dev)
        graph, group = await grouped(stream, x)
        if isinstance(params, KernelTaskParams):
            params.args = [x, 2.0]
        with pytest.raises((TypeError, ValueError)):
            graph.set_params(group.tasks[0], params)
        assert graph.status.name == "READY"
        await graph.replay(stream)
        assert (x.numpy() == 1).all()


async def test_a_wait_flag_is_taken_as_it_is() -> None:
    """acl_semantics 8.4: TaskSetParams validates neither address nor flag; the SQE has two bits for the flag."""
    async with aclrt.open_device() as dev:
        stream, x = dev.stream(), array(dev)
        graph, group = await grouped(stream, x)
        graph.set_params(group.tasks[0], ValueWaitTaskParams(devAddr=x.address, value=0, flag=9))  # EQ
        graph.commit()
        await graph.replay(stream)


# --- ends ----------------------------------------------------------------------------------------------------------


def endless(dev: aclrt.Device, x: aclrt.DeviceArray) -> tuple[Any, Any, Any]:
    """A built model that goes round for ever, its stream, and what keeps its label."""
    stream, model = dev.stream(persistent=True), acl.aclmdlRIBuildBegin(0)
    acl.aclmdlRIBindStream(model, stream, acl.ACL_MODEL_STREAM_FLAG_HEAD)
    label = acl.aclrtCreateLabel()
    table = acl.aclrtCreateLabelList([label])
    acl.aclrtSetLabel(label, stream)
    stream.launch(add, x, 1.0)
    acl.rtLabelGoto(label, stream)
    acl.aclmdlRIEndTask(model, stream)
    acl.aclmdlRIBuildEnd(model)
    return model, stream, table


@CHIPS
async def test_an_abort_or_a_destroy_right_after_the_launch_stops_the_run(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        stream, x = dev.stream(), array(dev)
        model, _, _keep = endless(dev, x)
        for end in (acl.aclmdlRIAbort, acl.aclmdlRIDestroy):
            run = acl.aclmdlRIExecuteAsync(model, stream)
            await end(model)
            with pytest.raises(aclrt.AclError) as caught:
                await run
            assert caught.value.code == 507023
            with pytest.raises(aclrt.AclError):
                await stream.synchronize()
        assert not model.alive
        async with aclrt.capture(stream) as graph:
            async with graph.while_(graph.condition(default=1)) as body:
                body.launch(add, x, 1.0)
        run = graph.launch(stream)
        await run.abort()
        with pytest.raises(aclrt.AclError) as caught:
            await run
        assert caught.value.code == 507023


async def test_a_destroy_stops_a_run_that_begins_while_it_waits() -> None:
    async with aclrt.open_device() as dev:
        stream, gate, x = dev.stream(), dev.notify(), array(dev)
        model, _, _keep = endless(dev, x)
        stream.wait(gate)
        run = acl.aclmdlRIExecuteAsync(model, stream)
        destroy = asyncio.create_task(acl.aclmdlRIDestroy(model))
        await asyncio.sleep(0)
        dev.default_stream.record(gate)
        await destroy
        with pytest.raises(aclrt.AclError) as caught:
            await run
        assert caught.value.code == 507023


async def test_a_destroy_callback_starts_nothing() -> None:
    async with aclrt.open_device() as dev:
        stream, side, x = dev.stream(), dev.stream(), array(dev)
        graph, _ = await grouped(stream, x)
        await graph.replay(stream)
        codes = []

        def execute(_: object) -> None:
            for call in (graph.launch, lambda s: acl.aclmdlRIExecuteAsync(graph, s)):
                with pytest.raises(aclrt.AclError) as caught:
                    call(stream)
                codes.append(caught.value.code)

        acl.aclmdlRIDestroyRegisterCallback(graph, execute, None)
        await graph.close()
        assert codes == [107017, 107017]
        side.launch(add, x, 1.0)
        await dev.synchronize()
        assert (x.numpy() == 2).all()


async def test_a_callback_that_ends_the_program_leaves_no_half_destroyed_model() -> None:
    async with aclrt.open_device() as dev:
        stream, x = dev.stream(), array(dev)
        graph, _ = await grouped(stream, x)

        def leave(_: object) -> None:
            raise SystemExit(3)

        acl.aclmdlRIDestroyRegisterCallback(graph, leave, None)
        closing = graph.close()
        with pytest.raises(SystemExit):
            closing.send(None)
        assert not graph.alive
        assert dev.context.models == []


async def test_an_update_whose_graph_is_closed_inside_keeps_nothing() -> None:
    async with aclrt.open_device() as dev:
        stream, side, x = dev.stream(), dev.stream(), array(dev)
        before = held(dev)
        graph, group = await grouped(stream, x)
        await graph.replay(stream)

        async def close_inside() -> None:
            async with graph.update(group, on=side) as u:
                u.launch(add, x, 3.0)
                await graph.close()

        with pytest.raises(aclrt.AclError) as caught:
            await close_inside()
        assert caught.value.code == 107017
        assert held(dev) == before
        side.launch(add, x, 1.0)
        await side.synchronize()


@pytest.mark.parametrize("wrong", [0, 1.5, object(), "labels"])
async def test_a_label_list_of_nothing_like_labels(wrong: Any) -> None:
    async with aclrt.open_device():
        with pytest.raises(TypeError, match="aclrtCreateLabelList"):
            acl.aclrtCreateLabelList(wrong)


async def test_an_event_behind_a_held_run_is_as_done_as_any_after_an_abort() -> None:
    """v100: a record that an abort dropped counts as executed, and stays so; a held stream is no other."""
    async with aclrt.open_device(limits={"max_sqs": 1}) as dev:
        stream, other, gate, x = dev.stream(), dev.stream(), dev.notify(), array(dev)
        async with aclrt.capture(stream) as first:
            stream.wait(gate)
        second, _ = await grouped(stream, x)
        holder = first.launch(stream)
        held_run = second.launch(other)  # no SQ is left
        other.launch(add, x, 100.0)
        event = other.record()
        await asyncio.sleep(0)
        await acl.aclrtStreamAbort(other)
        assert held_run.done
        assert acl.aclrtQueryEventStatus(event) == acl.ACL_EVENT_RECORDED_STATUS_COMPLETE
        with pytest.raises(aclrt.AclError) as caught:
            await other.synchronize()
        assert caught.value.code == 107023
        stream.wait(event)
        dev.default_stream.record(gate)
        await holder
        await stream.synchronize()
        await second.replay(other)
        assert (x.numpy() == 1).all()
