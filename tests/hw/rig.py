"""A chip on the bench: bytes in, CQEs out, with as little ceremony as a test can do with."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import hw
from hw.chips import Core, Cqe, CqeKind, SqeKind
from hw.driver import Driver, IdKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

K = SqeKind
PASSES = 20_000


class Model:
    """A loaded model: its id, end-graph notify, SQs and images, stream by stream."""

    def __init__(self, id: int, notify: int, sqs: list[int], images: list[int]) -> None:
        self.id, self.notify, self.sqs, self.images = id, notify, sqs, images


class Rig:
    """One open chip, everything it posted (`log`) and everything its kernels said (`ran`)."""

    def __init__(self, **options: Any) -> None:
        self.driver: Driver = hw.open_chip(**options)
        self.log: list[Cqe] = []
        self.ran: list[Any] = []
        self.driver.listen(self.log.append)
        self._task_ids = itertools.count()
        self._streams: dict[int, int] = {}

    # -- slots ----------------------------------------------------------------------------------------------------

    def sqe(self, kind: SqeKind, *, stream_id: int = 0, flags: int = 0, **fields: int) -> bytes:
        return self.driver.chip.encode(kind, stream_id=stream_id, task_id=next(self._task_ids), flags=flags, **fields)

    def kernel(self, fn: Callable[..., Any], *values: Any, core: Core = Core.AIV, flags: int = 0, **load: Any) -> bytes:
        """A KERNEL slot that calls fn(*values)."""
        program = self.driver.load(fn, core=core, **load)
        return self.sqe(K.KERNEL, core=core, program=program, args=self.driver.args_put(values, ()), flags=flags)

    def say(self, word: Any, **load: Any) -> bytes:
        """A KERNEL slot that appends `word` to `ran`."""
        return self.kernel(self.ran.append, word, name=f"say {word}", **load)

    def boom(self, text: str = "boom", **load: Any) -> bytes:
        """A KERNEL slot that raises."""

        def boom() -> None:
            raise ArithmeticError(text)

        return self.kernel(boom, **load)

    def cell(self, value: int = 0) -> int:
        """The address of 8 bytes of device memory."""
        address = self.driver.malloc(8)
        self.driver.write(address, value.to_bytes(8, "little", signed=value < 0))
        return address

    def peek(self, address: int) -> int:
        return int.from_bytes(self.driver.read(address, 8), "little", signed=True)

    # -- queues and models ----------------------------------------------------------------------------------------

    def sq(self, depth: int = 64) -> int:
        stream = self.driver.alloc(IdKind.STREAM)
        sq = self.driver.sq_open(stream, depth)
        self._streams[sq] = stream
        return sq

    def submit(self, sq: int, *tasks: bytes) -> int:
        position = 0
        for task in tasks:
            position = self.driver.submit(sq, task)
        return position

    def model(
        self, *streams: Sequence[bytes], root: int | None = None, heads: int = 1, notify: int | None = None
    ) -> Model:
        """Build and load a model of one SQ a stream; the first `heads` are started by an execute. The first
        stream ends with the record of the end-graph notify."""
        d = self.driver
        id = d.alloc(IdKind.MODEL)
        notify = d.alloc(IdKind.NOTIFY) if notify is None else notify
        sqs, images = [], []
        for index, tasks in enumerate(streams):
            code = b"".join(tasks) + (self.sqe(K.NOTIFY_RECORD, notify_id=notify) if index == 0 else b"")
            stream, sq = d.alloc(IdKind.STREAM), d.alloc(IdKind.SQ)
            image = d.image_alloc(max(1, len(code) // 64))
            d.image_write(image, 0, code)
            d.sq_bind([(sq, stream, image, len(code) // 64)])
            top = id if root is None else root
            d.control(self.sqe(K.MODEL_ADD, model=id, root=top, sq=sq, head=int(index < heads)))
            sqs.append(sq)
            images.append(image)
        d.control(self.sqe(K.MODEL_LOAD, model=id, notify=notify))
        return Model(id, notify, sqs, images)

    def execute(self, sq: int, model: Model, timeout_ms: int = 0) -> int:
        self.submit(sq, self.sqe(K.MODEL_EXECUTE, model=model.id))
        return self.submit(sq, self.sqe(K.NOTIFY_WAIT, notify_id=model.notify, timeout_ms=timeout_ms))

    # -- watching -------------------------------------------------------------------------------------------------

    def head(self, sq: int) -> int:
        return max((c.position for c in self.log if c.kind is CqeKind.HEAD and c.sq == sq), default=0)

    def errors(self, sq: int | None = None) -> list[Cqe]:
        return [c for c in self.log if c.kind is CqeKind.ERROR and sq in (None, c.sq)]

    async def until(self, sq: int, position: int) -> None:
        """Until the SQ's reported head is at `position`; no more passes of the loop than PASSES."""
        for _ in range(PASSES):
            if self.head(sq) >= position:
                return
            await asyncio.sleep(0)
        if any(w.what == ("worker",) for w in self.driver.waits()):
            await self.until_real(sq, position)
            return
        raise AssertionError(f"SQ {sq} is at {self.head(sq)}, not {position}: {self.driver.waits()}")

    async def until_real(self, sq: int, position: int) -> None:
        """As `until`, for what a worker thread has to finish first: bounded by time instead of passes."""
        async with asyncio.timeout(10):
            while self.head(sq) < position:  # noqa: ASYNC110 (no event of ours: the CQE is what is tested)
                await asyncio.sleep(0.0005)

    async def run(self, sq: int, *tasks: bytes) -> None:
        await self.until(sq, self.submit(sq, *tasks))

    async def settle(self, passes: int = 100) -> None:
        """Let the device do what it can."""
        for _ in range(passes):
            await asyncio.sleep(0)
