"""A driver without a device: real memory and a real argument table, programs that are only numbered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aclrt.base.errors import fail
from hw.engines.args import ArgTable
from hw.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable


class FakeDriver:
    """What `task.kernel` and `task.memory` use of `hw.driver.Driver`."""

    def __init__(self, capacity: int = 1 << 20) -> None:
        self.memory = Memory(capacity)
        self.args = ArgTable()
        self.programs: list[tuple[Callable[..., Any], dict[str, Any]]] = []
        self.busy = False
        self.malloc, self.free = self.memory.malloc, self.memory.free
        self.read, self.write = self.memory.read, self.memory.write
        self.view, self.extent, self.watch = self.memory.view, self.memory.extent, self.memory.watch
        self.is_host = self.memory.is_host
        self.host_register, self.host_unregister = self.memory.host_register, self.memory.host_unregister
        self.args_put, self.args_drop = self.args.put, self.args.drop

    def load(self, fn: Callable[..., Any], **options: Any) -> int:
        self.programs.append((fn, options))
        return len(self.programs)

    def idle(self) -> bool:
        return not self.busy


class FakeNpu:
    closed = False

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def gone(self) -> str:
        return "it was closed"


class FakeContext:
    """An owner of memory whose capture mode is a switch."""

    def __init__(self, driver: FakeDriver | None = None) -> None:
        self.npu = FakeNpu(driver or FakeDriver())
        self.refusing = False
        self.asked: list[str] = []

    def check_unsafe(self, asked: str) -> None:
        self.asked.append(asked)
        if self.refusing:
            raise fail(107030, asked, "refused while a capture is open", "end it first")
