"""Conformance group E, cascades and limits: one test for each case id, through the C names only."""

from __future__ import annotations

from typing import Any

import numpy as np

import aclrt
from aclrt import acl
from hw.driver import IdKind

from .capturing import (
    ACTIVE,
    H2D,
    INVALIDATED,
    NONE,
    Bench,
    add,
    case,
    fork,
    join,
    launch,
    model_of,
    new_event,
    on,
    refused,
    status,
    still_works,
    value,
)

PRIME = 1_000_003


@aclrt.kernel
def mix(trace: aclrt.InOut[np.int64], number: int) -> None:
    """A hash of everything that was launched, in order."""
    trace *= 31
    trace += number
    trace %= PRIME


@aclrt.kernel
def nothing(x: aclrt.In[np.float32]) -> None:
    """One SQE."""


def mixed(numbers: range) -> int:
    total = 0
    for number in numbers:
        total = (total * 31 + number) % PRIME
    return total


def held(b: Bench) -> dict[str, int]:
    """Every id that could leak, and the device memory in use."""
    return {kind.name: b.dev.npu.driver.held(kind) for kind in IdKind} | {"bytes": b.dev.used_bytes}


@on(limits={"sq_depth": 64})
async def test_E01_a_long_capture_goes_on_in_further_streams(b: Bench) -> None:
    trace = b.dev.array(np.zeros(1, np.int64))
    b.begin()
    for number in range(1000):
        launch(b.s, mix, trace, number)
    assert status(b.s) == ACTIVE
    model = b.end()
    room = 64 - 32 - (0 if b.chip == "v100" else 8)
    streams = acl.aclmdlRIGetStreams(model)
    assert len(streams) == -(-1000 // room)
    counts = [len(acl.aclmdlRIGetTasksByStream(stream)) for stream in streams]
    assert counts[1:] == [room + 1] * (len(streams) - 1)  # newest first; each ends with the one that starts the next
    for _ in range(2):
        trace.assign([0])
        acl.aclmdlRIExecuteAsync(model, b.side)
        await b.sync(b.side)
        assert trace.numpy()[0] == mixed(range(1000))


@case
async def test_E01_the_edge_is_where_it_was_recorded(b: Bench) -> None:
    edge = 32736 if b.chip == "v100" else 32728
    b.begin()
    model = model_of(b.s)
    for _ in range(edge):
        launch(b.s, nothing, b.x)
    assert len(acl.aclmdlRIGetStreams(model)) == 1
    launch(b.s, add, b.x, 1.0)
    assert len(acl.aclmdlRIGetStreams(model)) == 2
    assert await b.run(b.end()) == 1


@case
async def test_E02_ten_thousand_host_functions(b: Bench) -> None:
    calls: list[int] = []
    b.begin()
    for number in range(10_000):
        acl.aclrtLaunchHostFunc(b.s, calls.append, number)
    model = b.end()
    for turn in range(1, 6):
        acl.aclmdlRIExecuteAsync(model, b.s)
        await acl.aclrtSynchronizeStream(b.s)
        assert calls == list(range(10_000)) * turn


@on(limits={"sq_depth": 64})
async def test_E03_a_task_group_across_the_edge(b: Bench) -> None:
    room = 64 - 32 - (0 if b.chip == "v100" else 8)
    trace = b.dev.array(np.zeros(1, np.int64))
    b.begin()
    for _ in range(room - 8 - 5):  # 8 NOPs come before a group: half of it fits
        launch(b.s, nothing, b.x)
    acl.aclmdlRICaptureTaskGrpBegin(b.s)
    for number in range(10):
        launch(b.s, mix, trace, number)
    group = acl.aclmdlRICaptureTaskGrpEnd(b.s)
    model = b.end()
    assert len(acl.aclmdlRIGetStreams(model)) == 2
    assert sum(acl.aclmdlRITaskGetParams(task).taskGrp is group for task in kernels(model)) == 10
    acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()
    assert trace.numpy()[0] == mixed(range(10))
    acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)
    for number in range(100, 110):
        launch(b.side, mix, trace, number)
    acl.aclmdlRICaptureTaskUpdateEnd(b.side)  # ten: what starts the next stream is not in the group
    await b.sync(b.side)
    trace.assign([0])
    acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()
    assert trace.numpy()[0] == mixed(range(100, 110))


def kernels(model: aclrt.Graph) -> list[Any]:
    tasks = [task for stream in acl.aclmdlRIGetStreams(model) for task in acl.aclmdlRIGetTasksByStream(stream)]
    return [task for task in tasks if acl.aclmdlRITaskGetType(task) == acl.ACL_MODEL_RI_TASK_KERNEL]


@on(limits={"sq_depth": 42})
async def test_E04_a_graph_of_more_streams_than_there_are_sqs(b: Bench) -> None:
    """1,024 is the chip's own number; short cascades make that many streams."""
    trace = b.dev.array(np.zeros(1, np.int64))
    room = 10 if b.chip == "v100" else 2

    def graph(streams: int) -> aclrt.Graph:
        b.begin()
        for number in range(streams * room):
            launch(b.s, mix, trace, number)
        model: aclrt.Graph = b.end()
        assert len(acl.aclmdlRIGetStreams(model)) == streams
        return model

    too_many = graph(1025)
    for _ in range(2):
        with refused(207005, "1025 SQs", "1024"):
            acl.aclmdlRIExecuteAsync(too_many, b.s)
    await acl.aclmdlRIDestroy(too_many)
    just_enough = graph(1024)
    acl.aclmdlRIExecuteAsync(just_enough, b.s)
    await b.sync()
    assert trace.numpy()[0] == mixed(range(1024 * room))


@on(limits={"max_sqs": 3})
async def test_E04_branches_count(b: Bench) -> None:
    b.begin()
    handle = acl.aclmdlRICondHandleCreate(model_of(b.s), 0, 0)
    params = acl.aclmdlRICondTaskParams(handle=handle, type=acl.ACL_MODEL_RI_COND_TYPE_SWITCH, size=3)
    for branch in acl.aclmdlRIAddCondTask(params, b.s, 0):
        acl.aclmdlRICaptureToModelRIBegin(b.side, branch, 0)
        acl.aclmdlRICaptureEnd(b.side)
    model = b.end()
    with refused(207005, "4 SQs with its branches", "the pool has 3"):
        acl.aclmdlRIExecuteAsync(model, b.s)


@on(limits={"max_sqs": 4})
async def test_E05_idle_graphs_give_up_their_queues(b: Bench) -> None:
    models = []
    for number in range(10):
        b.begin()
        fork(b.s, b.side)
        launch(b.side, add, b.y, 1.0)
        join(b.s, b.side)
        launch(b.s, add, b.x, 2.0**number)
        models.append(b.end())
    for turn in range(1, 4):
        for model in models:
            acl.aclmdlRIExecuteAsync(model, b.s)
            await b.sync()
        assert value(b.x) == 1023 * turn
        assert value(b.y) == 10 * turn
    assert b.dev.npu.driver.held(IdKind.SQ) == 4


@on(limits={"max_streams": 5})
async def test_E07_running_out_of_streams_says_so(b: Bench) -> None:
    b.begin()
    last = acl.aclrtCreateStream()
    with refused(207008, "stream resource", "5"):
        acl.aclrtCreateStream()
    assert status(b.s) == ACTIVE  # a stream is created outside the capture
    with refused(207008, "stream resource"):
        fork(b.s, b.side)
    with refused(507903, "207008", "stream resource"):
        b.end()
    await acl.aclrtDestroyStream(last)
    await still_works(b, b.s)


@on(limits={"sq_depth": 64, "max_streams": 6})
async def test_E08_running_out_in_the_middle(b: Bench) -> None:
    b.begin()
    launch(b.s, add, b.x, 1.0)
    earlier = b.end()
    before = held(b)
    b.begin()
    for _ in range(2 * (32 if b.chip == "v100" else 24)):
        launch(b.s, add, b.y, 1.0)
    with refused(207008):
        acl.aclrtLaunchKernel(add, 1, [b.y, 1.0], b.s)
    assert status(b.s) == INVALIDATED
    with refused(507903, "test_cases_e.py"):
        b.end()
    assert status(b.s) == NONE
    assert held(b) == before
    assert await b.run(earlier) == 1
    assert value(b.y) == 0
    await still_works(b, b.s)


@case
async def test_E09_capture_and_drop_a_hundred_times(b: Bench) -> None:
    host = acl.aclrtMallocHost(32)
    before = None
    for turn in range(100):
        b.begin()
        fork(b.s, b.side)
        acl.aclrtMemcpyAsync(b.y, 32, host, 32, H2D, b.side)
        acl.aclrtLaunchHostFunc(b.side, lambda _: None, None)
        join(b.s, b.side)
        launch(b.s, add, b.x, 1.0)
        model = b.end()
        assert await b.run(model) == turn + 1
        await acl.aclmdlRIDestroy(model)
        if turn == 1:
            before = held(b)
    assert held(b) == before


@case
async def test_E10_labels_run_out(b: Bench) -> None:
    labels = [acl.aclrtCreateLabel() for _ in range(65535)]
    with refused(507000, "label resource", "65535"):
        acl.aclrtCreateLabel()
    acl.aclrtDestroyLabel(labels.pop())
    acl.aclrtCreateLabel()


@on(limits={"max_events": 4})
async def test_E11_events_run_out(b: Bench) -> None:
    flags = (acl.ACL_EVENT_EXTERNAL, acl.ACL_EVENT_SYNC) * 2
    events = [acl.aclrtCreateEventWithFlag(flag) for flag in flags]
    for flag in flags[:2]:
        with refused(207007, "event resource", "4"):
            acl.aclrtCreateEventWithFlag(flag)
    event = new_event()  # takes its id with its record
    with refused(207007):
        acl.aclrtRecordEvent(event, b.s)
    acl.aclrtDestroyEvent(events.pop())
    acl.aclrtRecordEvent(event, b.s)
    await b.sync()
