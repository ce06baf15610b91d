"""Reads recordings, replays them on an `Adapter`, and says where the first difference is.

It knows which part of a step can be compared; it does not know why a step has the code it has.
"""

from __future__ import annotations

import asyncio
import gzip
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .adapter import Adapter
from .deviations import rule_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Output keys that depend on nothing but the runtime, by operation. Operations that are absent: the code only.
COMPARED: dict[str, tuple[str, ...]] = {
    "get_info": ("status", "model", "same"),
    "capture_end": ("same",),
    "exchange_mode": ("old",),
    "task_grp_end": ("group",),
    "add_cond_task": ("models",),
    "get_streams": ("n",),
    "get_tasks_of_stream": ("n",),
    "model_tasks": ("streams",),
    "task_seq_ids": ("seq",),
    "task_get_params": ("type", "grp"),
    "get_name": ("name",),
    "cond_get_ptr": ("ptr",),
}
# These depend on the recording's stub device or on its harness.
UNCOMPARED = frozenset({"malloc", "label_list", "event_elapsed"})
SECONDS_PER_SEQUENCE = 5.0


class Step(msgspec.Struct, gc=False):
    """One recorded call. `st` holds the capture status of every live stream that has one, after the call."""

    t: int
    op: str
    args: dict[str, Any]
    code: int
    out: dict[str, Any] | None = None
    st: dict[str, int] | None = None
    ub: bool = False


class Recording(msgspec.Struct, gc=False):
    """The calls of one process."""

    id: str
    ops: list[Step]
    chip: str = "v100"
    events: str = "hw"


class Difference(msgspec.Struct):
    """The first step of a sequence that came out otherwise. `code` is a text when no ACL caller could see it."""

    sequence: Recording
    index: int
    code: int | str
    out: dict[str, Any]
    statuses: dict[str, int]

    @property
    def step(self) -> Step:
        return self.sequence.ops[self.index]

    @property
    def rule(self) -> str | None:
        """The deviation this difference falls under, if design decided otherwise than the recording."""
        return rule_of(self)

    def what(self) -> str:
        """The difference in one clause, without names, so that equal ones can be counted."""
        step = self.step
        if self.code != step.code:
            return f"{step.op}: expected {step.code}, got {self.code}"
        expected = step.out or {}
        for key in COMPARED.get(step.op, ()):
            if key in expected and self.out.get(key) != expected[key]:
                return f"{step.op} ({step.code}): out.{key} expected {expected[key]!r}, got {self.out.get(key)!r}"
        want, got = sorted((step.st or {}).values()), sorted(self.statuses.values())
        return f"{step.op} ({step.code}): statuses expected {want}, got {got}"


_decode = msgspec.json.Decoder(Recording).decode


def folder() -> Path:
    """Where the recordings are: ACLRT_RECORDINGS, else beside the checkout."""
    named = os.environ.get("ACLRT_RECORDINGS")
    return Path(named) if named else Path(__file__).resolve().parents[3].joinpath("shared", "oracle")


def files(*patterns: str) -> list[Path]:
    """The recordings whose names match one of the globs (a bare group name will do); all when none is given."""
    wanted = patterns or ("*",)
    found = {
        path
        for pattern in wanted
        for path in ([Path(pattern)] if Path(pattern).is_file() else folder().glob(f"{pattern}.jsonl.gz"))
    }
    return sorted(found)


def sequences(path: Path) -> Iterator[Recording]:
    """The sequences of one file in its order."""
    with gzip.open(path, "rb") as lines:
        for line in lines:
            yield _decode(line)


def callable_in_python(step: Step) -> bool:
    """A NULL output pointer has no counterpart in Python, except where C accepts it."""
    return not step.code or not any(key.startswith("null_") for key in step.args)


async def replay(sequence: Recording) -> Difference | None:
    """Make the calls of one sequence on a fresh device; the first difference, or None."""
    async with Adapter(sequence.chip) as adapter:
        for index, step in enumerate(sequence.ops):
            if step.ub:
                return None
            if not callable_in_python(step):
                continue
            try:
                async with asyncio.timeout(SECONDS_PER_SEQUENCE):
                    code, out = await adapter.do(step.t, step.op, step.args)
            except TimeoutError:
                return Difference(sequence, index, "no return", {}, {})
            if step.op in UNCOMPARED or step.code < 0:
                continue
            expected = step.out or {}
            same = code == step.code and adapter.statuses() == (step.st or {})
            if same and step.op in COMPARED:
                same = all(out.get(key) == expected[key] for key in COMPARED[step.op] if key in expected)
            if not same:
                return Difference(sequence, index, code, out, adapter.statuses())
    return None


def sample(all_sequences: Sequence[Recording], count: int) -> list[Recording]:
    """A fixed, evenly spread part: the same every time."""
    if len(all_sequences) <= count:
        return list(all_sequences)
    return [all_sequences[i * len(all_sequences) // count] for i in range(count)]
