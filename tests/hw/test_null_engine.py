"""The null engine: everything completes inside the submit, nothing is done."""

from __future__ import annotations

import pytest

from hw.chips import CondType, CqeKind, SqeFlag, Status
from hw.driver import IdKind
from tests.hw.rig import K, Rig


@pytest.mark.parametrize("clock", ["wall", "virtual"])
@pytest.mark.parametrize("chip", ["v100", "v200"])
def test_every_task_completes_when_its_doorbell_rings(chip: str, clock: str) -> None:
    rig = Rig(name=chip, clock=clock, engine="null")
    d, sq, cell = rig.driver, rig.sq(depth=8), rig.cell(5)
    tasks = [
        rig.say(1),
        rig.boom(),
        rig.sqe(K.EVENT_WAIT, event_id=1),
        rig.sqe(K.NOTIFY_WAIT, notify_id=1, timeout_ms=1),
        rig.sqe(K.WAIT_VALUE, address=cell, value=9, flag=1),
        rig.sqe(K.MEMSET, dst=cell, value=0, nbytes=8),
        rig.sqe(K.HOSTFUNC, callback=1),
        rig.sqe(K.COND, cell=1, table=2, notify=3, size=4, ctype=CondType.WHILE),
        rig.sqe(K.MODEL_EXECUTE, model=77),
    ]
    for task in tasks:
        position = rig.submit(sq, task)
        assert rig.head(sq) == position
    assert {c.kind for c in rig.log} == {CqeKind.HEAD}
    assert rig.ran == []
    assert rig.peek(cell) == 5
    assert (d.waits(), d.waiting(), d.idle()) == ([], 0, True)
    d.close()


def test_a_model_is_built_by_the_same_calls_and_never_runs() -> None:
    rig = Rig(engine="null")
    d, sq = rig.driver, rig.sq()
    model = rig.model([rig.say(1)])
    position = rig.execute(sq, model)
    assert rig.head(sq) == position
    assert not d.model_busy(model.id)
    d.abort_model(model.id)
    assert d.control(rig.sqe(K.MODEL_DESTROY, model=model.id)).status is Status.OK
    assert d.control(rig.sqe(K.MODEL_DESTROY, model=model.id)).status is Status.ILLEGAL_PARAM
    d.sq_unbind(model.sqs)
    d.image_free(model.images[0])
    assert rig.ran == []
    d.close()


def test_one_shot_arguments_are_given_back() -> None:
    rig = Rig(engine="null")
    d, sq = rig.driver, rig.sq()
    program = d.load(print)
    handles = {d.submit_kernel(sq, n, 1, program, d.args_put((n,), ()), 1, SqeFlag.ONE_SHOT) for n in range(10)}
    assert handles == set(range(1, 11))
    assert d.args_put((), ()) == 1
    d.close()


def test_ids_run_out_as_on_the_real_one() -> None:
    rig = Rig(engine="null", limits={"max_sqs": 2})
    assert [rig.driver.alloc(IdKind.SQ) for _ in range(2)] == [0, 1]
    with pytest.raises(Exception, match="all 2 are held"):
        rig.driver.alloc(IdKind.SQ)
    rig.driver.close()
