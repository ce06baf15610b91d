"""Conformance group C, streams that join a capture through events: one test for each case id, in C names only."""

from __future__ import annotations

from typing import Any

import numpy as np

import aclrt
from aclrt import acl

from .capturing import (
    ACTIVE,
    D2H,
    H2D,
    NONE,
    RELAXED,
    Bench,
    add,
    axpy,
    case,
    external_event,
    fork,
    join,
    launch,
    model_of,
    new_event,
    push,
    refused,
    scaled_sum,
    status,
    still_works,
    value,
)

SYNC, TIME_LINE = acl.ACL_EVENT_SYNC, acl.ACL_EVENT_TIME_LINE


@aclrt.kernel
def double(x: aclrt.In[np.float32], out: aclrt.Out[np.float32]) -> None:
    out[:] = 2 * x


@aclrt.kernel
def ratio(x: aclrt.In[np.float32], out: aclrt.Out[np.float32]) -> None:
    out[:] = x / x + x


def recorder(b: Bench) -> tuple[Any, Any]:
    """A cell, and a function that appends a digit to it on a stream: what ran in which order."""
    trace = b.dev.array(np.zeros(1, np.int64))
    return trace, lambda stream, digit: launch(stream, push, trace, digit)


@case
async def test_C01_fork_and_join(b: Bench) -> None:
    host = acl.aclrtMallocHost(32)
    mine, other, out = (b.dev.array(np.full(8, n, np.float32)) for n in (0, 1, -1))
    b.begin()
    acl.aclrtMemcpyAsync(mine, 32, host, 32, H2D, b.s)
    fork(b.s, b.side)
    model = model_of(b.s)
    assert acl.aclmdlRICaptureGetInfo(b.side) == (ACTIVE, model)
    launch(b.side, scaled_sum, mine, other, out)
    join(b.s, b.side)
    acl.aclrtMemcpyAsync(host, 32, out, 32, D2H, b.s)
    assert b.end() is model
    assert acl.aclmdlRICaptureGetInfo(b.side) == (NONE, None)
    expected = np.zeros(8, np.float32)
    for turn in range(1, 6):
        acl.aclmdlRIExecuteAsync(model, b.s)
        await b.sync()
        expected += np.float32(1.1)
        assert (host.numpy(np.float32) == expected).all()
        assert np.allclose(expected, 1.1 * turn)


@case
async def test_C02_a_chain_of_three(b: Bench) -> None:
    trace, note = recorder(b)
    b.begin()
    note(b.s, 1)
    fork(b.s, b.side)
    note(b.side, 2)
    fork(b.side, b.third)
    note(b.third, 3)
    join(b.side, b.third)
    note(b.side, 4)
    join(b.s, b.side)
    note(b.s, 5)
    model = b.end()
    assert [status(stream) for stream in (b.s, b.side, b.third)] == [NONE] * 3
    acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()
    assert trace.numpy()[0] == 12345


@case
async def test_C03_two_sides_join_straight(b: Bench) -> None:
    b.begin()
    fork(b.s, b.side, b.third)
    launch(b.side, add, b.x, 1.0)
    launch(b.third, add, b.y, 2.0)
    join(b.s, b.side, b.third)
    launch(b.s, axpy, b.y, b.x, 1.0)
    assert await b.run(b.end()) == 4  # 2 x 1 + 2


@case
async def test_C04_never_joined(b: Bench) -> None:
    b.begin()
    fork(b.s, b.side)
    launch(b.side, add, b.x, 1.0)
    model = model_of(b.s)
    with refused(107025, f"stream {b.side.id}", "KERNEL"):
        b.end()
    with refused(107017):
        await acl.aclmdlRIDestroy(model)
    await still_works(b, b.s, b.side)


@case
async def test_C05_recorded_but_nobody_waits(b: Bench) -> None:
    b.begin()
    fork(b.s, b.side)
    launch(b.side, add, b.x, 1.0)
    acl.aclrtRecordEvent(new_event(), b.side)
    with refused(107025, f"stream {b.side.id}", "nobody waited"):
        b.end()
    await still_works(b, b.s, b.side)


@case
async def test_C06_one_task_after_the_join(b: Bench) -> None:
    b.begin()
    fork(b.s, b.side)
    launch(b.side, add, b.x, 1.0)
    join(b.s, b.side)
    launch(b.side, add, b.x, 1.0)
    with refused(107025, f"stream {b.side.id}", "KERNEL"):
        b.end()
    await still_works(b, b.s, b.side)


@case
async def test_C07_a_stream_that_only_waited(b: Bench) -> None:
    b.begin()
    fork(b.s, b.side)
    with refused(107025, f"stream {b.side.id}", "EVENT_WAIT"):
        b.end()
    await still_works(b, b.s, b.side)


@case
async def test_C08_a_chain_that_does_not_come_back(b: Bench) -> None:
    b.begin()
    fork(b.s, b.side)
    fork(b.side, b.third)
    launch(b.third, add, b.x, 1.0)
    join(b.side, b.third)
    with refused(107025, f"stream {b.side.id}"):
        b.end()
    await still_works(b, b.s, b.side, b.third)


@case
async def test_C11_a_joined_stream_captures_already(b: Bench) -> None:
    b.begin()
    fork(b.s, b.side)
    with refused(107027, f"stream {b.side.id}", "joined at", "through event"):
        b.begin(b.side)
    launch(b.side, add, b.x, 1.0)
    join(b.s, b.side)
    assert await b.run(b.end()) == 1


@case
async def test_C12_a_wait_across_two_captures(b: Bench) -> None:
    b.begin(b.s)
    b.begin(b.side)
    models = model_of(b.s), model_of(b.side)
    event = new_event()
    acl.aclrtRecordEvent(event, b.s)
    with refused(107032, "belongs to the capture"):
        acl.aclrtStreamWaitEvent(b.side, event)
    assert [status(b.s), status(b.side)] == [ACTIVE, ACTIVE]  # the streams' own status has not changed
    for stream in (b.s, b.side):
        with refused(507903, "aclrtStreamWaitEvent"):
            b.end(stream)
    for model in models:
        with refused(107017):
            await acl.aclmdlRIDestroy(model)
    await still_works(b, b.s, b.side)


@case
async def test_C13_an_event_moves_to_the_capture_that_recorded_it_last(b: Bench) -> None:
    b.begin(b.s)
    b.begin(b.side)
    event = new_event()
    acl.aclrtRecordEvent(event, b.s)
    acl.aclrtRecordEvent(event, b.side)
    with refused(107032):
        acl.aclrtStreamWaitEvent(b.s, event)
    for stream in (b.s, b.side):
        with refused(507903):
            b.end(stream)
    await still_works(b, b.s, b.side)


@case
async def test_C14_one_event_again_and_again(b: Bench) -> None:
    """Each wait means the record that was latest when it was called."""
    trace, note = recorder(b)
    event = new_event()
    b.begin()
    note(b.s, 1)
    acl.aclrtRecordEvent(event, b.s)
    acl.aclrtStreamWaitEvent(b.side, event)
    note(b.side, 2)
    acl.aclrtRecordEvent(event, b.side)
    acl.aclrtStreamWaitEvent(b.s, event)
    note(b.s, 3)
    model = b.end()
    for expected in (123, 123123):
        acl.aclmdlRIExecuteAsync(model, b.s)
        await b.sync()
        assert trace.numpy()[0] == expected


@case
async def test_C15_an_event_recorded_outside_stays_outside(b: Bench) -> None:
    event = new_event()
    acl.aclrtRecordEvent(event, b.third)
    b.begin()
    with refused(107024, "recorded outside"):
        acl.aclrtStreamWaitEvent(b.s, event)
    inside = new_event()
    acl.aclrtRecordEvent(inside, b.s)
    acl.aclrtStreamWaitEvent(b.s, inside)
    launch(b.s, add, b.x, 1.0)
    assert await b.run(b.end()) == 1


@case
async def test_C16_classic_events_are_not_captured(b: Bench) -> None:
    event = acl.aclrtCreateEvent()
    b.begin()
    with refused(207000):
        acl.aclrtRecordEvent(event, b.s)
    with refused(207000):
        acl.aclrtStreamWaitEvent(b.s, event)
    if b.chip == "v100":
        with refused(207000):
            acl.aclrtResetEvent(event, b.s)
    else:
        acl.aclrtResetEvent(event, b.s)  # nothing outside model streams, as recorded
    launch(b.s, add, b.x, 1.0)
    assert await b.run(b.end()) == 1


@case
async def test_C16_external_events_are_ordinary_tasks(b: Bench) -> None:
    event = external_event()
    b.begin()
    acl.aclrtStreamWaitEvent(b.s, event)
    acl.aclrtResetEvent(event, b.s)
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    acl.aclrtRecordEvent(event, b.side)
    assert await b.run(model) == 1


@case
async def test_C17_an_event_without_wait_ability(b: Bench) -> None:
    event = new_event(TIME_LINE)
    b.begin()
    model = model_of(b.s)
    acl.aclrtRecordEvent(event, b.s)
    with refused(207000, "cannot be waited for"):
        acl.aclrtStreamWaitEvent(b.side, event)
    assert status(b.side) == NONE
    assert b.tasks(model) == []
    b.end()


@case
async def test_C20_the_event_of_a_finished_graph_captures_nobody(b: Bench) -> None:
    event = new_event()
    b.begin()
    launch(b.s, add, b.x, 1.0)
    acl.aclrtRecordEvent(event, b.s)
    model = b.end()
    acl.aclrtStreamWaitEvent(b.side, event)
    assert status(b.side) == NONE
    await b.sync(b.side)
    b.begin(b.side)
    acl.aclrtStreamWaitEvent(b.side, event)  # as if it had never been recorded
    b.end(b.side)
    assert await b.run(model) == 1


@case
async def test_C21_two_captures_side_by_side(b: Bench) -> None:
    b.begin(b.s, RELAXED)
    b.begin(b.side, RELAXED)
    for number in range(4):
        launch(b.s, add, b.x, 1.0)
        launch(b.side, add, b.y, float(number))
    models = b.end(b.s), b.end(b.side)
    for model, stream in zip(models, (b.side, b.s), strict=True):
        acl.aclmdlRIExecuteAsync(model, stream)
    await b.sync(b.s)
    await b.sync(b.side)
    assert (value(b.x), value(b.y)) == (4, 6)


@case
async def test_C23_a_side_stream_both_ways(b: Bench) -> None:
    x = b.dev.array(np.full(8, 3, np.float32))
    b.begin()
    fork(b.s, b.side)
    launch(b.s, double, x, b.x)
    launch(b.side, ratio, x, b.y)
    join(b.s, b.side)
    model = b.end()
    for number in (3, 5):
        x.assign(np.full(8, number, np.float32))
        assert await b.run(model) == 2 * number
        assert value(b.y) == 1 + number


@case
async def test_C24_no_stream_is_added_to_a_finished_graph(b: Bench) -> None:
    b.begin()
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    with refused(507000, "READY"):
        acl.rtStreamAddToModel(b.side, model)
    assert status(b.side) == NONE
    assert await b.run(model) == 1


@case
async def test_C25_a_stream_waits_for_itself(b: Bench) -> None:
    b.begin()
    launch(b.s, add, b.x, 1.0)
    fork(b.s, b.s)
    launch(b.s, add, b.x, 2.0)
    model = b.end()
    for expected in (3, 6):
        assert await b.run(model) == expected
