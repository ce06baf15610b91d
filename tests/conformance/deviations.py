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


def _unrecorded_mark(difference: Difference) -> bool:
    """A record failed and left its hidden event without a task; then the event is recorded or waited for again."""
    step, got = difference.step, difference.code
    return difference.sequence.events == "sw" and (
        (step.op == "record" and got == 107032) or (step.op == "wait" and (step.code, got) == (507000, 507009))
    )


def _recycled_task(difference: Difference) -> bool:
    """A task of an updated graph whose object the shipped runtime gave to another stream meanwhile."""
    step, before = difference.step, difference.sequence.ops[: difference.index]
    if not any(earlier.op == "update_model" and earlier.code == 0 for earlier in before):
        return False
    if step.op == "model_tasks":
        return any(kind < 0 for kinds in (step.out or {}).get("streams", []) for kind in kinds)
    return step.op == "task_disable" and (step.code, difference.code) == (107000, 0)


def _second_unbind(difference: Difference) -> bool:
    step = difference.step
    return step.op == "unbind" and (step.code, difference.code) == (507000, 0)


def _headless_model(difference: Difference) -> bool:
    """A complete model whose HEAD stream was unbound afterwards is executed."""
    step, before = difference.step, difference.sequence.ops[: difference.index]
    unbound = any(earlier.op == "unbind" and earlier.code == 0 for earlier in before)
    return unbound and step.op in ("execute", "execute_async") and (step.code, difference.code) == (0, 507000)


DEVIATIONS: dict[str, Deviation] = {
    "software-events": Deviation(
        _unrecorded_mark,
        4,
        "recorded with 100 free hardware events, so that capture events were software ones, which are made anew for "
        "each record; with free ones, as here, v100 takes up the one whose record failed (three recordings show it)",
    ),
    "recycled-tasks": Deviation(
        _recycled_task,
        6,
        "after aclmdlRIUpdate the shipped runtime lists task objects that its pool has given to another stream; here a "
        "task keeps its type and stays valid until the graph goes",
    ),
    "headless-model": Deviation(
        _headless_model,
        1,
        "the stub device ends a run that starts no stream; on a device nothing would ever set its end-graph notify, so "
        "it is refused as a model without a HEAD stream is",
    ),
    "second-unbind": Deviation(
        _second_unbind,
        1,
        "one of 2,885 unbinds was refused with an internal error, and two hung: the stub device's, not a rule",
    ),
}


def rule_of(difference: Difference) -> str | None:
    """The first rule that covers the difference, or None."""
    return next((rule for rule, deviation in DEVIATIONS.items() if deviation.covers(difference)), None)
