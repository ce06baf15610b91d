"""Task groups: what may go into one, how it ends, and what its status does (acl_semantics 3.3, 8.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.base.enums import TaskGroupStatus
from aclrt.graph import task_group, task_update
from aclrt.task.task import ActiveOp, Nop

from .updating import CHIPS, add, add_aicpu, add_cube, refused


def begin(stream: aclrt.Stream) -> Any:
    return task_group.begin(stream.context, stream)


def end(stream: aclrt.Stream) -> Any:
    return task_group.end(stream.context, stream)


STATES = list(TaskGroupStatus)
VERBS = ["begin", "end", "begin update", "end update"]
LEGAL = {
    (TaskGroupStatus.NONE, "begin"): TaskGroupStatus.SAMPLE,
    (TaskGroupStatus.SAMPLE, "end"): TaskGroupStatus.NONE,
    (TaskGroupStatus.NONE, "begin update"): TaskGroupStatus.UPDATE,
    (TaskGroupStatus.UPDATE, "end update"): TaskGroupStatus.NONE,
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("verb", VERBS)
def test_the_status_moves_as_in_the_table_and_no_other_way(state: TaskGroupStatus, verb: str) -> None:
    assert task_group.STATUS.allows(state, verb) == ((state, verb) in LEGAL)
    if (state, verb) in LEGAL:
        assert task_group.STATUS.next(state, verb) is LEGAL[state, verb]
    else:
        with refused(107033):
            task_group.STATUS.next(state, verb)


@pytest.mark.parametrize(("chip", "nops"), [("v100", 8), ("v200", 8), ("310p", 10)])
async def test_a_group_is_preceded_by_prefetch_nops_that_are_not_in_it(chip: str, nops: int) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            s.launch(add, x, 1.0)
            with s.task_group() as group:
                s.launch(add, x, 2.0)
                s.launch(add, x, 3.0)
        tasks = list(graph.queues[0])
        assert [type(task.op) for task in tasks[1 : 1 + nops]] == [Nop] * nops
        assert group.tasks == tasks[1 + nops : 3 + nops]
        assert [task.group for task in group.tasks] == [group, group]
        assert tasks[0].group is None
        assert graph.groups == [group]
        await graph.replay(s)
        assert x.numpy()[0] == 6


@pytest.mark.parametrize("chip", CHIPS)
async def test_the_calls_are_refused_outside_their_states(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        with refused(107029, f"stream {s.id}"):
            begin(s)
        with refused(107029):
            end(s)
        with refused(107029):
            s.task_group()
        async with aclrt.capture(s) as graph:
            with refused(107033, "none is open"):
                end(s)
            first = begin(s)
            with refused(107033, repr(first)):
                begin(s)
            s.launch(add, x, 1.0)
            assert end(s) is first
            with refused(107033):
                end(s)
        assert graph.groups == [first]


@pytest.mark.parametrize("chip", CHIPS)
async def test_a_task_on_another_stream_breaks_the_group(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4"))
        with refused(507903, "107034"):
            async with aclrt.capture(s):
                async with s.fork(side) as (b,):
                    b.launch(add, x, 1.0)
                    group = begin(s)
                    with refused(107034, repr(group), f"stream {s.id}"):
                        b.launch(add, x, 1.0)
                    with refused(107034):  # the stored error, and the group is gone
                        end(s)
                    with refused(107033):
                        end(s)
                    assert s.group_status is TaskGroupStatus.NONE


async def test_a_second_group_cannot_open_beside_one() -> None:
    async with aclrt.open_device(0) as dev:
        s, side = dev.stream(), dev.stream()
        with refused(507903):
            async with aclrt.capture(s):
                async with s.fork(side) as (b,):
                    begin(s)
                    with refused(107034):
                        begin(b)
                    with refused(107033):
                        end(b)
                    with refused(107034):
                        end(s)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("what", ["record", "copy", "fill_value", "callback", "aicpu", "nop"])
async def test_only_ai_core_kernels_go_into_a_group(chip: str, what: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        y, event = dev.array(np.ones(4, "f4")), dev.event()
        calls = {
            "record": lambda: s.record(event),
            "copy": lambda: s.copy(x, y),
            "fill_value": lambda: acl.aclrtValueWrite(x.address, 1, 0, s),
            "callback": lambda: s.callback(lambda: None),
            "aicpu": lambda: s.launch(add_aicpu, x, 1.0),
            "nop": lambda: s.submit(Nop()),
        }
        with refused(507903, "507009"):
            async with aclrt.capture(s) as graph:
                with refused(507009), s.task_group() as group:
                    s.launch(add, x, 1.0)
                    before = len(graph.queues[0].tasks)
                    calls[what]()
                assert len(graph.queues[0].tasks) == before  # nothing was added
                assert [task.op.kernel.name for task in group.tasks] == ["add"]
                assert graph.groups == []


async def test_streams_that_do_not_capture_are_not_affected() -> None:
    async with aclrt.open_device(0) as dev:
        s, other, x, y = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4")), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            with s.task_group():
                s.launch(add, x, 1.0)
                other.launch(add, y, 5.0)
                await other.synchronize()
        await graph.replay(s)
        assert (x.numpy()[0], y.numpy()[0]) == (1, 5)


async def test_a_group_goes_on_across_a_cascade_edge() -> None:
    async with aclrt.open_device(0, limits={"sq_depth": 64}) as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(1, "f4"))
        async with aclrt.capture(s) as graph:
            for _ in range(20):
                s.launch(add, x, 1.0)
            with s.task_group() as group:
                for _ in range(40):
                    s.launch(add, x, 1.0)
        assert len(graph.streams) == 3
        assert len(group.tasks) == 40
        assert {task.queue for task in group.tasks} == {stream.queue for stream in graph.streams}
        assert not any(isinstance(task.op, ActiveOp) for task in group.tasks)
        await graph.replay(s)
        assert x.numpy()[0] == 60
        async with graph.update(group, on=side) as u:
            for _ in range(40):
                u.launch(add, x, 2.0)
        await side.synchronize()
        await graph.replay(s)
        assert x.numpy()[0] == 60 + 100


@pytest.mark.parametrize("chip", CHIPS)
async def test_the_status_of_an_unclosed_group_stays_with_the_stream(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        acl.aclmdlRICaptureBegin(s, 0)
        begin(s)
        s.launch(add, x, 1.0)
        with refused(107033, "still open"):
            acl.aclmdlRICaptureEnd(s)
        assert s.group_status is TaskGroupStatus.SAMPLE
        async with aclrt.capture(s) as graph:
            s.launch(add, x, 1.0)
            with refused(107033, "earlier capture"):
                begin(s)
            with refused(507000):
                end(s)
        await graph.replay(s)
        assert x.numpy()[0] == 1


async def test_capture_closes_an_open_group_itself() -> None:
    async with aclrt.open_device(0) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            begin(s)
            s.launch(add, x, 1.0)
        assert graph.status.name == "READY"
        assert s.group_status is TaskGroupStatus.NONE


async def test_a_failing_body_closes_the_group_and_keeps_its_exception() -> None:
    async with aclrt.open_device(0) as dev:
        s, x = dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            with pytest.raises(ZeroDivisionError), s.task_group():  # noqa: PT012
                s.launch(add, x, 1.0)
                raise ZeroDivisionError
            s.record()  # no group is open any more
        assert graph.groups == []


async def test_after_an_unrelated_invalidation_the_group_ends_with_507903() -> None:
    async with aclrt.open_device(0, limits={"max_streams": 3}) as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4"))
        with refused(507903):
            async with aclrt.capture(s):
                event = s.record()
                with refused(207008):  # no stream id is left for the hidden stream
                    side.wait(event)
                begin(s)
                s.launch(add, x, 1.0)
                with refused(507903, "207008"):
                    end(s)
                with refused(107033):
                    end(s)


async def test_repr_is_one_line_with_the_state() -> None:
    async with aclrt.open_device(0) as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            with s.task_group() as group:
                s.launch(add, x, 1.0)
        assert repr(group).startswith("<TaskGroup 0 of graph ")
        assert "1 tasks" in repr(group)
        async with graph.update(group, on=side) as u:
            assert "updated by" in repr(group)
            u.launch(add, x, 1.0)
        await graph.close()
        assert "destroyed" in repr(group)


async def test_fused_kernels_with_a_cube_part_are_groupable_on_v200() -> None:
    async with aclrt.open_device(0, chip="v200") as dev:
        s, side, x = dev.stream(), dev.stream(), dev.array(np.zeros(4, "f4"))
        async with aclrt.capture(s) as graph:
            with s.task_group() as group:
                s.launch_fused([(add_cube, (x, 1.0)), (add, (x, 2.0))])
        await graph.replay(s)
        assert x.numpy()[0] == 3
        async with graph.update(group, on=side) as u:
            with refused(507000):  # a plain kernel is no fused one
                u.launch(add_cube, x, 1.0)
            task_update.abandon(side)
            task_update.update_begin(side.context, side, group)
            u.launch_fused([(add_cube, (x, 10.0)), (add, (x, 20.0))])
        await side.synchronize()
        await graph.replay(s)
        assert x.numpy()[0] == 33
        with refused(507903):
            async with aclrt.capture(s):
                with refused(507009), s.task_group():
                    s.launch_fused([(add, (x, 1.0)), (add, (x, 2.0))])
