"""Conformance group I, models of the build API with labels, active and switch: one test for each case id, through the C
names only."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .capturing import D2D, Bench, case, launch, on, refused, value

HEAD, DEFAULT = acl.ACL_MODEL_STREAM_FLAG_HEAD, acl.ACL_MODEL_STREAM_FLAG_DEFAULT
EQ = acl.ACL_VALUE_WAIT_EQ


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], amount: float) -> None:
    x += amount


@aclrt.kernel
def count(counter: aclrt.InOut[np.int64], index: aclrt.InOut[np.uint32], turns: int) -> None:
    counter += 1
    index[0] = 0 if counter[0] < turns else 1


def persistent() -> Any:
    return acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)


def built(*flags: int) -> tuple[Any, list[Any]]:
    """A model that has begun, with a persistent stream for each flag."""
    model = acl.aclmdlRIBuildBegin(0)
    streams = [persistent() for _ in flags]
    for stream, flag in zip(streams, flags, strict=True):
        acl.aclmdlRIBindStream(model, stream, flag)
    return model, streams


def complete(model: Any, last: Any) -> None:
    acl.aclmdlRIEndTask(model, last)
    acl.aclmdlRIBuildEnd(model)


@case
async def test_I02_tasks_run_on_each_execution_and_not_before(b: Bench) -> None:
    model, (p,) = built(HEAD)
    launch(p, add, b.x, 1.0)
    complete(model, p)
    await acl.aclrtSynchronizeStream(p)
    await acl.aclrtSynchronizeDevice()
    assert value(b.x) == 0
    for runs in (1, 2):
        acl.aclmdlRIExecuteAsync(model, b.s)
        await b.sync()
        assert value(b.x) == 2 * runs - 1
        await acl.aclmdlRIExecute(model, -1)
        assert value(b.x) == 2 * runs


@case
async def test_I03_a_stream_is_bound_to_one_model_at_a_time(b: Bench) -> None:
    one, (p,) = built(HEAD)
    other = acl.aclmdlRIBuildBegin(0)
    for model in (one, other):
        with refused(107005):
            acl.aclmdlRIBindStream(model, p, HEAD)
    with refused(107005):
        acl.aclmdlRIUnbindStream(other, p)
    acl.aclmdlRIUnbindStream(one, p)
    acl.aclmdlRIBindStream(other, p, HEAD)


@case
async def test_I05_the_order_of_end_task_build_end_and_execute(b: Bench) -> None:
    model, (p,) = built(HEAD)
    with refused(507011):
        acl.aclmdlRIExecuteAsync(model, b.s)
    with refused(507011):
        await acl.aclmdlRIExecute(model, -1)
    with refused(507011):
        acl.aclmdlRIBuildEnd(model)
    acl.aclmdlRIEndTask(model, p)
    with refused(507011):
        acl.aclmdlRIExecuteAsync(model, b.s)
    acl.aclmdlRIBuildEnd(model)
    acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()
    await acl.aclmdlRIExecute(model, -1)


@case
async def test_I06_end_task_is_for_bound_streams_and_may_come_twice(b: Bench) -> None:
    model, (p,) = built(HEAD)
    with refused(507000):
        acl.aclmdlRIEndTask(model, persistent())
    acl.aclmdlRIEndTask(model, p)
    acl.aclmdlRIEndTask(model, p)
    acl.aclmdlRIBuildEnd(model)
    for _ in range(3):
        await acl.aclmdlRIExecute(model, 1000)


@case
async def test_I07_build_end_takes_no_reserve_and_is_needed(b: Bench) -> None:
    model, (p,) = built(HEAD)
    acl.aclmdlRIEndTask(model, p)
    with refused(100000):
        acl.aclmdlRIBuildEnd(model, 1)  # type: ignore[arg-type]
    with refused(507011):
        acl.aclmdlRIExecuteAsync(model, b.s)
    acl.aclmdlRIBuildEnd(model, None)
    acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()


@case
async def test_I08_executions_that_are_refused(b: Bench) -> None:
    model, (p,) = built(HEAD)
    complete(model, p)
    with refused(107000):
        acl.aclmdlRIExecuteAsync(model, p)
    for timeout in (0, -2):
        with refused(107000):
            await acl.aclmdlRIExecute(model, timeout)
    b.begin()
    graph = b.end()
    with refused(107000):
        await acl.aclmdlRIExecute(graph, -1)


@on(clock="virtual")
async def test_I09_a_synchronous_execute_with_a_time_out(b: Bench) -> None:
    model, (p,) = built(HEAD)
    flag = b.dev.array(np.zeros(1, "i8"))
    acl.aclrtValueWait(flag, 1, EQ, p)
    launch(p, add, b.x, 1.0)
    complete(model, p)
    with refused(507046):
        await acl.aclmdlRIExecute(model, 50)
    assert value(b.x) == 0  # it was aborted
    waiting = asyncio.create_task(acl.aclmdlRIExecute(model, -1))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    flag.assign([1])
    await waiting
    assert value(b.x) == 1


@case
async def test_I10_head_streams_start_at_once_and_others_when_activated(b: Bench) -> None:
    model, (first, second, activated, never) = built(HEAD, HEAD, DEFAULT, DEFAULT)
    launch(first, add, b.x[:1], 1.0)
    launch(second, add, b.x[1:2], 1.0)
    launch(activated, add, b.x[2:3], 1.0)
    launch(never, add, b.x[3:4], 1.0)
    acl.aclrtActiveStream(activated, second)
    complete(model, activated)
    acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()
    await acl.aclrtSynchronizeDevice()
    assert b.x.numpy()[:4].tolist() == [1, 1, 1, 0]


@case
async def test_I11_active_and_switch_need_bound_streams(b: Bench) -> None:
    _, (p,) = built(HEAD)
    left, right = b.dev.array(np.zeros(1, "i8")), b.dev.array(np.zeros(1, "i8"))
    for one, two in ((p, b.s), (b.s, p)):
        with refused(107005):
            acl.aclrtActiveStream(one, two)
        with refused(107005):
            acl.aclrtSwitchStream(left, 0, right, 1, one, None, two)


@case
async def test_I12_a_capturing_stream_is_not_a_bound_one(b: Bench) -> None:
    b.begin()
    label = acl.aclrtCreateLabel()
    acl.aclrtCreateLabelList([label])
    left, right = b.dev.empty(2), b.dev.empty(2)
    with refused(107005):
        acl.aclrtActiveStream(b.side, b.s)
    with refused(107005):
        acl.aclrtSwitchStream(left, 0, right, 1, b.side, None, b.s)
    with refused(107005):
        acl.aclrtSetLabel(label, b.s)
    b.end()


@case
async def test_I13_a_label_is_set_once_in_a_bound_stream_from_a_list(b: Bench) -> None:
    _, (p, q) = built(HEAD, HEAD)
    label = acl.aclrtCreateLabel()
    with refused(507000):
        acl.aclrtSetLabel(label, p)
    labels = acl.aclrtCreateLabelList([label])
    with refused(107005):
        acl.aclrtSetLabel(label, b.s)
    acl.aclrtSetLabel(label, p)
    for stream in (p, q):
        with refused(507000):
            acl.aclrtSetLabel(label, stream)
    acl.aclrtSwitchLabelByIndex(b.x, 1, labels, q)


@case
async def test_I14_a_label_is_in_one_list_once(b: Bench) -> None:
    one, two = acl.aclrtCreateLabel(), acl.aclrtCreateLabel()
    acl.aclrtCreateLabelList([one])
    for members in ([one], [one, two], [two, two]):
        with refused(507000):
            acl.aclrtCreateLabelList(members)
    acl.aclrtCreateLabelList([two])


@case
async def test_I15_switch_by_index_needs_a_bound_stream(b: Bench) -> None:
    labels = acl.aclrtCreateLabelList([acl.aclrtCreateLabel()])
    with refused(107005):
        acl.aclrtSwitchLabelByIndex(b.x, 1, labels, b.s)
    with refused(107005):
        acl.aclrtSwitchLabelByIndex(b.x, 1, labels, persistent())


@case
async def test_I17_a_backward_jump_makes_a_loop(b: Bench) -> None:
    model, (p,) = built(HEAD)
    counter, index = b.dev.array(np.zeros(1, "i8")), b.dev.array(np.zeros(1, "u4"))
    body, out = acl.aclrtCreateLabel(), acl.aclrtCreateLabel()
    labels = acl.aclrtCreateLabelList([body, out])
    acl.aclrtSetLabel(body, p)
    launch(p, add, b.x, 1.0)
    launch(p, count, counter, index, 3)
    acl.aclrtSwitchLabelByIndex(index, 2, labels, p)
    acl.aclrtSetLabel(out, p)
    complete(model, p)
    for runs in (1, 2):
        counter.assign([0])
        await acl.aclmdlRIExecute(model, 1000)
        assert value(b.x) == 3 * runs


@case
async def test_I18_a_label_belongs_to_its_context(b: Bench) -> None:
    mine = acl.aclrtGetCurrentContext()
    label = acl.aclrtCreateLabel()
    acl.aclrtCreateContext(0)
    with refused(507031):
        acl.aclrtDestroyLabel(label)
    acl.aclrtSetCurrentContext(mine)
    acl.aclrtDestroyLabel(label)


@case
async def test_I19_a_destroyed_model_is_no_model(b: Bench) -> None:
    model, (p,) = built(HEAD)
    complete(model, p)
    await acl.aclmdlRIDestroy(model)
    calls = [
        lambda: acl.aclmdlRIBindStream(model, persistent(), HEAD),
        lambda: acl.aclmdlRIUnbindStream(model, p),
        lambda: acl.aclmdlRIEndTask(model, p),
        lambda: acl.aclmdlRIBuildEnd(model),
        lambda: acl.aclmdlRIExecuteAsync(model, b.s),
        lambda: acl.aclmdlRISetName(model, "late"),
        lambda: acl.aclmdlRIGetName(model, 10),
        lambda: acl.aclmdlRIGetId(model),
        lambda: acl.aclmdlRIGetStreams(model),
        lambda: acl.aclmdlRIDebugPrint(model),
        lambda: acl.aclmdlRIDestroyRegisterCallback(model, print, None),
    ]
    for call in calls:
        with refused(107017):
            call()
    for made in (acl.aclmdlRIExecute(model, -1), acl.aclmdlRIAbort(model), acl.aclmdlRIDestroy(model)):
        with refused(107017):
            await made


@case
async def test_I21_abort_ends_the_run_and_the_next_starts_over(b: Bench) -> None:
    model, (p,) = built(HEAD)
    flag = b.dev.array(np.zeros(1, "i8"))
    launch(p, add, b.x, 1.0)
    acl.aclrtValueWait(flag, 1, EQ, p)
    launch(p, add, b.x, 10.0)
    complete(model, p)
    await acl.aclmdlRIAbort(model)  # idle
    run = acl.aclmdlRIExecuteAsync(model, b.s)
    while value(b.x) != 1:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await acl.aclmdlRIAbort(model)
    with refused(507023):
        await run
    with refused(507023):
        await b.sync()
    flag.assign([1])
    acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()
    await acl.aclmdlRIExecute(model, 1000)
    assert value(b.x) == 1 + 11 + 11

    b.begin()
    graph = b.end()
    await acl.aclmdlRIAbort(graph)
    await acl.aclmdlRIAbort(acl.aclmdlRIBuildBegin(0))
    with refused(107000):
        await acl.aclmdlRIAbort(None)
    b.begin()
    handle = acl.aclmdlRICondHandleCreate(acl.aclmdlRICaptureGetInfo(b.s).modelRI, 0, 0)
    params = acl.aclmdlRICondTaskParams(handle=handle, type=acl.ACL_MODEL_RI_COND_TYPE_IF, size=1)
    (branch,) = acl.aclmdlRIAddCondTask(params, b.s, 0)
    with refused(207000):
        await acl.aclmdlRIAbort(branch)
    acl.aclmdlRICaptureToModelRIBegin(b.side, branch, 2)
    b.end(b.side)
    b.end()


@case
async def test_I22_events_of_the_new_mode_do_not_go_to_bound_streams(b: Bench) -> None:
    _, (p,) = built(HEAD)
    event = acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC)
    with refused(207000):
        acl.aclrtRecordEvent(event, p)
    with refused(207000):
        acl.aclrtStreamWaitEvent(p, event)


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_the_official_switch_example_by_its_numbers(chip: str) -> None:
    """The path of acl_semantics 13, example 2, in short; tests/model/test_active.py has it whole."""
    async with aclrt.open_device(chip=chip) as dev:
        model, (s1, s2, s3, s4, end) = built(HEAD, DEFAULT, DEFAULT, DEFAULT, DEFAULT)
        x, source, number = dev.array(np.zeros(3, "f4")), dev.array(np.array([1], "i8")), dev.array(np.zeros(1, "i8"))
        cases = [dev.array(np.array([k], "i8")) for k in (1, 2)]
        for at, stream in enumerate((s1, s2, s3)):
            launch(stream, add, x[at : at + 1], (at + 1) + 1.2 * 2)
        acl.aclrtMemcpyAsync(number, 8, source, 8, D2D, s1)
        acl.aclrtActiveStream(end, s2)
        acl.aclrtActiveStream(end, s3)
        acl.aclrtSwitchStream(number, 0, cases[0], 1, s3, None, s1)
        acl.aclrtSwitchStream(number, 0, cases[1], 1, s4, None, s1)
        acl.aclrtActiveStream(s2, s4)
        complete(model, end)
        for word, expected in ((1, [3.4, 0.0, 5.4]), (2, [3.4, 4.4, 0.0])):
            x.assign(np.zeros(3, "f4"))
            source.assign([word])
            await acl.aclmdlRIExecute(model, -1)
            assert np.allclose(x.numpy(), expected)
