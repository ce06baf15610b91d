"""An emulated NPU: what silicon, firmware and driver know. Not a host library, and it knows none.

``open_chip`` gives a `Driver`, the only door; integers and bytes go through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw import chips
from hw.clock import VirtualClock, WallClock
from hw.driver import Driver
from hw.memory import MemoryFault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hw.ts.policy import Policy

__all__ = ["Driver", "MemoryFault", "open_chip"]


def open_chip(
    name: str = "v100",
    *,
    limits: Mapping[str, object] | None = None,
    engine: str = "ts",
    clock: str = "wall",
    policy: Policy | None = None,
) -> Driver:
    """Power up a chip.

    `name`: "v100", "v200" or "310p"; `limits`: fields of its spec to replace; `engine`: "ts", or "null" which
    completes everything and does nothing; `clock`: "wall" or "virtual"; `policy`: who runs next (round robin).
    ValueError for a name, limit, engine or clock that there is none of.
    """
    if engine not in ("ts", "null"):
        raise ValueError(f"engine {engine!r}: no such engine; known: ts, null")
    if clock not in ("wall", "virtual"):
        raise ValueError(f"clock {clock!r}: no such clock; known: wall, virtual")
    ticking = VirtualClock() if clock == "virtual" else WallClock()
    return Driver(chips.get(name, limits), ticking, engine=engine, policy=policy)
