"""Conformance group K, executions, names and destroy callbacks: one test for each case id, through the C names only."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .capturing import RELAXED, Bench, add, case, launch, refused, value

HEAD = acl.ACL_MODEL_STREAM_FLAG_HEAD


@aclrt.kernel
def affine(x: aclrt.In[np.float32], out: aclrt.Out[np.float32], scale: float, shift: float) -> None:
    out[:] = x * np.float32(scale) + np.float32(shift)


@aclrt.kernel
def total(x: aclrt.In[np.float32], out: aclrt.InOut[np.float32]) -> None:
    out += x


@aclrt.kernel
def broken(x: aclrt.In[np.float32]) -> None:
    raise ZeroDivisionError("by design")


def normal(b: Bench, kernel: Any, *args: Any) -> Any:
    """A complete model of one stream with one kernel."""
    model, p = acl.aclmdlRIBuildBegin(0), acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
    acl.aclmdlRIBindStream(model, p, HEAD)
    launch(p, kernel, *args)
    acl.aclmdlRIEndTask(model, p)
    acl.aclmdlRIBuildEnd(model)
    return model


def graph(b: Bench, kernel: Any, *args: Any) -> Any:
    b.begin(b.s, RELAXED)
    launch(b.s, kernel, *args)
    return b.end()


BOTH = [normal, graph]


@case
async def test_K01_two_executions_back_to_back_both_run(b: Bench) -> None:
    for make in BOTH:
        b.x.assign(np.zeros(8, "f4"))
        model = make(b, add, b.x, 1.0)
        acl.aclmdlRIExecuteAsync(model, b.s)
        acl.aclmdlRIExecuteAsync(model, b.s)
        await b.sync()
        assert value(b.x) == 2


@case
async def test_K02_the_null_stream_is_the_default_stream(b: Bench) -> None:
    for make in BOTH:
        b.x.assign(np.zeros(8, "f4"))
        model = make(b, add, b.x, 1.0)
        run = acl.aclmdlRIExecuteAsync(model, None)
        assert run.stream is acl.aclrtCtxGetCurrentDefaultStream()
        await acl.aclrtSynchronizeStream(None)
        assert value(b.x) == 1


@case
async def test_K04_streams_and_models_of_another_context(b: Bench) -> None:
    mine = acl.aclrtGetCurrentContext()
    models = [make(b, add, b.x, 1.0) for make in BOTH]
    other = acl.aclrtCreateContext(0)
    foreign = acl.aclrtCreateStream()
    for model in models:
        with refused(107004):
            acl.aclmdlRIExecuteAsync(model, foreign)
        with refused(107004):
            await acl.aclmdlRIDestroy(model)
    acl.aclrtSetCurrentContext(mine)
    for model in models:
        with refused(107003):
            acl.aclmdlRIExecuteAsync(model, foreign)
        acl.aclmdlRIExecuteAsync(model, b.s)
        await b.sync()
        await acl.aclmdlRIDestroy(model)
    await acl.aclrtDestroyContext(other)
    assert value(b.x) == 2


@case
async def test_K06_graphs_and_eager_work_interleaved(b: Bench) -> None:
    """Two successive graphs chained through one buffer, replayed 8 times with eager work between them: sums of all
    steps."""
    size = 1000
    a, out, first, second = (b.dev.array(np.zeros(size, "f4")) for _ in range(4))
    one = b.dev.array(np.ones(size, "f4"))
    b.begin()
    launch(b.s, affine, a, out, 2.0, 10.0)
    launch(b.s, total, out, first)
    g0 = b.end()
    b.begin()
    launch(b.s, affine, out, out, 1.0, 5.0)
    launch(b.s, total, out, second)
    g1 = b.end()
    expected_a = expected_first = expected_second = 0.0
    for _ in range(8):
        acl.aclmdlRIExecuteAsync(g0, b.s)
        launch(b.s, total, one, a)
        acl.aclmdlRIExecuteAsync(g1, b.s)
        expected_first += 2 * expected_a + 10
        expected_second += 2 * expected_a + 15
        expected_a += 1
    await b.sync()
    assert a.numpy().sum() == size * 8
    assert first.numpy().sum() == size * expected_first
    assert second.numpy().sum() == size * expected_second


@case
async def test_K07_two_graphs_on_two_streams_at_once(b: Bench) -> None:
    size, ways = 1000, (94.0, 156.0)
    buffers = [b.dev.array(np.zeros(size, "f4")) for _ in ways]
    models = []
    for buffer, amount in zip(buffers, ways, strict=True):
        b.begin()
        for _ in range(2):
            launch(b.s, add, buffer, amount / 2)
        models.append(b.end())
    for model, stream in zip(models, (b.side, b.third), strict=True):
        acl.aclmdlRIExecuteAsync(model, stream)
    await acl.aclrtSynchronizeDevice()
    assert [buffer.numpy().sum() for buffer in buffers] == [size * amount for amount in ways]


@case
async def test_K08_a_transport_failure_hits_one_execute(b: Bench) -> None:
    """The copy of one graph's SQEs to the device fails: that call says so, the graphs beside it work, and so does a
    retry."""
    models = [graph(b, add, b.x, amount) for amount in (1.0, 10.0, 100.0)]
    driver = b.dev.npu.driver
    write = driver.image_write

    def lost(image: int, slot: int, data: bytes) -> None:
        raise OSError(5, "the link is down")

    acl.aclmdlRIExecuteAsync(models[0], b.s)
    driver.image_write = lost  # type: ignore[method-assign,assignment]
    with refused(507052):
        acl.aclmdlRIExecuteAsync(models[1], b.s)
    driver.image_write = write  # type: ignore[method-assign]
    acl.aclmdlRIExecuteAsync(models[2], b.s)
    await b.sync()
    assert value(b.x) == 101
    acl.aclmdlRIExecuteAsync(models[1], b.s)
    await b.sync()
    assert value(b.x) == 111
    for model in models:
        await acl.aclmdlRIDestroy(model)


@case
async def test_K09_null_models(b: Bench) -> None:
    with refused(100000):
        acl.aclmdlRIExecuteAsync(None, b.s)
    with refused(100000):
        await acl.aclmdlRIExecute(None, -1)
    with refused(100000):
        await acl.aclmdlRIDestroy(None)


@case
async def test_K10_names(b: Bench) -> None:
    for model in (graph(b, add, b.x, 1.0), acl.aclmdlRIBuildBegin(0)):
        assert acl.aclmdlRIGetName(model, 100) == ""
        acl.aclmdlRISetName(model, "a")
        acl.aclmdlRISetName(model, "bcd")
        assert acl.aclmdlRIGetName(model, 100) == "bcd"
        assert acl.aclmdlRIGetName(model, 4) == "bcd"
        with refused(107000):
            acl.aclmdlRIGetName(model, 0)
        with refused(507000):
            acl.aclmdlRIGetName(model, 3)
        for call in (lambda: acl.aclmdlRISetName(None, "x"), lambda: acl.aclmdlRIGetName(None, 10)):
            with refused(100000):
                call()
        with refused(100000):
            acl.aclmdlRISetName(model, None)
        acl.aclmdlRISetName(model, "n" * 600)  # no length is refused
        assert len(acl.aclmdlRIGetName(model, 601)) == 600
        assert '"' in repr(model) or model.title().endswith('"')


@case
async def test_K12_callbacks_that_register_and_unregister(b: Bench) -> None:
    for model in (graph(b, add, b.x, 1.0), normal(b, add, b.x, 1.0)):
        calls: list[str] = []

        def late(data: Any, calls: list[str] = calls) -> None:
            calls.append("late")

        def never(data: Any, calls: list[str] = calls) -> None:
            calls.append("never")

        def selfish(data: Any, model: Any = model, calls: list[str] = calls) -> None:
            calls.append(data)
            acl.aclmdlRIDestroyUnregisterCallback(model, selfish)
            acl.aclmdlRIDestroyUnregisterCallback(model, never)
            acl.aclmdlRIDestroyRegisterCallback(model, late, None)

        acl.aclmdlRIDestroyRegisterCallback(model, selfish, "data")
        acl.aclmdlRIDestroyRegisterCallback(model, never, None)
        with refused(107000):
            acl.aclmdlRIDestroyRegisterCallback(model, selfish, "other")
        await acl.aclmdlRIDestroy(model)
        assert calls == ["data"]


@case
async def test_K12b_refusals_of_the_callback_calls(b: Bench) -> None:
    model = normal(b, add, b.x, 1.0)
    for call in (
        lambda: acl.aclmdlRIDestroyRegisterCallback(None, print, None),
        lambda: acl.aclmdlRIDestroyRegisterCallback(model, None, None),
        lambda: acl.aclmdlRIDestroyUnregisterCallback(model, None),
        lambda: acl.aclmdlRIDestroyUnregisterCallback(model, print),
    ):
        with refused(107000):
            call()
    acl.aclmdlRIDestroyRegisterCallback(model, print, None)
    acl.aclmdlRIDestroyUnregisterCallback(model, print)


@case
async def test_a_callback_that_raises_does_not_stop_the_destroy(b: Bench) -> None:
    for model in (graph(b, add, b.x, 1.0), normal(b, add, b.x, 1.0)):
        called: list[int] = []

        def fails(data: Any) -> None:
            raise LookupError("in a destroy callback")

        acl.aclmdlRIDestroyRegisterCallback(model, fails, None)
        acl.aclmdlRIDestroyRegisterCallback(model, called.append, 7)
        with pytest.raises(LookupError):
            await acl.aclmdlRIDestroy(model)
        assert called == [7]
        assert not model.alive


@case
async def test_K13_a_host_function_runs_at_each_execution(b: Bench) -> None:
    calls: list[int] = []
    b.begin()
    acl.aclrtLaunchHostFunc(b.s, calls.append, 1)
    model = b.end()
    for _ in range(2):
        acl.aclmdlRIExecuteAsync(model, b.s)
        await b.sync()
    assert calls == [1, 1]


@case
async def test_K15_a_callback_without_subscription_is_refused_and_the_capture_goes_on(b: Bench) -> None:
    b.begin()
    with refused(107015):
        acl.aclrtLaunchCallback(print, None, acl.ACL_CALLBACK_NO_BLOCK, b.s)
    launch(b.s, add, b.x, 1.0)
    model = b.end()
    acl.aclmdlRIExecuteAsync(model, b.s)
    await b.sync()
    assert value(b.x) == 1


@case
async def test_K16_a_second_destroy_is_refused(b: Bench) -> None:
    for model in (graph(b, add, b.x, 1.0), normal(b, add, b.x, 1.0)):
        await acl.aclmdlRIDestroy(model)
        with refused(107017):
            await acl.aclmdlRIDestroy(model)


@case
async def test_K16b_two_destroys_at_once(b: Bench) -> None:
    for model in (graph(b, add, b.x, 1.0), normal(b, add, b.x, 1.0)):
        outcomes = await asyncio.gather(acl.aclmdlRIDestroy(model), acl.aclmdlRIDestroy(model), return_exceptions=True)
        assert [getattr(outcome, "code", 0) for outcome in outcomes] == [0, 107017]


@case
async def test_K19_a_kernel_that_fails_in_a_replay(b: Bench) -> None:
    good = graph(b, add, b.x, 1.0)
    for make in BOTH:
        bad = make(b, broken, b.y)
        run = acl.aclmdlRIExecuteAsync(bad, b.s)  # the call has only enqueued
        acl.aclmdlRIExecuteAsync(good, b.side)
        with refused(507011):
            await b.sync()
        await b.sync()  # told once
        with refused(507011):
            await run
        cause = run.failure.__cause__
        assert isinstance(cause, aclrt.AclError)
        assert cause.code == 507035
        assert isinstance(cause.__cause__, ZeroDivisionError)
        await b.sync(b.side)
    assert value(b.x) == 2
