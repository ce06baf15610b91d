"""What users report, class I: after a failed capture. A test for each scenario."""

from __future__ import annotations

import gc

import pytest

import aclrt
from aclrt import acl
from tests.robust.bench import add, array, captured, code_of, held, refused

GLOBAL = acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
NONE = (0, None)


async def conflict(dev: aclrt.Device, a: aclrt.Stream, c: aclrt.Stream) -> None:
    """Two open captures that met in one event: both are invalidated."""
    for stream in (a, c):
        acl.aclmdlRICaptureBegin(stream, GLOBAL)
        stream.launch(add, array(dev), 1.0)
    event = a.record()
    with refused(107032, "belongs to the capture of"):
        c.wait(event)


async def test_I1_after_end_every_member_is_free_again(dev: aclrt.Device) -> None:
    a, member, c, x = dev.stream(), dev.stream(), dev.stream(), array(dev)
    before = held(dev)
    acl.aclmdlRICaptureBegin(a, GLOBAL)
    member.wait(a.record())
    member.launch(add, x, 1.0)
    acl.aclmdlRICaptureBegin(c, GLOBAL)
    with refused(107032):
        c.wait(a.record())
    for stream in (a, c):
        with refused(507903, "107032", "test_class_i.py:"):
            acl.aclmdlRICaptureEnd(stream)
    for stream in (a, member, c):
        assert acl.aclmdlRICaptureGetInfo(stream) == NONE
        await stream.synchronize()
        acl.aclmdlRICaptureBegin(stream, GLOBAL)
        stream.launch(add, x, 1.0)
        graph = acl.aclmdlRICaptureEnd(stream)
        await acl.aclmdlRIExecuteAsync(graph, stream)
        await acl.aclmdlRIDestroy(graph)
    assert x.numpy()[0] == 3
    gc.collect()
    after = held(dev)
    assert after["EVENT"] == before["EVENT"]
    assert after["STREAM"] == before["STREAM"]


async def test_I1_what_an_invalidated_stream_still_takes(dev: aclrt.Device) -> None:
    """It counts as capturing until its End: no sync, no second begin, no destroy."""
    a, c = dev.stream(), dev.stream()
    await conflict(dev, a, c)
    for stream in (a, c):
        assert await code_of(stream.synchronize()) == 107027
        assert await code_of(acl.aclrtDestroyStream(stream)) == 107027
        with refused(107027):
            acl.aclmdlRICaptureBegin(stream, GLOBAL)
        assert captured(dev)
        with refused(507903):
            acl.aclmdlRICaptureEnd(stream)
        with refused(107029):  # a second end finds nothing to end
            acl.aclmdlRICaptureEnd(stream)
    assert not captured(dev)


@pytest.mark.parametrize("times", [30])
async def test_I3_a_failing_end_does_not_stop_the_next_capture(dev: aclrt.Device, times: int) -> None:
    s, side, x = dev.stream(), dev.stream(), array(dev)
    for _ in range(times):
        acl.aclmdlRICaptureBegin(s, GLOBAL)
        side.wait(s.record())
        with refused(107025):
            acl.aclmdlRICaptureEnd(s)
    async with aclrt.capture(s) as graph:
        s.launch(add, x, 1.0)
    await graph.replay(s)
    assert x.numpy()[0] == 1


async def test_I4_closing_what_an_invalid_capture_made(dev: aclrt.Device) -> None:
    """The builder's own clean-up after a failure says nothing and breaks nothing."""
    a, c = dev.stream(), dev.stream()
    with refused(107032):
        async with aclrt.capture(a) as first, aclrt.capture(c) as second:
            c.wait(a.record())
    for graph in (first, second):
        assert not graph.alive
        await graph.close()
        with refused(107017):
            await acl.aclmdlRIDestroy(graph)
    assert not captured(dev)


async def test_I4_garbage_is_collected_inside_a_capture(dev: aclrt.Device) -> None:
    """Events, forgotten runs and finished graphs that die while a capture is open."""
    s, side, x = dev.stream(), dev.stream(), array(dev)
    old: list[object] = []
    for _ in range(20):
        async with aclrt.capture(s) as graph:
            async with s.fork(side) as (b,):
                b.launch(add, x, 1.0)
        old += [graph, graph.launch(s), s.record()]
        old.append(old)  # a cycle
    await dev.synchronize()
    x.assign(0)
    events = held(dev)["EVENT"]
    async with aclrt.capture(s) as graph:
        s.launch(add, x, 1.0)
        del old
        gc.collect()
        async with s.fork(side) as (b,):
            gc.collect()
            b.launch(add, x, 1.0)
        assert acl.aclmdlRICaptureGetInfo(s).status == 1
    assert held(dev)["EVENT"] < events + 2
    await graph.replay(s)
    assert x.numpy()[0] == 2


async def test_I5_run_eagerly_and_capture_next_time(dev: aclrt.Device) -> None:
    """Somebody invalidates now and then; the step is run eagerly, and the next one captures again."""
    a, c, x = dev.stream(), dev.stream(), array(dev)
    graph: aclrt.Graph | None = None
    made = 0
    for step in range(6):
        if graph is None:
            try:
                async with aclrt.capture(a) as attempt:
                    a.launch(add, x, 1.0)
                    if step % 3 < 2:
                        async with aclrt.capture(c):
                            c.wait(a.record())
                graph, made = attempt, made + 1
            except aclrt.CaptureError:
                a.launch(add, x, 1.0)
                await a.synchronize()
                continue
        await graph.replay(a)
    assert made == 1
    assert x.numpy()[0] == 6
