"""Conditions, loops, switches and labels, decided on the device."""

from __future__ import annotations

import asyncio
import time

import pytest

from hw.chips import Compare, CondType, Status, SwitchType
from hw.driver import IdKind, pack_cond_table, pack_label, pack_label_list
from tests.hw.rig import K, Model, Rig

CLOCKS = pytest.mark.parametrize("clock", ["wall", "virtual"])


class Cond:
    """A condition under construction: its cell, its notify, and branches added as sub models of `root`."""

    def __init__(self, rig: Rig, root: int) -> None:
        self.rig, self.root = rig, root
        self.cell = rig.cell()
        self.notify = rig.driver.alloc(IdKind.NOTIFY)
        self.branches: list[Model] = []

    def branch(self, *streams: list[bytes], heads: int = 1) -> Model:
        sub = self.rig.model(*streams, root=self.root, notify=self.notify, heads=heads)
        self.branches.append(sub)
        return sub

    def tasks(self, ctype: CondType, heads: int = 1) -> list[bytes]:
        rig, d = self.rig, self.rig.driver
        packed = pack_cond_table([b.sqs[:heads] for b in self.branches])
        table = d.malloc(len(packed))
        d.write(table, packed)
        fields = {"cell": self.cell, "table": table, "notify": self.notify, "size": len(self.branches)}
        tasks = [rig.sqe(K.COND, ctype=ctype, **fields), rig.sqe(K.NOTIFY_WAIT, notify_id=self.notify)]
        return [*tasks, rig.sqe(K.JUMP_BACK, cell=self.cell, back=2)] if ctype is CondType.WHILE else tasks

    def set(self, value: int) -> None:
        self.rig.driver.write(self.cell, value.to_bytes(8, "little", signed=True))


def root_id(rig: Rig) -> int:
    """The id that the next root model gets once its branches took theirs: reserved, then given back by `finish`."""
    return rig.driver.alloc(IdKind.MODEL)


def finish(rig: Rig, root: int, tasks: list[bytes]) -> Model:
    rig.driver.free(IdKind.MODEL, root)
    model = rig.model(tasks)
    assert model.id == root
    return model


IF, WHILE, SWITCH = CondType.IF, CondType.WHILE, CondType.SWITCH
LOW = -(1 << 63)


@CLOCKS
@pytest.mark.parametrize(
    ("ctype", "size", "value", "taken"),
    [
        (IF, 1, 1, 0),
        (IF, 1, 0, None),
        (IF, 1, LOW, 0),
        (IF, 1, 1 << 32, 0),
        (IF, 2, -1, 0),
        (IF, 2, 0, 1),
        (SWITCH, 3, 0, 0),
        (SWITCH, 3, 2, 2),
        (SWITCH, 3, 3, None),
        (SWITCH, 3, -1, None),
        (SWITCH, 3, LOW, None),
        (SWITCH, 3, 1 << 32, None),
        (WHILE, 1, 0, None),
    ],
)
async def test_which_branch_a_value_takes(
    clock: str, ctype: CondType, size: int, value: int, taken: int | None
) -> None:
    rig = Rig(clock=clock)
    sq, root = rig.sq(), root_id(rig)
    cond = Cond(rig, root)
    for n in range(size):
        cond.branch([rig.say(n)])
    model = finish(rig, root, [rig.say("before"), *cond.tasks(ctype), rig.say("after")])
    cond.set(value)
    for _ in range(2):
        rig.ran.clear()
        await rig.until(sq, rig.execute(sq, model))
        assert rig.ran == ["before", *([] if taken is None else [taken]), "after"]
    rig.driver.close()


async def test_the_cell_is_read_when_the_condition_runs() -> None:
    rig = Rig()
    sq, root = rig.sq(), root_id(rig)
    cond = Cond(rig, root)
    cond.branch([rig.say("yes")])
    cond.branch([rig.say("no")])
    write = rig.sqe(K.WRITE_VALUE, address=cond.cell, value=0)
    model = finish(rig, root, [write, *cond.tasks(IF)])
    cond.set(1)
    await rig.until(sq, rig.execute(sq, model))
    assert rig.ran == ["no"]
    rig.driver.close()


@CLOCKS
async def test_what_follows_starts_after_every_stream_of_the_branch(clock: str) -> None:
    rig = Rig(clock=clock)
    sq, root = rig.sq(), root_id(rig)
    cond = Cond(rig, root)
    join, reset = rig.sqe(K.EVENT_WAIT, event_id=1), rig.sqe(K.EVENT_RESET, event_id=1)
    cond.branch([rig.say("one"), join, reset], [rig.say("two"), rig.sqe(K.EVENT_RECORD, event_id=1)], heads=2)
    model = finish(rig, root, [*cond.tasks(IF, heads=2), rig.say("after")])
    cond.set(1)
    await rig.until(sq, rig.execute(sq, model))
    assert sorted(rig.ran[:2]) == ["one", "two"]
    assert rig.ran[2:] == ["after"]
    rig.driver.close()


def count_down(rig: Rig, address: int, **load: int) -> bytes:
    view = rig.driver.view(address, 1, "i8")

    def step() -> None:
        view[0] -= 1

    return rig.kernel(step, **load)


@CLOCKS
async def test_a_while_runs_its_body_until_the_cell_is_zero(clock: str) -> None:
    rig = Rig(clock=clock)
    sq, root = rig.sq(), root_id(rig)
    cond = Cond(rig, root)
    cond.branch([rig.say("turn"), count_down(rig, cond.cell)])
    model = finish(rig, root, [*cond.tasks(WHILE), rig.say("out")])
    for turns in (0, 1, 5):
        rig.ran.clear()
        cond.set(turns)
        await rig.until(sq, rig.execute(sq, model))
        assert rig.ran == ["turn"] * turns + ["out"]
    assert not rig.driver.model_busy(model.id)
    rig.driver.close()


async def test_a_hundred_thousand_turns_neither_recurse_nor_starve_the_loop() -> None:
    rig = Rig()
    sq, root = rig.sq(), root_id(rig)
    cond = Cond(rig, root)
    cond.branch([count_down(rig, cond.cell)])
    model = finish(rig, root, cond.tasks(WHILE))
    cond.set(100_000)
    position, passes = rig.execute(sq, model), 0
    start = time.perf_counter()
    while rig.head(sq) < position:
        passes += 1
        await asyncio.sleep(0)
    assert rig.peek(cond.cell) == 0
    assert passes > 100
    assert time.perf_counter() - start < 20
    rig.driver.close()


async def test_nested_conditions_report_their_path_and_fail_the_root() -> None:
    rig = Rig()
    d, sq, root = rig.driver, rig.sq(), root_id(rig)
    outer, inner = Cond(rig, root), Cond(rig, root)
    inner.branch([rig.say("never")])
    inner.branch([rig.say("in"), rig.boom(name="bad")])
    only_last = rig.driver.view(outer.cell, 1, "i8")
    arm = rig.kernel(lambda: rig.driver.write(inner.cell, int(only_last[0] == 1).to_bytes(8, "little")))
    outer.branch([arm, *inner.tasks(SWITCH), count_down(rig, outer.cell)])
    model = finish(rig, root, [*outer.tasks(WHILE), rig.say("after")])
    outer.set(3)
    position = rig.execute(sq, model)
    await rig.until(sq, position)
    assert rig.ran == ["never", "never", "in"]
    own, run = rig.errors()
    record = d.fault(own.fault)
    assert record.cond == [(0, 2), (1, 0)]
    assert (record.program, record.status, record.sq) == ("bad", Status.AIV_EXCEPTION, inner.branches[1].sqs[0])
    assert (run.sq, run.status, run.position, run.fault) == (sq, Status.MODEL_FAILED, position, own.fault)
    assert not d.model_busy(model.id)
    d.close()


async def test_five_levels_deep() -> None:
    rig = Rig()
    sq, root = rig.sq(), root_id(rig)
    conds = [Cond(rig, root) for _ in range(5)]
    body = [rig.say("core")]
    for level, cond in enumerate(conds):
        cond.branch(body)
        cond.set(1)
        body = [rig.say(("down", level)), *cond.tasks(IF), rig.say(("up", level))]
    model = finish(rig, root, body)
    for _ in range(2):
        rig.ran.clear()
        await rig.until(sq, rig.execute(sq, model))
        down, up = [("down", n) for n in range(4, -1, -1)], [("up", n) for n in range(5)]
        assert rig.ran == [*down, "core", *up]
    rig.driver.close()


def binary(rig: Rig, value: int, dtype: SwitchType) -> int:
    address = rig.driver.malloc(8)
    rig.driver.write(address, value.to_bytes(4 if dtype is SwitchType.INT32 else 8, "little", signed=True))
    return address


@pytest.mark.parametrize("dtype", list(SwitchType))
@pytest.mark.parametrize(
    ("op", "left", "right", "true"),
    [
        (Compare.EQ, 1, 1, True),
        (Compare.NE, 1, 1, False),
        (Compare.GT, 1, -1, True),
        (Compare.GE, -1, 1, False),
        (Compare.LT, -2, -1, True),
        (Compare.LE, 2, 1, False),
    ],
)
async def test_a_switch_goes_to_the_other_stream_or_on(
    dtype: SwitchType, op: Compare, left: int, right: int, true: bool
) -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    first = d.alloc(IdKind.SQ)
    d.free(IdKind.SQ, first)
    notify = d.alloc(IdKind.NOTIFY)
    fields = {"left": binary(rig, left, dtype), "right": binary(rig, right, dtype), "cond": op, "dtype": dtype}
    switch = rig.sqe(K.STREAM_SWITCH, true_sq=first + 1, **fields)
    end = rig.sqe(K.NOTIFY_RECORD, notify_id=notify)
    model = rig.model([switch, rig.say("on")], [rig.say("true"), end], notify=notify)
    await rig.until(sq, rig.execute(sq, model))
    assert rig.ran == (["true"] if true else ["on"])
    assert not d.model_busy(model.id)
    d.close()


@pytest.mark.parametrize(("index", "landed"), [(0, 0), (2, 2), (3, 2), (0xFFFFFFFF, 2)])
async def test_a_label_switch_clamps_to_the_last_label(index: int, landed: int) -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    first = d.alloc(IdKind.SQ)
    d.free(IdKind.SQ, first)
    end = rig.cell()
    cells = [rig.cell() for _ in range(3)]
    labels, at = d.malloc(24), rig.cell(index)
    d.write(labels, pack_label_list(cells))
    goto_end = rig.sqe(K.LABEL_GOTO, address=end)
    tasks = [rig.sqe(K.LABEL_SWITCH, index=at, max=3, list=labels)]
    for n, cell in enumerate(cells):
        d.write(cell, pack_label(first, len(tasks)))
        tasks += [rig.sqe(K.LABEL_SET, label=n), rig.say(n), goto_end]
    d.write(end, pack_label(first, len(tasks)))
    model = rig.model([*tasks, rig.sqe(K.LABEL_SET, label=9), rig.say("end")])
    await rig.until(sq, rig.execute(sq, model))
    assert rig.ran == [landed, "end"]
    d.close()


async def test_a_label_of_another_stream_starts_it_there() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    first = d.alloc(IdKind.SQ)
    d.free(IdKind.SQ, first)
    cell, notify = rig.cell(), d.alloc(IdKind.NOTIFY)
    d.write(cell, pack_label(first + 1, 1))
    end = rig.sqe(K.NOTIFY_RECORD, notify_id=notify)
    goto = rig.sqe(K.LABEL_GOTO, address=cell)
    model = rig.model([rig.say("a"), goto, rig.say("skipped")], [rig.say("skipped"), rig.say("b"), end], notify=notify)
    for _ in range(2):
        rig.ran.clear()
        await rig.until(sq, rig.execute(sq, model))
        assert rig.ran == ["a", "b"]
    assert not d.model_busy(model.id)
    d.close()


async def test_an_endless_loop_of_labels_leaves_the_loop_alive_and_can_be_aborted() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    first = d.alloc(IdKind.SQ)
    d.free(IdKind.SQ, first)
    cell = rig.cell()
    d.write(cell, pack_label(first, 0))
    model = rig.model([rig.sqe(K.NOP), rig.sqe(K.LABEL_GOTO, address=cell)])
    position = rig.execute(sq, model)
    await rig.settle(20)
    d.abort_model(model.id)
    await rig.until(sq, position)
    assert [e.status for e in rig.errors(sq)] == [Status.MODEL_ABORTED]
    d.close()


@pytest.mark.parametrize("kind", ["COND", "LABEL_GOTO", "STREAM_SWITCH"])
async def test_branches_need_a_models_sq(kind: str) -> None:
    rig = Rig()
    d, sq, cell = rig.driver, rig.sq(), rig.cell()
    first = d.alloc(IdKind.SQ)
    d.free(IdKind.SQ, first)
    model = rig.model([rig.say("branch")])
    d.write(cell, pack_label(model.sqs[0], 0))
    fields = {
        "COND": {"cell": cell, "table": cell, "notify": 1, "size": 1, "ctype": IF},
        "LABEL_GOTO": {"address": cell},
        "STREAM_SWITCH": {"left": cell, "right": cell, "cond": Compare.EQ, "dtype": 1, "true_sq": model.sqs[0]},
    }
    await rig.run(sq, rig.sqe(K[kind], **fields[kind]), rig.say("on"))
    assert [e.status for e in rig.errors(sq)] == [Status.ILLEGAL_PARAM]
    assert rig.ran[-1] == "on"
    d.close()
