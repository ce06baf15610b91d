"""Looking into tasks and editing them: TaskGet*, TaskSetParams, TaskDisable, aclmdlRIUpdate (acl_semantics 8.4)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.base.enums import KernelAttr, ModelStatus, TaskType
from aclrt.graph import task_edit, task_params
from aclrt.task.task import Nop

if TYPE_CHECKING:
    from collections.abc import Iterator

CHIPS = ["v100", "v200"]


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], value: float) -> None:
    x += value


@aclrt.kernel
def mul(x: aclrt.InOut[np.float32], value: float) -> None:
    x *= value


@contextmanager
def refused(code: int, *words: str) -> Iterator[None]:
    with pytest.raises(aclrt.AclError) as caught:
        yield
    assert caught.value.code == code
    for word in words:
        assert word in str(caught.value)


def kernel_params(kernel: Any, *args: Any) -> Any:
    params = acl.aclmdlRITaskParams(type=TaskType.KERNEL)
    params.kernelTaskParams.funcHandle = kernel
    params.kernelTaskParams.args = list(args)
    params.kernelTaskParams.numBlocks = 1
    return params


def write_params(address: int, value: int) -> Any:
    params = acl.aclmdlRITaskParams(type=TaskType.VALUE_WRITE)
    params.valueWriteTaskParams.devAddr = address
    params.valueWriteTaskParams.value = value
    return params


def wait_params(address: int, value: int, flag: int) -> Any:
    params = acl.aclmdlRITaskParams(type=TaskType.VALUE_WAIT)
    params.valueWaitTaskParams.devAddr = address
    params.valueWaitTaskParams.value = value
    params.valueWaitTaskParams.flag = flag
    return params


class Net:
    """x += 1, a value write, x *= 10, and on a joined stream y += 5."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.dev = dev
        self.s, self.side = dev.stream(), dev.stream()
        self.x, self.y = dev.array(np.zeros(4, "f4")), dev.array(np.zeros(4, "f4"))
        self.cell = dev.array(np.zeros(2, "u8"))
        self.graph: Any = None

    async def capture(self) -> Net:
        async with aclrt.capture(self.s) as self.graph:
            self.s.launch(add, self.x, 1.0)
            acl.aclrtValueWrite(self.cell.address, 7, 0, self.s)
            self.s.launch(mul, self.x, 10.0)
            async with self.s.fork(self.side) as (b,):
                b.launch(add, self.y, 5.0)
        return self

    @property
    def tasks(self) -> list[Any]:
        """Those of the origin stream."""
        return acl.aclmdlRIGetTasksByStream(acl.aclmdlRIGetStreams(self.graph)[-1])

    async def run(self) -> tuple[float, float, int]:
        await self.graph.replay(self.s)
        return float(self.x.numpy()[0]), float(self.y.numpy()[0]), int(self.cell.numpy()[0])


# --- looking ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", CHIPS)
async def test_types_and_numbers_of_tasks(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Net(dev).capture()
        streams = acl.aclmdlRIGetStreams(net.graph)
        lists = [acl.aclmdlRIGetTasksByStream(stream) for stream in streams]
        types = [[int(acl.aclmdlRITaskGetType(task)) for task in tasks] for tasks in lists]
        assert types == [[3, 1, 2], [1, 5, 1, 2, 3, 4, 4]]
        numbers = [[acl.aclmdlRITaskGetSeqId(task) for task in tasks] for tasks in lists]
        assert sorted(sum(numbers, [])) == list(range(10))
        assert numbers[1][:4] == [0, 1, 2, 3]
        assert all(a < b for line in numbers for a, b in zip(line, line[1:], strict=False))


async def test_every_kind_of_parameters_can_be_read() -> None:
    async with aclrt.open_device(0) as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4"))
        classic, sync, hidden = dev.event(external=True), dev.event(), dev.event()
        async with aclrt.capture(s) as graph:
            s.launch(add, x, 1.0, blocks=3)
            s.wait(classic)
            s.reset(classic)
            acl.aclrtValueWrite(x.address, 9, 0, s)
            acl.aclrtValueWait(x.address, 2, 1, s)
            acl.aclrtRecordEventWithFlag(sync, s, acl.ACL_EVENT_RECORD_EXTERNAL)
            async with s.fork(side):
                pass
            s.callback(lambda: None)
        own = graph.queues[-1].tasks
        read = [task_params.get_params(task) for task in own[:7]]
        assert [params.type for params in read] == [1, 3, 4, 5, 6, 2, 2]
        kernel = read[0].kernelTaskParams
        assert (kernel.funcHandle, kernel.args, kernel.numBlocks, kernel.cfg, kernel.isHostArgs) == (add, [x, 1.0], 3, None, 0)
        assert (read[3].valueWriteTaskParams.devAddr, read[3].valueWriteTaskParams.value) == (x.address, 9)
        wait = read[4].valueWaitTaskParams
        assert (wait.devAddr, wait.value, wait.flag) == (x.address, 2, 1)
        assert task_params.get_type(own[5]) is TaskType.DEFAULT  # external, and still readable
        assert read[5].eventRecordTaskParams.recordFlag == 1
        assert read[6].eventRecordTaskParams.recordFlag == 0
        assert read[6].eventRecordTaskParams.event is not hidden  # the hidden event, which no event call takes
        with refused(107017):
            acl.aclrtDestroyEvent(read[6].eventRecordTaskParams.event)
        callbacks = [task for task in own if task.type is TaskType.DEFAULT][1:]
        for task in callbacks:
            with refused(107000):
                task_params.get_params(task)


async def test_params_name_the_group_of_the_task() -> None:
    async with aclrt.open_device(0) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            with s.task_group() as group:
                s.launch(add, x, 1.0)
            s.launch(add, x, 2.0)
        tasks = graph.queues[0].tasks
        assert task_params.get_params(tasks[-2]).taskGrp is group
        assert task_params.get_params(tasks[-1]).taskGrp is None


async def test_refusals_of_the_reading_calls() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Net(dev).capture()
        for call in (acl.aclmdlRITaskGetType, acl.aclmdlRITaskGetSeqId, acl.aclmdlRITaskGetParams):
            with refused(107000):
                call(None)
            with refused(107017):
                call(net.s)
            with pytest.raises(TypeError):
                call(3)
        task = net.tasks[0]
        await net.graph.close()
        for call in (acl.aclmdlRITaskGetType, acl.aclmdlRITaskGetSeqId, acl.aclmdlRITaskGetParams):
            with refused(107017):
                call(task)


# --- setting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", CHIPS)
async def test_a_kernel_is_set_and_takes_effect_at_the_update(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Net(dev).capture()
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
        net = await Net(dev).capture()
        acl.aclmdlRITaskSetParams(net.tasks[0], kernel_params(mul, net.x, 3.0))
        net.graph.commit()
        assert await net.run() == (0, 5, 7)


@pytest.mark.parametrize("chip", CHIPS)
async def test_a_value_write_becomes_a_wait_and_a_write_again(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Net(dev).capture()
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
        net = await Net(dev).capture()
        acl.aclmdlRITaskSetParams(net.tasks[2], write_params(net.cell.address + 8, 1))
        acl.aclmdlRITaskSetParams(net.tasks[5], write_params(net.cell.address + 8, 2))  # a reset
        net.graph.commit()
        assert await net.run() == (1, 5, 7)
        assert net.cell.numpy()[1] == 2


async def test_the_last_call_on_a_task_wins() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Net(dev).capture()
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
        net = await Net(dev).capture()
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
        net = await Net(dev).capture()
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
        for call in (acl.aclmdlRITaskGetType, acl.aclmdlRITaskGetSeqId, acl.aclmdlRITaskGetParams, acl.aclmdlRITaskDisable):
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
        net = await Net(dev).capture()
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
        net = await Net(dev).capture()
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
        net = await Net(dev).capture()
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
        net = await Net(dev).capture()
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


# --- attributes and the seed's check ----------------------------------------------------------------------------------


async def test_launch_attributes_are_those_of_the_last_configuration() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Net(dev).capture()
        task = net.tasks[0]
        assert task_params.get_attribute(task, KernelAttr.SCHEM_MODE) == 0
        params = kernel_params(add, net.x, 1.0)
        params.kernelTaskParams.cfg = {KernelAttr.SCHEM_MODE: 1, KernelAttr.TIMEOUT_US: 100}
        acl.aclmdlRITaskSetParams(task, params)
        assert task_params.get_attribute(task, KernelAttr.SCHEM_MODE) == 1
        assert task_params.get_attribute(task, KernelAttr.TIMEOUT_US) == (100, 0)
        params.kernelTaskParams.cfg = None
        acl.aclmdlRITaskSetParams(task, params)
        assert task_params.get_attribute(task, KernelAttr.SCHEM_MODE) == 1


@pytest.mark.parametrize("chip", CHIPS)
async def test_check_capture_for_update(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = Net(dev)
        check = acl.aclmdlRICheckCaptureForUpdate
        with refused(100000):
            check(None)
        with refused(107029):
            check(net.s)
        async with aclrt.capture(net.s):
            net.s.launch(add, net.x, 1.0)
            with refused(107027):
                check(net.s)
        await net.capture()
        check(net.s)
        check(net.side)  # it took part
        for stream in acl.aclmdlRIGetStreams(net.graph):
            check(stream)
        acl.aclmdlRITaskDisable(net.tasks[0])
        check(net.s)  # UPDATING
        with refused(107000):
            acl.aclmdlRITaskSetParams(net.tasks[1], kernel_params(add, net.x, 1.0))
        with refused(107040):
            check(net.s)
        hidden = acl.aclmdlRIGetStreams(net.graph)[0]
        await net.graph.close()
        with refused(107017):
            check(hidden)
        with pytest.raises(TypeError):
            check(3)  # type: ignore[arg-type]


async def test_check_capture_for_update_sees_a_running_graph() -> None:
    async with aclrt.open_device(0) as dev:
        s, gate, x = dev.stream(), dev.event(external=True), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            s.wait(gate)
            s.launch(add, x, 1.0)
        run = graph.launch(s)
        with refused(107040, "outstanding"):
            task_edit.check_capture_for_update(dev.context, s)
        dev.stream().record(gate)
        await run
        task_edit.check_capture_for_update(dev.context, s)
