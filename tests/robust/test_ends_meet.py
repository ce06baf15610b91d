"""Models that end while others use them, and what the texts say of waits and names."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .bench import add, array, assert_held, held


async def test_two_who_destroy_one_model_leave_the_next_owner_of_its_id_alone() -> None:
    async with aclrt.open_device() as dev:
        stream, other, gate, x = dev.stream(), dev.stream(), dev.notify(), array(dev)
        async with aclrt.capture(stream) as graph:
            stream.wait(gate)
        number, run = graph.id, graph.launch(stream)
        closing = [asyncio.create_task(graph.close()) for _ in range(3)]
        await asyncio.sleep(0)
        dev.default_stream.record(gate)
        await closing[0]
        async with aclrt.capture(other) as young:
            other.wait(gate)
            other.launch(add, x, 1.0)
        assert young.id == number
        again = young.launch(other)
        ends = await asyncio.gather(*closing, return_exceptions=True)
        assert [getattr(end, "code", None) for end in ends] == [None, 107017, 107017]
        dev.default_stream.record(gate)
        await run
        await again
        assert np.array_equal(x.numpy(), np.ones(8, np.float32))


async def test_a_run_submitted_while_a_destroy_waits_ends_first() -> None:
    async with aclrt.open_device() as dev:
        stream, gate, x = dev.stream(), dev.notify(), array(dev)
        async with aclrt.capture(stream) as graph:
            stream.wait(gate)
            stream.launch(add, x, 1.0)
        runs = [graph.launch(stream)]
        closing = asyncio.create_task(graph.close())
        for _ in range(3):
            await asyncio.sleep(0)
            runs.append(graph.launch(stream))
            dev.default_stream.record(gate)
        dev.default_stream.record(gate)
        for _ in range(4):
            await dev.default_stream.synchronize()
            dev.default_stream.record(gate)
        await closing
        assert all(run.done and run.failure is None for run in runs)
        assert np.array_equal(x.numpy(), np.full(8, 4, np.float32))


async def test_what_explain_says_of_host_waits() -> None:
    async with aclrt.open_device() as dev:
        stream, gate = dev.stream(), dev.notify()
        async with aclrt.capture(stream) as graph:
            stream.wait(gate)
        run = graph.launch(stream)

        async def wait() -> None:
            await run

        waits = [asyncio.create_task(wait()), asyncio.create_task(stream.synchronize())]
        for _ in range(3):
            await asyncio.sleep(0)
        text = dev.explain()
        assert f'"{run}" waits for stream {stream.id}, which is parked on notify' in text
        assert "waits for its end" in text
        assert "host code" not in text
        dev.default_stream.record(gate)
        await asyncio.gather(*waits)


@pytest.mark.parametrize("name", [5, b"name", 1.5])
async def test_a_name_is_a_str(name: Any) -> None:
    async with aclrt.open_device() as dev:
        stream = dev.stream()
        with pytest.raises(TypeError):
            async with aclrt.capture(stream, name=name):
                pass
        assert not stream.capturing
        async with aclrt.capture(stream, name="graph") as graph:
            pass
        for wrong in (name, None):
            with pytest.raises(TypeError):
                graph.rename(wrong)
        with pytest.raises(TypeError):
            acl.aclmdlRISetName(graph, name)
        assert acl.aclmdlRIGetName(graph) == "graph"
        graph.rename("\ud800")
        assert acl.aclmdlRIGetName(graph) == "\ud800"
        assert graph.to_dot()
        assert graph.to_json()


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "", "/no such place/x"])
async def test_a_path_that_no_file_can_have(path: str) -> None:
    async with aclrt.open_device() as dev:
        stream = dev.stream()
        async with aclrt.capture(stream) as graph:
            pass
        for call in (acl.aclmdlRIDebugJsonPrint, acl.aclmdlRIDebugDotPrint):
            with pytest.raises(aclrt.AclError) as caught:
                call(graph, path)
            assert caught.value.code == 107000


@pytest.mark.parametrize("how", ["destroy", "abort"])
async def test_an_abort_reaches_a_graph_whose_execute_stream_is_gone(how: str) -> None:
    async with aclrt.open_device() as dev:
        stream, other, gate, x = dev.stream(), dev.stream(), dev.notify(), array(dev)
        async with aclrt.capture(stream) as graph:
            stream.wait(gate)
            stream.launch(add, x, 1.0)
        run = graph.launch(stream)
        for _ in range(3):
            await asyncio.sleep(0)
        if how == "destroy":
            acl.aclrtDestroyStreamForce(stream)
        else:
            await acl.aclrtStreamAbort(stream)
        with pytest.raises(aclrt.AclError):
            await run
        await graph.abort()
        again = graph.launch(other)
        dev.default_stream.record(gate)
        await again
        assert np.array_equal(x.numpy(), np.ones(8, np.float32))


@pytest.mark.parametrize("chip", ["v100", "v200"])
@pytest.mark.parametrize("way", ["wait", "record"])
async def test_a_graph_that_names_a_destroyed_notify_says_so(chip: Any, way: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        stream, gate, x = dev.stream(), dev.notify(), array(dev)
        async with aclrt.capture(stream) as graph:
            stream.launch(add, x, 1.0)
            getattr(stream, way)(gate)
        acl.aclrtDestroyNotify(gate)
        young = dev.notify()  # takes the id
        before = {**held(dev), "images": 1}  # SQE memory, there for the next attempt
        for _ in range(3):
            with pytest.raises(aclrt.AclError, match="the notify it names was destroyed") as caught:
                await graph.replay(stream)
            assert caught.value.code == 107017
            await stream.synchronize()
        assert_held(dev, before)
        await graph.close()
        stream.record(young)
        stream.launch(add, x, 1.0)
        await stream.synchronize()
        assert np.array_equal(x.numpy(), np.ones(8, np.float32))


async def test_numbers_that_no_sqe_can_hold() -> None:
    async with aclrt.open_device() as dev:
        stream, x = dev.stream(), array(dev)
        gate = dev.notify()
        dev.default_stream.wait(gate)
        event = dev.default_stream.record()
        calls = (
            lambda: acl.aclrtMemcpy2dAsync(x.address, 1 << 70, x.address, 1 << 70, 8, 1, 3, stream),
            lambda: stream.wait(event, timeout_ms=1 << 70),
        )
        for call in calls:
            with pytest.raises(aclrt.AclError) as caught:
                call()
            assert caught.value.code == 107000
        dev.default_stream.record(gate)
        stream.launch(add, x, 1.0)
        await stream.synchronize()
