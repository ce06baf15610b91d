"""Conformance group M, what frameworks do with updates: one test for each update case, through the C names only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .updating import Bench, case, launch

CHIPS = ["v100", "v200"]


@aclrt.kernel
def attend(
    query: aclrt.In[np.float32], cache: aclrt.In[np.float32], out: aclrt.Out[np.float32], lengths: tuple[int, ...]
) -> None:
    """Mean of the first `lengths[row]` rows of the cache, times the query; lengths are host data."""
    for row, length in enumerate(lengths):
        out[row] = query[row] * cache[row, :length].mean(axis=0)


@aclrt.kernel
def double(x: aclrt.InOut[np.float32]) -> None:
    x *= 2


class Replayable:
    """What a framework records of one captured graph: one group and one event for each call whose host data changes."""

    def __init__(self, dev: aclrt.Device, rows: int, layers: int, *, blocking: bool = False) -> None:
        self.layers = layers
        self.blocking = blocking
        self.main, self.side = acl.aclrtCreateStream(), acl.aclrtCreateStream()
        self.query = dev.array(np.ones((rows, 4), np.float32))
        self.cache = [dev.array(np.ones((rows, 8, 4), np.float32)) for _ in range(layers)]
        self.out = [dev.array(np.zeros((rows, 4), np.float32)) for _ in range(layers)]
        self.events = [acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL) for _ in range(layers)]
        self.groups: list[Any] = []
        self.model: Any = None

    def capture(self, lengths: tuple[int, ...]) -> None:
        acl.aclmdlRICaptureBegin(self.main, acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
        for layer in range(self.layers):
            acl.aclrtStreamWaitEvent(self.main, self.events[layer])
            acl.aclrtResetEvent(self.events[layer], self.main)
            acl.aclmdlRICaptureTaskGrpBegin(self.main)
            launch(self.main, attend, self.query, self.cache[layer], self.out[layer], lengths)
            self.groups.append(acl.aclmdlRICaptureTaskGrpEnd(self.main))
            launch(self.main, double, self.out[layer])
        self.model = acl.aclmdlRICaptureEnd(self.main)

    async def update(self, lengths: tuple[int, ...]) -> None:
        for layer in range(self.layers):
            acl.aclmdlRICaptureTaskUpdateBegin(self.side, self.groups[layer])
            launch(self.side, attend, self.query, self.cache[layer], self.out[layer], lengths)
            acl.aclmdlRICaptureTaskUpdateEnd(self.side)
            if self.blocking:
                await acl.aclrtSynchronizeStream(self.side)
            acl.aclrtRecordEvent(self.events[layer], self.side)

    def expected(self, lengths: tuple[int, ...]) -> list[Any]:
        query = self.query.numpy()
        return [
            np.stack([2 * query[row] * cache.numpy()[row, :length].mean(axis=0) for row, length in enumerate(lengths)])
            for cache in self.cache
        ]

    async def step(self, lengths: tuple[int, ...]) -> None:
        acl.aclmdlRIExecuteAsync(self.model, self.main)
        await self.update(lengths)
        await acl.aclrtSynchronizeStreamWithTimeout(self.main, 2000)
        for out, expected in zip(self.out, self.expected(lengths), strict=True):
            assert np.allclose(out.numpy(), expected)


@pytest.mark.parametrize("chip", CHIPS)
async def test_M07_synchronising_after_every_launch_does_not_dead_lock(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        graph = Replayable(dev, rows=2, layers=3, blocking=True)
        graph.capture((1, 1))
        for length in range(1, 6):
            await graph.step((length, length + 1))


@pytest.mark.parametrize("chip", CHIPS)
async def test_M08_groups_recorded_automatically_are_updated_in_order(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        graph = Replayable(dev, rows=1, layers=6)
        graph.capture((1,))
        assert len(graph.groups) == 6
        for layer, cache in enumerate(graph.cache):
            cache.assign(np.full((1, 8, 4), layer + 1, np.float32))
        for length in (3, 1, 8):
            await graph.step((length,))


@pytest.mark.parametrize("chip", CHIPS)
async def test_M09_update_replay_new_data_update_replay(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        graph = Replayable(dev, rows=2, layers=1)
        graph.capture((1, 1))
        await graph.update((2, 3))  # before the replay this time: the event is a level
        acl.aclmdlRIExecuteAsync(graph.model, graph.main)
        await acl.aclrtSynchronizeStream(graph.main)
        assert np.allclose(graph.out[0].numpy(), graph.expected((2, 3))[0])
        random = np.random.default_rng(1)
        graph.query.assign(random.random((2, 4), np.float32))
        graph.cache[0].assign(random.random((2, 8, 4), np.float32))
        await graph.step((5, 8))


@pytest.mark.parametrize("chip", CHIPS)
async def test_M15_each_batch_size_has_its_own_groups_and_events(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip) as dev:
        graphs = {rows: Replayable(dev, rows, layers=2) for rows in (8, 4, 2, 1)}  # largest first
        for rows, graph in graphs.items():
            graph.capture((1,) * rows)
        arguments = {
            rows: [
                [acl.aclmdlRITaskGetParams(task).kernelTaskParams.args for task in group.tasks]
                for group in graph.groups
            ]
            for rows, graph in graphs.items()
        }
        await graphs[4].step((1, 2, 3, 4))
        for rows, graph in graphs.items():
            now = [
                [acl.aclmdlRITaskGetParams(task).kernelTaskParams.args for task in group.tasks]
                for group in graph.groups
            ]
            assert (now == arguments[rows]) == (rows != 4)
        for rows in (1, 8, 2, 4, 1):
            await graphs[rows].step(tuple(1 + row % 8 for row in range(rows)))


@case
async def test_M16_sleep_drops_all_graphs_and_waking_captures_them_again(b: Bench) -> None:
    for _ in range(2):
        graphs = {rows: Replayable(b.dev, rows, layers=1) for rows in (2, 1)}
        for rows, graph in graphs.items():
            graph.capture((1,) * rows)
            await graph.step((3,) * rows)
        for graph in graphs.values():
            await acl.aclmdlRIDestroy(graph.model)
            assert graph.groups[0].model is None
    assert b.dev.context.models == []
