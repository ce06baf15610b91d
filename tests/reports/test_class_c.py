"""What users report, class C: running out of streams, queues and events. A test for each scenario."""

from __future__ import annotations

from typing import Any

import pytest

import aclrt
from aclrt import acl
from tests.robust.bench import add, array, captured, held, refused
from tests.timeline import settle

CHIPS = ["v100", "v200"]


async def graph_of(dev: aclrt.Device, s: aclrt.Stream, name: str, *sides: aclrt.Stream) -> aclrt.Graph:
    async with aclrt.capture(s, name=name) as graph:
        async with s.fork(*sides) as forked:
            for side in forked:
                side.launch(add, array(dev), 1.0)
        s.launch(add, array(dev), 1.0)
    return graph


@pytest.mark.parametrize("chip", CHIPS)
async def test_C2_more_queues_than_there_are(chip: str) -> None:
    """Not "out of disk space": the resource, what is needed and what there is, and the graph by name."""
    async with aclrt.open_device(chip=chip, limits={"max_sqs": 2}) as dev:
        s, sides = dev.stream(), [dev.stream() for _ in range(2)]
        small, big = await graph_of(dev, s, "decode 1", sides[0]), await graph_of(dev, s, "decode 64", *sides)
        await small.replay(s)
        with refused(207005, "SQ/CQ resource", '"decode 64"', "needs 3 SQs", "pool has 2") as caught:
            big.launch(s)
        assert isinstance(caught.value, aclrt.ResourceError)
        await small.replay(s)  # nothing is lost


@pytest.mark.parametrize("chip", CHIPS)
async def test_C2_running_graphs_are_waited_for(chip: str) -> None:
    """While others run, a run that finds no queue waits in device time; it does not fail."""
    async with aclrt.open_device(chip=chip, limits={"max_sqs": 2}) as dev:
        s, side, other, x = dev.stream(), dev.stream(), dev.stream(), array(dev)
        gate = dev.event(external=True)
        async with aclrt.capture(s, name="holder") as holder:
            async with s.fork(side) as (b,):
                b.wait(gate)
                b.reset(gate)
                b.launch(add, x, 1.0)
        late = await graph_of(dev, other, "late")
        first, second = holder.launch(s), late.launch(other)
        await settle()
        assert not first.done
        assert not second.done
        dev.stream().record(gate)
        await first
        await second
        assert x.numpy()[0] == 1


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
        with refused(207008, "stream resource", "5", '"size 1" 1', '"size 2" 1') as caught:
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
            levels.append(held(dev))
        assert levels[1:] == levels[1:2] * 299
