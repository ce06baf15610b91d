"""Where this runtime decides otherwise than the recordings: one table, keyed by rule.

Each entry says how many sequences of the full set first differ by it and why. A difference that no rule claims is a
fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from .compare import Difference


class Deviation(msgspec.Struct, frozen=True):
    """A rule: which first differences it covers, how many sequences have one, and the reason."""

    covers: Callable[[Difference], bool]
    sequences: int
    reason: str


DEVIATIONS: dict[str, Deviation] = {}


def rule_of(difference: Difference) -> str | None:
    """The first rule that covers the difference, or None."""
    return next((rule for rule, deviation in DEVIATIONS.items() if deviation.covers(difference)), None)
