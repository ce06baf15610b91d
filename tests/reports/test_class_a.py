"""What users report, class A: synchronising, reading back or copying inside a capture. A test for each scenario."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from tests.robust.bench import add, array, captured, refused

GLOBAL = acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
D2H = acl.ACL_MEMCPY_DEVICE_TO_HOST
HERE = "test_class_a.py:"


async def test_A1_a_sync_in_a_capture_is_refused_and_forgiven(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    acl.aclmdlRICaptureBegin(s, GLOBAL)
    s.launch(add, x, 1.0)
    with refused(107027, f"stream {s.id}", "began the capture", HERE, "end the capture"):
        await acl.aclrtSynchronizeStreamWithTimeout(s, 1_000)
    graph = acl.aclmdlRICaptureEnd(s)  # the refusal was ignored: the graph holds the kernel alone
    (stream,) = acl.aclmdlRIGetStreams(graph)
    assert len(acl.aclmdlRIGetTasksByStream(stream)) == 1
    acl.aclmdlRIExecuteAsync(graph, s)
    await s.synchronize()
    assert x.numpy()[0] == 1


async def test_A2_the_truth_of_device_data_inside_a_capture(dev: aclrt.Device) -> None:
    """`if array:` copies to the host, which the mode refuses; also a graph replayed inside a capture."""
    s, other, x = dev.stream(), dev.stream(), array(dev)
    async with aclrt.capture(other) as inner:
        other.launch(add, x, 1.0)
    async with aclrt.capture(s) as graph:
        s.launch(add, x, 1.0)
        with refused(107030, "DeviceArray.numpy", f"stream {s.id}"):
            bool(x.numpy().any())
        with refused(107030):
            np.asarray(x)
        with refused(107027):
            await inner.replay(s)
    await graph.replay(s)
    assert x.numpy()[0] == 1


async def test_A3_every_readback_of_a_pass_is_refused_by_itself(dev: aclrt.Device) -> None:
    """A test can collect them all: none of them spoils the capture, so the pass goes on to the next."""
    s, x, host = dev.stream(), array(dev), np.zeros(8, np.float32)
    found: list[int] = []
    async with aclrt.capture(s, mode="global") as graph:
        for readback in (x.numpy, lambda: acl.aclrtStreamQuery(s), x.numpy):
            s.launch(add, x, 1.0)
            with pytest.raises(aclrt.AclError) as caught:
                readback()
            found.append(caught.value.code)
        with refused(107030):
            await acl.aclrtMemcpy(host, 32, x, 32, D2H)
    assert found == [107030, 107027, 107030]
    await graph.replay(s)
    assert x.numpy()[0] == 3


async def test_A4_an_operator_that_synchronises_its_own_stream(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)

    async def inner() -> None:
        await s.synchronize()

    async def operator() -> None:
        s.launch(add, x, 1.0)
        await inner()

    async with aclrt.capture(s, mode="global"):
        with pytest.raises(aclrt.CaptureError) as caught:
            await operator()
        names = [entry.name for entry in caught.traceback]
        assert names.index("operator") < names.index("inner")  # the call is in the traceback, however deep
        assert caught.value.code == 107027
    await operator()


async def test_A5_a_blocking_copy_is_refused_and_serving_goes_on(dev: aclrt.Device) -> None:
    s, x, host = dev.stream(), array(dev), np.ones(8, np.float32)
    acl.aclmdlRICaptureBegin(s, GLOBAL)
    s.launch(add, x, 1.0)
    with refused(107030, "aclrtMemcpy", f"stream {s.id} (GLOBAL", HERE):
        await acl.aclrtMemcpy(host, 32, x, 32, D2H)
    with refused(107030, "aclrtMemset"):
        await acl.aclrtMemset(x, 32, 0, 32)
    graph = acl.aclmdlRICaptureEnd(s)
    await acl.aclmdlRIExecuteAsync(graph, s)
    await acl.aclrtMemcpy(host, 32, x, 32, D2H)
    assert host[0] == 1


async def test_A6_a_barrier_that_runs_inside_the_capture(dev: aclrt.Device) -> None:
    """Both refusals come at their calls and nothing later fails because of them."""
    s, x = dev.stream(), array(dev)

    async def barrier() -> list[int]:
        codes = []
        for call in (s.synchronize(), acl.aclrtMemset(x, 32, 0, 32)):
            with pytest.raises(aclrt.AclError) as caught:
                await call
            codes.append(caught.value.code)
        return codes

    async with aclrt.capture(s, mode="global") as graph:
        assert await barrier() == [107027, 107030]
        s.launch(add, x, 1.0)
    await graph.replay(s)
    await dev.synchronize()
    assert x.numpy()[0] == 1


async def test_A9_a_private_stream_pulled_into_the_capture(dev: aclrt.Device) -> None:
    s, private, x = dev.stream(), dev.stream(), array(dev)
    async with aclrt.capture(s) as graph:
        private.wait(s.record())
        private.launch(add, x, 1.0)
        with refused(107027, f"stream {private.id}", "through event", "recorded at", HERE):
            await private.synchronize()
        with refused(107027, f"stream {private.id}", "through event"):
            await acl.aclrtDestroyStream(private)
        s.wait(private.record())
    await private.synchronize()  # it is free again
    await graph.replay(s)
    assert x.numpy()[0] == 1


async def test_A10_an_epilogue_that_cleans_up(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)

    async def run() -> None:
        try:
            s.launch(add, x, 1.0)
        finally:
            await dev.synchronize()

    async with aclrt.capture(s) as graph:
        with refused(107027, f"stream {s.id}"):
            await run()
    await graph.replay(s)
    assert x.numpy()[0] == 1
    assert not captured(dev)


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
async def test_A11_a_query_counts_as_synchronising(dev: aclrt.Device, mode: Any) -> None:
    s, x = dev.stream(), array(dev)
    async with aclrt.capture(s, mode=mode) as graph:
        s.launch(add, x, 1.0)
        with refused(107027):
            acl.aclrtStreamQuery(s)
        assert acl.aclmdlRICaptureGetInfo(s).status == 1
    await graph.replay(s)
    assert x.numpy()[0] == 1
