"""What users report, class C: running out of streams, queues and events. A test for each scenario."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import aclrt
from aclrt import acl
from tests.robust.bench import add, array, captured, held, refused

CHIPS = ["v100", "v200"]


async def graph_of(dev: aclrt.Device, s: aclrt.Stream, name: str, *sides: aclrt.Stream) -> aclrt.Graph:
    async with aclrt.capture(s, name=name) as graph:
        async with s.fork(*sides) as forked:
            for side in forked:
                side.launch(add, array(dev), 1.0)
        s.launch(add, array(dev), 1.0)
    return graph


@pytest.mark.parametrize("chip", CHIPS)
async def test_C2_queues_run_out_and_the_message_says_who_has_them(chip: str) -> None:
    """Not "out of disk space": the resource, the limit, and the holders by name."""
    async with aclrt.open_device(chip=chip, limits={"max_sqs": 3}) as dev:
        s, side, x = dev.stream(), dev.stream(), array(dev)
        model = acl.aclmdlRIBuildBegin(0)  # its queues are its own until it is destroyed
        acl.aclmdlRISetName(model, "prefill")
        for number in range(2):
            stream = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
            flag = acl.ACL_MODEL_STREAM_FLAG_DEFAULT if number else acl.ACL_MODEL_STREAM_FLAG_HEAD
            acl.aclmdlRIBindStream(model, stream, flag)
            stream.launch(add, x, 1.0)
            last = stream
        acl.aclmdlRIEndTask(model, last)
        acl.aclmdlRIBuildEnd(model)
        small = await graph_of(dev, s, "decode 1")
        await small.replay(s)
        big = await graph_of(dev, s, "decode 2", side)
        with refused(207005, "SQ/CQ resource", "all 3", '"prefill" 2') as caught:
            big.launch(s)
        assert isinstance(caught.value, aclrt.ResourceError)
        await small.replay(s)  # nothing is lost
        await acl.aclmdlRIDestroy(model)
        await big.replay(s)


@pytest.mark.parametrize("chip", CHIPS)
async def test_C2_idle_graphs_are_no_holders(chip: str) -> None:
    """Graphs give up their queues while they are idle: any number of them shares a small pool."""
    async with aclrt.open_device(chip=chip, limits={"max_sqs": 2}) as dev:
        s, side = dev.stream(), dev.stream()
        graphs = [await graph_of(dev, s, f"size {number}", side) for number in range(10)]
        for _ in range(2):
            for graph in graphs:
                await graph.replay(s)


@pytest.mark.parametrize("chip", CHIPS)
async def test_C3_streams_run_out_at_begin(chip: str) -> None:
    async with aclrt.open_device(chip=chip, limits={"max_streams": 5}) as dev:
        s = dev.stream()
        first, second = await graph_of(dev, s, "size 1"), await graph_of(dev, s, "size 2")
        other, more = dev.stream(), dev.stream()
        with refused(207008, "stream resource", "all 5", '"size 1" 1', '"size 2" 1') as caught:
            acl.aclmdlRICaptureBegin(more, 0)
        assert caught.value.name == "RT_NO_STREAM_RESOURCE"
        assert not captured(dev)
        assert acl.aclmdlRICaptureGetInfo(more) == (0, None)
        for graph in (first, second):
            await graph.replay(s)
        await first.close()
        third = await graph_of(dev, other, "size 3")
        await third.replay(other)


@pytest.mark.parametrize("chip", CHIPS)
async def test_C3_streams_run_out_at_a_join(chip: str) -> None:
    async with aclrt.open_device(chip=chip, limits={"max_streams": 3}) as dev:
        s, side = dev.stream(), dev.stream()
        acl.aclmdlRICaptureBegin(s, 0)
        with refused(207008, "stream resource"):
            side.wait(s.record())
        with refused(507903, "207008"):  # this one does invalidate, and End says so
            acl.aclmdlRICaptureEnd(s)
        assert not captured(dev)
        await (await graph_of(dev, s, "fits")).replay(s)


async def test_C6_how_many_graphs_fit_is_how_many_fit() -> None:
    """The limits of the chip are the limits enforced: one stream for each graph of one stream."""
    async with aclrt.open_device(limits={"max_streams": 40}) as dev:
        s, count = dev.stream(), 0
        with refused(207008):
            while True:
                await graph_of(dev, s, f"size {count}")
                count += 1
        assert count == 39


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("run", [False, True])
async def test_C8_the_pools_stay_level(chip: str, run: bool) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        s, side, x = dev.stream(), dev.stream(), array(dev)
        levels: list[dict[str, Any]] = []
        for _ in range(300):
            async with aclrt.capture(s) as graph:
                async with s.fork(side) as (b,):
                    b.launch(add, x, 1.0)
            if run:
                await graph.replay(s)
            await graph.close()
            gc.collect(0)
            levels.append(held(dev))
        assert levels[1:] == levels[1:2] * 299
