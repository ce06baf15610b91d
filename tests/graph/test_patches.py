"""Patches of grouped tasks: where they land, and the argument entries they leave behind (acl_semantics 8.2, 8.3)."""

from __future__ import annotations

from typing import Any

import aclrt
from aclrt.task.task import PatchOp

from .updating import Grouped, add, begin, end


async def test_replaced_argument_entries_are_given_back() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        await net.run()
        kept = []
        for value in range(50):
            async with net.graph.update(net.group, on=net.side) as u:
                u.launch(add, net.x, float(value))
                u.launch(add, net.x, float(value))
            await net.side.synchronize()
            kept.append(len(net.graph.argument_handles))
        assert max(kept) <= 3 + 2  # three tasks, and the host's copies of the two that were patched
        x, y = await net.run()
        assert (x, y) == (3 + 49 * 2, 2)


async def test_patches_of_two_streams_may_land_in_any_order() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        await net.run()
        gate = dev.event(external=True)
        net.side.wait(gate)
        for stream, value in ((net.side, 10.0), (net.third, 20.0)):
            async with net.graph.update(net.group, on=stream) as u:
                u.launch(add, net.x, value)
                u.launch(add, net.x, value)
        await net.third.synchronize()
        assert await net.run() == (43, 2)
        net.third.record(gate)
        await net.side.synchronize()  # the older update lands last, and wins
        assert await net.run() == (63, 3)


async def test_destroying_a_graph_with_patches_on_their_way_is_harmless_to_the_next() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        await net.run()
        async with net.graph.update(net.group, on=net.side) as u:
            u.launch(add, net.x, 10.0)
            u.launch(add, net.x, 10.0)
        await net.side.synchronize()
        await net.graph.close()
        again = await Grouped(dev).capture()
        assert await again.run() == (3, 1)


async def test_the_patch_is_a_task_of_the_update_stream() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        await net.run()
        seen: list[Any] = []
        live = net.side.live

        class Spy:
            def append(self, stream: Any, op: Any) -> None:
                seen.append(op)
                live.append(stream, op)

            def kernel(self, *args: Any) -> None:
                raise AssertionError("a launch must not run")

        net.side.live = Spy()  # type: ignore[assignment]
        begin(net.side, net.group)
        net.side.launch(add, net.x, 10.0)
        net.side.launch(add, net.x, 10.0)
        end(net.side)
        net.side.live = live
        net.side.choose_sink()
        assert [type(op) for op in seen] == [PatchOp, PatchOp]
        assert [op.slot for op in seen] == [task.slot for task in net.group.tasks]
