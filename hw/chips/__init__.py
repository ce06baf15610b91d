"""The chip registry: a name and limits in, a `Chip` out.

Not a place for behaviour: a chip is data (``v100``, ``v200``) and the codec of ``chip``. To add one, add a module
with SPEC, HEADER, LAYOUTS and CEILINGS, and a line in the table below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hw.chips import v100, v200
from hw.chips.chip import Chip
from hw.chips.cqe import CQE_BYTES, CQE_STRUCT, Cqe, CqeKind, Status, decode_cqe, encode_cqe
from hw.chips.layout import Field, Layout
from hw.chips.spec import SQE_BYTES, ChipSpec, with_limits
from hw.chips.sqe import (
    NO_STREAM,
    Compare,
    CondType,
    Core,
    Sqe,
    SqeError,
    SqeFlag,
    SqeKind,
    SwitchType,
    WaitFlag,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CQE_BYTES",
    "CQE_STRUCT",
    "NO_STREAM",
    "SQE_BYTES",
    "Chip",
    "ChipSpec",
    "Compare",
    "CondType",
    "Core",
    "Cqe",
    "CqeKind",
    "Field",
    "Layout",
    "Sqe",
    "SqeError",
    "SqeFlag",
    "SqeKind",
    "Status",
    "SwitchType",
    "WaitFlag",
    "decode_cqe",
    "encode_cqe",
    "get",
    "names",
]

_CHIPS = {
    "v100": (v100.SPEC, v100.HEADER, v100.LAYOUTS, v100.CEILINGS),
    "v200": (v200.SPEC, v200.HEADER, v200.LAYOUTS, v200.CEILINGS),
    "310p": (v100.SPEC_310P, v100.HEADER, v100.LAYOUTS, v100.CEILINGS),
}


def names() -> tuple[str, ...]:
    """The names `get` knows."""
    return tuple(_CHIPS)


def get(name: str = "v100", limits: Mapping[str, object] | None = None) -> Chip:
    """The chip called `name` with the fields of its spec in `limits` replaced.

    Raises ValueError for an unknown name or limit (the message lists the known ones) and for a limit beyond what
    the chip's SQEs can name, TypeError for a limit of a wrong type.
    """
    if name not in _CHIPS:
        raise ValueError(f"chip {name!r}: no such chip; known: {', '.join(_CHIPS)}")
    spec, header, layouts, ceilings = _CHIPS[name]
    spec = with_limits(spec, limits)
    for limit, ceiling in ceilings.items():
        if getattr(spec, limit) > ceiling:
            asked = getattr(spec, limit)
            raise ValueError(f"limits of {name}: {limit}={asked} is more than an SQE can name; at most {ceiling}")
    return Chip(spec, header, layouts)
