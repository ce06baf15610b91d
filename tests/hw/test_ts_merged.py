"""Merged programs: a light model of several SQs replays as one list, and nobody can tell but by the clock."""

from __future__ import annotations

from typing import Any

import pytest

from hw.chips import CqeKind, SqeKind, Status
from hw.observe import ObserverBase
from tests.hw.rig import K, Model, Rig


def edge(rig: Rig, event: int) -> tuple[bytes, bytes, bytes]:
    """(record, wait, reset) of one event."""
    kinds = (K.EVENT_RECORD, K.EVENT_WAIT, K.EVENT_RESET)
    record, wait, reset = (rig.sqe(kind, event_id=event) for kind in kinds)
    return record, wait, reset


def diamond(rig: Rig, *, middle: bytes | None = None) -> Model:
    """a | b, c | d over two SQs, with both edges reset at the end."""
    go, back = edge(rig, 1), edge(rig, 2)
    first = [rig.say("a"), go[0], rig.say("b"), back[1], rig.say("d"), go[2], back[2]]
    second = [go[1], middle or rig.say("c"), back[0]]
    return rig.model(first, second, heads=2)


def merged_of(rig: Rig, model: Model) -> Any:
    return rig.driver._m.models.models[model.id].merged


async def warm(rig: Rig, sq: int, model: Model, runs: int = 3) -> None:
    for _ in range(runs):
        await rig.until(sq, rig.execute(sq, model))


async def test_it_is_merged_once_it_is_known_to_be_light_and_does_the_same() -> None:
    rig = Rig()
    sq, model = rig.sq(), diamond(rig)
    await warm(rig, sq, model, 1)
    assert merged_of(rig, model) is None
    await warm(rig, sq, model, 4)
    assert merged_of(rig, model).valid
    for run in range(5):
        words = rig.ran[4 * run : 4 * run + 4]
        assert words[0] == "a"
        assert words[3] == "d"
        assert set(words[1:3]) == {"b", "c"}
    assert not rig.driver.event_state(1)  # the resets ran too
    rig.driver.close()


@pytest.mark.parametrize("why", ["external", "condition", "single", "notify", "timeout"])
async def test_what_waits_for_the_world_or_branches_is_not_merged(why: str) -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    go = edge(rig, 1)
    streams: list[list[bytes]] = [[rig.say("a"), go[0]], [go[1], rig.say("b")]]
    if why == "external":
        streams[1].insert(0, rig.sqe(K.EVENT_WAIT, event_id=9))
        d.event_set(9)
    elif why == "condition":
        streams[0].append(rig.sqe(K.WAIT_VALUE, address=rig.cell(1), value=1, flag=1))
    elif why == "single":
        streams = [[rig.say("a")]]
    elif why == "notify":
        streams[0].append(rig.sqe(K.NOTIFY_RECORD, notify_id=77))
    else:
        streams[1][0] = rig.sqe(K.EVENT_WAIT, event_id=1, timeout_ms=1000)
    model = rig.model(*streams, heads=len(streams))
    await warm(rig, sq, model, 4)
    assert merged_of(rig, model) is None
    assert rig.ran.count("a") == 4
    rig.driver.close()


async def test_a_fault_is_the_task_of_the_stream_it_is_on() -> None:
    rig = Rig()
    sq, angry = rig.sq(), [False]

    def maybe() -> None:
        if angry[0]:
            raise ArithmeticError("c")
        rig.ran.append("c")

    model = diamond(rig, middle=rig.kernel(maybe))
    await warm(rig, sq, model)
    assert merged_of(rig, model).valid
    angry[0] = True
    await rig.until(sq, rig.execute(sq, model))
    inner, outer = rig.errors()
    assert (inner.sq, inner.position, inner.status) == (model.sqs[1], 1, Status.AIV_EXCEPTION)
    assert (outer.sq, outer.status) == (sq, Status.MODEL_FAILED)
    assert "d" not in rig.ran[12:]
    angry[0] = False
    await warm(rig, sq, model, 1)
    assert rig.ran[-1] == "d"
    assert not rig.driver.model_busy(model.id)
    rig.driver.close()


async def test_another_kernel_in_a_slot_is_taken_over_in_place() -> None:
    rig = Rig()
    sq, model = rig.sq(), diamond(rig)
    await warm(rig, sq, model)
    merged = merged_of(rig, model)
    rig.driver.image_write(model.images[1], 1, rig.say("C"))
    await warm(rig, sq, model, 1)
    assert merged_of(rig, model) is merged
    assert "C" in rig.ran[-4:]
    assert "c" not in rig.ran[-4:]
    rig.driver.close()


async def test_another_order_is_found_anew() -> None:
    rig = Rig()
    sq, model = rig.sq(), diamond(rig)
    await warm(rig, sq, model)
    merged = merged_of(rig, model)
    rig.driver.image_write(model.images[1], 0, rig.say("free") + rig.say("c"))  # no longer waits for the first stream
    await warm(rig, sq, model, 3)
    assert not merged.valid
    assert merged_of(rig, model) is not merged
    assert rig.ran[-5:].count("free") == 1
    rig.driver.close()


async def test_a_run_goes_on_stream_by_stream_when_the_mode_changes_under_it() -> None:
    """An observer is attached in the middle of a run: from there on tasks run one by one, none twice, none left out."""
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    seen: list[SqeKind] = []

    class Watch(ObserverBase):
        def task_end(self, sq: int, slot: int, sqe: Any, status: Any) -> None:
            seen.append(sqe.kind)

    watch = Watch()
    spin = [0]

    def spend() -> None:  # uses the time slice up, so that the run has to pause
        if spin[0]:
            spin[0] -= 1
            m = d._m
            m.queue.slice_end = 0
            m.queue.budget = 0

    go, back = edge(rig, 1), edge(rig, 2)
    first = [rig.say(f"a{n}") for n in range(600)]
    second = [rig.say(f"b{n}") for n in range(600)]
    model = rig.model(
        [*first, rig.kernel(spend), go[0], back[1], rig.say("end"), go[2], back[2]], [go[1], *second, back[0]], heads=2
    )
    await warm(rig, sq, model)
    assert merged_of(rig, model).valid
    rig.ran.clear()
    spin[0] = 1
    done = rig.execute(sq, model)
    while not rig.ran:
        d.run_pass()
    d.observe(watch)
    await rig.until(sq, done)
    assert sorted(rig.ran) == sorted([f"a{n}" for n in range(600)] + [f"b{n}" for n in range(600)] + ["end"])
    assert rig.ran[-1] == "end"
    d.unobserve(watch)
    d.close()


async def test_abort_between_its_parts_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    first, second = [rig.say(n) for n in range(700)], [rig.say(n) for n in range(700)]
    go = edge(rig, 1)
    model = rig.model([*first, go[1], go[2]], [*second, go[0]], heads=2)
    await warm(rig, sq, model)
    assert merged_of(rig, model).valid
    rig.ran.clear()
    done = rig.execute(sq, model)
    monkeypatch.setattr(type(d._m.queue), "over", lambda self: True)  # every look at the clock ends the slice
    while not rig.ran:
        d.run_pass()
    monkeypatch.undo()
    assert 0 < len(rig.ran) < 1400
    d.abort_model(model.id)
    await rig.until(sq, done)
    assert [c.status for c in rig.log if c.kind is CqeKind.ERROR] == [Status.MODEL_ABORTED]
    rig.ran.clear()
    await warm(rig, sq, model, 1)
    assert len(rig.ran) == 1400
    d.close()


async def test_an_event_waited_for_outside_still_wakes_the_waiter() -> None:
    rig = Rig()
    sq, other = rig.sq(), rig.sq()
    record = rig.sqe(K.EVENT_RECORD, event_id=5)
    go, back = edge(rig, 1), edge(rig, 2)
    model = rig.model([rig.say("a"), go[0], record, back[1], go[2], back[2]], [go[1], rig.say("b"), back[0]], heads=2)
    await warm(rig, sq, model)
    assert merged_of(rig, model).valid
    rig.driver.event_clear(5)
    position = rig.submit(other, rig.sqe(K.EVENT_WAIT, event_id=5), rig.say("woken"))
    await rig.settle()
    assert "woken" not in rig.ran
    await warm(rig, sq, model, 1)
    await rig.until(other, position)
    assert rig.ran.count("woken") == 1
    rig.driver.close()


@pytest.mark.parametrize("warm_runs", [0, 3])
async def test_a_run_cut_short_leaves_no_private_event_for_the_next(warm_runs: int) -> None:
    """The wait of the second stream must not pass on what the failed run recorded."""
    rig = Rig()
    d, sq, angry = rig.driver, rig.sq(), [False]

    def maybe() -> None:
        if angry[0]:
            raise ArithmeticError("b")
        rig.ran.append("b")

    for event in (1, 2):
        d.event_private(event)
    go, back = edge(rig, 1), edge(rig, 2)
    first = [rig.say("a"), go[0], rig.kernel(maybe), back[1], rig.say("d"), go[2], back[2]]
    model = rig.model(first, [go[1], rig.say("c"), back[0]], heads=2)
    await warm(rig, sq, model, warm_runs)
    angry[0] = True
    await rig.until(sq, rig.execute(sq, model))
    angry[0] = False
    rig.ran.clear()
    await warm(rig, sq, model, 4)
    for run in range(4):
        words = rig.ran[4 * run : 4 * run + 4]
        assert (words[0], words[3]) == ("a", "d"), rig.ran
    d.close()
