"""Conformance group J, notifies and external events: one test for each case id, through the C names only."""

from __future__ import annotations

import numpy as np

from aclrt import acl
from tests.timeline import settle

from .external import D2H, EXTERNAL, copy, external_event, record_external, sync_event, wait_external
from .updating import ONES, Bench, add, case, launch, refused


@case
async def test_J01_an_external_wait_sees_an_ordinary_record(b: Bench) -> None:
    src, event = b.dev.array(ONES), sync_event()
    b.begin()
    wait_external(b.s, event)
    copy(b.x, src, b.s)
    model = b.end()
    acl.aclrtRecordEvent(event, b.side)
    await b.run(model)
    assert (b.x.numpy() == ONES).all()


@case
async def test_J01_waits_for_the_recording_stream(b: Bench) -> None:
    src, event, gate = b.dev.array(np.zeros(8, np.float32)), sync_event(), external_event()
    b.begin()
    wait_external(b.s, event)
    copy(b.x, src, b.s)
    model = b.end()
    acl.aclrtStreamWaitEvent(b.side, gate)
    launch(b.side, add, src, 5.0)
    acl.aclrtRecordEvent(event, b.side)
    run = acl.aclmdlRIExecuteAsync(model, b.s)
    await settle()
    assert not run.done
    acl.aclrtRecordEvent(gate, b.third)
    await run
    assert (b.x.numpy() == 5).all()


@case
async def test_J01_not_after_a_hardware_record(b: Bench) -> None:
    event = sync_event()
    acl.aclrtRecordEvent(event, b.side)
    b.begin()
    with refused(107000):
        wait_external(b.s, event)
    b.end()


@case
async def test_J02_an_ordinary_wait_sees_an_external_record(b: Bench) -> None:
    src, event, out = b.dev.array(ONES), sync_event(), acl.aclrtMallocHost(32)
    b.begin()
    copy(b.x, src, b.s)
    record_external(event, b.s)
    model = b.end()
    for factor in (1, 2):
        src.assign(ONES * factor)
        acl.aclmdlRIExecuteAsync(model, b.s)
        acl.aclrtStreamWaitEvent(b.side, event)
        copy(out, b.x, b.side, D2H)
        await b.sync(b.side)
        assert (out.numpy(np.float32) == ONES * factor).all()
        await b.sync()


@case
async def test_J03_from_graph_to_graph(b: Bench) -> None:
    src, event = b.dev.array(ONES), sync_event()
    b.begin()
    copy(b.y, src, b.s)
    record_external(event, b.s)
    first = b.end()
    b.begin(b.side)
    wait_external(b.side, event)
    copy(b.x, b.y, b.side)
    second = b.end(b.side)
    for factor in (1, 3):
        src.assign(ONES * factor)
        acl.aclmdlRIExecuteAsync(first, b.s)
        acl.aclmdlRIExecuteAsync(second, b.side)
        await b.sync(b.side)
        assert (b.x.numpy() == ONES * factor).all()


@case
async def test_J04_outside_a_capture(b: Bench) -> None:
    with refused(107029):
        record_external(sync_event(), b.s)
    with refused(107029):
        wait_external(b.s, sync_event())


@case
async def test_J05_events_that_cannot(b: Bench) -> None:
    b.begin()
    for event in (acl.aclrtCreateEvent(), external_event(), acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_TIME_LINE)):
        with refused(207000):
            record_external(event, b.s)
        with refused(207000):
            wait_external(b.s, event)
    b.end()


@case
async def test_J06_one_external_use_of_an_event_in_a_graph(b: Bench) -> None:
    recorded, waited, both = sync_event(), sync_event(), sync_event()
    b.begin()
    record_external(recorded, b.s)
    with refused(107000):
        record_external(recorded, b.s)
    wait_external(b.s, waited)
    with refused(107000):
        wait_external(b.s, waited)
    record_external(both, b.s)
    with refused(107000):
        wait_external(b.s, both)
    assert acl.aclmdlRICaptureGetInfo(b.s).status == acl.ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE
    model = b.end()
    await b.run(model)


@case
async def test_J07_flags_stick_to_an_event(b: Bench) -> None:
    ordinary, external, failed, waited = (sync_event() for _ in range(4))
    b.begin()
    acl.aclrtRecordEvent(ordinary, b.s)
    with refused(107000):
        record_external(ordinary, b.s)
    record_external(external, b.s)
    with refused(107000):
        acl.aclrtRecordEvent(external, b.s)
    b.end()
    with refused(107029):
        record_external(failed, b.s)  # the flag is fixed by the attempt
    with refused(107000):
        acl.aclrtRecordEvent(failed, b.s)
    with refused(107029):
        wait_external(b.s, waited)
    with refused(107000):
        acl.aclrtStreamWaitEvent(b.s, waited)
    acl.aclrtRecordEvent(waited, b.s)  # records and waits have flags of their own


@case
async def test_J08_time_out_and_flag_values(b: Bench) -> None:
    event = sync_event()
    b.begin()
    with refused(100000):
        acl.aclrtStreamWaitEventWithFlag(b.s, event, 1, EXTERNAL)
    with refused(100000):
        acl.aclrtStreamWaitEventWithFlag(b.s, event, 0, 2)
    with refused(100000):
        acl.aclrtRecordEventWithFlag(event, b.s, 2)
    b.end()


@case
async def test_J09_several_in_one_graph(b: Bench) -> None:
    first, second, third, inner = (sync_event() for _ in range(4))
    back = sync_event()
    b.begin()
    record_external(first, b.s)
    record_external(second, b.s)
    wait_external(b.s, third)
    acl.aclrtRecordEvent(inner, b.s)
    acl.aclrtStreamWaitEvent(b.side, inner)
    launch(b.side, add, b.x, 1.0)
    acl.aclrtRecordEvent(back, b.side)
    acl.aclrtStreamWaitEvent(b.s, back)
    assert await b.run(b.end()) == 1


@case
async def test_J10_a_wait_binds_at_the_execute(b: Bench) -> None:
    event, gate = sync_event(), external_event()
    b.begin()
    wait_external(b.s, event)
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    assert await b.run(model) == 1  # never recorded: nothing to wait for
    acl.aclrtRecordEvent(event, b.side)
    run = acl.aclmdlRIExecuteAsync(model, b.s)
    acl.aclrtStreamWaitEvent(b.side, gate)
    acl.aclrtRecordEvent(event, b.side)  # a later record does not move the wait
    await run
    late = acl.aclmdlRIExecuteAsync(model, b.s)
    await settle()
    assert not late.done
    acl.aclrtRecordEvent(gate, b.third)
    await late
    assert b.x.numpy()[0] == 3


@case
async def test_J11_each_run_publishes_a_record_of_its_own(b: Bench) -> None:
    event, gate = sync_event(), external_event()
    b.begin()
    acl.aclrtStreamWaitEvent(b.s, gate)
    acl.aclrtResetEvent(gate, b.s)
    launch(b.s, add, b.x, 1.0)
    record_external(event, b.s)
    model = b.end()
    first, second = (acl.aclmdlRIExecuteAsync(model, b.s) for _ in range(2))
    acl.aclrtStreamWaitEvent(b.side, event)
    launch(b.side, add, b.y, 1.0)
    acl.aclrtRecordEvent(gate, b.third)
    await first
    await settle()
    assert b.y.numpy()[0] == 0  # it waits for the second
    acl.aclrtRecordEvent(gate, b.third)
    await second
    await b.sync(b.side)
    assert (b.x.numpy()[0], b.y.numpy()[0]) == (2, 1)


@case
async def test_J11_host_calls_on_an_event_in_software_mode(b: Bench) -> None:
    event = sync_event()
    b.begin()
    record_external(event, b.s)
    model = b.end()
    await acl.aclrtSynchronizeEvent(event)
    acl.aclrtQueryEventStatus(event)
    await b.run(model)
    if b.chip == "v100":
        with refused(507000):
            await acl.aclrtSynchronizeEvent(event)
        with refused(507000):
            acl.aclrtQueryEventStatus(event)
    else:
        await acl.aclrtSynchronizeEvent(event)
        acl.aclrtQueryEventStatus(event)


@case
async def test_J12_an_external_event_joins_nothing(b: Bench) -> None:
    event = external_event()
    b.begin()
    acl.aclrtRecordEvent(event, b.side)
    acl.aclrtStreamWaitEvent(b.s, event)
    assert acl.aclmdlRICaptureGetInfo(b.side).status == acl.ACL_MODEL_RI_CAPTURE_STATUS_NONE
    b.end()


@case
async def test_J14_the_reset_is_replayed(b: Bench) -> None:
    event = external_event()
    b.begin()
    acl.aclrtStreamWaitEvent(b.s, event)
    acl.aclrtResetEvent(event, b.s)
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    for step in (1, 2, 3):
        run = acl.aclmdlRIExecuteAsync(model, b.s)
        await settle()
        assert not run.done
        acl.aclrtRecordEvent(event, b.side)
        await run
        assert b.x.numpy()[0] == step


@case
async def test_J15_without_a_reset_one_record_is_enough(b: Bench) -> None:
    event = external_event()
    b.begin()
    acl.aclrtStreamWaitEvent(b.s, event)
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    acl.aclrtRecordEvent(event, b.side)
    assert await b.run(model) == 1
    assert await b.run(model) == 2


@case
async def test_J16_a_record_before_the_execute_counts(b: Bench) -> None:
    event = external_event()
    b.begin()
    acl.aclrtStreamWaitEvent(b.s, event)
    acl.aclrtResetEvent(event, b.s)
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    acl.aclrtRecordEvent(event, b.side)
    await b.sync(b.side)
    assert await b.run(model) == 1


@case
async def test_J17_external_events_have_no_host_state(b: Bench) -> None:
    event = external_event()
    with refused(207000):
        await acl.aclrtSynchronizeEvent(event)
    with refused(207000):
        acl.aclrtQueryEventStatus(event)


@case
async def test_J18_notifies_are_plain_tasks_of_a_capture(b: Bench) -> None:
    notify = acl.aclrtCreateNotify(0)
    b.begin()
    launch(b.s, add, b.x, 1.0)
    acl.aclrtRecordNotify(notify, b.s)
    acl.aclrtWaitAndResetNotify(notify, b.side, 0)
    assert acl.aclmdlRICaptureGetInfo(b.side).status == acl.ACL_MODEL_RI_CAPTURE_STATUS_NONE
    model = b.end()
    for step in (1, 2):
        acl.aclmdlRIExecuteAsync(model, b.s)
        if step > 1:
            acl.aclrtWaitAndResetNotify(notify, b.side, 0)
        copy(b.y, b.x, b.side)
        await b.sync(b.side)
        assert b.y.numpy()[0] == step
    await b.sync()


@case
async def test_J19_value_write_and_wait_are_captured(b: Bench) -> None:
    cell = b.dev.array(np.zeros(2, np.uint64))
    b.begin()
    acl.aclrtValueWait(cell.address, 5, acl.ACL_VALUE_WAIT_GEQ, b.s)
    launch(b.s, add, b.x, 1.0)
    acl.aclrtValueWrite(cell.address + 8, 9, 0, b.s)
    model = b.end()
    run = acl.aclmdlRIExecuteAsync(model, b.s)
    await settle()
    assert not run.done
    acl.aclrtValueWrite(cell.address, 6, 0, b.side)
    await run
    assert cell.numpy().tolist() == [6, 9]
    assert b.x.numpy()[0] == 1


@case
async def test_J21_a_graph_keeps_its_captured_events(b: Bench) -> None:
    out, back = sync_event(), sync_event()
    b.begin()
    acl.aclrtRecordEvent(out, b.s)
    acl.aclrtStreamWaitEvent(b.side, out)
    launch(b.side, add, b.x, 1.0)
    acl.aclrtRecordEvent(back, b.side)
    acl.aclrtStreamWaitEvent(b.s, back)
    model = b.end()
    acl.aclrtDestroyEvent(out)
    acl.aclrtDestroyEvent(back)
    assert await b.run(model) == 1
    assert await b.run(model) == 2
