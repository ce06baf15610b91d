"""Models: replay from the decode cache, one run at a time, activation, abort, updates."""

from __future__ import annotations

import numpy as np
import pytest

from hw.chips import CqeKind, SqeFlag, Status
from hw.driver import IdKind
from tests.hw.rig import K, Model, Rig

CHIPS = pytest.mark.parametrize("chip", ["v100", "v200"])
CLOCKS = pytest.mark.parametrize("clock", ["wall", "virtual"])


@CHIPS
@CLOCKS
async def test_a_model_runs_once_for_each_execute_and_not_before(chip: str, clock: str) -> None:
    rig = Rig(name=chip, clock=clock)
    sq = rig.sq()
    model = rig.model([rig.say(n) for n in range(1200)])
    await rig.settle(10)
    assert rig.ran == []
    for turn in range(1, 4):
        await rig.until(sq, rig.execute(sq, model))
        assert rig.ran == list(range(1200)) * turn
    assert not rig.driver.model_busy(model.id)
    rig.driver.image_check(model.images[0])
    rig.driver.close()


@CLOCKS
async def test_two_streams_with_edges_keep_their_order(clock: str) -> None:
    rig = Rig(clock=clock)
    sq = rig.sq()
    record = [rig.sqe(K.EVENT_RECORD, event_id=n) for n in range(20)]
    wait = [rig.sqe(K.EVENT_WAIT, event_id=n) for n in range(20)]
    reset = [rig.sqe(K.EVENT_RESET, event_id=n) for n in range(20)]
    left: list[bytes] = []
    right: list[bytes] = []
    for n in range(0, 20, 2):  # hand over and back, ten times
        left += [rig.say(("left", n)), record[n], wait[n + 1]]
        right += [wait[n], rig.say(("right", n)), record[n + 1]]
    model = rig.model(left + reset, right, heads=2)
    for _ in range(3):
        rig.ran.clear()
        await rig.until(sq, rig.execute(sq, model))
        assert rig.ran == [(side, n) for n in range(0, 20, 2) for side in ("left", "right")]
    rig.driver.close()


@CLOCKS
async def test_executes_from_two_streams_never_overlap_and_both_take_effect(clock: str) -> None:
    rig = Rig(clock=clock)
    d, a, b = rig.driver, rig.sq(), rig.sq()
    gate = d.alloc(IdKind.EVENT)
    model = rig.model([rig.say("in"), rig.sqe(K.EVENT_WAIT, event_id=gate), rig.say("out")])
    first, second = rig.execute(a, model), rig.execute(b, model)
    await rig.settle()
    assert rig.ran == ["in"]
    assert ("model", model.id) in [w.what for w in d.waits()]
    d.event_set(gate)
    await rig.until(a, first)
    await rig.until(b, second)
    assert rig.ran == ["in", "out"] * 2
    d.close()


async def test_control_answers_and_refuses_a_busy_model() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    model = rig.model([rig.sqe(K.EVENT_WAIT, event_id=1)])
    position = rig.execute(sq, model)
    await rig.settle()
    assert d.model_busy(model.id)
    delete = rig.sqe(K.MODEL_DEL, model=model.id, sq=model.sqs[0])
    destroy = rig.sqe(K.MODEL_DESTROY, model=model.id)
    assert [d.control(x).status for x in (delete, destroy, rig.say(1))] == [
        Status.ILLEGAL_PARAM,
        Status.ILLEGAL_PARAM,
        Status.SQE_ERROR,
    ]
    with pytest.raises(ValueError, match="PARKED"):
        d.sq_unbind(model.sqs)
    d.event_set(1)
    await rig.until(sq, position)
    assert [d.control(x).status for x in (delete, destroy, destroy)] == [
        Status.OK,
        Status.OK,
        Status.ILLEGAL_PARAM,
    ]
    d.sq_unbind(model.sqs)
    d.image_free(model.images[0])
    await rig.run(sq, rig.sqe(K.MODEL_EXECUTE, model=model.id))
    assert [e.status for e in rig.errors()] == [Status.ILLEGAL_PARAM]
    d.close()


async def test_an_sq_moves_to_another_image_between_runs() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    one, two = rig.model([rig.say(1)]), rig.model([rig.say(2)])
    await rig.until(sq, rig.execute(sq, one))
    d.sq_unbind(one.sqs)
    d.sq_bind([(one.sqs[0], 9, two.images[0], 1)])  # up to the tail only: no end-graph record
    rig.submit(sq, rig.sqe(K.MODEL_EXECUTE, model=one.id))
    await rig.settle()
    assert rig.ran == [1, 2]
    d.close()


@CLOCKS
async def test_abort_ends_the_run_and_the_next_one_starts_afresh(clock: str) -> None:
    rig = Rig(clock=clock)
    d, sq = rig.driver, rig.sq()
    gate = rig.sqe(K.EVENT_WAIT, event_id=1)
    model = rig.model([rig.say("a"), gate, rig.say("z")], [rig.say("b"), gate], heads=2)
    position = rig.execute(sq, model)
    await rig.settle()
    d.abort_model(model.id)
    await rig.until(sq, position)
    assert rig.ran == ["a", "b"]
    assert [(e.status, e.position, e.fault) for e in rig.errors(sq)] == [(Status.MODEL_ABORTED, position, -1)]
    assert not d.model_busy(model.id)
    assert d.waits() == []
    d.abort_model(model.id)  # nothing runs: nothing happens
    d.event_set(1)
    rig.ran.clear()
    await rig.until(sq, rig.execute(sq, model))
    assert sorted(rig.ran) == ["a", "b", "z"]
    d.close()


async def test_abort_of_a_kernel_in_device_time_waits_for_its_end() -> None:
    rig = Rig(clock="virtual")
    d, sq = rig.driver, rig.sq()
    model = rig.model([rig.kernel(rig.ran.append, 1, cost_ns=1000), rig.say(2)])
    position = rig.execute(sq, model)
    d.clock.call_at(500, lambda: d.abort_model(model.id))
    await rig.until(sq, position)
    assert rig.ran == [1]
    assert d.clock.now_ns() == 1000
    assert [e.status for e in rig.errors(sq)] == [Status.MODEL_ABORTED]
    d.close()


async def test_an_aborted_execute_stream_lets_the_run_finish_and_the_model_free() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    model = rig.model([rig.say(1), rig.sqe(K.EVENT_WAIT, event_id=1), rig.say(2)])
    rig.execute(sq, model)
    await rig.settle()
    d.sq_abort(sq)
    await rig.settle()
    assert d.model_busy(model.id)
    d.event_set(1)
    await rig.settle()
    assert rig.ran == [1, 2]
    assert not d.model_busy(model.id)
    await rig.until(sq, rig.execute(sq, model))  # the bit of the orphaned run is not mistaken for this one's
    assert rig.ran == [1, 2, 1, 2]
    d.close()


async def test_an_end_graph_wait_that_times_out() -> None:
    rig = Rig(clock="virtual")
    d, sq = rig.driver, rig.sq()
    model = rig.model([rig.kernel(rig.ran.append, 1, cost_ns=9_000_000)])
    await rig.until(sq, rig.execute(sq, model, timeout_ms=2))
    assert d.clock.now_ns() == 2_000_000
    assert [e.status for e in rig.errors(sq)] == [Status.TASK_TIMEOUT]
    assert d.model_busy(model.id)
    await rig.until(sq, rig.execute(sq, model))
    assert rig.ran == [1, 1]
    assert d.clock.now_ns() == 18_000_000
    d.close()


@CLOCKS
async def test_activation_chains_and_the_activation_of_a_running_sq_fails(clock: str) -> None:
    rig = Rig(clock=clock)
    d, sq = rig.driver, rig.sq()
    tail = d.alloc(IdKind.SQ)
    d.free(IdKind.SQ, tail)
    # The first stream gets the lowest free SQ id, the second the next.
    chained = rig.model([rig.say("head"), rig.sqe(K.STREAM_ACTIVE, sq=tail + 1)], [rig.say("tail")])
    for _ in range(2):
        rig.ran.clear()
        await rig.until(sq, rig.execute(sq, chained))
        await rig.settle()
        assert rig.ran == ["head", "tail"]
        assert not d.model_busy(chained.id)
    active = rig.sqe(K.STREAM_ACTIVE, sq=tail + 3)
    rig.ran.clear()
    again = rig.model([active, active, rig.say("never")], [rig.sqe(K.EVENT_WAIT, event_id=1)])
    await rig.until(sq, rig.execute(sq, again))
    own, run = rig.errors()
    assert (own.sq, own.status, own.position) == (again.sqs[0], Status.ILLEGAL_PARAM, 1)
    assert (run.sq, run.status, run.fault) == (sq, Status.MODEL_FAILED, own.fault)
    assert rig.ran == []
    d.close()


async def test_an_update_patches_a_slot_while_the_model_waits() -> None:
    rig = Rig()
    d, sq, update = rig.driver, rig.sq(), rig.sq()
    gate = rig.sqe(K.EVENT_WAIT, event_id=1)
    model = rig.model([rig.say("a"), gate, rig.say("old"), rig.say("c"), rig.sqe(K.EVENT_RESET, event_id=1)])
    new = rig.say("new")
    source = d.host_register(bytearray(new))
    position = rig.execute(sq, model)
    await rig.settle()
    patch = rig.sqe(K.SQE_UPDATE, image=model.images[0], slot=2, source=source, n=1)
    await rig.run(update, patch, rig.sqe(K.EVENT_RECORD, event_id=1))
    await rig.until(sq, position)
    assert rig.ran == ["a", "new", "c"]
    assert d.image_read(model.images[0], 2, 1) == new
    d.image_check(model.images[0])
    d.close()


async def test_an_update_that_changes_the_shape_of_the_program_is_followed_too() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    gate = rig.sqe(K.EVENT_WAIT, event_id=1)
    model = rig.model([rig.say(0), gate, *[rig.say(n) for n in range(1, 6)]])
    position = rig.execute(sq, model)
    await rig.settle()
    d.image_write(model.images[0], 3, rig.sqe(K.EVENT_WAIT, event_id=2))
    d.image_write(model.images[0], 5, rig.sqe(K.NOP))
    d.event_set(1)
    await rig.settle()
    assert rig.ran == [0, 1]
    d.event_set(2)
    await rig.until(sq, position)
    assert rig.ran == [0, 1, 3, 5]
    d.close()


async def test_a_bad_update_is_an_illegal_parameter() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    model = rig.model([rig.say(1)])
    source = d.host_register(bytearray(128))
    await rig.run(
        sq,
        rig.sqe(K.SQE_UPDATE, image=99, slot=0, source=source, n=1),
        rig.sqe(K.SQE_UPDATE, image=model.images[0], slot=1, source=source, n=2),
        rig.sqe(K.SQE_UPDATE, image=model.images[0], slot=0, source=source, n=3),
    )
    assert [e.status for e in rig.errors()] == [Status.ILLEGAL_PARAM, Status.ILLEGAL_PARAM, Status.SDMA_ERROR]
    await rig.until(sq, rig.execute(sq, model))
    assert rig.ran == [1]
    d.close()


async def test_new_arguments_reach_every_slot_that_names_the_entry() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    program, handle = d.load(rig.ran.append), d.args_put(("old",), ())
    task = rig.sqe(K.KERNEL, core=1, program=program, args=handle)
    one, two = rig.model([task, task]), rig.model([task])
    for model in (one, two):
        await rig.until(sq, rig.execute(sq, model))
    d.args_set(handle, ("new",), ())
    for model in (one, two):
        d.image_check(model.images[0])
        await rig.until(sq, rig.execute(sq, model))
    assert rig.ran == ["old"] * 3 + ["new"] * 3
    d.close()


async def test_a_wr_cqe_task_of_a_model_posts_a_task_cqe() -> None:
    rig = Rig()
    sq = rig.sq()
    noisy = rig.kernel(rig.ran.append, 2, flags=SqeFlag.WR_CQE)
    model = rig.model([rig.say(1), noisy, rig.sqe(K.HOSTFUNC, callback=5)])
    await rig.until(sq, rig.execute(sq, model))
    seen = [(c.kind, c.sq, c.position, c.callback) for c in rig.log if c.kind is not CqeKind.HEAD]
    assert seen == [(CqeKind.TASK, model.sqs[0], 1, -1), (CqeKind.CALLBACK, model.sqs[0], 2, 5)]
    rig.driver.close()


async def test_copies_sets_and_value_writes_replay_from_ready_views() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    a, b, cell = d.malloc(64), d.malloc(64), rig.cell()
    host = bytearray(range(64))
    source = d.host_register(host)
    model = rig.model(
        [
            rig.sqe(K.MEMCPY, dst=a, src=source, nbytes=64),
            rig.sqe(K.MEMSET, dst=b, value=7, nbytes=64),
            rig.sqe(K.MEMCPY2D, dst=b, dpitch=16, src=a, spitch=32, width=8, height=2),
            rig.sqe(K.WRITE_VALUE, address=cell, value=(1 << 64) - 2),
            rig.sqe(K.WRITE_VALUE, address=cell + 1, value=5, width=1),
        ]
    )
    await rig.until(sq, rig.execute(sq, model))
    assert d.read(a, 64) == bytes(range(64))
    assert d.read(b, 32) == bytes([*range(8), *[7] * 8, *range(32, 40), *[7] * 8])
    assert d.read(cell, 8) == bytes([0xFE, 5, *[255] * 6])
    host[0] = 99  # the source is read when the copy runs
    await rig.until(sq, rig.execute(sq, model))
    assert d.read(b, 1) == b"\x63"
    d.close()


def fault_texts(rig: Rig) -> list[str]:
    return [str(rig.driver.fault(e.fault).exception) for e in rig.errors() if e.status is not Status.MODEL_FAILED]


async def test_freed_memory_poisons_exactly_the_slots_that_view_it() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    keep, lose = d.malloc(32), d.malloc(32)
    fill = d.load(np.copyto, name="fill")
    tasks = []
    for address in (keep, lose):
        handle = d.args_put((d.view(address, 4, "i8"), 1), (address,))
        tasks.append(rig.sqe(K.KERNEL, core=1, program=fill, args=handle))
    tasks.append(rig.sqe(K.MEMCPY, dst=keep, src=lose, nbytes=8))
    good, kernel, copy = rig.model(tasks[:1]), rig.model(tasks[:2]), rig.model([tasks[0], tasks[2]])
    for model in (good, kernel, copy):
        await rig.until(sq, rig.execute(sq, model))
    assert rig.errors() == []
    d.free(lose)
    for model in (good, kernel, copy):
        d.image_check(model.images[0])
        await rig.until(sq, rig.execute(sq, model))
    own = [e for e in rig.errors() if e.status is not Status.MODEL_FAILED]
    assert [(e.sq, e.status, e.position) for e in own] == [
        (kernel.sqs[0], Status.AIV_EXCEPTION, 1),
        (copy.sqs[0], Status.SDMA_ERROR, 1),
    ]
    assert all("freed" in text for text in fault_texts(rig))
    d.close()


async def test_dropped_arguments_make_bad_bytes() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    program, handle = d.load(rig.ran.append), d.args_put((1,), ())
    model: Model = rig.model([rig.sqe(K.KERNEL, core=1, program=program, args=handle)])
    d.args_drop(handle)
    d.image_check(model.images[0])
    await rig.until(sq, rig.execute(sq, model))
    assert [e.status for e in rig.errors()] == [Status.SQE_ERROR, Status.MODEL_FAILED]
    d.close()


async def test_fused_kernels_run_their_parts_in_order() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    say, boom = d.load(rig.ran.append), d.load(lambda: 1 / 0)
    fused = rig.sqe(K.FUSION, args=d.args_put(((say, (1,)), (say, (2,))), ()))
    failing = rig.sqe(K.FUSION, args=d.args_put(((say, (3,)), (boom, ())), ()))
    model = rig.model([fused, failing])
    await rig.run(sq, fused)
    await rig.until(sq, rig.execute(sq, model))
    assert rig.ran == [1, 2, 1, 2, 3]
    assert rig.errors()[0].status is Status.AIV_EXCEPTION
    d.close()


async def test_ten_thousand_replays_leave_everything_where_it_was() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    model = rig.model([rig.say(1)])
    before = (d.used_bytes, [d.held(kind) for kind in IdKind])
    for _ in range(500):
        for _ in range(20):
            position = rig.execute(sq, model)
        await rig.until(sq, position)
        rig.log.clear()
    assert len(rig.ran) == 10_000
    assert (d.used_bytes, [d.held(kind) for kind in IdKind]) == before
    assert d.idle()
    d.close()
