"""Editing tasks: TaskSetParams, TaskDisable, aclmdlRIUpdate (acl_semantics 8.4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.base.enums import ModelStatus, TaskType
from aclrt.graph.task_structs import KernelTaskParams, ValueWriteTaskParams
from aclrt.task.task import Nop

from .updating import CHIPS, Mixed, add, kernel_params, mul, refused, wait_params, write_params

# --- setting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", CHIPS)
async def test_a_kernel_is_set_and_takes_effect_at_the_update(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Mixed(dev).capture()
        assert await net.run() == (10, 5, 7)
        task = net.tasks[0]
        params = acl.aclmdlRITaskGetParams(task)
        params.kernelTaskParams.args[1] = 100.0
        acl.aclmdlRITaskSetParams(task, params)
        assert net.graph.status is ModelStatus.UPDATING
        with refused(507011, "UPDATING"):
            net.graph.launch(net.s)
        acl.aclmdlRITaskSetParams(net.tasks[1], write_params(net.cell.address, 8))
        acl.aclmdlRIUpdate(net.graph)
        assert net.graph.status is ModelStatus.READY
        assert await net.run() == (1100, 10, 8)
        assert await net.run() == (12000, 15, 8)
        assert acl.aclmdlRITaskGetParams(task).kernelTaskParams.args == [net.x, 100.0]


async def test_before_the_first_execute_it_works_the_same() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Mixed(dev).capture()
        acl.aclmdlRITaskSetParams(net.tasks[0], kernel_params(mul, net.x, 3.0))
        net.graph.commit()
        assert await net.run() == (0, 5, 7)


@pytest.mark.parametrize("chip", CHIPS)
async def test_a_value_write_becomes_a_wait_and_a_write_again(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Mixed(dev).capture()
        await net.run()
        sqes = net.graph.queues[-1].sqe_count
        acl.aclmdlRITaskSetParams(net.tasks[1], wait_params(net.cell.address + 8, 3, acl.ACL_VALUE_WAIT_EQ))
        assert acl.aclmdlRITaskGetType(net.tasks[1]) == TaskType.VALUE_WAIT
        acl.aclmdlRIUpdate(net.graph)
        assert net.graph.queues[-1].sqe_count == sqes + (3 if chip == "v100" else 2)
        run = net.graph.launch(net.s)
        net.side.fill(net.cell[1:], 3)
        await run
        assert net.x.numpy()[0] == 110
        acl.aclmdlRITaskSetParams(net.tasks[1], write_params(net.cell.address, 55))
        acl.aclmdlRIUpdate(net.graph)
        assert net.graph.queues[-1].sqe_count == sqes
        assert await net.run() == (1110, 15, 55)


async def test_a_kernel_and_an_event_task_can_become_value_tasks() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Mixed(dev).capture()
        acl.aclmdlRITaskSetParams(net.tasks[2], write_params(net.cell.address + 8, 1))
        acl.aclmdlRITaskSetParams(net.tasks[5], write_params(net.cell.address + 8, 2))  # a reset
        net.graph.commit()
        assert await net.run() == (1, 5, 7)
        assert net.cell.numpy()[1] == 2


async def test_the_last_call_on_a_task_wins() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Mixed(dev).capture()
        first, _, last = net.tasks[:3]
        acl.aclmdlRITaskDisable(first)
        acl.aclmdlRITaskSetParams(first, kernel_params(add, net.x, 2.0))
        acl.aclmdlRITaskSetParams(last, kernel_params(add, net.x, 2.0))
        acl.aclmdlRITaskDisable(last)
        acl.aclmdlRIUpdate(net.graph)
        assert await net.run() == (2, 5, 7)


@pytest.mark.parametrize(
    ("index", "change"),
    [
        (1, {"type": TaskType.KERNEL}),  # a value task
        (0, {"type": TaskType.EVENT_RECORD}),
        (0, {"type": TaskType.DEFAULT}),
        (0, {"taskGrp": "group"}),
        (0, {"funcHandle": None}),
        (0, {"args": None}),
        (1, {"type": TaskType.VALUE_WRITE, "taskGrp": "group"}),
        (1, {"type": TaskType.VALUE_WAIT, "opInfoSize": 4}),
        (1, {"type": TaskType.VALUE_WAIT, "opInfoPtr": object()}),
    ],
)
async def test_bad_parameters_leave_the_graph_at_fault(index: int, change: dict[str, Any]) -> None:
    async with aclrt.open_device(0) as dev:
        net = await Mixed(dev).capture()
        await net.run()
        params = kernel_params(add, net.x, 1.0)
        for name, value in change.items():
            setattr(params.kernelTaskParams if hasattr(params.kernelTaskParams, name) else params, name, value)
        with refused(107000):
            acl.aclmdlRITaskSetParams(net.tasks[index], params)
        assert net.graph.status is ModelStatus.FAULT
        with refused(107040, "FAULT"):
            acl.aclmdlRITaskSetParams(net.tasks[0], kernel_params(add, net.x, 1.0))
        with refused(107040):
            acl.aclmdlRITaskDisable(net.tasks[0])
        with refused(107040):
            acl.aclmdlRIUpdate(net.graph)
        with refused(507011, "FAULT"):
            net.graph.launch(net.s)
        assert acl.aclmdlRITaskGetType(net.tasks[0]) == TaskType.KERNEL
        assert acl.aclmdlRITaskGetParams(net.tasks[0]).type == TaskType.KERNEL
        await net.graph.close()


async def test_a_wrong_python_type_changes_nothing() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Mixed(dev).capture()
        with pytest.raises(TypeError):
            acl.aclmdlRITaskSetParams(net.tasks[0], kernel_params(add.fn, net.x, 1.0))
        with pytest.raises(TypeError):
            acl.aclmdlRITaskSetParams(net.tasks[0], kernel_params(add, dev.array(np.zeros(4, "i8")), 1.0))
        with pytest.raises(TypeError):
            acl.aclmdlRITaskSetParams(net.tasks[0], 3)  # type: ignore[arg-type]
        assert net.graph.status is ModelStatus.READY
        assert await net.run() == (10, 5, 7)


async def test_the_entry_checks_leave_the_status_alone() -> None:
    async with aclrt.open_device(0) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        params = kernel_params(add, x, 1.0)
        gate = dev.event(external=True)
        with refused(107000):
            acl.aclmdlRITaskSetParams(None, params)
        with refused(107000):
            acl.aclmdlRITaskDisable(None)
        async with aclrt.capture(s) as graph:
            s.wait(gate)
            s.reset(gate)
            s.launch(add, x, 1.0)
            task = graph.queues[0].tasks[2]
            with refused(107040, "CAPTURE_ACTIVE"):  # capturing
                acl.aclmdlRITaskSetParams(task, params)
        with refused(107000):
            acl.aclmdlRITaskSetParams(task, None)
        run = graph.launch(s)
        with refused(107040, "outstanding"):  # running
            acl.aclmdlRITaskDisable(task)
        assert graph.status is ModelStatus.READY
        dev.stream().record(gate)
        await run
        acl.aclmdlRITaskDisable(task)
        acl.aclmdlRIUpdate(graph)
        dev.stream().record(gate)
        await graph.replay(s)
        assert x.numpy()[0] == 1


async def test_branches_and_built_models_cannot_be_edited() -> None:
    async with aclrt.open_device(0) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            go = graph.condition(default=1)
            async with graph.if_(go) as body:
                body.launch(add, x, 1.0)
        branch = graph.cond_handles[0].models[0]
        task = branch.queues[0].tasks[0]
        for call in (
            acl.aclmdlRITaskGetType,
            acl.aclmdlRITaskGetSeqId,
            acl.aclmdlRITaskGetParams,
            acl.aclmdlRITaskDisable,
        ):
            with refused(207000):
                call(task)
        with refused(207000):
            acl.aclmdlRITaskSetParams(task, kernel_params(add, x, 1.0))
        with refused(207000):
            acl.aclmdlRIUpdate(branch)
        model = acl.aclmdlRIBuildBegin(0)
        with refused(207000):
            acl.aclmdlRIUpdate(model)
        with refused(107000):
            acl.aclmdlRIUpdate(None)


# --- disabling --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", CHIPS)
async def test_a_disabled_task_vanishes_and_its_handle_dies(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Mixed(dev).capture()
        await net.run()
        tasks = net.tasks
        acl.aclmdlRITaskDisable(tasks[0])
        assert acl.aclmdlRITaskGetType(tasks[0]) == TaskType.KERNEL  # until the update
        acl.aclmdlRIUpdate(net.graph)
        assert net.tasks == tasks[1:]
        with refused(107017):
            acl.aclmdlRITaskGetType(tasks[0])
        assert await net.run() == (100, 10, 7)
        assert [task.slot for task in net.tasks] == sorted(task.slot for task in net.tasks)


async def test_an_emptied_stream_keeps_one_nop() -> None:
    async with aclrt.open_device(0) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            s.launch(add, x, 1.0)
            s.launch(add, x, 1.0)
        for task in graph.queues[0].tasks:
            acl.aclmdlRITaskDisable(task)
        acl.aclmdlRIUpdate(graph)
        assert [type(task.op) for task in graph.queues[0].tasks] == [Nop]
        await graph.replay(s)
        assert x.numpy()[0] == 0


async def test_disabling_what_has_no_type_is_a_fault() -> None:
    async with aclrt.open_device(0) as dev:
        s, x, y = dev.stream(), dev.array(np.zeros(4, "f4")), dev.array(np.ones(4, "f4"))
        async with aclrt.capture(s) as graph:
            s.copy(x, y)
        with refused(107000):
            acl.aclmdlRITaskDisable(graph.queues[0].tasks[0])
        assert graph.status is ModelStatus.FAULT


# --- updating ---------------------------------------------------------------------------------------------------------


async def test_update_of_a_ready_graph_does_nothing() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Mixed(dev).capture()
        await net.run()
        builds = net.graph.build_count
        acl.aclmdlRIUpdate(net.graph)
        assert await net.run() == (110, 10, 7)
        assert net.graph.build_count == builds


async def test_a_stream_that_grows_past_its_depth_is_a_fault() -> None:
    async with aclrt.open_device(0, limits={"sq_depth": 40, "capture_reserved": 0}) as dev:
        s, cell = dev.stream(), dev.array(np.zeros(1, "u8"))
        async with aclrt.capture(s) as graph:
            for value in range(12):
                acl.aclrtValueWrite(cell.address, value, 0, s)
        for task in graph.queues[0].tasks:
            acl.aclmdlRITaskSetParams(task, wait_params(cell.address, 0, acl.ACL_VALUE_WAIT_GEQ))
        with refused(507002, "48"):
            acl.aclmdlRIUpdate(graph)
        assert graph.status is ModelStatus.FAULT


async def test_the_device_counts_updates() -> None:
    async with aclrt.open_device(0, limits={"update_limit": 2}) as dev:
        net = await Mixed(dev).capture()
        for value in (1.0, 2.0):
            acl.aclmdlRITaskSetParams(net.tasks[0], kernel_params(add, net.x, value))
            acl.aclmdlRIUpdate(net.graph)
        acl.aclmdlRITaskSetParams(net.tasks[0], kernel_params(add, net.x, 3.0))
        with refused(107040):
            acl.aclmdlRIUpdate(net.graph)


async def test_an_update_in_a_cascade_keeps_the_chain() -> None:
    async with aclrt.open_device(0, limits={"sq_depth": 64}) as dev:
        s, x = dev.stream(), dev.array(np.zeros(1, "f4"))
        async with aclrt.capture(s) as graph:
            for _ in range(100):
                s.launch(add, x, 1.0)
        tasks = [task for queue in reversed(graph.queues) for task in queue.tasks if task.type is TaskType.KERNEL]
        assert len(graph.queues) > 2
        for task in tasks[::2]:
            acl.aclmdlRITaskDisable(task)
        for task in tasks[1::2]:
            acl.aclmdlRITaskSetParams(task, kernel_params(add, x, 3.0))
        acl.aclmdlRIUpdate(graph)
        await graph.replay(s)
        assert x.numpy()[0] == 150


async def test_old_argument_entries_are_given_back() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Mixed(dev).capture()
        await net.run()
        before = len(net.graph.argument_handles)
        for value in range(20):
            acl.aclmdlRITaskSetParams(net.tasks[0], kernel_params(add, net.x, float(value)))
            acl.aclmdlRIUpdate(net.graph)
            await net.run()
        acl.aclmdlRITaskDisable(net.tasks[0])
        acl.aclmdlRIUpdate(net.graph)
        assert len(net.graph.argument_handles) == before - 1


# --- group updates and aclmdlRIUpdate together ------------------------------------------------------------------------


async def test_an_update_takes_group_patches_back_except_of_tasks_that_were_set() -> None:
    async with aclrt.open_device(0) as dev:
        s, side, x, y = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4")), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            s.launch(add, x, 0.0)
            with s.task_group() as group:
                s.launch(add, x, 1.0)
                s.launch(add, y, 1.0)
        plain, _, of_y = graph.queues[0].tasks[0], *group.tasks
        acl.aclmdlRITaskSetParams(of_y, kernel_params(add, y, 2.0))
        graph.commit()
        await graph.replay(s)
        async with graph.update(group, on=side) as u:
            u.launch(add, x, 10.0)
            u.launch(add, y, 10.0)
        await side.synchronize()
        await graph.replay(s)
        assert (x.numpy()[0], y.numpy()[0]) == (11, 12)
        acl.aclmdlRITaskSetParams(plain, kernel_params(add, x, 100.0))
        graph.commit()
        await graph.replay(s)
        assert (x.numpy()[0], y.numpy()[0]) == (11 + 101, 12 + 10)


async def test_patches_on_their_way_at_an_update_hit_nothing() -> None:
    async with aclrt.open_device(0) as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4"))
        gate = dev.event(external=True)
        async with aclrt.capture(s) as graph:
            s.launch(add, x, 100.0)
            with s.task_group() as group:
                s.launch(add, x, 1.0)
            s.launch(add, x, 1000.0)
        await graph.replay(s)
        side.wait(gate)
        async with graph.update(group, on=side) as u:
            u.launch(add, x, 10.0)
        acl.aclmdlRITaskDisable(graph.queues[0].tasks[0])  # every slot behind it moves
        graph.commit()
        await graph.replay(s)
        assert x.numpy()[0] == 1101 + 1001
        dev.stream().record(gate)
        await side.synchronize()
        await graph.replay(s)
        assert x.numpy()[0] == 1101 + 1001 + 1001
        async with graph.update(group, on=side) as u:
            u.launch(add, x, 5.0)
        await side.synchronize()
        await graph.replay(s)
        assert x.numpy()[0] == 1101 + 1001 + 1001 + 1005


# --- the Pythonic face ------------------------------------------------------------------------------------------------


async def test_a_graph_shows_and_takes_typed_parameters() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Mixed(dev).capture()
        assert await net.run() == (10, 5, 7)
        first, write, last = list(net.graph.queues[-1])[:3]
        params = net.graph.params(first)
        assert (params.funcHandle, params.args) == (add, [net.x, 1.0])
        assert net.graph.params(write) == ValueWriteTaskParams(net.cell.address, 7)
        net.graph.set_params(first, KernelTaskParams(funcHandle=add, args=[net.x, 2.0], numBlocks=1))
        net.graph.set_params(write, ValueWriteTaskParams(net.cell.address, 9))
        net.graph.disable(last)
        net.graph.commit()
        assert await net.run() == (12, 10, 9)
        with pytest.raises(TypeError):
            net.graph.set_params(first, 3)
        assert net.graph.status is ModelStatus.READY
