"""Newton's method inside one graph: a WHILE on the device runs the step until it has converged, the host waits once."""

from __future__ import annotations

import asyncio

import numpy as np

import aclrt
from aclrt import In, InOut, Out

STARTS = np.array([1.5, 2.0, 3.0, 10.0, 1000.0])
TOLERANCE = 1e-12


@aclrt.kernel
def slope(x: In[np.float64], f: Out[np.float64], df: Out[np.float64]) -> None:
    f[:] = x * x * x - 2 * x - 5  # the cubic Newton himself solved
    df[:] = 3 * x * x - 2


@aclrt.kernel
def step(x: InOut[np.float64], f: In[np.float64], df: In[np.float64], turns: InOut[np.int64]) -> None:
    x -= f / df
    turns += 1


@aclrt.kernel
def converged(f: In[np.float64], df: In[np.float64], go: Out[np.uint64]) -> None:
    go[0] = np.abs(f / df).max() > TOLERANCE  # 0 ends the WHILE


async def main() -> None:
    async with aclrt.open_device() as dev:
        stream = dev.stream()
        x, turns = dev.array(STARTS), dev.array(np.zeros(1, np.int64))
        f, df = dev.empty(x.shape, np.float64), dev.empty(x.shape, np.float64)

        async with aclrt.capture(stream) as graph:
            go = graph.condition(default=1)  # submitting a run sets it to 1
            async with graph.while_(go) as body:
                body.launch(slope, x, f, df)
                body.launch(step, x, f, df, turns)
                body.launch(converged, f, df, go.buffer)

        for starts in (STARTS, STARTS * 1e6):
            x.assign(starts)
            turns.assign(0)
            await graph.replay(stream)
            print(f"from {starts[0]:g} .. {starts[-1]:g}: {int(turns.numpy()[0])} turns, roots {x.numpy()}")


asyncio.run(main())
