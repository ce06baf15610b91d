"""Random graphs of streams and edges: every mode runs every task once, in stream order, after what it waits for."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from hw.driver import SeededRandom
from tests.hw.rig import K, Rig

if TYPE_CHECKING:
    from collections.abc import Callable

MODES: dict[str, Callable[[int], dict[str, Any]]] = {
    "wall": lambda seed: {},
    "virtual": lambda seed: {"clock": "virtual"},
    "seeded": lambda seed: {"policy": SeededRandom(seed)},
    "seeded virtual": lambda seed: {"clock": "virtual", "policy": SeededRandom(seed)},
}


def graph(rig: Rig, dice: random.Random) -> tuple[list[list[bytes]], int, list[tuple[int, int]]]:
    """Streams of tasks 0 .. count-1 with edges that always point from an earlier task to a later one, so that none can
    hang; the count; and the edges, those along a stream included, as pairs of what `ran` must show in that order."""
    streams: list[list[bytes]] = [[] for _ in range(dice.randint(1, 6))]
    edges: list[tuple[int, int]] = []
    said: list[tuple[int, int]] = []
    fresh = iter(range(1000))
    for n in range(dice.randint(1, 60)):
        at = dice.randrange(len(streams))
        if said and dice.random() < 0.4:
            source, before = said[dice.randrange(len(said))]
            kind = dice.choice(["event", "notify"])
            id = next(fresh)
            record, wait = (K.EVENT_RECORD, K.EVENT_WAIT) if kind == "event" else (K.NOTIFY_RECORD, K.NOTIFY_WAIT)
            name = {"event_id": id} if kind == "event" else {"notify_id": id + 100}
            streams[source].append(rig.sqe(record, **name))
            streams[at].append(rig.sqe(wait, **name))
            edges.append((before, n))
            if kind == "event":
                streams[at].append(rig.sqe(K.EVENT_RESET, event_id=id))
        streams[at].append(rig.say(n, cost_ns=dice.choice([0, 1, 50])))
        said.append((at, n))
    for at, stream in enumerate(streams[1:], 1):  # all join the first
        stream.append(rig.sqe(K.EVENT_RECORD, event_id=2000 + at))
        streams[0] += [rig.sqe(K.EVENT_WAIT, event_id=2000 + at), rig.sqe(K.EVENT_RESET, event_id=2000 + at)]
    for at in range(len(streams)):
        own = [n for where, n in said if where == at]
        edges += pairwise(own)
    return streams, len(said), edges


def check(ran: list[int], count: int, edges: list[tuple[int, int]]) -> None:
    assert sorted(ran) == list(range(count))
    place = {n: index for index, n in enumerate(ran)}
    for before, after in edges:
        assert place[before] < place[after]


@pytest.mark.parametrize("mode", list(MODES))
async def test_replays_keep_every_edge(mode: str) -> None:
    for seed in range(25):
        rig, dice = Rig(**MODES[mode](seed)), random.Random(seed)
        sq, other = rig.sq(), rig.sq()
        streams, count, edges = graph(rig, dice)
        model = rig.model(*streams, heads=len(streams))
        for _ in range(3):
            rig.ran.clear()
            positions = [(q, rig.execute(q, model)) for q in (sq, other)]
            for q, position in positions:
                await rig.until(q, position)
            check(rig.ran[:count], count, edges)
            check(rig.ran[count:], count, edges)
        assert rig.driver.waits() == []
        assert rig.driver.idle()
        for image in model.images:
            rig.driver.image_check(image)
        rig.driver.close()


@pytest.mark.parametrize("mode", list(MODES))
async def test_eager_streams_keep_every_edge(mode: str) -> None:
    for seed in range(25):
        rig, dice = Rig(**MODES[mode](seed)), random.Random(seed)
        streams, count, edges = graph(rig, dice)
        sqs = [rig.sq(depth=8) for _ in streams]
        left = [(at, list(stream)) for at, stream in enumerate(streams)]
        last = {}
        while left:  # submitted piecemeal, in any order, with the loop's turns in between
            at, stream = dice.choice(left)
            last[sqs[at]] = rig.submit(sqs[at], stream.pop(0))
            left = [(at, stream) for at, stream in left if stream]
            if dice.random() < 0.2:
                await asyncio.sleep(0)
        for sq, position in last.items():
            await rig.until(sq, position)
        check(rig.ran, count, edges)
        assert rig.driver.waits() == []
        rig.driver.close()
