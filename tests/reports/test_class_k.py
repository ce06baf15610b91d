"""What users ask for, class K: host callbacks as stream work and inside graphs, with a lifetime one can rely on."""

from __future__ import annotations

import gc
import weakref

import numpy as np

import aclrt
from aclrt import acl
from tests.robust.bench import add, array, held


class Owner:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1


async def test_K_a_graph_keeps_its_host_function(dev: aclrt.Device) -> None:
    """As long as the graph may be replayed, and not longer."""
    s, x, owner = dev.stream(), array(dev), Owner()
    ref = weakref.ref(owner)
    async with aclrt.capture(s) as graph:
        s.callback(owner)
        s.launch(add, x, 1.0)
    del owner
    gc.collect()
    for _ in range(3):
        await graph.replay(s)
    alive = ref()
    assert alive is not None
    assert alive.calls == 3
    del alive
    await graph.close()
    del graph
    gc.collect()
    assert ref() is None


async def test_K_an_eager_host_function_is_let_go_when_it_has_run(dev: aclrt.Device) -> None:
    s, owner = dev.stream(), Owner()
    s.callback(Owner())  # the first one on a stream makes what the others use
    await s.synchronize()
    before, ref = held(dev), weakref.ref(owner)
    s.callback(owner)
    del owner
    await s.synchronize()
    gc.collect()
    assert ref() is None
    assert held(dev) == before


async def test_K_print_an_array_from_inside_a_replayed_graph(dev: aclrt.Device) -> None:
    """Copy to pinned memory, then a host function that looks at it: each replay shows its own values."""
    s, x, out = dev.stream(), array(dev), acl.aclrtMallocHost(32)
    seen: list[float] = []
    async with aclrt.capture(s) as graph:
        s.launch(add, x, 1.0)
        s.copy(out, x)
        s.callback(lambda: seen.append(float(out.numpy(np.float32)[0])))
        s.launch(add, x, 10.0)
    for _ in range(3):
        await graph.replay(s)
    assert seen == [1, 12, 23]


async def test_K_callbacks_of_several_streams_in_the_order_of_the_device(dev: aclrt.Device) -> None:
    s, side = dev.stream(), dev.stream()
    seen: list[str] = []
    async with aclrt.capture(s) as graph:
        s.callback(lambda: seen.append("before"))
        async with s.fork(side) as (b,):
            b.callback(lambda: seen.append("side"))
        s.callback(lambda: seen.append("after"))
    await graph.replay(s)
    assert seen == ["before", "side", "after"]
