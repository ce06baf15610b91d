"""The v100 chip: 910B, A2 and A3; and the limits profile of the 310P, which encodes alike.

Not a device. Header: a 16-bit stream id and a 16-bit task id; notify ids of 16 bits.
"""

from __future__ import annotations

import msgspec

from hw.chips.layout import Field
from hw.chips.spec import GIB, ChipSpec
from hw.chips.sqe import BODIES, SqeKind

HEADER = (
    Field("type", "u1"),
    Field("flags", "u1", 0),
    Field("slots", "u1", 1),
    Field("", "u1"),
    Field("stream_id", "u2"),
    Field("task_id", "u2"),
)

LAYOUTS = {
    **BODIES,
    SqeKind.NOTIFY_RECORD: (Field("notify_id", "u2"),),
    SqeKind.NOTIFY_WAIT: (
        Field("notify_id", "u2"),
        Field("", "u2"),
        Field("", "u4"),
        Field("timeout_ms", "u8", 0),  # 0: for ever
    ),
}

CEILINGS = {"max_streams": 1 << 16, "max_notifies": 1 << 16}
"""The most that the header and the notify fields can name."""

SPEC = ChipSpec(name="v100")

SPEC_310P = msgspec.structs.replace(
    SPEC,
    name="310p",
    max_streams=1024,
    max_events=1023,
    task_prefetch=10,
    ai_cores=8,
    aiv_cores=7,
    aicpu_cores=4,
    device_memory=24 * GIB,
)
