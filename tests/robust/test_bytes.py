"""Nothing is decoration: the bytes in a ring are what runs, and a completion is what wakes whoever waits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest

import aclrt
from tests.timeline import settle

from .bench import add, array, code_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@aclrt.kernel
def add_one(x: aclrt.InOut[np.float32]) -> None:
    x += 1


@aclrt.kernel
def add_twenty(x: aclrt.InOut[np.float32]) -> None:
    x += 20


@pytest.fixture(params=["v100", "v200"])
async def dev(request: pytest.FixtureRequest) -> AsyncIterator[aclrt.Device]:
    async with aclrt.open_device(chip=request.param) as device:
        yield device


@pytest.mark.parametrize("seen", ["first launch", "launched before"])
async def test_a_flipped_field_of_a_ring_slot_changes_what_runs(dev: aclrt.Device, seen: str) -> None:
    """The launch said one program, the ring now says another, and the ring is what the device reads."""
    s, x, driver = dev.stream(), array(dev), dev.npu.driver
    if seen == "launched before":
        for kernel in (add_one, add_twenty):
            s.launch(kernel, x)
        await s.synchronize()
        x.assign(0)
    s.launch(add_one, x)
    at = s.submitted - 1
    slot = driver.sq_memory(s.sq)[at * 64 : at * 64 + 64]
    sqe = driver.chip.decode(bytes(slot))
    assert sqe["program"] == add_one.program(driver)
    fields = sqe.fields | {"program": add_twenty.program(driver)}
    flipped = driver.chip.encode(sqe.kind, stream_id=sqe.stream_id, task_id=sqe.task_id, flags=sqe.flags, **fields)
    assert sum(old != new for old, new in zip(slot, flipped, strict=True)) == 1  # one byte of one field
    slot[:] = flipped
    await s.synchronize()
    assert x.numpy()[0] == np.float32(20)


async def test_a_flipped_field_of_a_graphs_sq_memory_changes_what_runs(dev: aclrt.Device) -> None:
    s, x, driver = dev.stream(), array(dev), dev.npu.driver
    async with aclrt.capture(s) as graph:
        s.launch(add_one, x)
    s.launch(add_twenty, x)
    await graph.replay(s)
    assert x.numpy()[0] == 21
    image = graph.queues[0].image
    assert image is not None
    sqe = driver.chip.decode(driver.image_read(image, 0, 1))
    fields = sqe.fields | {"program": add_twenty.program(driver)}
    driver.image_write(
        image, 0, driver.chip.encode(sqe.kind, stream_id=sqe.stream_id, task_id=sqe.task_id, flags=sqe.flags, **fields)
    )
    await graph.replay(s)
    assert x.numpy()[0] == 41


async def test_a_dropped_cqe_leaves_the_waiter_waiting(dev: aclrt.Device) -> None:
    s, x, driver = dev.stream(), array(dev), dev.npu.driver
    lost: list[bytes] = []

    def lose(cqe: bytes) -> bool:
        lost.append(cqe)
        return False

    driver.cq_filter = lose
    s.launch(add, x, 1.0)
    waiting = asyncio.create_task(s.synchronize())
    for _ in range(50):
        await settle()
    assert lost
    assert x.numpy()[0] == 1  # it ran
    assert not waiting.done()  # and nobody was told
    driver.cq_filter = None
    s.launch(add, x, 1.0)  # the next completion covers it
    await waiting


async def test_a_dropped_cqe_of_a_run(dev: aclrt.Device) -> None:
    s, x, driver = dev.stream(), array(dev), dev.npu.driver
    async with aclrt.capture(s) as graph:
        s.launch(add, x, 1.0)
    driver.cq_filter = lambda cqe: False
    run = graph.launch(s)
    waiting = asyncio.create_task(code_of(run))
    for _ in range(50):
        await settle()
    assert x.numpy()[0] == 1
    assert not waiting.done()
    assert not run.done
    assert graph.runs == 1
    driver.cq_filter = None
    await graph.replay(s)
    assert await waiting == 0
