"""A digit-reading service on an emulated NPU: capture the network once per batch size, await its replays.

200 asyncio clients send the 1,797 digits of `digits.npz`, one at a time each. A batcher takes what is waiting, pads it
to the next batch size (1, 8 or 64), replays that size's graph and answers each client. Every graph spans two streams:
copies run on one, compute on the other, and events join them. At the end every answer is compared, bit for bit, with
numpy's forward pass of the same padded batch; one difference and the exit code is 1.

    python examples/digits_service.py
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

import aclrt
from aclrt import In, InOut, Out, acl

if TYPE_CHECKING:
    from collections.abc import Callable

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float32]

HERE = Path(__file__).parent
BATCH_SIZES = (1, 8, 64)
CLIENTS = 200
ARRIVALS = (range(1), range(1, 8), range(8, CLIENTS))
TRAINED_ON = 1437  # train_digits.py held out the images after these
SCALE = np.float32(1 / 16)  # pixels are 0..16
TIMED_ROUNDS = 50


@aclrt.kernel
def scale(pixels: In[np.uint8], x: Out[np.float32]) -> None:
    np.multiply(pixels, SCALE, out=x)


@aclrt.kernel
def matmul(x: In[np.float32], w: In[np.float32], y: Out[np.float32]) -> None:
    np.matmul(x, w, out=y)


@aclrt.kernel
def add_bias(y: InOut[np.float32], b: In[np.float32]) -> None:
    y += b


@aclrt.kernel
def relu(y: InOut[np.float32]) -> None:
    np.maximum(y, 0, out=y)


@final
class Network:
    """The trained weights, in host memory. It knows no device: its forward pass is the judge of the device's."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as data:
            self.w1, self.b1, self.w2, self.b2 = (data[name] for name in ("w1", "b1", "w2", "b2"))

    def forward(self, pixels: Pixels) -> Floats:
        """Logits of one batch, in plain numpy."""
        hidden = np.maximum((pixels * SCALE) @ self.w1 + self.b1, 0)
        logits: Floats = hidden @ self.w2 + self.b2
        return logits


@final
class Weights:
    """The network's weights in device memory, shared by all lanes."""

    def __init__(self, dev: aclrt.Device, network: Network) -> None:
        self.w1, self.b1 = dev.array(network.w1), dev.array(network.b1)
        self.w2, self.b2 = dev.array(network.w2), dev.array(network.b2)


def pinned(shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
    """An array in page-locked host memory: what an asynchronous copy reads and writes when it executes."""
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return acl.aclrtMallocHost(nbytes).numpy(dtype).reshape(shape)


@final
class Lane:
    """One batch size: its buffers, its tasks over the two streams, and the graph captured from them."""

    graph: aclrt.Graph

    def __init__(self, dev: aclrt.Device, copies: aclrt.Stream, compute: aclrt.Stream, w: Weights, size: int) -> None:
        self.size, self.copies = size, copies
        self.pixels, self.logits = pinned((size, 64), np.uint8), pinned((size, 10), np.float32)
        raw, x = dev.empty((size, 64), np.uint8), dev.empty((size, 64), np.float32)
        hidden, out = dev.empty((size, w.b1.shape[0]), np.float32), dev.empty((size, 10), np.float32)
        loaded, done = copies.record(), compute.record()
        self.tasks: list[tuple[Callable[..., object], tuple[Any, ...]]] = [
            (copies.copy, (raw, self.pixels)),
            (copies.record, (loaded,)),
            (compute.wait, (loaded,)),  # while capturing, this draws the compute stream in
            (compute.launch, (scale, raw, x)),
            (compute.launch, (matmul, x, w.w1, hidden)),
            (compute.launch, (add_bias, hidden, w.b1)),
            (compute.launch, (relu, hidden)),
            (compute.launch, (matmul, hidden, w.w2, out)),
            (compute.launch, (add_bias, out, w.b2)),
            (compute.record, (done,)),
            (copies.wait, (done,)),  # and this joins it again
            (copies.copy, (self.logits, out)),
        ]

    def submit(self) -> None:
        """Send the tasks to their streams: run now, or be recorded if a capture is open."""
        for call, args in self.tasks:
            call(*args)

    async def capture(self) -> None:
        """Record the tasks once."""
        async with aclrt.capture(self.copies) as self.graph:
            self.submit()

    async def replayed(self) -> None:
        await self.graph.replay(self.copies)

    async def eager(self) -> None:
        self.submit()
        await self.copies.synchronize()


class Answer(NamedTuple):
    """What a client gets back: the logits of its image, and where they were computed."""

    logits: Floats
    batch: int
    row: int


class Request(NamedTuple):
    pixels: Pixels
    answer: asyncio.Future[Answer]


@final
class Batcher:
    """Takes the requests that are waiting and replays the smallest graph that holds them. It knows no client."""

    def __init__(self, lanes: list[Lane]) -> None:
        self.lanes = lanes  # smallest first
        self.waiting: asyncio.Queue[Request] = asyncio.Queue()
        self.batches: list[Pixels] = []  # every padded batch as replayed, for the final comparison
        self.used: Counter[int] = Counter()

    async def ask(self, pixels: Pixels) -> Answer:
        """Queue one image of 64 pixels and wait for its answer."""
        request = Request(pixels, asyncio.get_running_loop().create_future())
        self.waiting.put_nowait(request)
        return await request.answer

    async def serve(self) -> None:
        """Answer until cancelled."""
        while True:
            batch = [await self.waiting.get()]
            while len(batch) < self.lanes[-1].size and not self.waiting.empty():
                batch.append(self.waiting.get_nowait())
            await self.answer(batch)

    async def answer(self, batch: list[Request]) -> None:
        """Pad, replay, hand each client its row."""
        lane = next(lane for lane in self.lanes if lane.size >= len(batch))
        lane.pixels[: len(batch)] = [request.pixels for request in batch]
        lane.pixels[len(batch) :] = 0
        await lane.replayed()
        number = len(self.batches)
        self.batches.append(lane.pixels.copy())
        self.used[lane.size] += 1
        for row, request in enumerate(batch):
            request.answer.set_result(Answer(lane.logits[row].copy(), number, row))


@final
class Progress:
    """One line that moves, on a terminal only: a bar, and the digit just read."""

    WIDTH = 40

    def __init__(self, total: int) -> None:
        self.total, self.served = total, 0
        self.shown = sys.stdout.isatty()

    def step(self, answer: Answer) -> None:
        self.served += 1
        if self.shown and (self.served % 16 == 0 or self.served == self.total):
            bar = ("█" * (self.served * self.WIDTH // self.total)).ljust(self.WIDTH, "·")
            end = "\n" if self.served == self.total else ""
            print(f"\rreading {bar} {self.served:5,} that was a {answer.logits.argmax()}", end=end, flush=True)


async def client(batcher: Batcher, images: Pixels, answers: dict[int, Answer], first: int, progress: Progress) -> None:
    """Send every 200th image, each after the answer to the one before."""
    for index in range(first, len(images), CLIENTS):
        answers[index] = await batcher.ask(images[index])
        progress.step(answers[index])


async def serve_all(batcher: Batcher, images: Pixels) -> dict[int, Answer]:
    """Run the batcher and 200 clients until every image is answered. First one client comes, then a few, then all."""
    answers: dict[int, Answer] = {}
    progress = Progress(len(images))
    async with asyncio.TaskGroup() as group:
        server = group.create_task(batcher.serve())
        clients: list[asyncio.Task[None]] = []
        for arriving in ARRIVALS:
            clients += [group.create_task(client(batcher, images, answers, first, progress)) for first in arriving]
            await asyncio.sleep(0.002)
        await asyncio.wait(clients)
        server.cancel()
    return answers


def count_equal(network: Network, images: Pixels, batches: list[Pixels], answers: dict[int, Answer]) -> int:
    """Answers that equal, bit for bit, numpy's forward pass of the batch they were computed in.

    The whole padded batch is computed again, because BLAS may round a row differently in a batch of another size.
    """
    judged = [network.forward(batch) for batch in batches]
    return sum(
        answer.logits.tobytes() == judged[answer.batch][answer.row].tobytes()
        and np.array_equal(batches[answer.batch][answer.row], images[index])
        for index, answer in answers.items()
    )


async def cost_ns(run: Callable[[], Any], tasks: int) -> float:
    """Median time of one task in nanoseconds over 50 awaited rounds."""
    times = []
    for _ in range(TIMED_ROUNDS):
        start = time.perf_counter_ns()
        await run()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / tasks


async def report_costs(lanes: list[Lane]) -> None:
    for lane in lanes:
        count = len(lane.tasks)
        eager, replayed = await cost_ns(lane.eager, count), await cost_ns(lane.replayed, count)
        costs = f"{eager / 1000:.2f} us per task eager, {replayed / 1000:.2f} us replayed"
        print(f"cost      batch of {lane.size:2}: {costs}")


def report_service(batcher: Batcher, labels: Pixels, answers: dict[int, Answer], equal: int) -> None:
    right = np.array([answers[index].logits.argmax() == labels[index] for index in range(len(labels))])
    sizes = ", ".join(f"{batcher.used[lane.size]} of {lane.size}" for lane in batcher.lanes)
    print(f"served    {len(answers):,} images to {CLIENTS} clients in {len(batcher.batches)} batches ({sizes})")
    print(f"equal     {equal:,} of {len(labels):,} answers, bit for bit, to numpy's forward pass of the same batch")
    held_out = right[TRAINED_ON:]
    print(f"accuracy  {right.mean():.2%} of all {len(labels):,}, {held_out.mean():.2%} of the {len(held_out)} held out")


async def main() -> int:
    """Exit code: 0 if every image was answered and every answer is equal."""
    with np.load(HERE / "digits.npz") as data:
        images, labels = data["images"].reshape(-1, 64), data["labels"]
    network = Network(HERE / "digits_weights.npz")
    async with aclrt.open_device() as dev:
        copies, compute = dev.stream(), dev.stream()
        weights = Weights(dev, network)
        lanes = [Lane(dev, copies, compute, weights, size) for size in BATCH_SIZES]
        for lane in lanes:
            await lane.capture()
        print(f"captured  {len(lanes)} graphs of {len(lanes[0].tasks)} tasks, over 2 streams each")
        batcher = Batcher(lanes)
        answers = await serve_all(batcher, images)
        equal = count_equal(network, images, batcher.batches, answers)
        report_service(batcher, labels, answers, equal)
        await report_costs(lanes)
    if equal == len(images):
        return 0
    print(f"wrong: {len(images) - equal:,} answers are not what numpy computes", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
