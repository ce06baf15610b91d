"""Executions of captured graphs: their order with everything else, several at once, and destroying what runs."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.driver import SeededRandom

from .software import Lab, add, held, push


@aclrt.kernel(cost_ns=3_000_000_000)
def three_seconds(x: aclrt.InOut[np.float32]) -> None:
    x += 1


@aclrt.kernel
def enter(inside: aclrt.InOut[np.int64], worst: aclrt.InOut[np.int64]) -> None:
    inside += 1
    np.maximum(worst, inside, out=worst)


@aclrt.kernel
def leave(inside: aclrt.InOut[np.int64], count: aclrt.InOut[np.int64]) -> None:
    inside -= 1
    count += 1


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
async def test_a_run_takes_its_turn_on_its_stream(seed: int | None) -> None:
    policy = None if seed is None else SeededRandom(seed)
    async with aclrt.open_device(policy=policy) as dev:
        lab = Lab(dev)
        graph = await lab.pushing(2, sides=2)
        for stream in (lab.s, lab.side):
            stream.launch(push, lab.trace, 1)
            graph.launch(stream)
            graph.launch(stream)  # back to back, nothing between
            stream.launch(push, lab.trace, 3)
            graph.launch(stream)
            await stream.synchronize()
        assert lab.digits == 1223212232


@pytest.mark.parametrize("seed", range(4))
async def test_a_different_stream_each_time(seed: int) -> None:
    async with aclrt.open_device(policy=SeededRandom(seed)) as dev:
        lab = Lab(dev, streams=8)
        graph = await lab.adding(sides=2)
        runs = [graph.launch(stream) for _ in range(5) for stream in (*lab.others, dev.default_stream)]
        for run in runs:
            await run
        assert lab.value == 40
        assert (graph.build_count, graph.runs) == (1, 0)


@pytest.mark.parametrize("chip", ["v100", "v200"])
@pytest.mark.parametrize("seed", range(6))
async def test_runs_of_one_graph_never_overlap_and_all_take_effect(chip: str, seed: int) -> None:
    """Open point 3 of the cases: two executions at once. The second starts when the first is over."""
    async with aclrt.open_device(chip=chip, policy=SeededRandom(seed)) as dev:
        lab = Lab(dev, streams=5)
        inside, worst, count = (dev.array(np.zeros(1, np.int64)) for _ in range(3))
        async with aclrt.capture(lab.s) as graph:
            lab.s.launch(enter, inside, worst)
            async with lab.s.fork(lab.side, lab.others[1]) as (one, two):
                one.launch(add, lab.x, 1.0)
                two.launch(add, lab.x, 1.0)
            lab.s.launch(leave, inside, count)
        runs = [graph.launch(stream) for _ in range(3) for stream in lab.others]
        await asyncio.gather(*map(_wait, runs))
        assert (inside.numpy()[0], worst.numpy()[0], count.numpy()[0]) == (0, 1, 12)
        assert lab.value == 24


async def _wait(run: aclrt.Run) -> None:
    await run


async def test_the_second_execution_waits_for_the_first_and_says_so() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        graph = await lab.gated(1)
        graph.rename("decode")
        first, second = graph.launch(lab.s), graph.launch(lab.side)
        await lab.until(lambda: lab.digits == 1 and dev.npu.driver.waiting() == 3)
        assert "MODEL_EXECUTE" in dev.explain()
        assert '"decode"' in dev.explain()
        assert (first.done, second.done, graph.runs) == (False, False, 2)
        lab.open_gate()
        await second
        assert (first.done, lab.digits) == (True, 1111)


async def test_two_graphs_run_at_once() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        gated, other = await lab.gated(1), await lab.adding(5.0)
        run = gated.launch(lab.s)
        await other.replay(lab.side)
        assert (run.done, lab.value) == (False, 5)
        lab.open_gate()
        await run


# --- destroying what runs ------------------------------------------------------------------------------------------


async def test_destroying_a_running_graph_gives_up_after_ten_seconds() -> None:
    async with aclrt.open_device(clock="virtual") as dev:
        lab = Lab(dev)
        graph = await lab.gated(1)
        called: list[object] = []
        acl.aclmdlRIDestroyRegisterCallback(graph, called.append, "bye")
        run = graph.launch(lab.s)
        with pytest.raises(aclrt.AclError, match="graph") as caught:
            await acl.aclmdlRIDestroy(graph)
        assert caught.value.code == 107037
        assert any("VALUE" in note.upper() for note in caught.value.__notes__)  # who waits for what
        assert dev.now_ns() == pytest.approx(10e9, rel=0.001)
        assert (graph.alive, run.done, called) == (True, False, [])
        lab.open_gate()
        await run
        await graph.replay(lab.side)  # it stayed valid
        await acl.aclmdlRIDestroy(graph)
        assert called == ["bye"]
        with pytest.raises(aclrt.AclError) as caught:
            await acl.aclmdlRIDestroy(graph)
        assert caught.value.code == 107017


async def test_destroying_waits_for_a_run_that_ends_in_time() -> None:
    async with aclrt.open_device(clock="virtual") as dev:
        lab = Lab(dev)
        graph = await lab.graph(lambda s: s.launch(three_seconds, lab.x))
        before = held(dev)
        runs = [graph.launch(lab.s), graph.launch(lab.side)]
        await graph.close()
        assert [run.done for run in runs] == [True, True]
        assert dev.now_ns() == pytest.approx(6e9, rel=0.001)
        assert lab.value == 2
        after = held(dev)
        assert {key for key in after if after[key] != before[key]} == {"MODEL", "STREAM", "arguments"}


async def test_runs_that_come_while_destroy_waits_are_waited_for_too() -> None:
    async with aclrt.open_device(clock="virtual") as dev:
        lab = Lab(dev)
        graph = await lab.graph(lambda s: s.launch(three_seconds, lab.x))
        first = graph.launch(lab.s)
        closing = asyncio.create_task(graph.close())
        await asyncio.sleep(0)
        second = graph.launch(lab.side)
        await closing
        assert (first.done, second.done, lab.value) == (True, True, 2)


async def test_a_run_that_hides_behind_a_wait_counts_as_running() -> None:
    """The execute stream stands at an event: nothing runs, but the run is submitted."""
    async with aclrt.open_device(clock="virtual") as dev:
        lab = Lab(dev)
        graph, gate = await lab.adding(), dev.event(external=True)
        lab.s.wait(gate)
        run = graph.launch(lab.s)
        with pytest.raises(aclrt.AclError) as caught:
            await graph.close()
        assert caught.value.code == 107037
        with pytest.raises(aclrt.AclError) as caught:
            acl.aclmdlRITaskDisable(acl.aclmdlRIGetTasksByStream(acl.aclmdlRIGetStreams(graph)[0])[0])
        assert caught.value.code == 107040
        lab.side.record(gate)
        await run
        await graph.close()


async def test_cancelling_the_destroyer_leaves_the_graph_as_it_was() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        graph = await lab.gated(1)
        run = graph.launch(lab.s)
        closing = asyncio.create_task(graph.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        lab.open_gate()
        await run
        assert graph.alive
        await graph.close()
        await graph.close()  # once is enough
        assert dev.npu.waits == {}


async def test_two_destroyers() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        graph = await lab.gated(1)
        run = graph.launch(lab.s)
        closing = [asyncio.create_task(acl.aclmdlRIDestroy(graph)) for _ in range(2)]
        await asyncio.sleep(0)
        lab.open_gate()
        results: list[Any] = await asyncio.gather(*closing, return_exceptions=True)
        assert run.done
        assert sorted(getattr(result, "code", 0) for result in results) == [0, 107017]


# --- failures ------------------------------------------------------------------------------------------------------


async def test_an_execute_that_is_refused_leaves_no_run_counted() -> None:
    """The shipped runtime counts it for ever; then the graph can neither be destroyed nor updated."""
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        graph = await lab.adding()
        other = acl.aclrtCreateContext(0)
        elsewhere = acl.aclrtCreateStream()
        acl.aclrtSetCurrentContext(dev.context)
        for _ in range(2):
            with pytest.raises(aclrt.AclError) as caught:
                acl.aclmdlRIExecuteAsync(graph, elsewhere)
            assert caught.value.code == 107003
        assert (graph.runs, graph.pins) == (0, 0)
        await graph.replay(lab.s)
        await graph.close()
        await acl.aclrtDestroyContext(other)
