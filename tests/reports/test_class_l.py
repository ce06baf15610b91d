"""What users report, class L: the default stream, foreign streams, nesting. A test for each runtime scenario."""

from __future__ import annotations

import pytest

import aclrt
from aclrt import acl
from tests.robust.bench import add, array, captured, refused

GLOBAL = acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL


async def test_L2_warm_up_on_the_default_stream_that_the_capture_waits_for(dev: aclrt.Device) -> None:
    s, default, x, event = dev.stream(), dev.default_stream, array(dev), dev.event()
    default.launch(add, x, 1.0)
    acl.aclrtRecordEvent(event, None)
    acl.aclmdlRICaptureBegin(s, GLOBAL)
    with refused(107024, f"stream {s.id}", "recorded outside the capture", "record it inside"):
        s.wait(event)
    s.launch(add, x, 1.0)
    await acl.aclmdlRIExecuteAsync(acl.aclmdlRICaptureEnd(s), s)  # refused, not poisoned
    assert x.numpy()[0] == 2


async def test_L2_the_default_stream_waits_for_the_capture(dev: aclrt.Device) -> None:
    s, default, x = dev.stream(), dev.default_stream, array(dev)
    acl.aclmdlRICaptureBegin(s, GLOBAL)
    s.launch(add, x, 1.0)
    event = s.record()
    with refused(107031, "default stream", "use a created stream"):
        acl.aclrtStreamWaitEvent(None, event)
    default.launch(add, x, 10.0)  # it is no part of the capture, and works
    await default.synchronize()
    await acl.aclmdlRIExecuteAsync(acl.aclmdlRICaptureEnd(s), s)
    assert x.numpy()[0] == 11


@pytest.mark.parametrize("mode", [0, 1, 2])
async def test_L3_a_buffer_made_eagerly_on_another_stream(dev: aclrt.Device, mode: int) -> None:
    """The same code in every mode; staged on the capture stream, or waited for before, it works."""
    s, other, x = dev.stream(), dev.stream(), array(dev)
    other.launch(add, x, 1.0)
    event = other.record()
    acl.aclmdlRICaptureBegin(s, mode)
    with refused(107024, f"stream {s.id}"):
        s.wait(event)
    acl.aclmdlRICaptureEnd(s)
    s.wait(event)
    acl.aclmdlRICaptureBegin(s, mode)
    s.launch(add, x, 1.0)
    graph = acl.aclmdlRICaptureEnd(s)
    await acl.aclmdlRIExecuteAsync(graph, s)
    assert x.numpy()[0] == 2


async def test_L3_an_external_wait_is_the_way_in(dev: aclrt.Device) -> None:
    s, other, x, event = dev.stream(), dev.stream(), array(dev), acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC)
    acl.aclmdlRICaptureBegin(s, GLOBAL)
    acl.aclrtStreamWaitEventWithFlag(s, event, 0, acl.ACL_EVENT_WAIT_EXTERNAL)
    s.launch(add, x, 1.0)
    graph = acl.aclmdlRICaptureEnd(s)
    other.launch(add, x, 1.0)
    acl.aclrtRecordEvent(event, other)
    await acl.aclmdlRIExecuteAsync(graph, s)
    assert x.numpy()[0] == 2


async def test_L4_a_stream_whose_first_use_is_a_capture(dev: aclrt.Device) -> None:
    """Nothing has to be warmed up: streams own nothing that a first launch would make."""
    warm, cold, x = dev.stream(), dev.stream(), array(dev)
    warm.launch(add, x, 1.0)
    await warm.synchronize()
    async with aclrt.capture(cold) as graph:
        cold.launch(add, x, 1.0)
    await graph.replay(warm)
    await graph.replay(cold)
    assert x.numpy()[0] == 3


async def test_L5_the_default_stream_cannot_be_captured(dev: aclrt.Device) -> None:
    default = dev.default_stream
    with refused(207000, "default stream"):
        acl.aclmdlRICaptureBegin(default, GLOBAL)
    with refused(100000):
        acl.aclmdlRICaptureBegin(None, GLOBAL)
    with refused(207000):
        async with aclrt.capture(default):
            pass
    assert not captured(dev)


async def test_L5_a_graph_runs_on_the_default_stream(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    async with aclrt.capture(s) as graph:
        s.launch(add, x, 1.0)
    await acl.aclmdlRIExecuteAsync(graph, None)
    await graph.replay(dev.default_stream)
    assert x.numpy()[0] == 2


async def test_L_captures_do_not_nest_on_one_stream(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    async with aclrt.capture(s) as graph:
        s.launch(add, x, 1.0)
        with refused(107027, "capturing"):
            async with aclrt.capture(s):
                pass
        assert acl.aclmdlRICaptureGetInfo(s).modelRI is graph
    await graph.replay(s)
    assert x.numpy()[0] == 1
