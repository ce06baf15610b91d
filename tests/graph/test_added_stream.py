"""Streams added by rtStreamAddToModel: no join is asked of them, notifies order them with every run.

Source: seed acl-graph 5.4, acl_semantics 5.8.
"""

from __future__ import annotations

from typing import Any

import pytest

import aclrt
from aclrt import acl
from hw.driver import IdKind, SeededRandom

from .software import Lab, add, held, push

GLOBAL = acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL


def begin(lab: Lab) -> Any:
    acl.aclmdlRICaptureBegin(lab.s, GLOBAL)
    return acl.aclmdlRICaptureGetInfo(lab.s).modelRI


def capture_with_added(lab: Lab, *, tasks: int = 1) -> Any:
    """A digit on the origin, and additions on the added side stream, which nobody waits for."""
    graph = begin(lab)
    acl.rtStreamAddToModel(lab.side, graph)
    for _ in range(tasks):
        lab.side.launch(add, lab.x, 1.0)
    lab.s.launch(push, lab.trace, 5)
    return acl.aclmdlRICaptureEnd(lab.s)


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_it_captures_without_an_event_and_needs_no_join(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        lab = Lab(dev)
        graph: Any = begin(lab)
        acl.rtStreamAddToModel(lab.side, graph)
        acl.rtStreamAddToModel(lab.side, graph)  # twice is once
        assert acl.aclmdlRICaptureGetInfo(lab.side) == (1, graph)
        with pytest.raises(aclrt.AclError, match="added by rtStreamAddToModel") as caught:
            acl.aclmdlRICaptureEnd(lab.side)
        assert caught.value.code == 107036
        lab.side.launch(add, lab.x, 1.0)
        same: bool = acl.aclmdlRICaptureEnd(lab.s) is graph
        assert same
        assert acl.aclmdlRICaptureGetInfo(lab.side) == (0, None)
        assert len(acl.aclmdlRIGetStreams(graph)) == 2
        for turn in (1, 2):
            await graph.replay(lab.s)
            assert lab.value == turn


@pytest.mark.parametrize("seed", range(8))
async def test_the_run_ends_after_the_added_stream(seed: int) -> None:
    """Whatever the schedule: when the run is awaited, the added stream's part is done."""
    async with aclrt.open_device(policy=SeededRandom(seed)) as dev:
        lab = Lab(dev)
        graph = capture_with_added(lab, tasks=20)
        for turn in (1, 2, 3):
            await graph.replay(lab.others[1])
            assert lab.value == 20 * turn


@pytest.mark.parametrize("seed", range(4))
async def test_the_run_starts_after_what_the_added_stream_has_queued(seed: int) -> None:
    async with aclrt.open_device(policy=SeededRandom(seed)) as dev:
        lab = Lab(dev)
        graph = capture_with_added(lab)
        exe = lab.others[1]
        for turn in range(3):
            acl.aclrtValueWait(lab.flag, 1, acl.ACL_VALUE_WAIT_EQ, lab.side)
            lab.side.launch(push, lab.trace, 1)
            run = graph.launch(exe)
            lab.side.launch(push, lab.trace, 9)  # goes on after the run
            await lab.until(lambda: dev.npu.driver.waiting() == 2)
            assert not run.done
            lab.open_gate()
            await lab.side.synchronize()
            assert run.done
            assert lab.digits == int("159" * (turn + 1))
            lab.flag.assign([0])


async def test_the_pairs_are_notifies_of_the_graph() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        before = held(dev)
        graph = capture_with_added(lab)
        assert dev.npu.driver.held(IdKind.NOTIFY) == 3
        await graph.replay(lab.s)
        await graph.close()
        assert held(dev) == before


@pytest.mark.parametrize("destroyed", [False, True])
async def test_executing_on_the_added_stream_itself_or_without_it(destroyed: bool) -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        graph = capture_with_added(lab)
        if destroyed:
            await acl.aclrtDestroyStream(lab.side)
        for _ in range(2):
            await graph.replay(lab.s if destroyed else lab.side)
        assert (lab.value, lab.digits) == (2, 55)


async def test_an_added_stream_that_cascades() -> None:
    async with aclrt.open_device(limits={"sq_depth": 64}) as dev:
        lab = Lab(dev)
        graph = capture_with_added(lab, tasks=100)
        assert len(graph.streams) == 5
        for turn in (1, 2):
            await graph.replay(lab.s)
            assert lab.value == 100 * turn


async def test_added_and_joined_together() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        graph = begin(lab)
        acl.rtStreamAddToModel(lab.side, graph)
        async with lab.s.fork(lab.others[1]) as (joined,):
            joined.launch(add, lab.x, 1.0)
        lab.side.launch(add, lab.x, 10.0)
        acl.aclmdlRICaptureEnd(lab.s)
        await graph.replay(lab.s)
        assert lab.value == 11


async def test_an_execute_that_waits_for_resources_keeps_the_order_too() -> None:
    async with aclrt.open_device(limits={"max_sqs": 2}) as dev:
        lab = Lab(dev, streams=4)
        gated, graph = await lab.gated(1), capture_with_added(lab)
        first = gated.launch(lab.s)
        run = graph.launch(lab.others[1])
        lab.side.launch(push, lab.trace, 9)
        await lab.until(lambda: lab.digits == 1)
        lab.open_gate()
        await run
        await lab.side.synchronize()
        assert (first.done, lab.digits, lab.value) == (True, 1159, 1)


async def test_refusals() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        graph = begin(lab)
        default, build = dev.default_stream, acl.aclmdlRIBuildBegin(0)
        for stream, model, code in ((None, graph, 107000), (lab.side, build, 107000), (default, graph, 207000)):
            with pytest.raises(aclrt.AclError) as caught:
                acl.rtStreamAddToModel(stream, model)
            assert caught.value.code == code
        lab.s.launch(add, lab.x, 1.0)
        acl.aclmdlRICaptureEnd(lab.s)  # none of them has harmed it
        await graph.replay(lab.s)
        assert lab.value == 1
