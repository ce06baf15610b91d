"""External records and waits beyond the cases of group J (acl_semantics 5.7), through the C names only."""

from __future__ import annotations

import pytest

import aclrt
from aclrt import acl
from tests.timeline import settle

from .external import copy, external_event, record_external, sync_event, wait_external
from .updating import Bench, add, case, launch, refused


@case
async def test_a_destroyed_event_counts_for_nothing_at_the_execute(b: Bench) -> None:
    recorded, waited = sync_event(), sync_event()
    b.begin()
    record_external(recorded, b.s)
    wait_external(b.s, waited)
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    acl.aclrtRecordEvent(waited, b.side)
    acl.aclrtDestroyEvent(recorded)
    acl.aclrtDestroyEvent(waited)
    assert await b.run(model) == 1
    assert await b.run(model) == 2


@case
async def test_cells_are_given_back_when_their_runs_end(b: Bench) -> None:
    event, other = sync_event(), sync_event()
    b.begin()
    record_external(event, b.s)
    wait_external(b.s, other)
    model = b.end()
    await b.run(model)
    used = b.dev.used_bytes
    for _ in range(20):
        acl.aclrtRecordEvent(other, b.side)
        acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()
    await b.sync(b.side)
    assert b.dev.used_bytes <= used + 8  # the latest record of `other`
    await acl.aclmdlRIDestroy(model)
    acl.aclrtDestroyEvent(event)
    acl.aclrtDestroyEvent(other)
    assert b.dev.used_bytes < used


@case
async def test_an_external_record_does_not_join_a_forked_stream(b: Bench) -> None:
    out = sync_event()
    b.begin()
    acl.aclrtRecordEvent(out, b.s)
    acl.aclrtStreamWaitEvent(b.side, out)
    record_external(sync_event(), b.side)
    with refused(107025):
        b.end()


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_a_run_held_for_want_of_resources_keeps_its_table(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip, limits={"max_sqs": 1}) as dev:
        b = Bench(dev, chip)
        event, gate = sync_event(), external_event()
        b.begin()
        acl.aclrtStreamWaitEvent(b.s, gate)
        blocker = b.end()
        b.begin()
        launch(b.s, add, b.x, 1.0)
        record_external(event, b.s)
        model = b.end()
        first = acl.aclmdlRIExecuteAsync(blocker, b.third)
        held = acl.aclmdlRIExecuteAsync(model, b.s)
        acl.aclrtStreamWaitEvent(b.side, event)  # visible from the call on
        copy(b.y, b.x, b.side)
        await settle()
        assert b.y.numpy()[0] == 0
        assert not held.done
        acl.aclrtRecordEvent(gate, acl.aclrtCreateStream())
        await first
        await held
        await b.sync(b.side)
        assert b.y.numpy()[0] == 1
