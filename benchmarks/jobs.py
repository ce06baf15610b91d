"""The jobs that are timed: small additions on one stream or on many, as a plain loop, replayed, and launched eagerly.

A job's floor calls the very functions and arrays that the engine ends up calling. This module times nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

import aclrt
from aclrt import In, Out

from .timing import Contender

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Array = NDArray[np.float32]

REPLAYS = 10  # back to back, each awaited
EAGER_PASSES = 3  # each synchronized
OPERANDS = 64  # array triples that the tasks take in turn
EDGE_EVERY = 10  # tasks of a stream from one event edge to the next


def add(x: In[np.float32], y: In[np.float32], out: Out[np.float32]) -> None:
    """The kernel written as a `def`."""
    np.add(x, y, out)


@final
class Shape(NamedTuple):
    """A job in figures."""

    name: str  # of the kernel, in the table
    function: Callable[..., object]
    floats: int
    streams: int
    tasks: int  # per stream

    @property
    def launches(self) -> int:
        return self.streams * self.tasks


SINGLE = (
    Shape("np.add", np.add, 8, 1, 1000),
    Shape("def", add, 8, 1, 1000),
    Shape("np.add", np.add, 4096, 1, 1000),
    Shape("def", add, 4096, 1, 1000),
)
MANY = (Shape("np.add", np.add, 8, 8, 1000), Shape("np.add", np.add, 8, 64, 100))


@final
class Job:
    """A shape built on a device: its streams, operands and captured graph."""

    graph: aclrt.Graph

    def __init__(self, dev: aclrt.Device, shape: Shape) -> None:
        self.shape = shape
        self.kernel = aclrt.kernel(shape.function)
        self.streams = [dev.stream() for _ in range(shape.streams)]
        ones = np.ones(shape.floats, np.float32)
        self.operands = [tuple(dev.array(ones) for _ in range(3)) for _ in range(OPERANDS)]
        self.launches = [self._operands(0, task) for task in range(shape.tasks)]  # of the first stream

    async def contenders(self) -> dict[str, Contender]:
        """Capture, and give what is to be timed. Eager launches are timed on one stream only."""
        async with aclrt.capture(self.streams[0]) as self.graph:
            self._submit()
        found = {
            "floor": Contender(await self._floor(), REPLAYS * self.shape.launches),
            "replay": Contender(self._replay, REPLAYS * self.shape.launches),
        }
        if self.shape.streams == 1:
            found["eager"] = Contender(self._eager, EAGER_PASSES * self.shape.launches)
        return found

    def _operands(self, stream: int, task: int) -> tuple[Any, ...]:
        return self.operands[(stream * 7 + task) % OPERANDS]

    def _submit(self) -> None:
        """All streams' tasks in host order; each stream waits for its neighbour once in ten tasks."""
        origin, *others = self.streams
        if others:
            start = origin.record()
            for stream in others:
                stream.wait(start)
        recorded = [origin.record() for _ in self.streams] if others else []
        for task in range(self.shape.tasks):
            for number, stream in enumerate(self.streams):
                if others and task % EDGE_EVERY == EDGE_EVERY // 2:
                    stream.wait(recorded[number - 1])
                stream.launch(self.kernel, *self._operands(number, task))
                if others and task % EDGE_EVERY == 0:
                    recorded[number] = stream.record()
        for stream in others:
            origin.wait(stream.record())

    async def _floor(self) -> Callable[[], Awaitable[None]]:
        """A plain loop over the same calls in the same order, without device, events or graph."""
        views = await self._views()
        function, shape = self.shape.function, self.shape
        tasks = [
            (function, tuple(views[(number * 7 + task) % OPERANDS]))
            for task in range(shape.tasks)
            for number in range(shape.streams)
        ]

        async def run() -> None:
            for _ in range(REPLAYS):
                for f, a in tasks:
                    f(*a)

        return run

    async def _views(self) -> list[tuple[Array, Array, Array]]:
        """The arrays a kernel is called with for each operand triple, seen by a kernel that keeps them."""
        seen: list[tuple[Array, Array, Array]] = []

        @aclrt.kernel
        def look(x: In[np.float32], y: In[np.float32], out: Out[np.float32]) -> None:
            seen.append((x, y, out))

        for triple in self.operands:
            self.streams[0].launch(look, *triple)
        await self.streams[0].synchronize()
        return seen

    async def _replay(self) -> None:
        for _ in range(REPLAYS):
            await self.graph.replay(self.streams[0])

    async def _eager(self) -> None:
        launch, kernel, stream = self.streams[0].launch, self.kernel, self.streams[0]
        for _ in range(EAGER_PASSES):
            for operands in self.launches:
                launch(kernel, *operands)
            await stream.synchronize()
