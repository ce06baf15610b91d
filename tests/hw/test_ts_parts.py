"""Small parts: the argument table, the rings, policies, SQ states, and the door itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hw
from hw.chips import CqeKind
from hw.driver import IdKind, RoundRobin, Scripted, SeededRandom, pack_cond_table
from hw.engines.args import ArgTable, Poison
from hw.memory import MemoryFault
from hw.ring import CqRing, SqRing
from hw.ts.sq import MOVES, RunQueue, Sq, SqState
from tests.hw.rig import K, Rig


def test_open_chip_refuses_what_it_does_not_know() -> None:
    for wrong in ({"name": "v300"}, {"engine": "fast"}, {"clock": "sun"}, {"limits": {"max_moons": 1}}):
        with pytest.raises(ValueError, match="known"):
            hw.open_chip(**wrong)  # type: ignore[arg-type]


def test_argument_entries() -> None:
    table = ArgTable()
    changed: list[tuple[int, int, int]] = []
    table.on_change = lambda image, slot, handle: changed.append((image, slot, handle)) or True
    first, second = table.put((1,), (0x10, 0x20)), table.put((2,), (0x20,))
    assert (first, second, len(table)) == (1, 2, 2)
    for slot in (5, 5, 7):
        table.used_by(first, 3, slot)
    table.set(first, (9,), (0x10, 0x20))
    assert changed == [(3, 5, first), (3, 7, first)]
    fault = MemoryFault("gone", 0x20, 8, 0x20, 8, "freed")
    table.memory_freed(0x20, fault)
    for handle in (first, second):
        with pytest.raises(MemoryFault, match="freed"):
            table.get(handle)
    table.set(first, (3,), ())  # new arguments heal it
    assert table.get(first) == (3,)
    table.drop(first)
    for call in (table.get, table.drop):
        with pytest.raises(KeyError):
            call(first)
    table.retire(first)
    assert table.put((), ()) == first
    assert len(changed) == 10  # both users, five times: set, freed, set, dropped, and the handle given out again


def test_a_poison_raises_a_fresh_exception_each_time() -> None:
    poison = Poison(MemoryFault("x", 1, 2, 3, 4, "freed"))
    caught: list[BaseException] = []
    for _ in range(2):
        with pytest.raises(MemoryFault, match="freed") as info:
            print(*poison)  # noqa: T201
        caught.append(info.value)
    assert caught[0] is not caught[1]
    assert caught[1].base == 3  # type: ignore[attr-defined]


def test_the_sq_ring_refuses_half_slots_and_keeps_order_through_the_backlog() -> None:
    ring = SqRing(4)
    for wrong in (b"", bytes(63), bytes(65)):
        with pytest.raises(ValueError, match="64"):
            ring.push(wrong)
    slots = [bytes([n]) * 64 for n in range(11)]
    assert ring.push(slots[0]) == 1
    assert ring.push(b"".join(slots[1:7])) == 7
    assert (ring.tail, ring.position) == (4, 7)
    assert ring.push(slots[7]) == 8
    taken = []
    while ring.head != ring.position:
        while ring.head != ring.tail:
            taken.append(ring.buffer[ring.head % 4 * 64])
            ring.head += 1
        ring.refill()
    assert taken == list(range(8))
    ring.push(b"".join(slots[8:11]))
    assert bytes(ring.buffer[:128]) == slots[8] + slots[9]
    ring.drop()
    assert ring.head == ring.tail == 11


def test_the_cq_ring_is_drained_before_it_overflows() -> None:
    ring, got = CqRing(4), []

    def drain() -> None:
        while (cqe := ring.take(None)) is not None:
            got.append(cqe.position)

    ring.on_full = drain
    for n in range(10):
        ring.post(CqeKind.HEAD, 0, 1, 2, 3, n, -1, -1)
    drain()
    assert got == list(range(10))
    ring.post(CqeKind.HEAD, 0, 1, 2, 3, 10, -1, -1)
    assert ring.take(lambda raw: raw[0] != CqeKind.HEAD) is None
    assert len(ring) == 0


def test_policies() -> None:
    assert RoundRobin().choose([5, 6]) == 0
    one, two = SeededRandom(7), SeededRandom(7)
    assert [one.choose(range(5)) for _ in range(20)] == [two.choose(range(5)) for _ in range(20)]
    script = Scripted([1, 5, 2])
    assert [script.choose(range(n)) for n in (2, 3, 1, 4)] == [1, 2, 0, 0]
    assert script.taken == [1, 2, 0, 0]
    assert "3 choices" in repr(script)


async def test_sqs_move_only_along_the_table() -> None:
    """Follow every state an SQ takes in a lively scenario through MOVES."""
    moves: set[tuple[SqState, SqState]] = set()

    class Watched(Sq):
        __slots__ = ()

    original = Sq.state
    del Watched

    def set_state(sq: Sq, new: SqState) -> None:
        old = getattr(sq, "_test_state", None) if False else seen.get(id(sq))
        if old is not None and old is not new:
            moves.add((old, new))
        seen[id(sq)] = new
        original.__set__(sq, new)

    seen: dict[int, SqState] = {}
    Sq.state = property(lambda sq: original.__get__(sq), set_state)  # type: ignore[assignment, misc]
    try:
        rig = Rig()
        a, b = rig.sq(), rig.sq()
        gate = rig.sqe(K.EVENT_WAIT, event_id=1)
        model = rig.model([rig.say(1), gate, rig.say(2)], [rig.say(3), gate], heads=2)
        rig.execute(a, model)
        rig.execute(b, model)
        await rig.settle()
        rig.driver.abort_model(model.id)
        await rig.settle()
        rig.driver.event_set(1)
        await rig.settle()
        rig.submit(a, rig.sqe(K.EVENT_WAIT, event_id=2))
        await rig.settle()
        rig.driver.sq_abort(a)
        rig.submit(b, rig.say(4))
        rig.driver.sq_abort(b)
        rig.driver.sq_unbind(model.sqs)
        rig.driver.sq_close(a)
        rig.driver.close()
    finally:
        Sq.state = original  # type: ignore[misc]
    assert {move for move in moves if move[1] not in MOVES[move[0]]} == set()
    assert {old for old, _ in moves} >= {SqState.IDLE, SqState.READY, SqState.RUNNING, SqState.PARKED}


def test_user_sqs_have_ids_above_the_pool_lowest_first() -> None:
    d = hw.open_chip(limits={"max_sqs": 4})
    assert [d.sq_open(n) for n in range(3)] == [4, 5, 6]
    d.sq_close(5)
    assert d.sq_open(9) == 5
    with pytest.raises(KeyError):
        d.sq_close(99)
    assert "IDLE" in repr(d.sq_status(4))
    d.close()


def test_a_given_out_register_is_clear() -> None:
    d = hw.open_chip()
    event, notify = d.alloc(IdKind.EVENT), d.alloc(IdKind.NOTIFY)
    d.event_set(event)
    d.notify_set(notify)
    assert d.event_time_ns(event) > 0
    d.free(IdKind.EVENT, event)
    d.free(IdKind.NOTIFY, notify)
    assert (d.alloc(IdKind.EVENT), d.alloc(IdKind.NOTIFY)) == (event, notify)
    assert (d.event_state(event), d.event_time_ns(event), d.notify_state(notify)) == (False, 0, (False, 0))
    d.event_private(event)
    d.event_set(event)
    assert (d.event_state(event), d.event_time_ns(event)) == (True, 0)
    d.free(IdKind.EVENT, event)
    assert d.alloc(IdKind.EVENT) == event
    d.event_set(event)
    assert d.event_time_ns(event) > 0
    d.close()


def test_without_a_running_loop_passes_are_made_by_hand() -> None:
    rig = Rig()
    sq = rig.sq()
    rig.submit(sq, rig.say(1))
    assert rig.ran == []
    rig.driver.run_pass()
    assert rig.ran == [1]
    assert rig.head(sq) == 1
    rig.driver.close()


async def test_what_a_listener_raises_reaches_the_loop_and_the_device_lives_on() -> None:
    import asyncio

    rig = Rig()
    sq, heard = rig.sq(), []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: heard.append(context.get("exception")))

    def listener(cqe: Any) -> None:
        rig.log.append(cqe)
        if len(rig.log) == 1:
            raise RuntimeError("listener")

    rig.driver.listen(listener)
    await rig.run(sq, rig.say(1))
    await rig.run(sq, rig.say(2))
    assert [str(e) for e in heard] == ["listener"]
    rig.driver.close()


async def test_a_listener_may_submit() -> None:
    rig = Rig()
    sq = rig.sq()

    def listener(cqe: Any) -> None:
        rig.log.append(cqe)
        if cqe.position < 5:
            rig.submit(sq, rig.say(cqe.position))

    rig.driver.listen(listener)
    rig.submit(sq, rig.say(0))
    await rig.until(sq, 5)
    assert rig.ran == [0, 1, 2, 3, 4]
    rig.driver.close()


def test_cond_table_bytes_by_hand() -> None:
    packed = pack_cond_table([[7], [], [8, 9]])
    assert np.frombuffer(packed, "<u4").tolist() == [6, 1, 7, 0, 7, 2, 7, 8, 9]


def test_reprs_are_one_line() -> None:
    rig = Rig()
    sq = rig.sq()
    model = rig.model([rig.say(1)])
    m = rig.driver._m
    things = [rig.driver, m.rings[sq], m.models.sqs[model.sqs[0]], m.models.models[model.id], m.cq, m.args, m.kernels]
    things += [m.images, m.images.get(model.images[0]), m.events.at(1), m.notifies.at(1), m.workers, m.pools[0]]
    things += [m.observers, RunQueue(lambda: None), rig.driver.clock, m.kernels.get(1)]
    for thing in things:
        assert "\n" not in repr(thing)
        assert "object at" not in repr(thing)
    rig.driver.close()
