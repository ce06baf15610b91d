"""Conformance group H, conditional tasks: one test for each case id, on both chips, through the C names only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .branching import (
    ASSIGN_DEFAULT,
    D2D,
    IF,
    SWITCH,
    THREAD_LOCAL,
    WHILE,
    A,
    B,
    Body,
    Graph,
    add,
    add_scaled,
    case,
    count_down,
    refused,
    write,
)


@case
async def test_H01_if_of_two_runs_one(graph: Graph) -> None:
    cell = graph.cond(IF, [graph.scaled(2.0), graph.scaled(0.5)])
    graph.end()
    for value, alpha in ((1, 2.0), (0, 0.5), (7, 2.0), (2**64 - 1, 2.0), (1 << 63, 2.0), (1 << 32, 2.0)):
        cell.assign(value)
        assert (await graph.run() == A + alpha * B).all()


@case
async def test_H02_if_of_one(graph: Graph) -> None:
    cell = graph.cond(IF, [graph.scaled(2.0)])
    graph.end()
    assert (await graph.run() == -1).all()
    cell.assign(3)
    assert (await graph.run() == A + 2 * B).all()


@case
async def test_H03_default_is_applied_again_at_every_execute(graph: Graph) -> None:
    cell = graph.cond(IF, [graph.scaled(2.0), graph.scaled(0.5)], default=0, flag=ASSIGN_DEFAULT)
    graph.end()
    for value in (1, 0):
        cell.assign(value)
        assert (await graph.run() == np.arange(1.25, 10.25, 1.25, dtype=np.float32)).all()


@case
async def test_H04_while_with_default_runs_once_per_execute(graph: Graph) -> None:
    cells: list[int] = []

    def body(stream: Any) -> None:
        graph.launch(stream, add, graph.out, 1.0)
        acl.aclrtMemcpyAsync(cells[0], 8, graph.word.address, 8, D2D, stream)

    handle = acl.aclmdlRICondHandleCreate(graph.model, 1, ASSIGN_DEFAULT)
    cells.append(acl.aclmdlRICondHandleGetCondPtr(handle))
    graph.capture(graph.add(handle, WHILE, 1)[0], body)
    graph.end()
    assert (await graph.run() == 0).all()
    assert (await graph.run() == 1).all()


@case
async def test_H05_while_with_default_zero_never_runs(graph: Graph) -> None:
    cell = graph.cond(WHILE, [graph.scaled(1.0)], default=0, flag=ASSIGN_DEFAULT)
    graph.end()
    cell.assign(1)
    assert (await graph.run() == -1).all()


@case
async def test_H06_while_counts_down_and_leaves_zero(graph: Graph) -> None:
    handle = acl.aclmdlRICondHandleCreate(graph.model, 0, 0)
    cell = aclrt.view(acl.aclmdlRICondHandleGetCondPtr(handle), (1,), np.uint64)

    def body(stream: Any) -> None:
        graph.launch(stream, add, graph.out, 1.0)
        graph.launch(stream, count_down, graph.counter, cell)

    graph.capture(graph.add(handle, WHILE, 1)[0], body)
    graph.end()
    graph.counter.assign(5)
    cell.assign(1)
    assert (await graph.run() == 4).all()
    assert cell.numpy()[0] == 0
    assert (await graph.run() == 4).all()


@case
@pytest.mark.parametrize("flag", [0, ASSIGN_DEFAULT])
async def test_H07_switch(graph: Graph, flag: int) -> None:
    alphas = (1.0, 2.0, 0.5)
    cell = graph.cond(SWITCH, [graph.scaled(alpha) for alpha in alphas], flag=flag)
    graph.end()
    for value, alpha in enumerate(alphas):
        cell.assign(value)
        assert (await graph.run() == A + (1.0 if flag else alpha) * B).all()


@case
async def test_H09_arguments_of_add(graph: Graph) -> None:
    handle = acl.aclmdlRICondHandleCreate(graph.model, 0, 0)
    params = acl.aclmdlRICondTaskParams(handle=handle, type=IF, size=1)
    with refused(107000):
        acl.aclmdlRIAddCondTask(params, graph.stream, 1)
    with refused(107000):
        acl.aclmdlRIAddCondTask(acl.aclmdlRICondTaskParams(handle=None, type=IF, size=1), graph.stream, 0)
    with refused(107000):
        acl.aclmdlRIAddCondTask(acl.aclmdlRICondTaskParams(handle=handle, type=3, size=1), graph.stream, 0)
    with refused(100000):
        acl.aclmdlRIAddCondTask(params, None, 0)
    for kind, size in ((IF, 0), (IF, 3), (WHILE, 0), (WHILE, 2), (SWITCH, 0)):
        with refused(107000):
            acl.aclmdlRIAddCondTask(acl.aclmdlRICondTaskParams(handle=handle, type=kind, size=size), graph.stream, 0)
    graph.add(handle, IF, 2)
    with refused(107000):  # one handle drives one task
        acl.aclmdlRIAddCondTask(params, graph.stream, 0)
    assert params.modelRIArray == []


@case
async def test_H10_add_needs_a_capturing_stream(graph: Graph) -> None:
    handle = acl.aclmdlRICondHandleCreate(graph.model, 0, 0)
    with refused(107029):
        acl.aclmdlRIAddCondTask(acl.aclmdlRICondTaskParams(handle=handle, type=IF, size=1), graph.exe, 0)


@case
async def test_H13_create_needs_a_capturing_model(graph: Graph) -> None:
    build = acl.aclmdlRIBuildBegin(0)
    with refused(207000):
        acl.aclmdlRICondHandleCreate(build, 0, 0)
    with refused(107000):
        acl.aclmdlRICondHandleCreate(graph.model, 0, 2)
    with refused(100000):
        acl.aclmdlRICondHandleCreate(None, 0, 0)
    graph.end()
    with refused(107000):
        acl.aclmdlRICondHandleCreate(graph.model, 0, 0)


@case
async def test_H14_branch_never_captured(graph: Graph) -> None:
    graph.add(acl.aclmdlRICondHandleCreate(graph.model, 0, 0), IF, 2)
    with refused(107045):
        acl.aclmdlRICaptureEnd(graph.stream)
    assert acl.aclmdlRICaptureGetInfo(graph.stream) == (0, None)
    with refused(107017):
        acl.aclmdlRIExecuteAsync(graph.model, graph.exe)


@case
async def test_H15_branch_still_capturing(graph: Graph) -> None:
    (branch,) = graph.add(acl.aclmdlRICondHandleCreate(graph.model, 0, 0), IF, 1)
    stream = acl.aclrtCreateStream()
    acl.aclmdlRICaptureToModelRIBegin(stream, branch, THREAD_LOCAL)
    with refused(107045):
        acl.aclmdlRICaptureEnd(graph.stream)
    assert acl.aclmdlRICaptureGetInfo(graph.stream).status == 0
    assert acl.aclmdlRICaptureGetInfo(stream) == (1, None)  # left behind, as recorded
    with refused(507000):
        graph.launch(stream, add, graph.out, 1.0)
    with refused(507000):
        acl.aclmdlRICaptureEnd(stream)
    assert acl.aclmdlRICaptureGetInfo(stream) == (0, None)
    graph.out.assign(0)  # no capture mode is left counted


@case
async def test_H16_branch_is_captured_once(graph: Graph) -> None:
    (branch,) = graph.add(acl.aclmdlRICondHandleCreate(graph.model, 0, 0), IF, 1)
    graph.capture(branch, graph.scaled(1.0))
    with refused(107026):
        acl.aclmdlRICaptureToModelRIBegin(graph.exe, branch, THREAD_LOCAL)
    with refused(107026):  # before the stream's own state
        acl.aclmdlRICaptureToModelRIBegin(graph.stream, branch, THREAD_LOCAL)
    with refused(107000):
        acl.aclmdlRICaptureToModelRIBegin(graph.exe, graph.model, THREAD_LOCAL)


@case
async def test_H18_end_of_a_branch_gives_its_handle(graph: Graph) -> None:
    (branch,) = graph.add(acl.aclmdlRICondHandleCreate(graph.model, 0, 0), IF, 1)
    stream = acl.aclrtCreateStream()
    acl.aclmdlRICaptureToModelRIBegin(stream, branch, THREAD_LOCAL)
    assert acl.aclmdlRICaptureGetInfo(stream) == (1, branch)
    assert acl.aclmdlRICaptureEnd(stream) is branch  # an empty branch
    graph.end()
    assert (await graph.run() == -1).all()
    for call in (acl.aclmdlRIDestroy, acl.aclmdlRIAbort):
        with refused(207000):
            await call(branch)
    with refused(207000):
        acl.aclmdlRIExecuteAsync(branch, graph.exe)


@case
@pytest.mark.parametrize("outer", [0, 1])
@pytest.mark.parametrize("inner", [0, 1])
async def test_H20_nested_if(graph: Graph, outer: int, inner: int) -> None:
    cells: list[Any] = []

    def nested(first: float, second: float) -> Body:
        def body(stream: Any) -> None:
            model = acl.aclmdlRICaptureGetInfo(stream).modelRI
            bodies = [graph.scaled(first), graph.scaled(second)]
            cells.append(graph.cond(IF, bodies, stream=stream, model=model))

        return body

    cells.append(graph.cond(IF, [nested(1.0, 2.0), nested(3.0, 4.0)]))
    graph.end()
    for cell, value in zip(cells, (inner, inner, outer), strict=True):
        cell.assign(value)
    leaf = {(1, 1): 1.0, (1, 0): 2.0, (0, 1): 3.0, (0, 0): 4.0}[outer, inner]
    assert (await graph.run() == A + leaf * B).all()


@case
async def test_H21_nested_defaults_are_set_once_per_root_execute(graph: Graph) -> None:
    handle = acl.aclmdlRICondHandleCreate(graph.model, 1, ASSIGN_DEFAULT)
    cell = aclrt.view(acl.aclmdlRICondHandleGetCondPtr(handle), (1,), np.uint64)

    def body(stream: Any) -> None:
        model = acl.aclmdlRICaptureGetInfo(stream).modelRI
        nested = acl.aclmdlRICondHandleCreate(model, 1, ASSIGN_DEFAULT)
        inner = aclrt.view(acl.aclmdlRICondHandleGetCondPtr(nested), (1,), np.uint64)

        def once(branch: Any) -> None:
            graph.launch(branch, add, graph.out, 1.0)
            graph.launch(branch, write, inner, 0)

        graph.capture(graph.add(nested, IF, 1, stream)[0], once)
        graph.launch(stream, count_down, graph.counter, cell)

    graph.capture(graph.add(handle, WHILE, 1)[0], body)
    graph.end()
    for expected in (0, 1):
        graph.counter.assign(2)
        assert (await graph.run() == expected).all()
        assert graph.counter.numpy()[0] == 0


@case
async def test_H22_the_task_after_waits_for_the_branch(graph: Graph) -> None:
    z = graph.dev.empty(8, np.float32)
    cell = graph.cond(IF, [graph.scaled(2.0), graph.scaled(0.5)])
    graph.launch(graph.stream, add_scaled, graph.out, graph.a, z, 1.0)
    graph.end()
    for value, alpha in ((1, 2.0), (0, 0.5)):
        cell.assign(value)
        await graph.run()
        assert (z.numpy() == A + alpha * B + A).all()


@case
async def test_H24_predicate_from_a_captured_copy(graph: Graph) -> None:
    handle = acl.aclmdlRICondHandleCreate(graph.model, 0, 0)
    acl.aclrtMemcpyAsync(acl.aclmdlRICondHandleGetCondPtr(handle), 8, graph.word.address, 8, D2D, graph.stream)
    plus, minus = graph.add(handle, IF, 2)
    graph.capture(plus, lambda stream: graph.launch(stream, add, graph.out, 10.0))
    graph.capture(minus, lambda stream: graph.launch(stream, add, graph.out, -10.0))
    graph.end()
    for value, expected in ((1, 9), (0, -1), (0, -11), (5, -1)):
        graph.word.assign(value)
        assert (await graph.run() == expected).all()


@case
async def test_H26_the_cell(graph: Graph) -> None:
    handle = acl.aclmdlRICondHandleCreate(graph.model, 9, ASSIGN_DEFAULT)
    address = acl.aclmdlRICondHandleGetCondPtr(handle)
    cell = aclrt.view(address, (1,), np.uint64)
    with refused(107000):
        aclrt.view(address, (2,), np.uint64)  # 8 bytes, no more
    for branch in graph.add(handle, SWITCH, 1):
        graph.capture(branch, lambda stream: None)
    graph.end()
    assert cell.numpy()[0] == 0
    for _ in range(2):
        await graph.run()
        assert cell.numpy()[0] == 9
        assert acl.aclmdlRICondHandleGetCondPtr(handle) == address
    await acl.aclmdlRIDestroy(graph.model)
    with refused(107000):
        aclrt.view(address, (1,), np.uint64)
    with refused(107017):
        acl.aclmdlRICondHandleGetCondPtr(handle)


@case
async def test_H27_no_external_events_in_a_branch(graph: Graph) -> None:
    event = acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC)
    (branch,) = graph.add(acl.aclmdlRICondHandleCreate(graph.model, 0, 0), IF, 1)
    stream = acl.aclrtCreateStream()
    acl.aclmdlRICaptureToModelRIBegin(stream, branch, THREAD_LOCAL)
    with refused(207000):
        acl.aclrtRecordEventWithFlag(event, stream, acl.ACL_EVENT_RECORD_EXTERNAL)
    with refused(207000):
        acl.aclrtStreamWaitEventWithFlag(stream, event, 0, acl.ACL_EVENT_WAIT_EXTERNAL)
    acl.aclmdlRICaptureEnd(stream)
    graph.end()


@case
async def test_H28_not_on_a_stream_added_by_hand(graph: Graph) -> None:
    handle = acl.aclmdlRICondHandleCreate(graph.model, 0, 0)
    acl.rtStreamAddToModel(graph.exe, graph.model)
    with refused(207000):
        acl.aclmdlRIAddCondTask(acl.aclmdlRICondTaskParams(handle=handle, type=IF, size=1), graph.exe, 0)
    graph.end()


@case
async def test_H29_both_branches_write_one_buffer(graph: Graph) -> None:
    def chain(alpha: float) -> Body:
        def body(stream: Any) -> None:
            graph.scaled(alpha)(stream)
            graph.launch(stream, add, graph.out, alpha)

        return body

    cell = graph.cond(IF, [chain(3.0), chain(-3.0)])
    graph.end()
    for value in (1, 0, 1):
        cell.assign(value)
        alpha = 3.0 if value else -3.0
        assert (await graph.run() == A + np.float32(alpha) * B + np.float32(alpha)).all()
