"""The AI cores: registered kernels, how many cores there are, and worker threads for heavy kernels.

Not a scheduler: nothing here waits. A program id names a Python callable registered once; the callable runs on
numpy views of device memory, on the loop's thread or, when it is known to be heavy, on a worker thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter_ns
from typing import Any, final

from hw.chips import ChipSpec, Core, Status
from hw.engines.args import Args, Gone, Poison
from hw.signal import Signal

__all__ = [
    "EXCEPTION",
    "HEAVY_NS",
    "TIMEOUT",
    "CorePool",
    "Divert",
    "Kernel",
    "Kernels",
    "Pair",
    "Workers",
    "nop",
    "pools",
]

Fn = Callable[..., Any]
Pair = tuple[Fn, Args]
Done = Callable[[int, BaseException | None, int], None]

HEAVY_NS = 200_000
"""A kernel whose running mean is at least this goes to a worker thread (speed: the hop costs 100 to 250 us)."""

DEFAULT_COST_NS = 1_000
"""Device time of a kernel that states none, under the virtual clock."""

EXCEPTION = {Core.AIC: Status.AICORE_EXCEPTION, Core.AIV: Status.AIV_EXCEPTION}
"""How an exception of a kernel is reported (acl_semantics 11.3)."""

TIMEOUT = {Core.AIC: Status.AICORE_TIMEOUT, Core.AIV: Status.AIV_TIMEOUT}
"""How a kernel that ran over the execute time-out is reported."""


def nop() -> None:
    """What a NOP slot runs."""


@final
class Kernel:
    """A registered program. `mean_ns` is the running mean of its measured eager runs, the older half as much."""

    __slots__ = ("core", "cost_ns", "fn", "mean_ns", "name", "offload")

    def __init__(
        self, fn: Fn, core: Core, name: str, cost_ns: int | Callable[..., int] | None, offload: bool | None
    ) -> None:
        self.fn = fn
        self.core = core
        self.name = name
        self.cost_ns = cost_ns
        self.offload = offload
        self.mean_ns = 0

    def __repr__(self) -> str:
        return f"<Kernel {self.name} {self.core.name} mean {self.mean_ns} ns>"

    def cost(self, values: Args) -> int:
        """Device time in ns of one run with these arguments, under the virtual clock."""
        if callable(self.cost_ns):
            return 0 if isinstance(values, Poison) else max(0, int(self.cost_ns(*values)))
        return DEFAULT_COST_NS if self.cost_ns is None else self.cost_ns

    def heavy(self) -> bool:
        return self.offload if self.offload is not None else self.mean_ns >= HEAVY_NS


class Divert(Exception):
    """A kernel that is heavy, or was never measured, was called inline by the eager loop: it goes the long way."""


def _divert(*_values: Any) -> None:
    raise Divert


def _no_program(*_values: Any) -> None:
    raise Gone("program: no such kernel; it was unloaded, or never loaded")


@final
class Kernels:
    """Registered programs by id, 1 .. ; id 0 is never given out. `fns[id]` is what a slot calls; `light[id]` is the
    same if that is known to be light, else something that raises Divert."""

    def __init__(self) -> None:
        self.fns: list[Fn] = [_no_program]
        self.light: list[Fn] = [_no_program]
        self._kernels: dict[int, Kernel] = {}
        self._by_fn: dict[int, Kernel] = {}
        self._free: list[int] = []

    def __repr__(self) -> str:
        return f"<Kernels {len(self._kernels)} loaded>"

    def load(self, kernel: Kernel) -> int:
        if self._free:
            program = self._free.pop()
            self.fns[program] = kernel.fn
            self.light[program] = _divert
        else:
            program = len(self.fns)
            self.fns.append(kernel.fn)
            self.light.append(_divert)
        self._kernels[program] = kernel
        self._by_fn[id(kernel.fn)] = kernel
        return program

    def unload(self, program: int) -> None:
        """End a program that no queued slot and no image names. KeyError when there is none."""
        kernel = self._kernels.pop(program, None)
        if kernel is None:
            raise KeyError(f"program {program}: no such kernel; load it first")
        self.fns[program] = self.light[program] = _no_program
        if self._by_fn.get(id(kernel.fn)) is kernel:
            del self._by_fn[id(kernel.fn)]
        self._free.append(program)

    def measured(self, program: int, spent_ns: int) -> None:
        """One run of a kernel took this long: the running mean decides how the eager loop runs the next one."""
        kernel = self._kernels.get(program)
        if kernel is not None:
            kernel.mean_ns = (kernel.mean_ns + spent_ns) // 2
            self.light[program] = _divert if kernel.heavy() else kernel.fn

    def fn(self, program: int) -> Fn:
        """What a slot that names `program` calls; for an unknown one, something that raises Gone."""
        return self.fns[program] if program < len(self.fns) else _no_program

    def get(self, program: int) -> Kernel | None:
        return self._kernels.get(program)

    def of(self, fn: Fn) -> Kernel | None:
        """The kernel behind a decode-cache entry's callable; None for copies, register writes and the like."""
        return self._by_fn.get(id(fn))

    def fuse(self, *parts: tuple[int, tuple[Any, ...]]) -> None:
        """What a FUSION slot runs: its parts, (program id, values) each, in order."""
        for program, values in parts:
            self.fn(program)(*values)


@final
class CorePool(Signal):
    """The cores of one kind under the virtual clock: a kernel occupies one for its cost."""

    __slots__ = ("free", "name", "total")

    def __init__(self, name: str, total: int) -> None:
        super().__init__()
        self.name = name
        self.total = total
        self.free = total  # 0 <= free <= total; SQs park here only while it is 0

    def __repr__(self) -> str:
        return f"<CorePool {self.name} {self.free} of {self.total} free>"

    def release(self) -> None:
        self.free += 1
        if self.sleepers:
            self.fire()


def pools(spec: ChipSpec) -> dict[int, CorePool]:
    """The pools of cube and vector cores."""
    return {
        Core.AIC: CorePool("aic", max(1, spec.ai_cores)),
        Core.AIV: CorePool("aiv", max(1, spec.aiv_cores)),
    }


@final
class Workers:
    """Threads that run heavy kernels (numpy releases the GIL), made on first use: one per host core."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self.running = 0  # segments handed out and not yet reported back; touched by the loop's thread only

    def __repr__(self) -> str:
        return f"<Workers {self.running} running>"

    def start(self, pairs: Sequence[Pair], first: int, end: int, stopped: Callable[[], bool], done: Done) -> None:
        """Run pairs first .. end-1 in order on a worker, each looked up when it is reached, until `stopped()`; then,
        on that worker, `done(tasks finished, exception, ns)`."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max(2, os.cpu_count() or 1), thread_name_prefix="hw-core")
        self.running += 1
        self._pool.submit(_run, pairs, first, end, stopped, done)

    def close(self) -> None:
        """Wait for what is running, then end the threads."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None


def _run(pairs: Sequence[Pair], first: int, end: int, stopped: Callable[[], bool], done: Done) -> None:
    start = perf_counter_ns()
    finished = 0
    failure: BaseException | None = None
    try:
        for at in range(first, end):
            fn, values = pairs[at]
            fn(*values)
            finished += 1
            if stopped():
                break
    except BaseException as exc:  # handed to the loop's thread, which decides
        failure = exc
    done(finished, failure, perf_counter_ns() - start)
