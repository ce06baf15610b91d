"""A fixed sample of the recordings of the shipped runtime, replayed on the null device. All of them: `replay`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from . import compare

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE = 60
ABSENT = pytest.param(
    None, marks=pytest.mark.skip(reason=f"no recordings in {compare.folder()}; set ACLRT_RECORDINGS to replay them")
)
RECORDINGS = compare.files() or [ABSENT]

pytestmark = pytest.mark.filterwarnings("ignore::aclrt.UnobservedErrorWarning")


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.removesuffix(".jsonl.gz") if path else "absent")
def test_sample_agrees(path: Path) -> None:
    async def faults() -> list[str]:
        found = []
        for sequence in compare.sample(list(compare.sequences(path)), SAMPLE):
            difference = await compare.replay(sequence)
            if difference is not None and difference.rule is None:
                found.append(f"{sequence.id}#{difference.index} {difference.what()}")
        return found

    assert asyncio.run(faults()) == []
