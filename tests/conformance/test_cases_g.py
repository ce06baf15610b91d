"""Conformance group G, looking into tasks and changing them: one test for each case id, through the C names only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .updating import Bench, add, case, launch, refused, scale

if TYPE_CHECKING:
    from pathlib import Path

SCHEM_MODE, DYN_UBUF_SIZE, ENGINE_TYPE, BLOCKDIM_OFFSET, PREFETCH, DATA_DUMP, TIMEOUT, TIMEOUT_US = range(1, 9)


def fork(b: Bench) -> None:
    """Let the side stream take part in the open capture and join it again."""
    out, back = (acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC) for _ in range(2))
    acl.aclrtRecordEvent(out, b.s)
    acl.aclrtStreamWaitEvent(b.side, out)
    launch(b.side, add, b.y, 1.0)
    acl.aclrtRecordEvent(back, b.side)
    acl.aclrtStreamWaitEvent(b.s, back)


def chain(b: Bench) -> Any:
    """x += 1, x *= 10, x += 5."""
    b.begin()
    launch(b.s, add, b.x, 1.0)
    launch(b.s, scale, b.x, 10.0)
    launch(b.s, add, b.x, 5.0)
    return b.end()


def writer(b: Bench, cell: Any) -> Any:
    b.begin()
    acl.aclrtValueWrite(cell.address, 7, 0, b.s)
    return b.end()


def value_write(cell: Any, value: int) -> Any:
    params = acl.aclmdlRITaskParams()
    params.type = acl.ACL_MODEL_RI_TASK_VALUE_WRITE
    params.valueWriteTaskParams.devAddr, params.valueWriteTaskParams.value = cell.address, value
    return params


def value_wait(cell: Any, value: int) -> Any:
    params = acl.aclmdlRITaskParams()
    params.type = acl.ACL_MODEL_RI_TASK_VALUE_WAIT
    params.valueWaitTaskParams.devAddr, params.valueWaitTaskParams.value = cell.address, value
    params.valueWaitTaskParams.flag = acl.ACL_VALUE_WAIT_EQ
    return params


@case
async def test_G01_get_streams(b: Bench) -> None:
    b.begin()
    fork(b)
    model = b.end()
    assert len(acl.aclmdlRIGetStreams(model)) == 2
    assert len(acl.aclmdlRIGetStreams(model, 2)) == len(acl.aclmdlRIGetStreams(model, 5)) == 2
    with refused(107039):
        acl.aclmdlRIGetStreams(model, 1)
    with refused(107000):
        acl.aclmdlRIGetStreams(None)


@case
async def test_G02_get_streams_during_the_capture(b: Bench) -> None:
    b.begin()
    model = acl.aclmdlRICaptureGetInfo(b.s).modelRI
    assert len(acl.aclmdlRIGetStreams(model)) == 1
    fork(b)
    assert len(acl.aclmdlRIGetStreams(model)) == 2
    b.end()


@case
async def test_G03_newest_first_and_the_origin_last(b: Bench) -> None:
    b.begin()
    launch(b.s, add, b.x, 1.0)
    fork(b)
    model = b.end()
    assert [len(b.tasks(model, index)) for index in (0, 1)] == [
        3,
        5,
    ]  # wait, kernel, record; the origin with its resets
    assert acl.aclmdlRITaskGetSeqId(b.tasks(model)[0]) == 0


@case
async def test_G04_tasks_of_an_ordinary_stream(b: Bench) -> None:
    model = chain(b)
    for stream in (b.s, b.side):
        with refused(107000):
            acl.aclmdlRIGetTasksByStream(stream)
    with refused(107000):
        acl.aclmdlRIGetTasksByStream(None)
    assert len(b.tasks(model)) == 3


@case
async def test_G05_room_for_the_tasks(b: Bench) -> None:
    stream = acl.aclmdlRIGetStreams(chain(b))[0]
    with refused(107039):
        acl.aclmdlRIGetTasksByStream(stream, 0)
    with refused(107039):
        acl.aclmdlRIGetTasksByStream(stream, 2)
    assert len(acl.aclmdlRIGetTasksByStream(stream, 9)) == 3


@case
async def test_G07_types_of_tasks_and_a_record_turned_into_a_value(b: Bench) -> None:
    cell = b.dev.array(np.zeros(1, np.uint64))
    b.begin()
    launch(b.s, add, b.x, 1.0)
    fork(b)
    acl.aclrtValueWrite(cell.address, 1, 0, b.s)
    acl.aclrtValueWait(cell.address, 1, acl.ACL_VALUE_WAIT_EQ, b.s)
    acl.aclrtMemsetAsync(b.y.address, 4, 0, 4, b.s)
    model = b.end()
    assert [acl.aclmdlRITaskGetType(task) for task in b.tasks(model)] == [1, 2, 3, 5, 6, 0, 4, 4]
    acl.aclmdlRITaskSetParams(b.tasks(model)[1], value_write(cell, 3))  # taken, as recorded


@case
async def test_G08_sequence_ids(b: Bench) -> None:
    with refused(107000):
        acl.aclmdlRITaskGetSeqId(None)
    b.begin()
    launch(b.s, add, b.x, 1.0)
    fork(b)
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    lists = [[acl.aclmdlRITaskGetSeqId(task) for task in b.tasks(model, index)] for index in (0, 1)]
    assert lists == [[2, 3, 4], [0, 1, 5, 6, 7, 8]]


@case
async def test_G09_params_of_a_kernel(b: Bench) -> None:
    params = acl.aclmdlRITaskGetParams(b.tasks(chain(b))[1])
    assert params.type == acl.ACL_MODEL_RI_TASK_KERNEL
    kernel = params.kernelTaskParams
    assert (kernel.funcHandle, kernel.args, kernel.numBlocks, kernel.cfg) == (scale, [b.x, 10.0], 1, None)
    assert params.taskGrp is None


@case
async def test_G10_attributes_of_a_kernel(b: Bench) -> None:
    task = b.tasks(chain(b))[0]
    params = acl.aclmdlRITaskGetParams(task)
    params.kernelTaskParams.cfg = [
        (SCHEM_MODE, 1),
        (DYN_UBUF_SIZE, 2),
        (DATA_DUMP, 1),
        (TIMEOUT, 100),
        (TIMEOUT_US, 100),
    ]
    acl.aclmdlRITaskSetParams(task, params)
    read = acl.aclmdlRIKernelTaskGetAttribute
    assert [read(task, which) for which in (SCHEM_MODE, DYN_UBUF_SIZE, DATA_DUMP, TIMEOUT)] == [1, 2, 1, 100]
    assert read(task, TIMEOUT_US) == (100, 0)
    for which in (ENGINE_TYPE, BLOCKDIM_OFFSET, PREFETCH, 9, 0):
        with refused(107000):
            read(task, which)
    with refused(100000):
        read(None, SCHEM_MODE)
    b.begin(b.side)
    acl.aclrtMemsetAsync(b.x.address, 4, 0, 4, b.side)
    with refused(107000):
        read(b.tasks(b.end(b.side))[0], SCHEM_MODE)


@case
async def test_G11_kernel_params_for_a_value_task(b: Bench) -> None:
    cell = b.dev.array(np.zeros(1, np.uint64))
    kernel = acl.aclmdlRITaskGetParams(b.tasks(chain(b))[0])
    with refused(107000):
        acl.aclmdlRITaskSetParams(b.tasks(writer(b, cell))[0], kernel)


@case
async def test_G12_after_a_failed_change_the_graph_is_at_fault(b: Bench) -> None:
    cell = b.dev.array(np.zeros(1, np.uint64))
    kernel = acl.aclmdlRITaskGetParams(b.tasks(chain(b))[0])
    model = writer(b, cell)
    task = b.tasks(model)[0]
    with refused(107000):
        acl.aclmdlRITaskSetParams(task, kernel)
    with refused(507011):
        acl.aclmdlRIExecuteAsync(model, b.s)
    with refused(107040):
        acl.aclmdlRIUpdate(model)
    with refused(107040):
        acl.aclmdlRITaskSetParams(task, value_write(cell, 1))
    with refused(107040):
        acl.aclmdlRITaskDisable(task)
    assert acl.aclmdlRITaskGetType(task) == acl.ACL_MODEL_RI_TASK_VALUE_WRITE
    assert acl.aclmdlRITaskGetParams(task).valueWriteTaskParams.value == 7
    await acl.aclmdlRIDestroy(model)


@case
async def test_G13_a_kernel_is_changed_between_runs(b: Bench) -> None:
    model = chain(b)
    acl.aclmdlRIUpdate(model)  # READY: nothing to do
    assert await b.run(model) == 15
    params = acl.aclmdlRITaskGetParams(b.tasks(model)[2])
    params.kernelTaskParams.args[1] = 50.0
    acl.aclmdlRITaskSetParams(b.tasks(model)[2], params)
    with refused(507011):
        acl.aclmdlRIExecuteAsync(model, b.s)
    acl.aclmdlRIUpdate(model)
    assert await b.run(model) == 210
    acl.aclmdlRITaskSetParams(b.tasks(model)[2], params)
    acl.aclmdlRIUpdate(model)
    assert await b.run(model) == 2160


@case
async def test_G14_a_value_is_changed_between_runs(b: Bench) -> None:
    cell = b.dev.array(np.zeros(1, np.uint64))
    model = writer(b, cell)
    acl.aclmdlRIUpdate(model)
    for value in (8, 9):
        acl.aclmdlRITaskSetParams(b.tasks(model)[0], value_write(cell, value))
        with refused(507011):
            acl.aclmdlRIExecuteAsync(model, b.s)
        acl.aclmdlRIUpdate(model)
        await b.run(model)
        assert cell.numpy()[0] == value


@case
async def test_G15_a_value_write_turned_into_a_wait_and_back(b: Bench) -> None:
    cell = b.dev.array(np.zeros(1, np.uint64))
    model = writer(b, cell)
    await b.run(model)
    acl.aclmdlRITaskSetParams(b.tasks(model)[0], value_wait(cell, 70))
    acl.aclmdlRIUpdate(model)
    run = acl.aclmdlRIExecuteAsync(model, b.s)
    acl.aclrtValueWrite(cell.address, 70, 0, b.side)
    await run
    acl.aclmdlRITaskSetParams(b.tasks(model)[0], value_write(cell, 71))
    acl.aclmdlRIUpdate(model)
    await b.run(model)
    assert cell.numpy()[0] == 71


@case
async def test_G16_a_disabled_task_is_left_out(b: Bench) -> None:
    model = chain(b)
    assert await b.run(model) == 15
    acl.aclmdlRITaskDisable(b.tasks(model)[1])
    acl.aclmdlRIUpdate(model)
    assert len([task for task in b.tasks(model) if acl.aclmdlRITaskGetType(task) == 1]) == 2
    assert await b.run(model) == 21


@case
async def test_G17_a_copy_cannot_be_disabled(b: Bench) -> None:
    b.begin()
    acl.aclrtMemcpyAsync(b.x.address, 32, b.y.address, 32, acl.ACL_MEMCPY_DEVICE_TO_DEVICE, b.s)
    model = b.end()
    with refused(107000):
        acl.aclmdlRITaskDisable(b.tasks(model)[0])
    with refused(507011, "FAULT"):
        acl.aclmdlRIExecuteAsync(model, b.s)


@case
async def test_G19_no_change_while_capturing_or_executing(b: Bench) -> None:
    event = acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL)
    b.begin()
    acl.aclrtStreamWaitEvent(b.s, event)
    launch(b.s, add, b.x, 1.0)
    task = b.tasks(acl.aclmdlRICaptureGetInfo(b.s).modelRI)[1]
    params = acl.aclmdlRITaskGetParams(task)
    with refused(107040):
        acl.aclmdlRITaskSetParams(task, params)
    with refused(107040):
        acl.aclmdlRITaskDisable(task)
    run = acl.aclmdlRIExecuteAsync(b.end(), b.s)
    with refused(107040):
        acl.aclmdlRITaskSetParams(task, params)
    with refused(107040):
        acl.aclmdlRITaskDisable(task)
    acl.aclrtRecordEvent(event, b.side)
    await run
    acl.aclmdlRITaskDisable(task)


@pytest.mark.parametrize("chip", ["v100", "v200"])
@pytest.mark.parametrize("flags", [0, 1])
async def test_G20_the_json_file(chip: str, flags: int, tmp_path: Path) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        b = Bench(dev, chip)
        model = chain(b)
        acl.aclmdlRIDebugJsonPrint(model, str(tmp_path / "x.json"), flags)
        assert (tmp_path / "x.json").stat().st_size > 2
        with refused(107000):
            acl.aclmdlRIDebugJsonPrint(model, str(tmp_path / "missing" / "x.json"), flags)
        with refused(100000):
            acl.aclmdlRIDebugJsonPrint(model, None, flags)
