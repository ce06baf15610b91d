"""Conformance group B, capture modes and host threads: one test for each case id, through the C names only."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aclrt
from aclrt import acl

from .capturing import (
    ACTIVE,
    GLOBAL,
    H2D,
    MODES,
    NONE,
    RELAXED,
    THREAD_LOCAL,
    Bench,
    add,
    case,
    launch,
    memset,
    model_of,
    refused,
    status,
    still_works,
    threads,
    value,
)
from .updating import ONES

if TYPE_CHECKING:
    from collections.abc import Callable

exchange = acl.aclmdlRICaptureThreadExchangeMode


@case
async def test_B01_exchange_returns_the_previous_mode(b: Bench) -> None:
    old = GLOBAL
    for mode in (GLOBAL, THREAD_LOCAL, RELAXED, GLOBAL):
        assert exchange(mode) == old
        old = mode


@case
async def test_B02_without_a_capture_everything_is_allowed(b: Bench) -> None:
    for mode in MODES:
        exchange(mode)
        await memset(b.x)


@case
async def test_B04_three_captures_of_one_thread(b: Bench) -> None:
    for stream, mode in zip((b.s, b.side, b.third), MODES, strict=True):
        b.begin(stream, mode)
    with refused(107030, f"stream {b.s.id} (GLOBAL", f"stream {b.side.id} (THREAD_LOCAL"):
        await memset(b.x)
    b.end(b.s)
    with refused(107030):
        await memset(b.x)
    b.end(b.side)
    await memset(b.x)
    b.end(b.third)


@case
async def test_B07_relaxed_on_both_sides(b: Bench) -> None:
    b.begin(mode=RELAXED)
    assert exchange(RELAXED) == GLOBAL
    await memset(b.x)
    b.end()
    assert exchange(GLOBAL) == RELAXED


@case
async def test_B08_an_exchange_lets_unsafe_calls_through_and_they_are_not_captured(b: Bench) -> None:
    b.begin()
    exchange(RELAXED)
    await acl.aclrtMemcpy(b.x, 32, ONES, 32, H2D)
    assert value(b.x) == 1  # at once
    exchange(GLOBAL)
    with refused(107030):
        await acl.aclrtMemcpy(b.x, 32, ONES, 32, H2D)
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    for expected in (2, 3):  # a replayed copy would set it back
        assert await b.run(model) == expected


@case
async def test_B09_a_global_capture_holds_for_every_thread(b: Bench) -> None:
    b.begin()
    async with threads(1) as (other,):
        await other.refuses(107030, memset, b.x)
        assert await other(exchange, THREAD_LOCAL) == GLOBAL
        await other(memset, b.x)
        await other(exchange, RELAXED)
        await other(memset, b.x)
        await other(exchange, GLOBAL)
        await other.refuses(107030, memset, b.x)
    exchange(THREAD_LOCAL)
    with refused(107030):
        await memset(b.x)
    b.end()
    await memset(b.x)


@case
async def test_B10_a_thread_local_capture_holds_for_its_thread(b: Bench) -> None:
    b.begin(mode=THREAD_LOCAL)
    async with threads(1) as (other,):
        await other(memset, b.x)
    with refused(107030):
        await memset(b.x)
    exchange(RELAXED)
    await memset(b.x)
    b.end()


@case
async def test_B11_a_relaxed_capture_holds_nobody_up(b: Bench) -> None:
    b.begin(mode=RELAXED)
    async with threads(1) as (other,):
        for mode in MODES:
            await other(exchange, mode)
            await other(memset, b.x)
    b.end()


@case
async def test_B13_end_on_the_wrong_thread(b: Bench) -> None:
    async with threads(1) as (other,):
        for mode in (GLOBAL, THREAD_LOCAL):
            b.begin(mode=mode)
            model = model_of(b.s)
            launch(b.s, add, b.x, 1.0)
            await other.refuses(107038, b.end)
            assert acl.aclmdlRICaptureGetInfo(b.s) == (NONE, None)
            with refused(107029):
                b.end()
            await acl.aclmdlRIDestroy(model)
    assert value(b.x) == 0
    exchange(RELAXED)  # this thread's own count stays, as recorded
    await still_works(b, b.s)


@case
async def test_B14_a_relaxed_capture_may_end_anywhere(b: Bench) -> None:
    b.begin(mode=RELAXED)
    launch(b.s, add, b.x, 1.0)
    async with threads(1) as (other,):
        await other(launch, b.s, add, b.x, 2.0)
        model = await other(b.end)
    assert status(b.s) == NONE
    assert await b.run(model) == 3


@case
async def test_B15_a_bad_mode_changes_nothing(b: Bench) -> None:
    exchange(THREAD_LOCAL)
    with refused(100000):
        exchange(None)
    for mode in (3, -1):
        with refused(107000):
            exchange(mode)
    assert exchange(GLOBAL) == THREAD_LOCAL


@case
async def test_B17_allocation_is_never_unsafe(b: Bench) -> None:
    async with threads(1) as (other,):
        for mode in MODES:
            b.begin(mode=mode)
            for call in (other, _here):
                address = await call(acl.aclrtMalloc, 64, 0)
                await call(acl.aclrtFree, address)
                buffer = await call(acl.aclrtMallocHost, 64)
                await call(acl.aclrtFreeHost, buffer)
            assert status(b.s) == ACTIVE
            b.end()


@case
async def test_B18_modes_belong_to_the_thread(b: Bench) -> None:
    """A host thread is an asyncio task: a child task inherits the Context, not the modes."""
    exchange(RELAXED)
    async with threads(2) as (one, two):
        assert await one(exchange, THREAD_LOCAL) == GLOBAL
        assert await two(exchange, RELAXED) == GLOBAL
        assert await one(exchange, GLOBAL) == THREAD_LOCAL
        assert await one(acl.aclrtGetCurrentContext) is b.dev.context
    b.begin(mode=THREAD_LOCAL)
    child = asyncio.create_task(_child(b))
    await child
    exchange(GLOBAL)
    with refused(107030):
        await memset(b.x)
    b.end()
    assert aclrt.host_thread_id() != child.result()


async def _child(b: Bench) -> int:
    assert exchange(GLOBAL) == GLOBAL
    await memset(b.x)  # the THREAD_LOCAL capture is another thread's
    return aclrt.host_thread_id()


async def _here(call: Callable[..., Any], *args: Any) -> Any:
    return call(*args)
