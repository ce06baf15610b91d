"""Top-k with k chosen on the device: one captured graph, a SWITCH with one branch for each k, no host in between."""

from __future__ import annotations

import asyncio

import numpy as np

import aclrt
from aclrt import In, Out

KS = (1, 2, 4, 8)
CLASSES = 16


@aclrt.kernel
def softmax(logits: In[np.float32], p: Out[np.float32]) -> None:
    np.exp(logits - logits.max(), out=p)
    p /= p.sum()


@aclrt.kernel
def confidence(p: In[np.float32], choice: Out[np.uint64]) -> None:
    """The case: the sure get k=1, the undecided get more."""
    choice[0] = np.searchsorted([-0.9, -0.6, -0.3], -p.max(), side="right")


@aclrt.kernel
def top(p: In[np.float32], best: Out[np.int64], k: int) -> None:
    best[:] = -1
    best[:k] = np.argsort(-p, kind="stable")[:k]


async def main() -> None:
    rng = np.random.default_rng(7)
    async with aclrt.open_device() as dev:
        stream = dev.stream()
        logits, p = (dev.empty(CLASSES, np.float32) for _ in range(2))
        best = dev.empty(max(KS), np.int64)

        async with aclrt.capture(stream) as graph:
            stream.launch(softmax, logits, p)
            case = graph.condition()
            stream.launch(confidence, p, case.buffer)
            for k, branch in zip(KS, graph.switch(case, len(KS)), strict=True):
                async with branch as body:
                    body.launch(top, p, best, k)

        for sharpness in (0.0, 1.0, 2.0, 4.0, 16.0):
            logits.assign(rng.normal(size=CLASSES).astype(np.float32) * sharpness)
            await graph.replay(stream)
            k = KS[int(case.buffer.numpy()[0])]
            print(f"p max {p.numpy().max():.2f}: k={k}, top {best.numpy()[:k].tolist()}")


asyncio.run(main())
