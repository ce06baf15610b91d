"""Conformance group D, invalidation and recovery: one test for each case id, through the C names only."""

from __future__ import annotations

from typing import Any

from aclrt import acl

from .capturing import (
    ACTIVE,
    INVALIDATED,
    MODES,
    NONE,
    Bench,
    add,
    case,
    fork,
    join,
    launch,
    memset,
    model_of,
    new_event,
    on,
    refused,
    status,
    still_works,
    value,
)


async def survives(b: Bench, runs_to: float = 1) -> None:
    """The capture on `b.s` is as it was: it takes a task, ends and runs."""
    assert status(b.s) == ACTIVE
    launch(b.s, add, b.x, 1.0)
    assert await b.run(b.end()) == runs_to
    await still_works(b, b.s)


@case
async def test_D01_synchronizing_a_capturing_stream(b: Bench) -> None:
    b.begin()
    with refused(107027, f"stream {b.s.id}", "began the capture at"):
        await acl.aclrtSynchronizeStream(b.s)
    with refused(107027):
        await acl.aclrtSynchronizeStreamWithTimeout(b.s, 10)
    await survives(b)


@case
async def test_D02_querying_a_capturing_stream(b: Bench) -> None:
    b.begin()
    with refused(107027):
        acl.aclrtStreamQuery(b.s)
    assert acl.aclrtStreamQuery(b.side) == acl.ACL_STREAM_STATUS_COMPLETE
    await survives(b)


@case
async def test_D04_synchronizing_the_device_while_anything_captures(b: Bench) -> None:
    for mode in MODES:
        b.begin(mode=mode)
        with refused(107027, f"stream {b.s.id}"):
            await acl.aclrtSynchronizeDevice()
        with refused(107027):
            await acl.aclrtSynchronizeDeviceWithTimeout(10)
        first = acl.aclrtGetCurrentContext()
        second = acl.aclrtCreateContext(0)
        await acl.aclrtSynchronizeDevice()  # nothing captures in this one
        acl.aclrtSetCurrentContext(first)
        await acl.aclrtDestroyContext(second)
        launch(b.s, add, b.x, 1.0)
        await b.run(b.end())
    assert value(b.x) == 3
    await acl.aclrtSynchronizeDevice()


@case
async def test_D05_synchronizing_another_stream(b: Bench) -> None:
    launch(b.side, add, b.x, 1.0)
    b.begin()
    await acl.aclrtSynchronizeStream(b.side)
    await acl.aclrtSynchronizeStream(None)
    b.end()
    assert value(b.x) == 1


@case
async def test_D06_the_same_codes_in_every_mode(b: Bench) -> None:
    event = new_event()
    for turn, mode in enumerate(MODES, 1):
        b.begin(mode=mode)
        acl.aclrtRecordEvent(event, b.s)
        for code, call in (
            (107027, acl.aclrtSynchronizeStream(b.s)),
            (107027, acl.aclrtSynchronizeDevice()),
            (107028, acl.aclrtSynchronizeEvent(event)),
        ):
            with refused(code):
                await call
        with refused(107027):
            acl.aclrtStreamQuery(b.s)
        with refused(107028):
            acl.aclrtQueryEventStatus(event)
        await survives(b, turn)


@case
async def test_D07_a_failed_add_invalidates(b: Bench) -> None:
    b.begin(b.s)
    b.begin(b.side)
    with refused(107027):
        acl.rtStreamAddToModel(b.side, model_of(b.s))
    with refused(507903, "rtStreamAddToModel"):
        b.end(b.s)
    with refused(100000):
        await acl.aclmdlRIDestroy(None)
    b.end(b.side)  # the other capture is not affected
    await still_works(b, b.s, b.side)


@case
async def test_D09_end_of_an_invalidated_graph_releases_it(b: Bench) -> None:
    for stream in (b.s, b.third):
        b.begin(stream)
    fork(b.s, b.side)
    model = model_of(b.s)
    event = new_event()
    acl.aclrtRecordEvent(event, b.third)
    with refused(107032):
        acl.aclrtStreamWaitEvent(b.side, event)
    with refused(107026):
        await acl.aclmdlRIDestroy(model)
    for stream in (b.s, b.third):
        with refused(507903):
            b.end(stream)
    assert [status(stream) for stream in (b.s, b.side, b.third)] == [NONE] * 3
    with refused(107017):
        await acl.aclmdlRIDestroy(model)
    with refused(107017):
        acl.aclmdlRIExecuteAsync(model, b.s)
    await still_works(b, b.s, b.side, b.third)


@case
async def test_D10_after_an_unjoined_capture_both_streams_capture_again(b: Bench) -> None:
    b.begin()
    fork(b.s, b.side)
    with refused(107025):
        b.end()
    for origin, side in ((b.s, b.side), (b.side, b.s)):
        b.begin(origin)
        fork(origin, side)
        launch(side, add, b.x, 1.0)
        join(origin, side)
        model = b.end(origin)
        before = value(b.x)
        assert await b.run(model) == before + 1


@case
async def test_D13_executing_on_a_capturing_stream(b: Bench) -> None:
    b.begin()
    launch(b.s, add, b.x, 1.0)
    old = b.end()
    b.begin()
    with refused(107027, f"stream {b.s.id}"):
        acl.aclmdlRIExecuteAsync(old, b.s)
    acl.aclmdlRIExecuteAsync(old, b.side)  # elsewhere it runs, during the capture too
    await b.sync(b.side)
    launch(b.s, add, b.x, 10.0)
    model = b.end()
    assert value(b.x) == 1
    assert await b.run(model) == 11


@case
async def test_D14_configuring_a_capturing_stream(b: Bench) -> None:
    b.begin()
    with refused(107027):
        acl.aclrtSetStreamOverflowSwitch(b.s, 1)
    acl.aclrtSetStreamOverflowSwitch(b.side, 1)
    acl.aclrtSetStreamFailureMode(b.s, 0)  # this one is allowed
    await survives(b)


@case
async def test_D15_binding_a_capturing_stream(b: Bench) -> None:
    build = acl.aclmdlRIBuildBegin(0)
    persistent: Any = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
    if b.chip == "v100":
        acl.aclmdlRICaptureBegin(persistent, 0)
        with refused(107027):
            acl.aclmdlRIBindStream(build, persistent, acl.ACL_MODEL_STREAM_FLAG_HEAD)
        with refused(107027):
            acl.aclmdlRIEndTask(build, persistent)
        acl.aclmdlRICaptureEnd(persistent)
    else:
        with refused(507000):
            acl.aclmdlRICaptureBegin(persistent, 0)
    b.begin()
    with refused(107000, "not persistent"):  # the type comes first
        acl.aclmdlRIBindStream(build, b.s, acl.ACL_MODEL_STREAM_FLAG_HEAD)
    with refused(107027):
        acl.aclmdlRIEndTask(build, b.s)
    with refused(107027):
        acl.aclmdlRIUnbindStream(build, b.s)
    await survives(b)


@case
async def test_D16_destroying_a_capturing_model(b: Bench) -> None:
    b.begin()
    model = model_of(b.s)
    with refused(107026):
        await acl.aclmdlRIDestroy(model)
    await survives(b)
    assert acl.aclmdlRIGetId(model) >= 0
    await acl.aclmdlRIDestroy(model)
    with refused(107017):
        await acl.aclmdlRIDestroy(model)


@case
async def test_D17_executing_a_capturing_model(b: Bench) -> None:
    b.begin()
    with refused(107026):
        acl.aclmdlRIExecuteAsync(model_of(b.s), b.side)
    await survives(b)


@on(limits={"sq_depth": 64, "max_streams": 4})
async def test_D19_the_info_of_an_invalidated_stream(b: Bench) -> None:
    b.begin()
    model = model_of(b.s)
    with refused(207008):
        for _ in range(64):
            launch(b.s, add, b.x, 1.0)
    assert acl.aclmdlRICaptureGetInfo(b.s) == (INVALIDATED, model)
    for call in (acl.aclrtSynchronizeStream, acl.aclrtDestroyStream):
        with refused(107027):  # it still counts as capturing
            await call(b.s)
    with refused(107026):
        acl.aclmdlRIExecuteAsync(model, b.side)
    with refused(107030):
        await memset(b.x)
    with refused(507903, "207008"):
        b.end()
    await memset(b.x)
    await still_works(b, b.s)
