"""What users report, class E: the contract of a task update. One test for each runtime-level scenario."""

from __future__ import annotations

import asyncio
from typing import Any

import aclrt
from aclrt import acl

from .updating import Bench, add, add_cube, case, launch, refused


@case
async def test_E1_another_number_of_tasks(b: Bench) -> None:
    b.begin()
    group = b.group(1.0, 2.0)
    model = b.end()
    acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)
    launch(b.side, add, b.x, 10.0)
    with refused(507000, "1 launches", "2 tasks", "add, add"):
        acl.aclmdlRICaptureTaskUpdateEnd(b.side)
    acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)  # the stream and the group are free again
    for value in (10.0, 20.0):
        launch(b.side, add, b.x, value)
    with refused(507000, "launch 3", "2 tasks"):
        launch(b.side, add, b.x, 30.0)
    acl.aclmdlRICaptureTaskUpdateEnd(b.side)
    assert await b.run(model) == 30


@case
async def test_E5_only_core_kernels_in_a_group(b: Bench) -> None:
    event, notify = acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC), acl.aclrtCreateNotify(0)
    calls: list[tuple[str, Any]] = [
        ("EVENT_RECORD", lambda: acl.aclrtRecordEvent(event, b.s)),
        ("NOTIFY_RECORD", lambda: acl.aclrtRecordNotify(notify, b.s)),
        (
            "MEMCPY_ASYNC",
            lambda: acl.aclrtMemcpyAsync(b.x.address, 4, b.y.address, 4, acl.ACL_MEMCPY_DEVICE_TO_DEVICE, b.s),
        ),
    ]
    for name, call in calls:
        b.begin()
        acl.aclmdlRICaptureTaskGrpBegin(b.s)
        with refused(507009, name):
            call()
        with refused(507009):
            acl.aclmdlRICaptureTaskGrpEnd(b.s)
        with refused(507903, name):
            b.end()


@case
async def test_E6_one_update_stream_for_two_users(b: Bench) -> None:
    b.begin()
    first = b.group(1.0)
    second = b.group(2.0)
    model = b.end()
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def encoder() -> None:
        acl.aclmdlRICaptureTaskUpdateBegin(b.side, first)
        begun.set()
        await go_on.wait()  # another coroutine comes in between, as another thread would
        launch(b.side, add, b.x, 10.0)
        acl.aclmdlRICaptureTaskUpdateEnd(b.side)

    async def decoder() -> None:
        await begun.wait()
        with refused(107033, "encoder"):
            acl.aclmdlRICaptureTaskUpdateBegin(b.side, second)
        with refused(107033, "encoder"):
            acl.aclmdlRICaptureTaskUpdateBegin(b.third, first)
        b.update(second, 20.0, on=b.third)
        go_on.set()

    await asyncio.gather(asyncio.create_task(encoder(), name="encoder"), asyncio.create_task(decoder(), name="decoder"))
    assert await b.run(model) == 30


@case
async def test_E7_a_graph_lists_what_can_be_updated(b: Bench) -> None:
    b.begin()
    group = b.group(1.0, 2.0)
    launch(b.s, add, b.x, 3.0)
    model = b.end()
    updatable = {
        task.group: acl.aclmdlRITaskGetParams(task).kernelTaskParams
        for task in b.tasks(model)
        if task.group is not None
    }
    assert list(updatable) == [group]
    assert updatable[group].funcHandle is add
    assert model.groups == [group]
    assert group.updates == 0
    b.update(group, 10.0, 20.0)
    assert group.updates == 1


@case
async def test_E8_another_topology_is_refused_and_the_graph_stays_as_it_was(b: Bench) -> None:
    b.begin()
    group = b.group(1.0)
    model = b.end()
    assert await b.run(model) == 1
    acl.aclmdlRICaptureTaskUpdateBegin(b.side, group)
    with refused(507000, "aic", "aiv"):
        launch(b.side, add_cube, b.x, 10.0)
    acl.aclmdlRICaptureTaskUpdateEnd(b.side)  # its place was used up, so the count is right
    await b.sync(b.side)
    assert await b.run(model) == 2


async def test_E8_the_block_form_refuses_it_too() -> None:
    async with aclrt.open_device(0) as dev:
        b = Bench(dev, "v100")
        async with aclrt.capture(b.s) as graph:
            with b.s.task_group() as group:
                b.s.launch(add, b.x, 1.0)
        await graph.replay(b.s)
        with refused(507000):
            async with graph.update(group, on=b.side) as u:
                u.launch(add, b.x, 10.0)
                u.launch(add, b.x, 20.0)
        await b.side.synchronize()
        await graph.replay(b.s)
        assert b.x.numpy()[0] == 2
