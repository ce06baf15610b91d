"""`python -m benchmarks [--gate] [--rounds N]`: print what a task costs, and with --gate fail if a bound is broken."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import uvloop

import aclrt

from .jobs import MANY, SINGLE, Job, Shape
from .timing import Cost, measure

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
ROUNDS = 25
REPLAY_BOUND, EAGER_BOUND, MANY_REPLAY_BOUND = 1.15, 4.0, 1.35  # times the floor, for kernels of 8 floats


class Row(NamedTuple):
    """One job on one loop, measured."""

    loop: str
    shape: Shape
    costs: dict[str, Cost]

    def over(self, name: str) -> float:
        return self.costs[name].over(self.costs["floor"])


async def run_job(loop: str, shape: Shape, rounds: int) -> Row:
    """A device of its own for each job, so that no job is timed beside another's graphs."""
    async with aclrt.open_device() as dev:
        return Row(loop, shape, await measure(await Job(dev, shape).contenders(), rounds))


def show(row: Row) -> None:
    shape, costs = row.shape, row.costs
    job = f"{row.loop:8} {shape.name:7} {shape.floats:6,} {shape.streams:>4} x {shape.tasks:<6,}"
    line = f"{job} {costs['floor'].ns:9.0f}{costs['replay'].ns:10.0f}{row.over('replay'):7.2f}"
    if "eager" in costs:
        line += f"{costs['eager'].ns:10.0f}{row.over('eager'):7.2f}"
    print(line, flush=True)


def broken_bounds(rows: list[Row]) -> list[str]:
    """What --gate holds the rows against: only kernels of 8 floats have bounds."""
    broken = []
    for row in rows:
        if row.shape.floats != 8:
            continue
        bounds = {"replay": REPLAY_BOUND if row.shape.streams == 1 else MANY_REPLAY_BOUND, "eager": EAGER_BOUND}
        for name, bound in bounds.items():
            if name in row.costs and row.over(name) > bound:
                what = f"{row.shape.name}, {row.shape.streams} x {row.shape.tasks:,}, {row.loop}"
                broken.append(f"{name} of {what}: {row.over(name):.2f} times the plain loop, bound {bound:.2f}")
    return broken


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--gate", action="store_true", help="exit with 1 if a bound is broken")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds per job (default {ROUNDS})")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} cores. Nanoseconds per task,")
    print(f"median of {options.rounds} rounds; x = median of the rounds' ratios to a plain loop of the same calls.\n")
    print("on       kernel  floats  streams x tasks   loop    replay      x     eager      x")
    rows = []
    for loop, factory in LOOPS.items():
        with asyncio.Runner(loop_factory=factory) as runner:
            for shape in SINGLE + MANY:
                rows.append(runner.run(run_job(loop, shape, options.rounds)))
                show(rows[-1])
    if not options.gate:
        return 0
    broken = broken_bounds(rows)
    print("\ngate: " + ("all bounds hold" if not broken else "\n      ".join(broken)))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
