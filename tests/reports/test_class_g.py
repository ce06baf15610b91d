"""What users report, class G: host buffers used again before the copy ran. A test for each runtime scenario."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.driver import MemoryFault, SeededRandom
from tests.robust.bench import add, array, refused

F4 = np.float32


def gate(dev: aclrt.Device, s: aclrt.Stream) -> Any:
    """Hold the stream here until the returned event is recorded elsewhere."""
    event = dev.event(external=True)
    s.wait(event)
    return event


async def test_G1_the_next_batch_overwrites_the_source(dev: aclrt.Device) -> None:
    s, d, host = dev.stream(), array(dev), acl.aclrtMallocHost(32)
    host.numpy(F4)[:] = 1
    event = gate(dev, s)
    s.copy(d, host)
    host.numpy(F4)[:] = 2  # the next batch, too early
    dev.default_stream.record(event)
    await s.synchronize()
    assert d.numpy()[0] == 2


async def test_G1_each_copy_owns_its_source(dev: aclrt.Device) -> None:
    s, d = dev.stream(), array(dev)
    event = gate(dev, s)
    for number in (1, 2):
        host = acl.aclrtMallocHost(32)
        host.numpy(F4)[:] = number
        s.copy(d, host)
        s.launch(add, d, 0.5)
        del host  # the copy keeps what it reads
    dev.default_stream.record(event)
    await s.synchronize()
    assert d.numpy()[0] == 2.5


async def test_G3_pageable_memory_is_read_at_the_call(dev: aclrt.Device) -> None:
    s, d, host = dev.stream(), array(dev), np.full(8, 1, F4)
    event = gate(dev, s)
    s.copy(d, host)
    host[:] = 2
    dev.default_stream.record(event)
    await s.synchronize()
    assert d.numpy()[0] == 1


async def test_G4_a_workspace_freed_while_a_task_needs_it(dev: aclrt.Device) -> None:
    s, w, x = dev.stream(), array(dev), array(dev)
    event = gate(dev, s)
    s.launch(add, w, 1.0)
    w.free()
    other = array(dev)
    s.launch(add, x, 1.0)
    dev.default_stream.record(event)
    with refused(507035, "freed", "test_class_g.py") as caught:
        await s.synchronize()
    assert isinstance(caught.value.__cause__, MemoryFault)
    assert not other.numpy().any()
    assert x.numpy()[0] == 1


@pytest.mark.parametrize("fenced", [False, True])
async def test_G6_which_schedules_lose(fenced: bool) -> None:
    """The host's step i + 1 against the device's step i, in 20 seeded schedules: a fence mends all of them."""
    results = set()
    for seed in range(20):
        async with aclrt.open_device(clock="virtual", policy=SeededRandom(seed)) as dev:
            copies, compute, d, out = dev.stream(), dev.stream(), array(dev), array(dev)
            total = array(dev)
            host = acl.aclrtMallocHost(32)
            read = dev.event()
            for step in (1, 2, 3):
                if fenced and step > 1:
                    await read.synchronize()
                host.numpy(F4)[:] = step
                copies.copy(d, host)
                if fenced:
                    copies.record(read)
                    compute.wait(read)
                compute.copy(out, d)
                compute.launch(plus, out, total)
                if fenced:
                    copies.wait(compute.record())
            await dev.synchronize()
            results.add(float(total.numpy()[0]))
    assert results == {6.0} if fenced else len(results) > 1


@aclrt.kernel
def plus(x: aclrt.In[np.float32], total: aclrt.InOut[np.float32]) -> None:
    total += x


async def test_G7_a_host_that_never_synchronises_runs_ahead(dev: aclrt.Device) -> None:
    """A hundred steps from one staging buffer without a fence: each step reads the last one's bytes."""
    s, total, d, host = dev.stream(), array(dev), array(dev), acl.aclrtMallocHost(32)
    event = gate(dev, s)
    for step in range(100):
        host.numpy(F4)[:] = step
        s.copy(d, host)
        s.launch(plus, d, total)
    dev.default_stream.record(event)
    await s.synchronize()
    assert total.numpy()[0] == 99 * 100
