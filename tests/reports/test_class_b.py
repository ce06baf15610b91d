"""What users report, class B: work on a side stream that is never joined. A test for each scenario."""

from __future__ import annotations

import re

import pytest

import aclrt
from aclrt import acl
from tests.robust.bench import add, array, captured, held, refused

HERE = "test_class_b.py:"


async def unjoined(dev: aclrt.Device, side: aclrt.Stream, how: str) -> None:
    """A capture whose side stream is not joined, by one of the three rules."""
    s, x = dev.stream(), array(dev)
    acl.aclmdlRICaptureBegin(s, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
    side.wait(s.record())
    if how != "no task":
        side.launch(add, x, 1.0)
    if how in ("nobody waits", "work behind the record"):
        done = side.record()
        if how == "work behind the record":
            s.wait(done)
            side.launch(add, x, 1.0)
    acl.aclmdlRICaptureEnd(s)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no task", ("EVENT_WAIT", "not the record of a captured event")),
        ("no record", ("KERNEL_AIVEC", "not the record of a captured event")),
        ("work behind the record", ("KERNEL_AIVEC", "not the record of a captured event")),
        ("nobody waits", ("nobody waited",)),
    ],
)
async def test_B4_end_says_which_stream_and_which_rule(dev: aclrt.Device, how: str, words: tuple[str, ...]) -> None:
    side = dev.stream()
    before = held(dev)
    with refused(107025, f"stream {side.id}", "joined at", "through event", HERE, *words):
        await unjoined(dev, side, how)
    assert not captured(dev)
    after = held(dev)
    assert {name: after[name] for name in ("EVENT", "MODEL", "models", "arguments")} == {
        name: before[name] for name in ("EVENT", "MODEL", "models", "arguments")
    }
    side.launch(add, array(dev), 1.0)  # the side stream is an ordinary one again
    await side.synchronize()


async def test_B4_the_fork_block_cannot_be_left_unjoined(dev: aclrt.Device) -> None:
    s, side, x, y = dev.stream(), dev.stream(), array(dev), array(dev)
    async with aclrt.capture(s) as graph:
        async with s.fork(side) as (b,):
            b.launch(add, y, 1.0)
        s.launch(add, x, 1.0)
    await graph.replay(s)
    assert (x.numpy()[0], y.numpy()[0]) == (1, 1)


async def test_B6_the_dump_shows_where_the_fork_joins(dev: aclrt.Device) -> None:
    """The same program with and without its join: the missing edge is missing in the dot text."""
    s, side, x = dev.stream(), dev.stream(), array(dev)

    def edges(text: str) -> int:
        return len(re.findall(r'-> .*label="event', text))

    texts = []
    for joined in (True, False):
        acl.aclmdlRICaptureBegin(s, acl.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL)
        graph = acl.aclmdlRICaptureGetInfo(s).modelRI
        assert isinstance(graph, aclrt.Graph)
        side.wait(s.record())
        side.launch(add, x, 1.0)
        done = side.record()
        if joined:
            s.wait(done)
        texts.append(graph.to_dot())
        if joined:
            acl.aclmdlRICaptureEnd(s)
        else:
            with refused(107025, f"stream {side.id}"):
                acl.aclmdlRICaptureEnd(s)
    assert edges(texts[0]) == edges(texts[1]) + 1 == 2, texts
