"""Looking into tasks: types, numbers, parameters, launch attributes, the seed's check (acl_semantics 8.4)."""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.base.enums import KernelAttr, TaskType
from aclrt.graph import task_edit, task_params

from .updating import CHIPS, Mixed, add, kernel_params, refused


@pytest.mark.parametrize("chip", CHIPS)
async def test_types_and_numbers_of_tasks(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Mixed(dev).capture()
        streams = acl.aclmdlRIGetStreams(net.graph)
        lists = [acl.aclmdlRIGetTasksByStream(stream) for stream in streams]
        types = [[int(acl.aclmdlRITaskGetType(task)) for task in tasks] for tasks in lists]
        assert types == [[3, 1, 2], [1, 5, 1, 2, 3, 4, 4]]
        numbers = [[acl.aclmdlRITaskGetSeqId(task) for task in tasks] for tasks in lists]
        assert sorted(functools.reduce(operator.iadd, numbers, [])) == list(range(10))
        assert numbers[1][:4] == [0, 1, 2, 3]
        assert all(a < b for line in numbers for a, b in itertools.pairwise(line))


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
        assert (kernel.funcHandle, kernel.args, kernel.numBlocks, kernel.cfg, kernel.isHostArgs) == (
            add,
            [x, 1.0],
            3,
            None,
            0,
        )
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
        net = await Mixed(dev).capture()
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


# --- attributes and the seed's check ----------------------------------------------------------------------------------


async def test_launch_attributes_are_those_of_the_last_configuration() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Mixed(dev).capture()
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
        net = Mixed(dev)
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
