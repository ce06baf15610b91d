"""User SQs: what is in the ring's bytes is what runs, in order, and the head tells the host."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from hw.chips import Core, CqeKind, SqeFlag, Status
from tests.hw.rig import K, Rig


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_kernels_copies_and_sets_run_in_order(chip: str) -> None:
    rig = Rig(name=chip)
    d, sq = rig.driver, rig.sq()
    a, b = d.malloc(64), d.malloc(64)
    x = d.view(a, 16, np.float32)
    add = rig.kernel(np.add, x, np.float32(1), x)
    copy = rig.sqe(K.MEMCPY, dst=b, src=a, nbytes=64)
    await rig.run(sq, rig.sqe(K.MEMSET, dst=a, value=0, nbytes=64), add, copy, add)
    assert d.view(a, 16, np.float32).tolist() == [2.0] * 16
    assert d.view(b, 16, np.float32).tolist() == [1.0] * 16
    d.close()


async def test_a_flipped_field_in_a_ring_slot_changes_what_runs() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    right, wrong = rig.say("right"), rig.say("wrong")
    layout = d.chip.layout(K.KERNEL)
    rig.submit(sq, right)
    at = layout.offset("args")
    d.sq_memory(sq)[at : at + 4] = wrong[at : at + 4]
    await rig.until(sq, 1)
    assert rig.ran == ["wrong"]
    d.close()


async def test_a_flipped_field_of_a_control_task_changes_what_it_waits_for() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    rig.submit(sq, rig.sqe(K.EVENT_WAIT, event_id=1))
    d.sq_memory(sq)[d.chip.layout(K.EVENT_WAIT).offset("event_id")] = 2
    d.event_set(1)
    await rig.settle()
    assert [w.what for w in d.waits()] == [("event", 2)]
    d.event_set(2)
    await rig.until(sq, 1)
    d.close()


async def test_a_dropped_cqe_leaves_the_waiter_waiting() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    lost: list[bytes] = []

    def lose(cqe: bytes) -> bool:
        lost.append(cqe)
        return False

    d.cq_filter = lose
    rig.submit(sq, rig.say(1))
    await rig.settle()
    assert rig.ran == [1]
    assert lost
    assert rig.log == []
    d.cq_filter = None
    await rig.run(sq, rig.say(2))  # the next head covers what was lost
    assert rig.head(sq) == 2
    d.close()


async def test_the_backlog_takes_what_the_ring_cannot() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq(depth=4)
    program, handle = d.load(rig.ran.append), 0
    for n in range(50):
        handle = d.args_put((n,), ())
        if n % 3:
            assert d.submit_kernel(sq, n, Core.AIV, program, handle, 1, 0) == n + 1
        else:
            rig.submit(sq, rig.sqe(K.KERNEL, core=1, program=program, args=handle))
    await rig.until(sq, 50)
    assert rig.ran == list(range(50))
    d.close()


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_a_task_of_several_slots_crosses_the_end_of_the_ring(chip: str) -> None:
    rig = Rig(name=chip)
    d, sq, cell = rig.driver, rig.sq(depth=6), rig.cell(1)
    for n in range(8):
        wait = rig.sqe(K.WAIT_VALUE, address=cell, value=1, flag=1)
        position = rig.submit(sq, wait, rig.say(n))
    await rig.until(sq, position)
    assert rig.ran == list(range(8))
    assert position == 8 * (d.chip.spec.wait_sqes + 1)
    d.close()


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a slice ends in the middle of anything: not where a test counts turns."""
    monkeypatch.setattr("hw.ts.sq.SLICE_NS", 3_600_000_000_000)


@pytest.mark.usefixtures("unhurried")
async def test_one_head_cqe_for_a_turn_and_a_task_cqe_on_request() -> None:
    rig = Rig()
    sq = rig.sq()
    rig.submit(sq, rig.say(1), rig.say(2), rig.kernel(rig.ran.append, 3, flags=SqeFlag.WR_CQE), rig.say(4))
    await rig.until(sq, 4)
    assert [(c.kind, c.position) for c in rig.log] == [(CqeKind.TASK, 3), (CqeKind.HEAD, 4)]
    rig.driver.close()


async def test_one_shot_arguments_are_dropped_after_the_task() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    program = d.load(rig.ran.append)
    handles = [d.args_put((n,), ()) for n in range(3)]
    for handle in handles:
        d.submit_kernel(sq, 0, Core.AIV, program, handle, 1, SqeFlag.ONE_SHOT)
    await rig.until(sq, 3)
    assert rig.ran == [0, 1, 2]
    for handle in handles:
        with pytest.raises(KeyError):
            d.args_get(handle)
    d.close()


@pytest.mark.parametrize(
    ("core", "status"),
    [
        (Core.AIC, Status.AICORE_EXCEPTION),
        (Core.AIV, Status.AIV_EXCEPTION),
        (Core.AICPU, Status.AICPU_EXCEPTION),
    ],
)
@pytest.mark.usefixtures("unhurried")
async def test_a_raising_kernel_posts_its_error_before_the_head_and_the_next_task_runs(
    core: Core, status: Status
) -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    await rig.run(sq, rig.say(1), rig.boom(core=core, name="bad"), rig.say(2))
    assert rig.ran == [1, 2]
    error = rig.log[0]
    assert (error.kind, error.status, error.sq, error.position) == (CqeKind.ERROR, status, sq, 2)
    record = d.fault(error.fault)
    assert isinstance(record.exception, ArithmeticError)
    assert (record.program, record.slot, record.cond) == ("bad", 2, [])
    d.fault_drop(error.fault)
    with pytest.raises(KeyError):
        d.fault(error.fault)
    d.close()


async def test_a_kernel_may_raise_stop_iteration() -> None:
    rig = Rig()
    sq = rig.sq()
    await rig.run(sq, rig.kernel(next, iter(())), rig.say(1))
    assert rig.ran == [1]
    assert isinstance(rig.driver.fault(rig.errors()[0].fault).exception, StopIteration)
    rig.driver.close()


async def test_stop_on_error_keeps_the_rest() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    d.sq_stop_on_error(sq, True)
    rig.submit(sq, rig.boom(), rig.say(1))
    await rig.until(sq, 1)
    rig.submit(sq, rig.say(2))
    await rig.settle()
    assert rig.ran == []
    assert rig.head(sq) == 1
    d.sq_stop_on_error(sq, False)
    await rig.until(sq, 3)
    assert rig.ran == [1, 2]
    d.close()


@pytest.mark.parametrize("bad", ["type", "program", "args", "core"])
async def test_bad_bytes_are_an_sqe_error(bad: str) -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    slot = bytearray(rig.say(1))
    slot[d.chip.layout(K.KERNEL).offset(bad)] = 250
    await rig.run(sq, bytes(slot), rig.say(2))
    assert rig.ran == [2]
    assert [e.status for e in rig.errors()] == [Status.SQE_ERROR]
    d.close()


async def test_abort_drops_what_is_queued() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    rig.submit(sq, rig.say(1), rig.sqe(K.EVENT_WAIT, event_id=1), rig.say(2), rig.say(3))
    await rig.settle()
    d.sq_abort(sq)
    assert [(c.kind, c.status, c.position) for c in rig.log[-2:]] == [
        (CqeKind.ERROR, Status.STREAM_ABORTED, 4),
        (CqeKind.HEAD, Status.OK, 4),
    ]
    d.event_set(1)
    await rig.run(sq, rig.say(4))
    assert rig.ran == [1, 4]
    assert d.waits() == []
    d.close()


async def test_a_host_function_is_called_back_after_what_precedes_it() -> None:
    rig = Rig()
    sq = rig.sq()
    await rig.run(sq, rig.say(1), rig.sqe(K.HOSTFUNC, callback=77), rig.say(2))
    assert [(c.kind, c.position, c.callback) for c in rig.log] == [
        (CqeKind.HEAD, 1, -1),
        (CqeKind.CALLBACK, 2, 77),
        (CqeKind.HEAD, 3, -1),
    ]
    rig.driver.close()


async def test_use_after_free_is_a_fault_of_the_task() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    a, b = d.malloc(32), d.malloc(32)
    handle = d.args_put((d.view(a, 8, "f4"), d.view(b, 8, "f4"), d.view(b, 8, "f4")), (a, b))
    program = d.load(np.add)
    d.submit_kernel(sq, 0, Core.AIV, program, handle, 1, 0)
    d.submit(sq, rig.sqe(K.MEMCPY, dst=a, src=b, nbytes=32))
    d.free(a)
    await rig.until(sq, 2)
    kernel, copy = rig.errors()
    assert (kernel.status, copy.status) == (Status.AIV_EXCEPTION, Status.SDMA_ERROR)
    for error in (kernel, copy):
        fault = d.fault(error.fault).exception
        assert type(fault).__name__ == "MemoryFault"
        assert "freed" in str(fault)
    d.close()


async def test_the_loop_gets_its_turn_while_a_long_queue_runs() -> None:
    rig = Rig()
    sq = rig.sq(depth=30_000)
    x = np.zeros(4096)
    task = rig.kernel(np.add, x, x, x)
    position = rig.submit(sq, *[task] * 20_000)
    passes = 0
    while rig.head(sq) < position:
        passes += 1
        await asyncio.sleep(0)
    assert passes > 10
    rig.driver.close()
