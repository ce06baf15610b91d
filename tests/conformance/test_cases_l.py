"""Conformance group L, copies and sets while capturing: one test for each case id, through the C names only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .capturing import (
    ACTIVE,
    D2D,
    D2H,
    GLOBAL,
    H2D,
    MODES,
    RELAXED,
    THREAD_LOCAL,
    Bench,
    case,
    fork,
    join,
    launch,
    model_of,
    refused,
    status,
    value,
)
from .updating import ONES

exchange = acl.aclmdlRICaptureThreadExchangeMode


@aclrt.kernel
def square(x: aclrt.In[np.float32], out: aclrt.Out[np.float32]) -> None:
    out[:] = x * x


def pinned(value: float = 0.0) -> Any:
    buffer = acl.aclrtMallocHost(32)
    buffer.numpy(np.float32)[:] = value
    return buffer


async def run(b: Bench, model: Any) -> None:
    acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()


@case
async def test_L01_pageable_memory_is_never_captured(b: Bench) -> None:
    host = np.zeros(8, np.float32)
    for mode in MODES:
        for exchanged in MODES:
            exchange(exchanged)
            b.begin(mode=mode)
            with refused(107000, "pageable", "aclrtMallocHost"):
                acl.aclrtMemcpyAsync(b.x, 32, host, 32, H2D, b.s)
            with refused(107000):
                acl.aclrtMemcpyAsync(host, 32, b.x, 32, D2H, b.s)
            assert status(b.s) == ACTIVE
            assert b.tasks(model_of(b.s)) == []
            acl.aclrtMemcpyAsync(b.x, 32, pinned(1.0), 32, H2D, b.s)
            model = b.end()
            await run(b, model)
            assert value(b.x) == 1


@case
async def test_L02_pinned_memory_is_captured(b: Bench) -> None:
    source, target = pinned(), pinned()
    b.begin()
    acl.aclrtMemcpyAsync(b.x, 32, source, 32, H2D, b.s)
    launch(b.s, square, b.x, b.y)
    acl.aclrtMemcpyAsync(target, 32, b.y, 32, D2H, b.s)
    model = b.end()
    assert (target.numpy(np.float32) == 0).all()
    for factor in (1, 2, 3):
        source.numpy(np.float32)[:] = ONES * factor
        await run(b, model)
        assert (target.numpy(np.float32) == (ONES * factor) ** 2).all()


@case
async def test_L03_an_async_copy_that_would_have_to_wait(b: Bench) -> None:
    host = ONES.copy()
    b.begin()
    with refused(107041):
        acl.aclrtMemcpyAsync(b.x, 32, host, 32, H2D, b.side)
    with refused(107041):
        acl.aclrtMemcpyAsync(host, 32, b.x, 32, D2H, b.side)
    exchange(RELAXED)
    acl.aclrtMemcpyAsync(b.x, 32, host, 32, H2D, b.side)
    host[:] = 0  # it was read at the call
    await b.sync(b.side)
    exchange(GLOBAL)
    acl.aclrtMemcpyAsync(b.y, 32, pinned(5.0), 32, H2D, b.side)
    await b.sync(b.side)
    b.end()
    assert (b.x.numpy() == ONES).all()
    assert value(b.y) == 5


@case
async def test_L05_a_copy_on_the_device_reads_when_it_runs(b: Bench) -> None:
    source = b.dev.array(ONES)
    b.begin()
    acl.aclrtMemcpyAsync(b.x, 32, source, 32, D2D, b.s)
    model = b.end()
    assert value(b.x) == 0
    for factor in (1, 4):
        source.assign(ONES * factor)
        await run(b, model)
        assert (b.x.numpy() == ONES * factor).all()


@case
async def test_L06_a_set_is_captured(b: Bench) -> None:
    b.begin()
    acl.aclrtMemsetAsync(b.x.address, 32, 0x40, 32, b.s)
    model = b.end()
    assert value(b.x) == 0
    for _ in range(2):
        b.x.assign(ONES)
        await run(b, model)
        assert (b.x.numpy().view(np.uint8) == 0x40).all()


@case
async def test_L07_copies_of_rows(b: Bench) -> None:
    host, target, source = np.arange(8, dtype=np.float32), pinned(), pinned(7.0)
    b.begin()
    with refused(107000, "pageable"):
        acl.aclrtMemcpy2dAsync(b.x, 16, host, 16, 8, 2, H2D, b.s)
    with refused(107041):
        acl.aclrtMemcpy2dAsync(b.x, 16, host, 16, 8, 2, H2D, b.side)
    acl.aclrtMemcpy2dAsync(b.x, 16, source, 16, 8, 2, H2D, b.s)
    acl.aclrtMemcpyAsync(target, 32, b.x, 32, D2H, b.s)
    model = b.end()
    await run(b, model)
    assert target.numpy(np.float32).tolist() == [7, 7, 0, 0, 7, 7, 0, 0]


@case
async def test_L08_a_copy_onto_itself_is_no_task(b: Bench) -> None:
    b.begin()
    acl.aclrtMemcpyAsync(b.x, 32, b.x, 32, D2D, b.s)
    acl.aclrtMemcpyAsync(b.x, 32, b.x.address, 32, D2D, b.s)
    assert b.tasks(model_of(b.s)) == []
    acl.aclrtMemcpyAsync(b.x, 32, b.y, 32, D2D, b.s)
    assert len(b.tasks(model_of(b.s))) == 1
    await run(b, b.end())


@case
async def test_L09_memory_is_allocated_and_freed_during_a_capture(b: Bench) -> None:
    before = b.dev.used_bytes
    b.begin()
    address = acl.aclrtMalloc(1024, 0)
    assert b.dev.used_bytes > before
    acl.aclrtFree(address)
    acl.aclrtFreeHost(acl.aclrtMallocHost(64))
    assert b.dev.used_bytes == before
    assert status(b.s) == ACTIVE
    b.end()


@case
async def test_L10_a_pinned_buffer_goes_to_the_device(b: Bench) -> None:
    buffer = acl.aclrtMallocHost(256)
    buffer.numpy(np.float32)[:] = 7.0
    target = b.dev.array(np.ones(64, np.float32))
    b.begin()
    acl.aclrtMemcpyAsync(target, 256, buffer, 256, H2D, b.s)
    model = b.end()
    target.assign(np.zeros(64, np.float32))
    await run(b, model)
    assert (target.numpy() == 7).all()


@case
async def test_L11_two_graphs_two_sources(b: Bench) -> None:
    models = []
    for target, number in ((b.x, 11.0), (b.y, 22.0)):
        b.begin()
        acl.aclrtMemcpyAsync(target, 32, pinned(number), 32, H2D, b.s)
        models.append(b.end())
    first, second = models
    for _ in range(3):
        for target in (b.x, b.y):
            target.assign(np.zeros(8, np.float32))
        for model in (second, first, first, second):
            acl.aclmdlRIExecuteAsync(model, b.s)
        await b.sync()
        assert (b.x.numpy() == 11).all()
        assert (b.y.numpy() == 22).all()


@pytest.mark.parametrize("branched", [False, True])
@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
async def test_L12_the_source_is_refilled_before_each_replay(branched: bool, mode: int) -> None:
    async with aclrt.open_device() as dev:
        b = Bench(dev, "v100")
        source, target = pinned(), pinned()
        b.begin(mode=mode)
        acl.aclrtMemcpyAsync(b.x, 32, source, 32, H2D, b.s)
        if branched:
            fork(b.s, b.side)
            launch(b.side, square, b.x, b.y)
            join(b.s, b.side)
        else:
            launch(b.s, square, b.x, b.y)
        acl.aclrtMemcpyAsync(target, 32, b.y, 32, D2H, b.s)
        model = b.end()
        for number in range(1, 8):
            source.numpy(np.float32)[:] = number
            await run(b, model)
            assert (target.numpy(np.float32) == number * number).all()
