"""The live launch: one closure per stream that writes a KERNEL slot straight into the mapped SQ ring.

Not another way to launch: whatever is unusual (new arguments, a full ring, a wrong thread) goes the ordinary way, and
everything it does `LiveSink.kernel` does too. It exists because a launch has a budget of a few hundred nanoseconds.
"""

from __future__ import annotations

import asyncio
from _thread import get_ident
from sys import _getframe
from typing import TYPE_CHECKING, Any

from aclrt.base.host_thread import barred, tasks_running
from hw.driver import IDLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from aclrt.base.place import Place
    from aclrt.task.kernel import Kernel
    from hw.driver import Driver

TRAIL = 4096
"""How many launches back a stream remembers their places; above every ring's depth."""

Trail = list["Place | tuple[CodeType, int] | None"]


def make_launcher(stream: Any, driver: Driver, ordinary: Callable[..., None]) -> Callable[..., None]:
    """`Stream.launch` while the stream is live: the same arguments, the same errors, raised by `ordinary`."""
    sq, ring, buffer, pack, word, ident, shift, mask, watched, doorbell = driver.sq_map(stream.sq)
    slots = [(slot << 6, ident | (slot & mask) << shift) for slot in range(ring.depth)]  # the task id of a launch is its slot
    depth, trail, loop, thread = ring.depth, stream.trail, asyncio.get_running_loop(), get_ident()
    running = tasks_running()

    def launch(kernel: Kernel, *args: Any, blocks: int = 1) -> None:
        try:
            owner, core, program, entry = kernel.hot[args]
        except (KeyError, TypeError, AttributeError):
            ordinary(kernel, args, blocks)
            return
        tail = ring.tail
        if (
            owner is not driver
            or loop not in running
            or get_ident() != thread
            or barred
            or tail - ring.head >= depth
            or ring.backlog
        ):
            ordinary(kernel, args, blocks)
            return
        at, named = slots[tail % depth]
        pack(buffer, at, word, named, core, program, entry, blocks)
        frame = _getframe(1)
        trail[tail % TRAIL] = (frame.f_code, frame.f_lasti)
        ring.tail = stream.submitted = tail + 1
        if sq.state is IDLE or watched:
            doorbell(sq)

    return launch
