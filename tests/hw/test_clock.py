"""The clocks by themselves."""

from __future__ import annotations

import asyncio

from hw.clock import VirtualClock, WallClock


def test_virtual_time_stands_still_until_it_jumps_to_the_next_deadline() -> None:
    clock, seen = VirtualClock(), []
    clock.call_at(20, lambda: seen.append("b"))
    clock.call_at(10, lambda: seen.append("a"))
    late = clock.call_at(15, lambda: seen.append("never"))
    assert (clock.now_ns(), clock.next_ns()) == (0, 10)
    assert clock.jump()
    assert (clock.now_ns(), seen) == (10, ["a"])
    late.cancel()
    late.cancel()
    assert clock.jump()
    assert (clock.now_ns(), seen) == (20, ["a", "b"])
    assert not clock.jump()
    assert clock.now_ns() == 20


def test_timers_of_one_instant_fire_in_the_order_they_were_armed_and_may_arm_more() -> None:
    clock, seen = VirtualClock(), []
    clock.call_at(5, lambda: (seen.append(1), clock.call_at(5, lambda: seen.append(3)), None)[-1])
    clock.call_at(5, lambda: seen.append(2))
    clock.jump()
    assert seen == [1, 2, 3]
    past = clock.call_at(1, lambda: seen.append(4))  # the past is now
    assert past.when_ns == 5


def test_who_is_told_of_an_armed_timer() -> None:
    armed = []
    clock = VirtualClock(lambda: armed.append(True))
    clock.call_at(1, lambda: None, device=True)
    assert not armed
    clock.call_at(2, lambda: None)
    assert armed
    assert clock.jump()
    assert not clock.told_host
    assert clock.jump()
    assert clock.told_host
    assert repr(clock) == "<VirtualClock 2 ns, next None>"


async def test_the_wall_clock_runs_and_its_timers_are_the_loops() -> None:
    clock, fired = WallClock(), asyncio.Event()
    before = clock.now_ns()
    cancelled = clock.call_at(0, lambda: fired.clear())
    cancelled.cancel()
    timer = clock.call_at(clock.now_ns() + 1000, fired.set)
    async with asyncio.timeout(5):
        await fired.wait()
    assert not timer.armed
    assert clock.now_ns() > before
