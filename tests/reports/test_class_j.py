"""What users report, class J: the error with the wrong name, in the wrong place. A test for each runtime scenario."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from tests.robust.bench import Boom, add, array, boom, boom_aic, code_of, refused

HERE = "test_class_j.py:"


async def test_J1_a_device_fault_keeps_its_name(dev: aclrt.Device) -> None:
    """Not out of memory, not a capture state: its own class, its own code, its own cause."""
    s, x = dev.stream(), array(dev)
    s.launch(boom_aic, x)
    with refused(507015, "boom_aic", HERE) as caught:
        await s.synchronize()
    assert isinstance(caught.value, aclrt.ExecutionError)
    assert not isinstance(caught.value, (aclrt.ResourceError, aclrt.CaptureError, MemoryError, TimeoutError))
    assert isinstance(caught.value.__cause__, Boom)
    acl.aclmdlRICaptureBegin(s, 0)
    with refused(107027) as caught:  # only a stream that captures says so
        await s.synchronize()
    assert isinstance(caught.value, aclrt.CaptureError)
    acl.aclmdlRICaptureEnd(s)


async def test_J1_families(dev: aclrt.Device) -> None:
    """What an application catches: by class, as Python does."""
    s, never = dev.stream(), dev.event(external=True)
    s.wait(never)
    with pytest.raises(TimeoutError):
        await s.synchronize(1)
    with pytest.raises(MemoryError):
        dev.empty(1 << 50)
    with pytest.raises(aclrt.UsageError):
        acl.aclrtMalloc(0)
    with pytest.raises(aclrt.AclError) as caught:
        acl.aclmdlRICaptureEnd(s)
    assert (caught.value.code, caught.value.name) == (107029, "RT_STREAM_NOT_CAPTURED")
    dev.stream().record(never)
    await s.synchronize()


async def test_J4_a_run_that_reaches_beyond_its_buffer(dev: aclrt.Device) -> None:
    """More rows than were captured: the failure names the kernel, its place and the shapes that do not fit."""

    @aclrt.kernel
    def rows(x: aclrt.InOut[np.float32], count: aclrt.In[np.int64]) -> None:
        x[: count[0]] += np.ones(int(count[0]), np.float32)

    s, x, count = dev.stream(), array(dev), dev.array(np.array([8]))
    async with aclrt.capture(s) as graph:
        s.launch(rows, x, count)
    await graph.replay(s)
    count.assign(9)
    with refused(507011, "rows", HERE, "(8,)", "(9,)"):
        await graph.replay(s)
    assert await code_of(s.synchronize()) == 507011


async def test_J5_end_names_the_call_that_invalidated(dev: aclrt.Device) -> None:
    a, c, x = dev.stream(), dev.stream(), array(dev)

    async def another_task() -> None:
        with refused(107032):
            c.wait(event)

    acl.aclmdlRICaptureBegin(a, acl.ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
    acl.aclmdlRICaptureBegin(c, acl.ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
    a.launch(add, x, 1.0)
    event = a.record()
    await asyncio.create_task(another_task())
    for stream in (a, c):
        with refused(507903, "was invalidated at", HERE, "aclrtStreamWaitEvent", "107032") as caught:
            acl.aclmdlRICaptureEnd(stream)
        assert isinstance(caught.value.__cause__, aclrt.AclError)
        assert caught.value.__cause__.code == 107032


async def test_J5_a_refused_sync_is_no_culprit(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    acl.aclmdlRICaptureBegin(s, 0)
    s.launch(add, x, 1.0)
    assert await code_of(s.synchronize()) == 107027
    await acl.aclmdlRIExecuteAsync(acl.aclmdlRICaptureEnd(s), s)
    assert x.numpy()[0] == 1


@pytest.mark.parametrize("stop", [False, True])
async def test_J6_the_fault_surfaces_at_a_later_sync_and_names_its_task(dev: aclrt.Device, stop: bool) -> None:
    s, other, x = dev.stream(), dev.stream(), array(dev)
    if stop:
        acl.aclrtSetStreamFailureMode(s, acl.ACL_STOP_ON_FAILURE)

    def launch_all() -> None:
        s.launch(boom, x)
        s.launch(add, x, 1.0)

    launch_all()
    await other.synchronize()  # an unrelated stream knows nothing of it

    async def unrelated() -> None:
        await s.synchronize()

    with refused(507035, "kernel boom", "no such luck", HERE) as caught:
        await unrelated()
    line = launch_all.__code__.co_firstlineno + 1
    assert f"{HERE}{line}" in str(caught.value)  # where it was launched, not where it was waited for
    assert x.numpy()[0] == (0 if stop else 1)


async def test_J6_in_a_graph_too(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    async with aclrt.capture(s, name="decode 8") as graph:
        s.launch(add, x, 1.0)
        s.launch(boom, x)
    graph.launch(s)
    with refused(507011, "kernel boom", '"decode 8"', HERE):
        await s.synchronize()


async def test_J_every_wait_tells_the_same_story(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    async with aclrt.capture(s) as graph:
        s.launch(boom, x)
    run: Any = graph.launch(s)
    texts = set()
    for wait in (run, run, s.synchronize()):
        with pytest.raises(aclrt.AclError) as caught:
            await wait
        texts.add(str(caught.value))
    assert len(texts) == 1
