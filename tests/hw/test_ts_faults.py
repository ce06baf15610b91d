"""Which task failed, told exactly, though the loop that ran it counts nothing."""

from __future__ import annotations

import asyncio

import pytest

from hw.chips import Core, Status
from tests.hw.rig import K, Rig

CLOCKS = pytest.mark.parametrize("clock", ["wall", "virtual"])


@CLOCKS
@pytest.mark.parametrize("at", [0, 1, 511, 512, 513, 700, 1299])
async def test_the_fault_names_the_task_first_run_and_later(clock: str, at: int) -> None:
    rig = Rig(clock=clock)
    d, sq = rig.driver, rig.sq()
    armed: list[bool] = []

    def fuse() -> None:
        if armed:
            raise KeyError("blown")

    tasks = [rig.sqe(K.NOP) for _ in range(1300)]
    tasks[at] = rig.kernel(fuse, core=Core.AIC, name="fuse")
    model = rig.model(tasks)
    for turn in range(3):
        if turn:
            armed.append(True)
        position = rig.execute(sq, model)
        await rig.until(sq, position)
        if not turn:
            assert rig.errors() == []
            continue
        own, run = rig.errors()
        assert (own.sq, own.status, own.position) == (model.sqs[0], Status.AICORE_EXCEPTION, at)
        assert (run.sq, run.status, run.position, run.fault) == (sq, Status.MODEL_FAILED, position, own.fault)
        record = d.fault(own.fault)
        assert (record.slot, record.program, record.cond) == (at, "fuse", [])
        assert isinstance(record.exception, KeyError)
        rig.log[:] = [c for c in rig.log if c not in (own, run)]
    d.close()


@CLOCKS
async def test_a_fault_stops_every_stream_of_the_model_and_the_next_run_is_whole(clock: str) -> None:
    rig = Rig(clock=clock)
    d, sq = rig.driver, rig.sq()
    bad: list[int] = [1]

    def once() -> None:
        if bad:
            bad.pop()
            raise OSError

    gate = rig.sqe(K.EVENT_WAIT, event_id=1)
    other = [rig.kernel(once), rig.sqe(K.EVENT_RECORD, event_id=1)]
    model = rig.model([rig.say("a"), gate, rig.say("b")], other, heads=2)
    await rig.until(sq, rig.execute(sq, model))
    assert rig.ran == ["a"]
    assert [e.status for e in rig.errors(sq)] == [Status.MODEL_FAILED]
    assert d.waits() == []
    assert not d.model_busy(model.id)
    await rig.until(sq, rig.execute(sq, model))
    assert rig.ran == ["a", "a", "b"]
    assert len(rig.errors(sq)) == 1
    d.close()


async def test_the_execute_stream_goes_on_behind_a_failed_run() -> None:
    rig = Rig()
    sq = rig.sq()
    model = rig.model([rig.boom()])
    rig.execute(sq, model)
    await rig.run(sq, rig.say("on"))
    assert rig.ran == ["on"]
    rig.driver.close()


async def test_runs_queued_behind_a_failing_one_still_run() -> None:
    rig = Rig()
    sq = rig.sq()
    model = rig.model([rig.boom()])
    positions = [rig.execute(sq, model) for _ in range(3)]
    await rig.until(sq, positions[-1])
    assert [e.position for e in rig.errors(sq)] == positions
    rig.driver.close()


async def test_a_stop_on_error_stream_stops_behind_a_failed_run() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    d.sq_stop_on_error(sq, True)
    position = rig.execute(sq, rig.model([rig.boom()]))
    rig.submit(sq, rig.say("never"))
    await rig.until(sq, position)
    await rig.settle()
    assert rig.ran == []
    d.close()


@pytest.mark.parametrize("clock", ["wall", "virtual"])
async def test_bad_bytes_in_an_image_fail_the_run_at_their_slot(clock: str) -> None:
    rig = Rig(clock=clock)
    d, sq = rig.driver, rig.sq()
    model = rig.model([rig.say(1), bytes(64), rig.say(2)])
    d.image_check(model.images[0])
    await rig.until(sq, rig.execute(sq, model))
    own = rig.errors(model.sqs[0])
    assert [(e.status, e.position) for e in own] == [(Status.SQE_ERROR, 1)]
    assert rig.ran == [1]
    d.close()


async def test_a_register_that_the_chip_lacks_is_bad_bytes() -> None:
    rig = Rig(limits={"max_events": 8, "max_notifies": 8})
    sq = rig.sq()
    tasks = [rig.sqe(kind, event_id=8) for kind in (K.EVENT_WAIT, K.EVENT_RECORD)]
    tasks.append(rig.sqe(K.NOTIFY_WAIT, notify_id=8))
    await rig.run(sq, *tasks, rig.say(1))
    assert [e.status for e in rig.errors()] == [Status.SQE_ERROR] * 3
    assert rig.ran == [1]
    rig.driver.close()


async def test_an_abort_during_a_time_out_wait_leaves_no_timer_behind() -> None:
    rig = Rig(clock="virtual")
    d, sq = rig.driver, rig.sq()
    model = rig.model([rig.sqe(K.EVENT_WAIT, event_id=1, timeout_ms=50)])
    position = rig.execute(sq, model)
    d.clock.call_at(1_000_000, lambda: d.abort_model(model.id))
    await rig.until(sq, position)
    await rig.settle(300)
    assert d.clock.now_ns() == 1_000_000
    assert [e.status for e in rig.errors()] == [Status.MODEL_ABORTED]
    d.close()


@pytest.mark.parametrize("where", ["eager", "model", "careful"])
async def test_a_kernel_that_raises_cancelled_error_fails_like_any_other(where: str) -> None:
    rig = Rig(clock="virtual") if where == "careful" else Rig()
    sq = rig.sq()

    def cancelled() -> None:
        raise asyncio.CancelledError

    if where == "model":
        model = rig.model([rig.kernel(cancelled)])
        await rig.until(sq, rig.execute(sq, model))
    else:
        await rig.run(sq, rig.kernel(cancelled))
    await rig.run(sq, rig.say("on"))
    assert rig.ran == ["on"]
    assert isinstance(rig.driver.fault(rig.errors()[0].fault).exception, asyncio.CancelledError)
    rig.driver.close()
