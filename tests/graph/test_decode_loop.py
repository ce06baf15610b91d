"""A serving engine's decode loop: a graph for each batch size, lengths updated, an external event for each layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt

STEPS, LAYERS, WIDTH, CONTEXT = 1000, 3, 4, 16
SIZES = (8, 4, 2, 1)  # captured largest first, as engines do


@aclrt.kernel
def embed(tokens: aclrt.In[np.int64], hidden: aclrt.Out[np.float32]) -> None:
    hidden[:] = (tokens[:, None] + np.arange(WIDTH)) * np.float32(0.25)


@aclrt.kernel
def append(hidden: aclrt.In[np.float32], cache: aclrt.InOut[np.float32], positions: aclrt.In[np.int64]) -> None:
    cache[np.arange(len(positions)), positions] = hidden


@aclrt.kernel
def attend(cache: aclrt.In[np.float32], out: aclrt.Out[np.float32], lengths: tuple[int, ...]) -> None:
    """`lengths` is host data, fixed when the kernel is launched: what a serving engine updates at every step."""
    for row, length in enumerate(lengths):
        out[row] = cache[row, :length].mean(axis=0)


@aclrt.kernel
def project(mixed: aclrt.In[np.float32], hidden: aclrt.InOut[np.float32], factor: float) -> None:
    hidden *= np.float32(0.5)
    hidden += mixed * np.float32(factor)


class Decoder:
    """The buffers, the graph, the groups and the events of one batch size."""

    def __init__(self, dev: aclrt.Device, rows: int) -> None:
        self.rows = rows
        self.stream, self.side = dev.stream(), dev.stream()
        self.tokens, self.positions = dev.array(np.zeros(rows, "i8")), dev.array(np.zeros(rows, "i8"))
        self.hidden, self.mixed = dev.empty((rows, WIDTH)), dev.empty((rows, WIDTH))
        self.caches = [dev.empty((rows, CONTEXT, WIDTH)) for _ in range(LAYERS)]
        self.events = [dev.event(external=True) for _ in range(LAYERS)]
        self.groups: list[Any] = []
        self.graph: Any = None
        self.plain = [np.zeros((rows, CONTEXT, WIDTH), "f4") for _ in range(LAYERS)]  # the caches of the numpy twin

    async def capture(self) -> None:
        s = self.stream
        async with aclrt.capture(s, name=f"decode {self.rows}") as self.graph:
            s.launch(embed, self.tokens, self.hidden)
            for layer in range(LAYERS):
                s.launch(append, self.hidden, self.caches[layer], self.positions)
                s.wait(self.events[layer])
                s.reset(self.events[layer])
                with s.task_group() as group:
                    s.launch(attend, self.caches[layer], self.mixed, (1,) * self.rows)
                self.groups.append(group)
                s.launch(project, self.mixed, self.hidden, 1.0 + layer)

    async def step(self, tokens: Any, lengths: tuple[int, ...]) -> Any:
        """Replay, update every layer while the replay waits for it, and read the result."""
        self.tokens.assign(tokens)
        self.positions.assign(np.array(lengths) - 1)
        run = self.graph.launch(self.stream)
        for layer in range(LAYERS):
            async with self.graph.update(self.groups[layer], on=self.side) as u:
                u.launch(attend, self.caches[layer], self.mixed, lengths)
            self.side.record(self.events[layer])
        await run
        return self.hidden.numpy()

    def eager(self, tokens: Any, lengths: tuple[int, ...]) -> Any:
        """The same kernels on plain numpy arrays."""
        hidden, mixed = np.zeros((self.rows, WIDTH), "f4"), np.zeros((self.rows, WIDTH), "f4")
        embed(tokens, hidden)
        for layer in range(LAYERS):
            append(hidden, self.plain[layer], np.array(lengths) - 1)
            attend(self.plain[layer], mixed, lengths)
            project(mixed, hidden, 1.0 + layer)
        return hidden


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_a_decode_loop_equals_numpy_at_every_step(chip: str) -> None:
    random = np.random.default_rng(7)
    async with aclrt.open_device(0, chip=chip) as dev:
        decoders = {rows: Decoder(dev, rows) for rows in SIZES}
        for decoder in decoders.values():
            await decoder.capture()
        steps = dict.fromkeys(SIZES, 0)
        for _ in range(STEPS):
            rows = int(random.choice(SIZES))
            decoder = decoders[rows]
            lengths = tuple(1 + (steps[rows] + row) % CONTEXT for row in range(rows))
            tokens = random.integers(0, 50, rows)
            steps[rows] += 1
            found = await decoder.step(tokens, lengths)
            np.testing.assert_array_equal(found, decoder.eager(tokens, lengths))
        assert min(steps.values()) > 200
        for decoder in decoders.values():
            # Arguments replaced by an update are given back: what is left does not grow with the steps.
            assert len(decoder.graph.argument_handles) <= 1 + LAYERS * (2 + 2)
            assert [group.updates for group in decoder.groups] == [steps[decoder.rows]] * LAYERS
