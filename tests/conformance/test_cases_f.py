"""Conformance group F, task groups and their update: one test for each case id, through the C names only."""

from __future__ import annotations

import numpy as np

import aclrt
from aclrt import acl
from tests.timeline import settle

from .updating import ONES, RELAXED, Bench, add, add_scaled, case, launch, refused


@case
async def test_F01_a_group_is_made(b: Bench) -> None:
    b.begin()
    acl.aclmdlRICaptureTaskGrpBegin(b.s)
    launch(b.s, add, b.x, 1.0)
    with refused(107033):  # a NULL out pointer has no counterpart; the group is open all the same
        acl.aclmdlRICaptureTaskGrpBegin(b.s)
    group = acl.aclmdlRICaptureTaskGrpEnd(b.s)
    assert group is not None
    assert await b.run(b.end()) == 1


@case
async def test_F02_no_group_outside_a_capture(b: Bench) -> None:
    with refused(107029):
        acl.aclmdlRICaptureTaskGrpBegin(b.s)
    with refused(107029):
        acl.aclmdlRICaptureTaskGrpEnd(b.s)
    await b.sync()


@case
async def test_F03_end_without_begin(b: Bench) -> None:
    b.begin()
    with refused(107033):
        acl.aclmdlRICaptureTaskGrpEnd(b.s)
    b.end()


@case
async def test_F05_begin_and_end_twice(b: Bench) -> None:
    b.begin()
    acl.aclmdlRICaptureTaskGrpBegin(b.s)
    with refused(107033):
        acl.aclmdlRICaptureTaskGrpBegin(b.s)
    acl.aclmdlRICaptureTaskGrpEnd(b.s)
    with refused(107033):
        acl.aclmdlRICaptureTaskGrpEnd(b.s)
    b.end()


@case
async def test_F06_an_empty_group_is_updated_with_nothing(b: Bench) -> None:
    b.begin()
    group = b.group()
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    b.update(group)
    assert await b.run(model) == 1


@case
async def test_F07_an_update_runs_nothing_and_changes_the_next_run(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    model = b.end()
    b.update(group, 10.0)
    await b.sync(b.side)
    assert b.x.numpy()[0] == 0
    assert await b.run(model) == 10


@case
async def test_F08_the_numbers_of_the_update_example(b: Bench) -> None:
    one, other = b.dev.array(ONES), b.dev.array(np.full(8, 2, np.float32))
    tmp, out = b.dev.empty(8, np.float32), b.dev.empty(8, np.float32)
    event = acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL)
    b.begin(mode=RELAXED)
    launch(b.s, add_scaled, one, other, tmp, 1.1)
    acl.aclrtStreamWaitEvent(b.s, event)
    acl.aclrtResetEvent(event, b.s)
    acl.aclmdlRICaptureTaskGrpBegin(b.s)
    launch(b.s, add_scaled, tmp, other, out, 1.1)
    group = acl.aclmdlRICaptureTaskGrpEnd(b.s)
    model = b.end()
    first, second = np.float32([5.4 + i for i in range(8)]), np.float32([7.6 + i for i in range(8)])
    for alpha, expected in ((None, first), (2.2, second), (None, second)):
        acl.aclmdlRIExecuteAsync(model, b.s)
        if alpha is not None:
            acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)
            launch(b.side, add_scaled, tmp, other, out, alpha)
            acl.aclmdlRICaptureTaskUpdateEnd(b.side)
        acl.aclrtRecordEvent(event, b.side)
        await b.sync(b.side)
        await b.sync()
        assert np.allclose(out.numpy(), expected, rtol=1e-6)


@case
async def test_F10_another_stream_breaks_the_group(b: Bench) -> None:
    fork, back = (acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC) for _ in range(2))
    b.begin()
    acl.aclrtRecordEvent(fork, b.s)
    acl.aclrtStreamWaitEvent(b.side, fork)
    acl.aclmdlRICaptureTaskGrpBegin(b.s)
    launch(b.s, add, b.x, 1.0)
    with refused(107034):
        launch(b.side, add, b.x, 1.0)
    with refused(107034):
        acl.aclmdlRICaptureTaskGrpEnd(b.s)
    with refused(507903, "107034"):
        b.end()
    del back


async def test_F11_a_launch_that_fails_for_resources_inside_a_group() -> None:
    async with aclrt.open_device(0, limits={"sq_depth": 64, "max_streams": 4}) as dev:
        b = Bench(dev, "v100")  # three streams; the fourth id is the hidden one
        b.begin()
        acl.aclmdlRICaptureTaskGrpBegin(b.s)
        for _ in range(24):
            launch(b.s, add, b.x, 1.0)
        with refused(207008, "stream resource"):  # no stream id is left for the cascade
            launch(b.s, add, b.x, 1.0)
        with refused(507903):
            acl.aclmdlRICaptureTaskGrpEnd(b.s)
        with refused(507903):
            b.end()


@case
async def test_F12_an_update_with_too_few_tasks(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    b.end()
    acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)
    with refused(507000, "0 launches", "1 tasks"):
        acl.aclmdlRICaptureTaskUpdateEnd(b.side)
    with refused(107033):
        acl.aclmdlRICaptureTaskUpdateEnd(b.side)


@case
async def test_F13_an_update_with_too_many_tasks(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    model = b.end()
    acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)
    launch(b.side, add, b.x, 10.0)
    with refused(507000):
        launch(b.side, add, b.x, 20.0)
    acl.aclmdlRICaptureTaskUpdateEnd(b.side)
    assert await b.run(model) == 10


@case
async def test_F14_update_begun_twice(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    b.end()
    acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)
    with refused(107033):
        acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)


@case
async def test_F15_one_handle_on_two_streams(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    b.end()
    acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)
    with refused(107033):
        acl.aclmdlRICaptureTaskUpdateBegin(b.third, group)
    with refused(507000):  # a failed end releases the handle too
        acl.aclmdlRICaptureTaskUpdateEnd(b.side)
    acl.aclmdlRICaptureTaskUpdateBegin(b.third, group)
    launch(b.third, add, b.x, 10.0)
    acl.aclmdlRICaptureTaskUpdateEnd(b.third)


@case
async def test_F17_no_update_on_a_capturing_or_bound_stream(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    with refused(107027):
        acl.aclmdlRICaptureTaskUpdateBegin(b.s, group)
    with refused(107027):
        acl.aclmdlRICaptureTaskUpdateEnd(b.s)
    b.end()
    bound, model = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT), acl.aclmdlRIBuildBegin(0)
    acl.aclmdlRIBindStream(model, bound, acl.ACL_MODEL_STREAM_FLAG_HEAD)
    with refused(107005):
        acl.aclmdlRICaptureTaskUpdateBegin(bound, group)
    with refused(107005):
        acl.aclmdlRICaptureTaskUpdateEnd(bound)


@case
async def test_F18_other_calls_in_the_window(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    model = b.end()
    event, d2d = acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC), acl.ACL_MEMCPY_DEVICE_TO_DEVICE
    acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)
    for call in (
        lambda: acl.aclrtMemcpyAsync(b.x.address, 32, b.y.address, 32, d2d, b.side),
        lambda: acl.aclrtMemsetAsync(b.x.address, 32, 0, 32, b.side),
        lambda: acl.aclrtRecordEvent(event, b.side),
        lambda: acl.aclrtLaunchHostFunc(b.side, print, None),
        lambda: acl.aclrtValueWrite(b.x.address, 1, 0, b.side),
        lambda: acl.aclmdlRIExecuteAsync(model, b.side),
    ):
        with refused(507009):
            call()
    launch(b.side, add, b.x, 10.0)
    acl.aclmdlRICaptureTaskUpdateEnd(b.side)
    assert await b.run(model) == 10


@case
async def test_F19_the_end_returns_before_the_effect(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    model = b.end()
    assert await b.run(model) == 1
    gate = acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL)
    acl.aclrtStreamWaitEvent(b.side, gate)
    b.update(group, 10.0)
    assert await b.run(model) == 2
    acl.aclrtRecordEvent(gate, b.third)
    await b.sync(b.side)
    assert await b.run(model) == 12


@case
async def test_F20_a_replay_that_waits_is_updated_and_released(b: Bench) -> None:
    event = acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL)
    b.begin()
    acl.aclrtStreamWaitEvent(b.s, event)
    acl.aclrtResetEvent(event, b.s)
    group = b.group(1.0)
    model = b.end()
    for value in (10.0, 20.0):
        run = acl.aclmdlRIExecuteAsync(model, b.s)
        await settle()
        assert not run.done
        b.update(group, value)
        acl.aclrtRecordEvent(event, b.side)
        await run
    assert b.x.numpy()[0] == 30


@case
async def test_F21_an_update_on_the_stream_of_the_capture(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    model = b.end()
    b.update(group, 10.0, on=b.s)
    assert await b.run(model) == 10


@case
async def test_F22_several_groups_with_events_of_their_own(b: Bench) -> None:
    events = [acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL) for _ in range(3)]
    groups = []
    b.begin()
    for event in events:
        acl.aclrtStreamWaitEvent(b.s, event)
        acl.aclrtResetEvent(event, b.s)
        groups.append(b.group(1.0))
    model = b.end()
    total = 0.0
    for step in range(5):
        run = acl.aclmdlRIExecuteAsync(model, b.s)
        for index in ((0, 1, 2), (2, 0, 1))[step % 2]:
            b.update(groups[index], float(100 * index + step))
            acl.aclrtRecordEvent(events[index], b.side)
        await run
        total += sum(100 * index + step for index in range(3))
        assert b.x.numpy()[0] == total
