"""What the tests of execution share: kernels, graphs made of one line, and what a device holds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np

import aclrt
from aclrt import acl
from hw.driver import IdKind

if TYPE_CHECKING:
    from collections.abc import Callable


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], value: float) -> None:
    x += value


@aclrt.kernel
def push(trace: aclrt.InOut[np.int64], digit: int) -> None:
    """Append a digit: what ran in which order."""
    trace *= 10
    trace += digit


class Lab:
    """Streams, a trace of digits and a value other streams can wait for."""

    def __init__(self, dev: aclrt.Device, streams: int = 3) -> None:
        self.dev = dev
        self.s, *self.others = (dev.stream() for _ in range(streams))
        self.x = dev.array(np.zeros(4, np.float32))
        self.trace = dev.array(np.zeros(1, np.int64))
        self.flag = dev.array(np.zeros(1, np.int64))

    @property
    def side(self) -> aclrt.Stream:
        return self.others[0]

    async def graph(
        self, body: Callable[[aclrt.Stream], Any], *, name: str | None = None, sides: int = 0
    ) -> aclrt.Graph:
        """A graph of `body`, and of an empty fork to each of `sides` further streams."""
        async with aclrt.capture(self.s, name=name) as graph:
            body(self.s)
            for side in self.others[:sides]:
                async with self.s.fork(side) as (forked,):
                    forked.launch(add, self.x, 0.0)
        return graph

    async def adding(self, value: float = 1.0, *, name: str | None = None, sides: int = 0) -> aclrt.Graph:
        return await self.graph(lambda s: s.launch(add, self.x, value), name=name, sides=sides)

    async def pushing(self, digit: int, *, sides: int = 0) -> aclrt.Graph:
        return await self.graph(lambda s: s.launch(push, self.trace, digit), sides=sides)

    async def gated(self, digit: int = 1, *, name: str | None = None, sides: int = 0) -> aclrt.Graph:
        """A digit, a wait until the flag is set, the digit again."""

        def body(s: aclrt.Stream) -> None:
            s.launch(push, self.trace, digit)
            acl.aclrtValueWait(self.flag, 1, acl.ACL_VALUE_WAIT_EQ, s)
            s.launch(push, self.trace, digit)

        return await self.graph(body, name=name, sides=sides)

    def open_gate(self) -> None:
        self.flag.assign([1])

    @property
    def value(self) -> float:
        return float(self.x.numpy()[0])

    @property
    def digits(self) -> int:
        return int(self.trace.numpy()[0])

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let the loop run until something holds, for at most some hundred passes."""
        for _ in range(500):
            if holds():
                return
            await asyncio.sleep(0)
        raise AssertionError("it never came to that")


def held(dev: aclrt.Device) -> dict[str, int]:
    """Everything on the device that could leak."""
    driver = dev.npu.driver
    machine = driver._m
    return {kind.name: driver.held(kind) for kind in IdKind} | {
        "bytes": driver.used_bytes,
        "images": len(machine.images._images),
        "arguments": len(machine.args),
        "models": len(machine.models.models),
        "model SQs": len(machine.models.sqs),
        "queues": len(dev.npu.queues),
        "held streams": len(dev.npu.short),
        "waits": len(dev.npu.waits),
    }
