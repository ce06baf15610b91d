"""Every report is told on both chip families."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import aclrt

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(params=["v100", "v200"])
async def dev(request: pytest.FixtureRequest) -> AsyncIterator[aclrt.Device]:
    async with aclrt.open_device(chip=request.param) as device:
        yield device
