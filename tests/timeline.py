"""What a timeline says between its steps, without a clock. Not a test."""

from __future__ import annotations

import asyncio


async def settle(passes: int = 50) -> None:
    """Some passes of the loop: what can happen without anybody's help has happened."""
    for _ in range(passes):
        await asyncio.sleep(0)
