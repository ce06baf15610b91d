"""Parking and waking, for each thing an SQ can wait on; and time-outs on the virtual clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hw.chips import Core, CqeKind, Status, WaitFlag
from tests.hw.rig import K, Rig

if TYPE_CHECKING:
    from collections.abc import Callable

CLOCKS = pytest.mark.parametrize("clock", ["wall", "virtual"])
MS = 1_000_000


@CLOCKS
async def test_an_event_wait_parks_until_the_record_of_another_sq_and_leaves_the_bit(clock: str) -> None:
    rig = Rig(clock=clock)
    d, a, b = rig.driver, rig.sq(), rig.sq()
    rig.submit(a, rig.sqe(K.EVENT_WAIT, event_id=5), rig.say("a"))
    await rig.settle()
    assert d.sq_status(a).state == "PARKED"
    assert [(w.sq, w.kind, w.what) for w in d.waits()] == [(a, "EVENT_WAIT", ("event", 5))]
    await rig.run(b, rig.say("b"), rig.sqe(K.EVENT_RECORD, event_id=5))
    await rig.until(a, 2)
    assert rig.ran == ["b", "a"]
    assert d.event_state(5)
    await rig.run(b, rig.sqe(K.EVENT_RESET, event_id=5))
    assert not d.event_state(5)
    d.close()


@CLOCKS
async def test_a_notify_wakes_all_and_lets_one_pass(clock: str) -> None:
    rig = Rig(clock=clock)
    d, sqs = rig.driver, [rig.sq(), rig.sq()]
    for sq in sqs:
        rig.submit(sq, rig.sqe(K.NOTIFY_WAIT, notify_id=3))
    await rig.settle()
    d.notify_set(3)
    await rig.settle()
    assert [rig.head(sq) for sq in sqs] == [1, 0]
    assert d.notify_state(3) == (False, 1)
    d.notify_set(3)
    await rig.until(sqs[1], 1)
    d.close()


async def test_v200_count_notify_is_taken_once_for_each_record() -> None:
    rig = Rig(name="v200")
    d, sq = rig.driver, rig.sq()
    record = rig.sqe(K.NOTIFY_RECORD, notify_id=1, count=1)
    wait = rig.sqe(K.NOTIFY_WAIT, notify_id=1, count=1)
    await rig.run(sq, record, record, wait)
    assert d.notify_state(1) == (True, 1)
    rig.submit(sq, wait, wait)
    await rig.settle()
    assert rig.head(sq) == 4
    keep = rig.sqe(K.NOTIFY_WAIT, notify_id=2, clear=0)
    other = rig.sq()
    d.notify_set(2)
    await rig.run(other, keep, keep)
    d.close()


@pytest.mark.parametrize(
    ("flag", "wanted", "short", "enough"),
    [
        (WaitFlag.GEQ, 5, 4, 6),
        (WaitFlag.GEQ, -3, -4, -3),
        (WaitFlag.EQ, 7, 8, 7),
        (WaitFlag.AND, 6, 1, 2),
        (WaitFlag.NOR, -2, 1, 0),
    ],
)
async def test_a_value_wait_passes_by_its_comparison(flag: WaitFlag, wanted: int, short: int, enough: int) -> None:
    rig = Rig()
    d, sq, other = rig.driver, rig.sq(), rig.sq()
    cell = rig.cell(short)
    mask = (1 << 64) - 1
    position = rig.submit(sq, rig.sqe(K.WAIT_VALUE, address=cell, value=wanted & mask, flag=flag))
    await rig.settle()
    assert [w.what for w in d.waits()] == [("value", cell, short & mask, wanted & mask)]
    await rig.run(other, rig.sqe(K.WRITE_VALUE, address=cell, value=enough & mask))
    await rig.until(sq, position)
    d.close()


@CLOCKS
async def test_a_value_wait_sees_kernels_and_host_writes(clock: str) -> None:
    rig = Rig(clock=clock)
    d, sq, other = rig.driver, rig.sq(), rig.sq()
    cell = rig.cell()
    view = d.view(cell, 1, "i8")
    wait = rig.sqe(K.WAIT_VALUE, address=cell, value=1, flag=WaitFlag.EQ)
    first = rig.submit(sq, wait)
    await rig.settle()
    await rig.run(other, rig.kernel(view.fill, 1))
    await rig.until(sq, first)
    d.write(cell, bytes(8))
    second = rig.submit(sq, wait)
    await rig.settle()
    assert rig.head(sq) == first
    d.write(cell, (1).to_bytes(8, "little"))
    await rig.until(sq, second)
    d.close()


async def test_a_value_wait_of_one_byte_looks_at_one_byte() -> None:
    rig = Rig()
    cell, sq = rig.cell(0x0100), rig.sq()
    position = rig.submit(sq, rig.sqe(K.WAIT_VALUE, address=cell, value=1, flag=WaitFlag.GEQ, width=1))
    await rig.settle()
    assert rig.head(sq) == 0
    await rig.run(rig.sq(), rig.sqe(K.WRITE_VALUE, address=cell, value=0xFF05, width=1))
    assert rig.peek(cell) == 0x0105
    await rig.until(sq, position)
    rig.driver.close()


async def test_an_external_wait_follows_its_table_and_never_clears() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    table, first, second = rig.cell(), rig.cell(), rig.cell()
    await rig.run(sq, rig.sqe(K.EXT_WAIT, table=table))  # entry 0: nobody to wait for
    d.write(table, first.to_bytes(8, "little"))
    position = rig.submit(sq, rig.sqe(K.EXT_WAIT, table=table))
    await rig.settle()
    assert [w.what[:2] for w in d.waits()] == [("value", first)]
    d.write(table, second.to_bytes(8, "little"))  # re-targeted while it waits
    await rig.run(rig.sq(), rig.sqe(K.EXT_RECORD, table=table))
    await rig.until(sq, position)
    assert (rig.peek(first), rig.peek(second)) == (0, 1)
    d.write(table, bytes(8))
    await rig.run(sq, rig.sqe(K.EXT_RECORD, table=table))
    assert (rig.peek(first), rig.peek(second)) == (0, 1)
    d.close()


async def test_a_poll_of_freed_memory_is_a_fault_of_the_wait() -> None:
    rig = Rig()
    d, sq, cell = rig.driver, rig.sq(), rig.cell()
    position = rig.submit(sq, rig.sqe(K.WAIT_VALUE, address=cell, value=1, flag=1))
    await rig.settle()
    d.free(cell)
    assert d.waits()[0].what == ("value", cell, None, 1)
    await rig.run(rig.sq(), rig.say(1))
    await rig.until(sq, position)
    assert [e.status for e in rig.errors(sq)] == [Status.SDMA_ERROR]
    d.close()


def event_wait(rig: Rig) -> bytes:
    return rig.sqe(K.EVENT_WAIT, event_id=1, timeout_ms=5)


def notify_wait(rig: Rig) -> bytes:
    return rig.sqe(K.NOTIFY_WAIT, notify_id=1, timeout_ms=5)


@pytest.mark.parametrize("wait", [event_wait, notify_wait])
async def test_a_time_out_is_an_error_and_the_sq_goes_on(wait: Callable[[Rig], bytes]) -> None:
    rig = Rig(clock="virtual")
    d, sq = rig.driver, rig.sq()
    await rig.run(sq, wait(rig), rig.say("on"))
    assert rig.ran == ["on"]
    assert [(c.kind, c.status, c.position) for c in rig.log[:1]] == [(CqeKind.ERROR, Status.TASK_TIMEOUT, 1)]
    assert d.fault(rig.log[0].fault).exception is None
    assert d.clock.now_ns() == 5 * MS + 1_000  # the kernel behind it took its default cost
    d.close()


async def test_a_wait_that_passes_in_time_leaves_no_timer() -> None:
    rig = Rig(clock="virtual")
    d, sq = rig.driver, rig.sq()
    slow = rig.kernel(rig.ran.append, 1, cost_ns=3 * MS)
    position = rig.submit(sq, event_wait(rig), rig.sqe(K.EVENT_RESET, event_id=1), event_wait(rig))
    await rig.run(rig.sq(), slow, rig.sqe(K.EVENT_RECORD, event_id=1), slow, rig.sqe(K.EVENT_RECORD, event_id=1))
    await rig.until(sq, position)
    assert rig.errors() == []
    assert d.clock.now_ns() == 6 * MS
    d.close()


async def test_a_notify_taken_by_another_does_not_renew_the_time_out() -> None:
    rig = Rig(clock="virtual")
    d, a, b = rig.driver, rig.sq(), rig.sq()
    rig.submit(a, rig.sqe(K.NOTIFY_WAIT, notify_id=1))
    rig.submit(b, notify_wait(rig))
    d.clock.call_at(3 * MS, lambda: d.notify_set(1))
    await rig.until(b, 1)
    assert rig.head(a) == 1
    assert [e.sq for e in rig.errors()] == [b]
    assert d.clock.now_ns() == 5 * MS
    d.close()


async def test_stuck_is_told_once_and_again_after_the_host_spoke() -> None:
    rig = Rig(clock="virtual")
    d, sq, told = rig.driver, rig.sq(), []
    d.on_stuck = lambda: told.append(d.clock.now_ns())
    rig.submit(sq, rig.say(1), rig.sqe(K.EVENT_WAIT, event_id=1))
    await rig.settle()
    assert told == [1_000]
    await rig.settle()
    assert told == [1_000]
    rig.submit(sq, rig.say(2))
    await rig.settle()
    assert told == [1_000, 1_000]
    d.event_set(1)
    await rig.until(sq, 3)
    await rig.settle()
    assert len(told) == 2
    d.close()


async def test_host_timers_hold_time_and_run_in_order() -> None:
    rig = Rig(clock="virtual")
    d, seen = rig.driver, []
    for at in (30, 10, 20, 10):
        d.clock.call_at(at, lambda at=at: seen.append((at, d.clock.now_ns())))
    d.clock.call_at(15, lambda: seen.append("cancelled")).cancel()
    await rig.settle(300)
    assert seen == [(10, 10), (10, 10), (20, 20), (30, 30)]
    d.close()


async def test_cores_are_occupied_in_device_time() -> None:
    rig = Rig(clock="virtual", limits={"aiv_cores": 2})
    sqs = [rig.sq() for _ in range(5)]
    for n, sq in enumerate(sqs):
        rig.submit(sq, rig.kernel(rig.ran.append, n, cost_ns=10))
    await rig.settle()
    assert rig.driver.clock.now_ns() == 30  # five kernels on two cores
    assert rig.ran == [0, 1, 2, 3, 4]
    rig.driver.close()


async def test_the_execute_time_out_is_the_status_of_its_core() -> None:
    rig = Rig(clock="virtual")
    d, sq = rig.driver, rig.sq()
    d.set_execute_timeout(100)
    for core in Core:
        rig.submit(sq, rig.kernel(rig.ran.append, core, core=core, cost_ns=101))
    await rig.run(sq, rig.kernel(rig.ran.append, "in time", cost_ns=lambda word: len(word)))
    assert rig.ran == ["in time"]
    assert [e.status for e in rig.errors()] == [Status.AICORE_TIMEOUT, Status.AIV_TIMEOUT, Status.AICPU_TIMEOUT]
    assert d.clock.now_ns() == 307
    d.close()


async def test_closing_an_sq_gives_its_core_back() -> None:
    rig = Rig(clock="virtual", limits={"aiv_cores": 1})
    d, sq, other = rig.driver, rig.sq(), rig.sq()
    rig.submit(sq, rig.kernel(rig.ran.append, 1, cost_ns=1000))
    rig.submit(other, rig.kernel(rig.ran.append, 2, cost_ns=1000))
    d.clock.call_at(500, lambda: d.sq_close(sq))
    await rig.until(other, 1)
    assert rig.ran == [2]
    assert d.clock.now_ns() == 1500
    d.close()
    d.close()
