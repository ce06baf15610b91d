"""Updating a task group: windows, matching, and what may race with them (acl_semantics 8.2, 8.3)."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.base.enums import TaskGroupStatus
from aclrt.graph import task_update
from aclrt.task.task import Nop
from tests.timeline import settle

from .updating import CHIPS, Grouped, add, add_aicpu, add_cube, begin, end, mul, refused


@pytest.mark.parametrize("chip", CHIPS)
async def test_a_launch_in_the_window_runs_nothing_and_patches_the_next_task(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Grouped(dev).capture()
        assert await net.run() == (3, 1)
        begin(net.side, net.group)
        net.side.launch(add, net.x, 10.0)
        net.side.launch(mul, net.x, 2.0)  # another kernel of the same kind is fine
        end(net.side)
        await net.side.synchronize()
        assert net.x.numpy()[0] == 3
        assert await net.run() == (26, 2)
        assert await net.run() == (72, 3)  # the update lasts


async def test_before_the_first_execute_the_host_copy_is_patched_at_the_call() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        gate = dev.event(external=True)
        net.side.wait(gate)  # the update stream does not get to the patch
        begin(net.side, net.group)
        net.side.launch(add, net.x, 10.0)
        net.side.launch(add, net.x, 20.0)
        end(net.side)
        assert await net.run() == (30, 1)
        net.third.record(gate)
        await net.side.synchronize()
        assert await net.run() == (60, 2)


async def test_after_it_the_patch_takes_effect_when_the_update_stream_gets_there() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        await net.run()
        gate = dev.event(external=True)
        net.side.wait(gate)
        begin(net.side, net.group)
        net.side.launch(add, net.x, 10.0)
        net.side.launch(add, net.x, 20.0)
        end(net.side)
        assert await net.run() == (6, 2)
        net.third.record(gate)
        await net.side.synchronize()
        assert await net.run() == (36, 3)


async def test_a_run_parked_in_front_of_the_group_gets_the_new_arguments() -> None:
    async with aclrt.open_device(0) as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4"))
        gate = dev.event(external=True)
        async with aclrt.capture(s) as graph:
            s.wait(gate)
            s.reset(gate)
            with s.task_group() as group:
                s.launch(add, x, 1.0)
        side.record(gate)
        await graph.replay(s)
        run = graph.launch(s)
        await settle()
        assert not run.done
        async with graph.update(group, on=side) as u:
            u.launch(add, x, 10.0)
        side.record(gate)
        await run
        assert x.numpy()[0] == 11


async def test_value_write_and_wait_are_the_newer_form_of_the_signal() -> None:
    async with aclrt.open_device(0) as dev:
        s, side, x, cell = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4")), dev.array(np.zeros(1, "u8"))
        async with aclrt.capture(s) as graph:
            acl.aclrtValueWait(cell.address, 1, acl.ACL_VALUE_WAIT_EQ, s)
            acl.aclrtValueWrite(cell.address, 0, 0, s)
            with s.task_group() as group:
                s.launch(add, x, 1.0)
        for step in range(3):
            run = graph.launch(s)
            await settle()
            assert not run.done
            async with graph.update(group, on=side) as u:
                u.launch(add, x, 10.0**step)
            acl.aclrtValueWrite(cell.address, 1, 0, side)
            await run
        assert x.numpy()[0] == 111


@pytest.mark.parametrize("count", [0, 1])
async def test_too_few_launches_fail_at_the_end_and_what_was_sent_stays(count: int) -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        await net.run()
        begin(net.side, net.group)
        for _ in range(count):
            net.side.launch(add, net.x, 10.0)
        with refused(507000, f"{count} launches", "2 tasks", "add, add"):
            end(net.side)
        with refused(107033):
            end(net.side)
        await net.side.synchronize()
        assert await net.run() == ((3 + 12, 2) if count else (6, 2))
        begin(net.third, net.group)  # the lock is released
        task_update.abandon(net.third)


async def test_too_many_launches_fail_alone() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        begin(net.side, net.group)
        net.side.launch(add, net.x, 10.0)
        net.side.launch(add, net.x, 20.0)
        with refused(507000, "launch 3", "2 tasks"):
            net.side.launch(add, net.x, 30.0)
        end(net.side)
        assert await net.run() == (30, 1)


async def test_an_empty_group_takes_no_launch_and_ends_well() -> None:
    async with aclrt.open_device(0) as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s):
            with s.task_group() as group:
                pass
            s.launch(add, x, 1.0)
        begin(side, group)
        with refused(507000):
            side.launch(add, x, 1.0)
        end(side)


async def test_a_kernel_of_another_core_is_refused_and_has_used_its_place() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        begin(net.side, net.group)
        with refused(507000, "aic", "aiv"):
            net.side.launch(add_cube, net.x, 10.0)
        net.side.launch(add, net.x, 20.0)  # the second task, not the first
        end(net.side)
        assert await net.run() == (21, 1)


async def test_a_wrong_argument_is_a_type_error_and_uses_no_place() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        begin(net.side, net.group)
        with pytest.raises(TypeError):
            net.side.launch(add, dev.array(np.zeros(4, "i4")), 1.0)
        net.side.launch(add, net.x, 10.0)
        net.side.launch(add, net.x, 20.0)
        end(net.side)
        assert await net.run() == (30, 1)


@pytest.mark.parametrize("chip", CHIPS)
async def test_other_tasks_are_refused_and_the_window_stays_open(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Grouped(dev).capture()
        event, other = dev.event(), dev.array(np.zeros(4, "f4"))
        begin(net.side, net.group)
        for call in (
            lambda: net.side.record(event),
            lambda: net.side.copy(net.x, other),
            lambda: net.side.callback(lambda: None),
            lambda: net.side.launch(add_aicpu, net.x, 1.0),
            lambda: net.graph.launch(net.side),
            lambda: net.side.submit(Nop()),
        ):
            with refused(507009):
                call()
        net.side.launch(add, net.x, 10.0)
        net.side.launch(add, net.x, 20.0)
        end(net.side)
        assert await net.run() == (30, 1)


async def test_a_group_is_held_by_one_window_and_a_stream_has_one() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        begin(net.side, net.group)
        with refused(107033, f"stream {net.side.id}"):
            begin(net.third, net.group)
        with refused(107033):
            begin(net.side, net.group)
        with refused(507000):
            end(net.side)
        begin(net.third, net.group)
        task_update.abandon(net.third)


async def test_where_a_window_may_be() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        async with aclrt.capture(net.side):
            with refused(107027):
                begin(net.side, net.group)
            with refused(107027):
                end(net.side)
        begin(net.s, net.group)  # the stream it was captured on will do
        task_update.abandon(net.s)
        with refused(107033):
            end(net.s)
        await net.graph.close()
        with refused(107017, "destroyed"):
            begin(net.side, net.group)


@pytest.mark.parametrize("chip", CHIPS)
async def test_a_window_goes_before_a_capture_on_its_stream(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        net = await Grouped(dev).capture()
        other = dev.array(np.zeros(4, "f4"))
        begin(net.side, net.group)
        async with aclrt.capture(net.side) as graph:
            with refused(107027):
                end(net.side)
            with refused(107033):
                net.side.task_group().__enter__()
            with refused(507009):
                net.side.copy(net.x, other)
            if chip == "v100":
                with refused(107027):  # it has used up its place all the same
                    net.side.launch(add, net.x, 10.0)
            else:
                net.side.launch(add, net.x, 10.0)
        assert graph.queues[0].tasks == []
        net.side.launch(add, net.x, 20.0)
        end(net.side)
        assert await net.run() == (21 if chip == "v100" else 30, 1)


async def test_a_capturing_graph_can_be_updated() -> None:
    async with aclrt.open_device(0) as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            with s.task_group() as group:
                s.launch(add, x, 1.0)
            begin(side, group)
            side.launch(add, x, 10.0)
            end(side)
        await graph.replay(s)
        assert x.numpy()[0] == 10


# --- the Pythonic face ------------------------------------------------------------------------------------------------


async def test_a_failing_body_leaves_the_old_arguments() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        await net.run()
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with net.graph.update(net.group, on=net.side) as u:
                u.launch(add, net.x, 10.0)
                raise ZeroDivisionError
        with refused(507000):
            async with net.graph.update(net.group, on=net.side) as u:
                u.launch(add, net.x, 10.0)
                u.launch(add_cube, net.x, 10.0)
        with refused(507000, "1 launches"):
            async with net.graph.update(net.group, on=net.side) as u:
                u.launch(add, net.x, 10.0)
        assert net.side.group_status is TaskGroupStatus.NONE
        await net.side.synchronize()
        assert await net.run() == (6, 2)


async def test_cancelling_an_updater_leaves_the_group_usable() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        await net.run()
        inside = asyncio.Event()

        async def updater() -> None:
            async with net.graph.update(net.group, on=net.side) as u:
                u.launch(add, net.x, 10.0)
                inside.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(updater())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await net.run() == (6, 2)
        async with net.graph.update(net.group, on=net.side) as u:
            u.launch(add, net.x, 100.0)
            u.launch(add, net.x, 200.0)
        await net.side.synchronize()
        assert await net.run() == (306, 3)


async def test_a_cancelled_user_of_the_c_calls_can_be_cleaned_up_by_another_task() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        inside = asyncio.Event()

        async def updater() -> None:
            begin(net.side, net.group)
            inside.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(updater())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with refused(107033):
            begin(net.third, net.group)
        with refused(507000):  # no launch came, but the lock is released
            end(net.side)
        begin(net.third, net.group)
        net.third.launch(add, net.x, 10.0)
        net.third.launch(add, net.x, 20.0)
        end(net.third)
        assert await net.run() == (30, 1)


async def test_two_updaters_are_told_of_each_other() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        holding, leave = asyncio.Event(), asyncio.Event()

        async def first() -> None:
            async with net.graph.update(net.group, on=net.side) as u:
                holding.set()
                await leave.wait()
                u.launch(add, net.x, 10.0)
                u.launch(add, net.x, 20.0)

        holder = asyncio.create_task(first(), name="decode-updater")
        await holding.wait()
        for stream in (net.third, net.side):  # another stream, and the same one
            with refused(107033, "decode-updater"):
                async with net.graph.update(net.group, on=stream):
                    pass
        leave.set()
        await holder
        assert await net.run() == (30, 1)


async def test_a_window_of_a_destroyed_stream_keeps_the_group_locked() -> None:
    async with aclrt.open_device(0) as dev:
        net = await Grouped(dev).capture()
        begin(net.side, net.group)
        await acl.aclrtDestroyStream(net.side)
        with refused(107033):
            begin(net.third, net.group)
        assert await net.run() == (3, 1)
