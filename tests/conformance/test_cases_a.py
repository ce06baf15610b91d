"""Conformance group A, the basics of a capture: one test for each case id, through the C names only."""

from __future__ import annotations

import numpy as np

import aclrt
from aclrt import acl
from aclrt.graph import capture

from .capturing import (
    ACTIVE,
    D2H,
    GLOBAL,
    H2D,
    MODES,
    NONE,
    RELAXED,
    Bench,
    add,
    axpy,
    case,
    fork,
    join,
    launch,
    model_of,
    refused,
    still_works,
    value,
)
from .updating import add_scaled


@aclrt.kernel
def multiply(a: aclrt.In[np.float32], b: aclrt.In[np.float32], out: aclrt.Out[np.float32]) -> None:
    out[:] = a * b


@case
async def test_A02_empty_capture_is_legal(b: Bench) -> None:
    b.begin()
    model = b.end()
    assert len(acl.aclmdlRIGetStreams(model)) == 1
    assert b.tasks(model) == []
    for _ in range(2):
        acl.aclmdlRIExecuteAsync(model, b.s)
        await b.sync()
    await acl.aclmdlRIDestroy(model)
    await still_works(b, b.s)


@case
async def test_A04_end_without_begin(b: Bench) -> None:
    with refused(107029, "not capturing"):
        b.end()
    assert acl.aclmdlRICaptureGetInfo(b.s) == (NONE, None)
    await still_works(b, b.s)


@case
async def test_A06_the_default_stream_cannot_be_captured(b: Bench) -> None:
    default = acl.aclrtCtxGetCurrentDefaultStream()
    for mode in MODES:
        with refused(207000, "default stream"):
            b.begin(default, mode)
    assert acl.aclmdlRICaptureGetInfo(default) == (NONE, None)
    launch(None, add, b.x, 2.0)
    await acl.aclrtSynchronizeStream(None)
    assert value(b.x) == 2


@case
async def test_A08_a_refused_end_leaves_the_capture_open(b: Bench) -> None:
    """C's End with a NULL out pointer is 107000; here that is one floor down: in Python it is the return value."""
    b.begin()
    launch(b.s, add, b.x, 1.0)
    with refused(107000):
        capture.end(b.dev.context, b.s, want_model=False)
    assert acl.aclmdlRICaptureGetInfo(b.s).status == ACTIVE
    launch(b.s, add, b.x, 1.0)
    assert await b.run(b.end()) == 2


@case
async def test_A09_bad_mode(b: Bench) -> None:
    for mode in (3, -1, 99):
        with refused(107000, f"mode is {mode}"):
            b.begin(b.s, mode)
        assert acl.aclmdlRICaptureGetInfo(b.s) == (NONE, None)
    await still_works(b, b.s)


@case
async def test_A10_capturing_does_not_execute(b: Bench) -> None:
    b.begin(mode=RELAXED)
    for _ in range(3):
        launch(b.s, add, b.x, 1.0)
    assert value(b.x) == 0
    model = b.end()
    assert value(b.x) == 0
    assert await b.run(model) == 3
    assert await b.run(model) == 6


@case
async def test_A11_work_before_the_capture_runs_and_is_not_in_it(b: Bench) -> None:
    launch(b.s, add, b.x, 1.0)
    b.begin()
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    await b.sync()
    assert value(b.x) == 1
    b.x.assign(np.zeros(8, np.float32))
    assert await b.run(model) == 1


@case
async def test_A13_the_numbers_of_the_official_example(b: Bench) -> None:
    source = acl.aclrtMallocHost(32)
    source.numpy(np.float32)[:] = np.arange(1, 9)
    mine, other, total, out = (b.dev.array(np.zeros(8, np.float32)) for _ in range(4))
    b.begin()
    acl.aclrtMemcpyAsync(mine, 32, source, 32, H2D, b.s)
    launch(b.s, add_scaled, mine, other, total, 1.1)
    acl.aclmdlRICaptureThreadExchangeMode(RELAXED)
    await acl.aclrtMemcpy(other, 32, np.full(8, 2, np.float32), 32, H2D)
    acl.aclmdlRICaptureThreadExchangeMode(GLOBAL)
    launch(b.s, multiply, total, other, out)
    model = b.end()
    expected = (np.arange(1, 9, dtype=np.float32) + np.float32(2) * np.float32(1.1)) * 2
    for _ in range(4):
        acl.aclmdlRIExecuteAsync(model, b.s)
        await b.sync()
        assert np.allclose(out.numpy(), [6.4, 8.4, 10.4, 12.4, 14.4, 16.4, 18.4, 20.4])
        assert (out.numpy() == expected).all()


@case
async def test_A14_a_chain_replayed_on_another_stream(b: Bench) -> None:
    a = b.dev.array(np.full(1000, 1, np.float32))
    b.begin()
    for _ in range(10):
        launch(b.s, add, a, 1.0)
    model = b.end()
    launch(b.s, add, a, 0.0)
    fork(b.s, b.side)
    acl.aclmdlRIExecuteAsync(model, b.side)
    join(b.s, b.side)
    back = acl.aclrtMallocHost(4000)
    acl.aclrtMemcpyAsync(back, 4000, a, 4000, D2H, b.s)
    await b.sync()
    assert back.numpy(np.float32).sum() == 11000


@case
async def test_A17_a_stream_of_another_context(b: Bench) -> None:
    first = acl.aclrtGetCurrentContext()
    second = acl.aclrtCreateContext(0)
    with refused(107003, "another context"):
        b.begin()
    acl.aclrtSetCurrentContext(first)
    assert acl.aclmdlRICaptureGetInfo(b.s) == (NONE, None)
    b.begin()
    model = model_of(b.s)
    acl.aclrtSetCurrentContext(second)
    with refused(107003):
        b.end()
    acl.aclrtSetCurrentContext(first)
    assert b.end() is model
    await acl.aclrtDestroyContext(second)
    await still_works(b, b.s)


@case
async def test_A18_a_capturing_stream_cannot_be_destroyed(b: Bench) -> None:
    b.begin()
    fork(b.s, b.side)
    for stream in (b.s, b.side):
        for destroy in (acl.aclrtDestroyStream, acl.aclrtDestroyStreamForce):
            with refused(107027):
                await destroy(stream)
    launch(b.side, add, b.x, 1.0)
    join(b.s, b.side)
    model = b.end()
    await acl.aclrtDestroyStream(b.side)
    assert await b.run(model) == 1  # the graph has hidden streams of its own
    await acl.aclrtDestroyStream(b.s)
    with refused(107017):
        acl.aclmdlRICaptureGetInfo(b.s)


@case
async def test_A19_debug_print_in_the_middle(b: Bench) -> None:
    b.begin()
    launch(b.s, axpy, b.y, b.x, 1.0)
    acl.aclmdlRIDebugPrint(model_of(b.s))
    launch(b.s, add, b.x, 1.0)
    assert await b.run(b.end()) == 1
