"""The cascade: a capture that outgrows one SQ goes on in the next, on every kind of stream and with everything open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.task.task import ActiveOp
from hw.driver import SeededRandom

from .software import Lab, add, held

DEPTH = 64
ROOM = {"v100": 32, "v200": 24}
"""One-SQE tasks that fit before the reserve."""
PRIME = 1_000_003


@aclrt.kernel
def mix(trace: aclrt.InOut[np.int64], number: int) -> None:
    trace *= 31
    trace += number
    trace %= PRIME


def mixed(numbers: range) -> int:
    total = 0
    for number in numbers:
        total = (total * 31 + number) % PRIME
    return total


def kinds(stream: Any) -> list[str]:
    return [task.op.type_name for task in stream.queue.tasks]


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_the_chain_of_streams(chip: str) -> None:
    async with aclrt.open_device(chip=chip, limits={"sq_depth": DEPTH}) as dev:
        lab, room = Lab(dev), ROOM[chip]
        async with aclrt.capture(lab.s) as graph:
            for _ in range(2 * room + 1):
                lab.s.launch(add, lab.x, 1.0)
        last, middle, first = graph.streams  # a continuation comes before what it continues
        assert [len(stream.queue.tasks) for stream in (first, middle, last)] == [room + 1, room + 1, 1]
        assert kinds(first)[-1] == kinds(middle)[-1] == "STREAM_ACTIVE"
        link = first.queue.tasks[-1].op
        assert isinstance(link, ActiveOp)
        assert link.target is middle.queue
        assert [stream.last for stream in (first, middle, last)] == [False, False, True]
        assert all(stream.original for stream in graph.streams)
        assert graph.heads == [first.queue]  # the others are started by the one before
        await graph.replay(lab.s)
        assert kinds(last)[-1] == "NOTIFY_RECORD"  # the end of the graph is the end of the chain
        assert lab.value == 2 * room + 1


async def test_a_task_of_several_sqes_may_cross_the_edge() -> None:
    async with aclrt.open_device(limits={"sq_depth": DEPTH}) as dev:
        lab = Lab(dev)

        def body(s: aclrt.Stream) -> None:
            for _ in range(ROOM["v100"] - 1):
                s.launch(add, lab.x, 1.0)
            acl.aclrtValueWait(lab.flag, 1, acl.ACL_VALUE_WAIT_EQ, s)  # 4 SQEs from slot 31
            s.launch(add, lab.x, 100.0)

        graph = await lab.graph(body)
        assert [stream.queue.sqe_count for stream in reversed(graph.streams)] == [31 + 4 + 1, 1]
        lab.open_gate()
        await graph.replay(lab.s)
        assert lab.value == 131


@pytest.mark.parametrize("seed", range(6))
async def test_every_stream_of_a_fork_cascades(seed: int) -> None:
    """Original and joined are inherited along the chain: the joint check looks at the ends."""
    async with aclrt.open_device(limits={"sq_depth": DEPTH}, policy=SeededRandom(seed)) as dev:
        lab = Lab(dev)
        traces = [dev.array(np.zeros(1, np.int64)) for _ in range(3)]
        async with aclrt.capture(lab.s) as graph:
            async with lab.s.fork(*lab.others[:2]) as sides:
                for number in range(150):
                    for stream, trace in zip((lab.s, *sides), traces, strict=True):
                        stream.launch(mix, trace, number)
            for trace in traces[1:]:
                lab.s.launch(mix, trace, 7)  # after the join
        assert len(graph.streams) > 12
        for _ in range(2):
            for trace in traces:
                trace.assign([0])
            await graph.replay(lab.side)
            expected = mixed(range(150))
            assert [int(trace.numpy()[0]) for trace in traces] == [expected, *[(expected * 31 + 7) % PRIME] * 2]


async def test_an_unjoined_chain_is_found() -> None:
    async with aclrt.open_device(limits={"sq_depth": DEPTH}) as dev:
        lab = Lab(dev)
        acl.aclmdlRICaptureBegin(lab.s, 0)
        async with lab.s.fork(lab.side):
            for _ in range(40):
                lab.side.launch(add, lab.x, 1.0)
        lab.side.launch(add, lab.x, 1.0)
        with pytest.raises(aclrt.AclError, match="KERNEL") as caught:
            acl.aclmdlRICaptureEnd(lab.s)
        assert caught.value.code == 107025


@pytest.mark.parametrize("before", [0, 20, 23, 24, 25, 31, 32])
async def test_an_open_group_goes_along_and_is_updated_across_the_edge(before: int) -> None:
    async with aclrt.open_device(limits={"sq_depth": DEPTH}) as dev:
        lab = Lab(dev)
        async with aclrt.capture(lab.s) as graph:
            for _ in range(before):
                lab.s.launch(add, lab.x, 0.0)
            with lab.s.task_group() as group:
                for number in range(70):
                    lab.s.launch(mix, lab.trace, number)
            lab.s.launch(add, lab.x, 1.0)
        assert [task.op.type_name for task in group.tasks] == ["KERNEL_AIVEC"] * 70
        assert len({id(task.queue) for task in group.tasks}) > 2
        for turn, offset in enumerate((0, 100, 200)):
            if turn:
                async with graph.update(group, on=lab.side) as update:
                    for number in range(70):
                        update.launch(mix, lab.trace, number + offset)
                await lab.side.synchronize()
            lab.trace.assign([0])
            await graph.replay(lab.s)
            assert lab.digits == mixed(range(offset, offset + 70))
        assert lab.value == 3


async def test_a_run_that_is_under_way_when_the_group_is_updated() -> None:
    """What the run has not reached yet takes the new parameters, beyond the edge too."""
    async with aclrt.open_device(limits={"sq_depth": DEPTH}) as dev:
        lab = Lab(dev)
        gate = dev.event(external=True)
        async with aclrt.capture(lab.s) as graph:
            lab.s.wait(gate)
            lab.s.reset(gate)
            with lab.s.task_group() as group:
                for number in range(60):
                    lab.s.launch(mix, lab.trace, number)
        run = graph.launch(lab.s)
        await lab.until(lambda: dev.npu.driver.waiting() == 2)
        async with graph.update(group, on=lab.side) as update:
            for number in range(60):
                update.launch(mix, lab.trace, number + 5)
        lab.side.record(gate)
        await run
        assert lab.digits == mixed(range(5, 65))


@pytest.mark.parametrize(("chip", "code"), [("v100", 107000), ("v200", 0)])
async def test_a_kernel_in_a_full_stream_of_full_depth(chip: str, code: int) -> None:
    """Recorded at depth 32,768 only: v100 cannot reach it by a task update, v200 can."""
    async with aclrt.open_device(chip=chip) as dev:
        lab = Lab(dev)
        async with aclrt.capture(lab.s) as graph:
            with lab.s.task_group() as group:
                lab.s.launch(add, lab.x, 1.0)
                lab.s.launch(add, lab.x, 2.0)
            for _ in range(33_000):
                lab.s.launch(add, lab.x, 0.0)
        assert len(graph.streams) == 2
        acl.aclmdlRICaptureTaskUpdateBegin(lab.side, group)
        if code:
            with pytest.raises(aclrt.AclError) as caught:
                lab.side.launch(add, lab.x, 5.0)
            assert caught.value.code == code
            with pytest.raises(aclrt.AclError) as caught:
                acl.aclmdlRICaptureTaskUpdateEnd(lab.side)  # one of two was launched
            assert caught.value.code == 507000
        else:
            lab.side.launch(add, lab.x, 5.0)
            lab.side.launch(add, lab.x, 5.0)
            acl.aclmdlRICaptureTaskUpdateEnd(lab.side)
        await lab.side.synchronize()
        await graph.replay(lab.s)
        assert lab.value == (3 if code else 10)


async def test_events_and_resets_after_the_edge() -> None:
    """A fork before the edge, its join after it: hidden events belong to the graph, not to a stream."""
    async with aclrt.open_device(limits={"sq_depth": DEPTH}) as dev:
        lab = Lab(dev)
        before = held(dev)
        async with aclrt.capture(lab.s) as graph:
            async with lab.s.fork(lab.side) as (side,):
                side.launch(add, lab.x, 1.0)
                for _ in range(100):
                    lab.s.launch(mix, lab.trace, 3)
            lab.s.launch(add, lab.x, 1.0)
        for turn in (1, 2, 3):
            await graph.replay(lab.s)
            assert lab.value == 2 * turn
        await graph.close()
        assert held(dev) == before


async def test_a_cascade_on_a_joined_stream_that_fails() -> None:
    """That stream shows INVALIDATED, the others stay ACTIVE, the End of all of them is 507903."""
    async with aclrt.open_device(limits={"sq_depth": DEPTH, "max_streams": 5}) as dev:
        lab = Lab(dev)
        acl.aclmdlRICaptureBegin(lab.s, 0)
        event = dev.event()
        lab.s.record(event)
        lab.side.wait(event)
        for _ in range(ROOM["v100"] - 1):
            lab.side.launch(add, lab.x, 1.0)
        with pytest.raises(aclrt.AclError, match="stream resource") as caught:
            lab.side.launch(add, lab.x, 1.0)
        assert caught.value.code == 207008
        assert acl.aclmdlRICaptureGetInfo(lab.side).status == 2
        assert acl.aclmdlRICaptureGetInfo(lab.s).status == 1
        lab.s.launch(add, lab.x, 1.0)  # still taken
        with pytest.raises(aclrt.AclError) as caught:
            acl.aclmdlRICaptureEnd(lab.s)
        assert caught.value.code == 507903
        assert [acl.aclmdlRICaptureGetInfo(s).status for s in (lab.s, lab.side)] == [0, 0]
        await (await lab.adding(sides=1)).replay(lab.s)
        assert lab.value == 1
