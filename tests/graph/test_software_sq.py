"""Software SQ: what an execute puts on the device, in which order, and who gives what up when it runs out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.chips import SqeKind
from hw.driver import IdKind, SeededRandom

from .software import Lab, add, held

if TYPE_CHECKING:
    from collections.abc import Callable


def watch(dev: aclrt.Device, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps of a build, as the driver sees them."""
    driver = dev.npu.driver
    steps: list[str] = []

    def wrap(name: str, note: Callable[..., str]) -> None:
        real = getattr(driver, name)

        def call(*args: Any) -> Any:
            what = note(*args)
            if what and steps[-1:] != [what]:
                steps.append(what)
            return real(*args)

        monkeypatch.setattr(driver, name, call)

    wrap("alloc", lambda kind: f"take {kind.name}")
    wrap("image_write", lambda image, slot, data: "fill" if slot == 0 and len(data) >= 256 else "refresh")
    wrap("sq_bind", lambda bindings: f"bind {len(bindings)}")
    wrap("control", lambda sqe: driver.chip.decode(sqe).kind.name)
    wrap("write", lambda address, data: "default")
    wrap("submit", lambda sq, sqe: "execute" if driver.chip.decode(sqe[:64]).kind is SqeKind.MODEL_EXECUTE else "")
    return steps


async def test_nothing_is_on_the_device_before_the_first_execute() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        before = held(dev)
        graph = await lab.adding(sides=2)
        after = held(dev)
        changed = {key: after[key] - before[key] for key in after if after[key] != before[key]}
        assert changed == {"STREAM": 3, "EVENT": 4, "MODEL": 1, "arguments": 3}
        assert not graph.bound
        await graph.replay(lab.s)
        assert dev.npu.driver.held(IdKind.SQ) == 3
        assert dev.npu.driver.held(IdKind.NOTIFY) == 1
        assert held(dev)["images"] == 3
        assert lab.value == 1


async def test_the_phases_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """End-graph notifies, SQs, SQ memory, one batch of bindings, load complete, refreshes, defaults, then the run."""
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        async with aclrt.capture(lab.s) as graph:
            lab.s.launch(add, lab.x, 1.0)
            async with graph.if_(graph.condition(default=1)) as body:
                for _ in range(8):
                    body.launch(add, lab.x, 1.0)
        steps = watch(dev, monkeypatch)
        await graph.replay(lab.s)
        assert lab.value == 9
        order = ["take NOTIFY", "take SQ", "fill", "bind 2", "MODEL_ADD", "MODEL_LOAD", "refresh", "default", "execute"]
        assert sorted(order, key=steps.index) == order
        assert steps.count("fill") == 1
        assert steps.count("bind 2") == 1
        steps.clear()
        await graph.replay(lab.s)
        assert steps == ["default", "execute"]  # repeat execution: nothing but the default and the run
        assert (graph.build_count, lab.value) == (1, 18)


async def test_a_run_keeps_what_it_uses_and_an_idle_graph_keeps_it_until_it_is_wanted() -> None:
    async with aclrt.open_device(limits={"max_sqs": 2}) as dev:
        lab = Lab(dev)
        gated, other, third = await lab.gated(), await lab.adding(), await lab.adding()
        run = gated.launch(lab.s)
        await other.replay(lab.side)
        assert (gated.pins, other.pins, gated.bound, other.bound) == (1, 0, True, True)
        await third.replay(lab.side)  # other is idle and gives its SQ up; gated runs and keeps it
        assert (gated.bound, other.bound, third.bound) == (True, False, True)
        lab.open_gate()
        await run
        assert (gated.pins, gated.bound) == (0, True)
        await other.replay(lab.side)
        assert (gated.bound, third.bound) == (False, True)  # the first in order of creation
        assert lab.value == 3


async def test_a_recycled_graph_comes_back_without_its_sqes_being_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with aclrt.open_device(limits={"max_sqs": 1}) as dev:
        lab = Lab(dev)

        def body(s: aclrt.Stream) -> None:
            for _ in range(10):
                s.launch(add, lab.x, 1.0)

        first, second = await lab.graph(body), await lab.graph(body)
        for graph in (first, second):
            await graph.replay(lab.s)
        images, notify = [queue.image for queue in first.queues], acl.aclrtCreateNotify(0)
        assert first.end_notify.id is None
        steps = watch(dev, monkeypatch)
        await first.replay(lab.s)
        taken = ["take NOTIFY", "MODEL_DEL", "take SQ", "bind 1"]
        assert steps == [*taken, "MODEL_ADD", "MODEL_LOAD", "refresh", "execute"]
        assert [queue.image for queue in first.queues] == images
        assert (first.build_count, first.bound, second.bound) == (2, True, False)
        assert lab.value == 30
        acl.aclrtDestroyNotify(notify)


@pytest.mark.parametrize("seed", range(5))
async def test_ten_graphs_share_four_sqs_under_any_schedule(seed: int) -> None:
    async with aclrt.open_device(limits={"max_sqs": 4}, policy=SeededRandom(seed), clock="virtual") as dev:
        lab = Lab(dev, streams=6)
        graphs = [await lab.adding(sides=number % 3) for number in range(10)]
        runs = []
        for turn in range(5):
            for number, graph in enumerate(graphs):
                runs.append(graph.launch(lab.others[(number + turn) % 5]))
        for run in runs:
            await run
        await dev.synchronize()
        assert lab.value == 50
        assert not dev.npu.short
        for graph in graphs:
            await graph.close()
        assert dev.npu.driver.held(IdKind.SQ) == dev.npu.driver.held(IdKind.NOTIFY) == 0


async def test_notifies_are_recycled_too() -> None:
    async with aclrt.open_device(limits={"max_notifies": 2}) as dev:
        lab = Lab(dev)
        graphs = [await lab.adding() for _ in range(4)]
        for _ in range(3):
            for graph in graphs:
                await graph.replay(lab.s)
        assert lab.value == 12
        assert dev.npu.driver.held(IdKind.NOTIFY) == 2
        assert sum(graph.bound for graph in graphs) == 2


async def test_an_execute_waits_while_others_run() -> None:
    """The call has enqueued; what follows on its stream waits with it, in order, and nothing fails."""
    async with aclrt.open_device(limits={"max_sqs": 1}) as dev:
        lab = Lab(dev)
        gated, second = await lab.gated(1), await lab.pushing(2)
        first_run = gated.launch(lab.s)
        lab.side.launch(add, lab.x, 1.0)
        second_run = second.launch(lab.side)
        lab.side.launch(add, lab.x, 10.0)
        await lab.until(lambda: lab.value == 1)
        assert (first_run.done, second_run.done) == (False, False)
        assert (second.runs, second.pins) == (1, 0)
        assert acl.aclrtStreamQuery(lab.side) == acl.ACL_STREAM_STATUS_NOT_READY
        assert "waits for SQ resources, 1 of 1 in use (by models: graph 0 1)" in dev.explain()
        lab.open_gate()
        await second_run
        await lab.side.synchronize()
        assert (lab.digits, lab.value, first_run.done) == (112, 11, True)
        assert held(dev)["held streams"] == 0
        for _ in range(3):  # the stream is as it was
            await second.replay(lab.side)
        assert lab.digits == 112222


async def test_a_run_behind_a_held_one_takes_nothing_from_it() -> None:
    """Both SQs are needed by the first on the side stream; the second there must not sit on one of them."""
    async with aclrt.open_device(limits={"max_sqs": 2}) as dev:
        lab = Lab(dev)
        gated, wide, small = await lab.gated(1), await lab.pushing(2, sides=1), await lab.pushing(3)
        await small.replay(lab.s)
        runs = [gated.launch(lab.s), wide.launch(lab.side), small.launch(lab.side)]
        await lab.until(lambda: lab.digits == 31)
        lab.open_gate()
        for run in runs:
            await run
        assert lab.digits == 31123


async def test_who_waits_longest_is_asked_first() -> None:
    async with aclrt.open_device(limits={"max_sqs": 1}) as dev:
        lab = Lab(dev, streams=6)
        gated = await lab.gated(1)
        graphs = [await lab.pushing(digit) for digit in (2, 3, 4)]
        runs = [gated.launch(lab.s), *(graph.launch(stream) for graph, stream in zip(graphs, lab.others, strict=False))]
        lab.open_gate()
        for run in runs:
            await run
        assert lab.digits == 11234


async def test_notifies_are_waited_for_three_seconds() -> None:
    async with aclrt.open_device(limits={"max_notifies": 1}, clock="virtual") as dev:
        lab = Lab(dev)
        gated, other = await lab.gated(1, name="decode"), await lab.adding()
        first = gated.launch(lab.s)
        run = other.launch(lab.side)
        lab.side.launch(add, lab.x, 5.0)
        with pytest.raises(aclrt.AclError, match=r'notify resource left: 1 of 1 in use.*"decode" 1') as caught:
            await run
        assert caught.value.code == 207009
        assert dev.now_ns() == 3_000_000_000
        with pytest.raises(aclrt.AclError) as caught:
            await lab.side.synchronize()
        assert caught.value.code == 207009
        await lab.side.synchronize()
        assert lab.value == 5  # what came behind it ran
        lab.open_gate()
        await first
        await other.replay(lab.side)
        assert (other.status.name, lab.value) == ("READY", 6)


async def test_a_notify_that_comes_free_in_time_is_taken() -> None:
    async with aclrt.open_device(limits={"max_notifies": 2}, clock="virtual") as dev:
        lab = Lab(dev)
        gated, other, notify = await lab.gated(1), await lab.adding(), dev.notify()
        first = gated.launch(lab.s)
        run = other.launch(lab.side)
        acl.aclrtDestroyNotify(notify)
        await run
        assert lab.value == 1
        lab.open_gate()
        await first


async def test_an_aborted_stream_drops_its_held_runs() -> None:
    async with aclrt.open_device(limits={"max_sqs": 1}) as dev:
        lab = Lab(dev)
        gated, other = await lab.gated(1), await lab.pushing(2)
        first = gated.launch(lab.s)
        run = other.launch(lab.side)
        lab.side.launch(add, lab.x, 1.0)
        await acl.aclrtStreamAbort(lab.side)
        with pytest.raises(aclrt.AclError) as caught:
            await run
        assert caught.value.code == 107023
        assert (other.runs, held(dev)["held streams"]) == (0, 0)
        with pytest.raises(aclrt.AclError):
            await lab.side.synchronize()
        lab.open_gate()
        await first
        await other.replay(lab.side)
        assert (lab.digits, lab.value) == (112, 0)


async def test_a_destroyed_stream_drops_its_held_runs() -> None:
    async with aclrt.open_device(limits={"max_sqs": 1}) as dev:
        lab = Lab(dev)
        gated, other = await lab.gated(1), await lab.pushing(2)
        first = gated.launch(lab.s)
        run = other.launch(lab.side)
        await acl.aclrtDestroyStreamForce(lab.side)
        with pytest.raises(aclrt.AclError) as caught:
            await run
        assert caught.value.code == 107023
        lab.open_gate()
        await first
        await other.replay(lab.s)
        assert lab.digits == 112


@pytest.mark.parametrize("clock", ["wall", "virtual"])
async def test_leaving_the_device_with_held_runs(clock: Any) -> None:
    async with aclrt.open_device(limits={"max_sqs": 1}, clock=clock) as dev:
        lab = Lab(dev)
        gated, other = await lab.gated(1), await lab.adding()
        gated.launch(lab.s)
        other.launch(lab.side)


async def test_a_failed_build_gives_everything_back_and_the_next_builds_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        graph = await lab.adding(sides=2)
        before = held(dev)
        driver = dev.npu.driver
        control = driver.control
        for name in ("image_write", "sq_bind", "control"):

            def broken(*args: Any) -> Any:
                if name == "control" and driver.chip.decode(args[0]).kind is not SqeKind.MODEL_LOAD:  # noqa: B023
                    return control(*args)
                raise OSError("the link is down")

            with monkeypatch.context() as patch:
                patch.setattr(driver, name, broken)
                with pytest.raises((OSError, aclrt.AclError)):
                    graph.launch(lab.s)
            now = held(dev)
            assert {key: now[key] for key in now if key not in ("images", "models")} == {
                key: before[key] for key in before if key not in ("images", "models")
            }
            assert (graph.runs, graph.pins, graph.bound) == (0, 0, False)
        await graph.replay(lab.s)
        assert lab.value == 1
        assert np.allclose(lab.x.numpy(), 1)
