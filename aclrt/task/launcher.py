"""The live launch: repeated launches of one burst are collected and written to the SQ ring together.

Not another way to launch: the first launch of arguments, a wrong thread and everything else unusual goes the ordinary
way (`LiveSink.kernel`), which also prepares the SQE that the next such launch takes. It exists because a launch has a
budget of a few hundred nanoseconds: one doorbell for a burst, no packing, no argument checks a second time.
"""

from __future__ import annotations

import asyncio
from _thread import get_ident
from collections import deque
from sys import _getframe
from typing import TYPE_CHECKING, Any, final

from aclrt.base.host_thread import barred, tasks_running
from aclrt.base.place import Place

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from aclrt.task.kernel import Kernel
    from hw.driver import Driver


@final
class Launcher:
    """The launches of one stream that are not in its ring yet, and the places of those that are.

    Invariants: `sqes` and `marks` are of one length; `driver.deferred` counts the launchers that hold any; `written`
    is the position after everything in the ring or behind it, `done` the head as last reported; `blocks` are (first
    position, places) of what is behind that, oldest first; `hot` maps
    (kernel, arguments...) to their SQE, and `kernel.hot[arguments]` holds this launcher exactly for those.
    """

    __slots__ = ("blocks", "done", "driver", "hot", "launch", "loop", "marks", "sq", "sqes", "written")

    def __init__(self, driver: Driver, sq: int, ordinary: Callable[[Any, tuple[Any, ...], int], None]) -> None:
        self.driver = driver
        self.sq = sq
        self.written = 0
        self.done = 0
        self.hot: dict[tuple[Any, ...], bytes] = {}
        self.sqes: list[bytes] = []
        self.marks: list[Place | tuple[CodeType, int]] = []
        self.blocks: deque[tuple[int, list[Place | tuple[CodeType, int]]]] = deque()
        self.loop = asyncio.get_running_loop()
        self.launch = self._make(ordinary)

    def _make(self, ordinary: Callable[[Any, tuple[Any, ...], int], None]) -> Callable[..., None]:
        """`Stream.launch` while the stream is live, as a closure: the same arguments, the same errors."""
        running, loop, thread, hot = tasks_running(), self.loop, get_ident(), self.hot
        sqes, take, mark, arm = self.sqes, self.sqes.append, self.marks.append, self._arm

        def launch(*call: Any, blocks: int = 1) -> None:
            try:
                sqe = hot[call]
            except (KeyError, TypeError):
                ordinary(call[0] if call else None, call[1:], blocks)
                return
            if blocks != 1 or loop not in running or get_ident() != thread or barred:
                ordinary(call[0], call[1:], blocks)
                return
            if not sqes:
                arm()
            take(sqe)
            frame = _getframe(1)
            mark((frame.f_code, frame.f_lasti))

        launch.__qualname__ = "Stream.launch"  # what a wrong keyword's TypeError names
        return launch

    def prepare(self, kernel: Kernel, args: tuple[Any, ...], sqe: bytes) -> None:
        """The next launch of these arguments takes this SQE."""
        launchers = kernel.hot.get(args)
        if launchers is not None:
            launchers.add(self)
            self.hot[(kernel, *args)] = sqe

    def close(self) -> None:
        """The stream is gone: drop what was collected, and let go of every kernel."""
        self.drop()
        for kernel, *args in self.hot:
            launchers = kernel.hot.get(tuple(args))
            if launchers is not None:
                launchers.discard(self)
        self.hot.clear()

    def _arm(self) -> None:
        self.driver.deferred += 1
        self.loop.call_soon(self.flush)

    def flush(self) -> int:
        """Write what was collected to the ring and ring the doorbell; the position after it."""
        if self.sqes:
            self.driver.deferred -= 1
            self._remember(self.marks.copy())
            block = b"".join(self.sqes)
            self.sqes.clear()
            self.marks.clear()
            self.written = self.driver.submit(self.sq, block)
        return self.written

    def drop(self) -> None:
        """Forget what was collected (the stream is aborted or closed)."""
        if self.sqes:
            self.driver.deferred -= 1
            self.sqes.clear()
            self.marks.clear()

    def note(self, place: Place) -> None:
        """The place of a launch that went the ordinary way, just before it is submitted."""
        self._remember([place])

    def _remember(self, marks: list[Place | tuple[CodeType, int]]) -> None:
        """Places of what is submitted next; those of tasks that are done are of no use any more."""
        blocks, done = self.blocks, self.done
        while blocks and blocks[0][0] + len(blocks[0][1]) <= done:
            blocks.popleft()
        blocks.append((self.written, marks))

    def place_of(self, position: int) -> Place | None:
        """Where the kernel at `position` was launched, if it is still known."""
        for first, marks in reversed(self.blocks):
            if first <= position < first + len(marks):
                mark = marks[position - first]
                return mark if isinstance(mark, Place) else Place(*mark)
        return None
