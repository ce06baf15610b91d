"""What users report, class F: memory freed, moved or stale behind a live graph. A test for each runtime scenario."""

from __future__ import annotations

import numpy as np

import aclrt
from aclrt import acl
from hw.driver import MemoryFault
from tests.robust.bench import add, array, code_of, refused

ONES = np.ones(8, np.float32)


async def test_F1_a_buffer_that_only_the_graph_still_names(dev: aclrt.Device) -> None:
    """Freed and given to somebody else: the replay fails, and never touches the new owner's bytes."""
    s, b = dev.stream(), array(dev)
    async with aclrt.capture(s) as graph:
        s.launch(add, b, 1.0)
    await graph.replay(s)
    b.free()
    other = array(dev)
    with refused(507011, "freed", "test_class_f.py") as caught:
        await graph.replay(s)
    assert caught.value.__cause__ is not None
    assert isinstance(caught.value.__cause__.__cause__, MemoryFault)
    assert await code_of(s.synchronize()) == 507011
    assert not other.numpy().any()


async def test_F2_a_cache_that_moved_needs_a_new_capture(dev: aclrt.Device) -> None:
    s, cache = dev.stream(), array(dev)

    async def capture() -> aclrt.Graph:
        async with aclrt.capture(s) as graph:
            s.launch(add, cache, 1.0)
        return graph

    stale = await capture()
    await stale.replay(s)
    cache.free()  # sleep
    cache = array(dev)  # wake, at another address
    with refused(507011):
        await stale.replay(s)
    assert await code_of(s.synchronize()) == 507011
    await stale.close()
    fresh = await capture()
    await fresh.replay(s)
    assert cache.numpy()[0] == 1


async def test_F3_new_weights_every_step(dev: aclrt.Device) -> None:
    """Capture, replay, drop, free: as often as one likes, at the same level."""
    s, levels = dev.stream(), set()
    for step in range(50):
        weights = dev.array(ONES * step)
        async with aclrt.capture(s) as graph:
            s.launch(add, weights, 1.0)
        await graph.replay(s)
        assert weights.numpy()[0] == step + 1
        await graph.close()
        weights.free()
        levels.add(dev.used_bytes)
    assert len(levels) == 1


async def test_F3_weights_sent_to_the_captured_address(dev: aclrt.Device) -> None:
    """What stays where it is may change what it holds: no recapture."""
    s, weights, out = dev.stream(), dev.array(ONES), array(dev)
    async with aclrt.capture(s) as graph:
        s.copy(out, weights)
    for step in range(3):
        weights.assign(ONES * step)
        await graph.replay(s)
        assert out.numpy()[0] == step


async def test_F4_a_pinned_staging_buffer_that_is_used_again(dev: aclrt.Device) -> None:
    """The captured copy reads its source when it runs: the next replay copies the foreign bytes, as on hardware."""
    s, d, staging = dev.stream(), array(dev), acl.aclrtMallocHost(32)
    staging.numpy(np.float32)[:] = 1
    async with aclrt.capture(s) as graph:
        s.copy(d, staging)
    await graph.replay(s)
    assert d.numpy()[0] == 1
    staging.numpy(np.float32)[:] = 7  # somebody's prefill
    await graph.replay(s)
    assert d.numpy()[0] == 7


async def test_F6_the_pool_never_hands_out_what_a_graph_uses(dev: aclrt.Device) -> None:
    s, mine = dev.stream(), array(dev)
    async with aclrt.capture(s) as graph:
        s.launch(add, mine, 1.0)
    mine.free()
    addresses = {array(dev).address for _ in range(100)}
    assert mine.address not in addresses  # an address once given is never given again
    with refused(507011):
        await graph.replay(s)
    assert await code_of(s.synchronize()) == 507011


async def test_F7_closing_a_graph_gives_back_what_it_held(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    before = dev.used_bytes
    graphs = []
    for _ in range(10):
        async with aclrt.capture(s) as graph:
            async with graph.if_(graph.condition(default=1)) as body:
                body.launch(add, x, 1.0)
        await graph.replay(s)
        graphs.append(graph)
    assert dev.used_bytes > before
    for graph in graphs:
        await graph.close()
    assert dev.used_bytes == before
