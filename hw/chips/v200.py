"""The v200 chip: the 950 family.

Not a device. Header: a 32-bit task id and no stream id; notify ids of 32 bits with clear and count flags.
"""

from __future__ import annotations

from hw.chips.layout import Field
from hw.chips.spec import GIB, ChipSpec
from hw.chips.sqe import BODIES, SqeKind

HEADER = (
    Field("type", "u1"),
    Field("flags", "u1", 0),
    Field("slots", "u1", 1),
    Field("", "u1"),
    Field("task_id", "u4"),
)

LAYOUTS = {
    **BODIES,
    SqeKind.NOTIFY_RECORD: (Field("notify_id", "u4"), Field("count", "u1", 0, range(2))),
    SqeKind.NOTIFY_WAIT: (
        Field("notify_id", "u4"),
        Field("count", "u1", 0, range(2)),
        Field("clear", "u1", 1, range(2)),  # a passing wait clears the bit
        Field("", "u2"),
        Field("timeout_ms", "u8", 0),  # 0: for ever
    ),
}

CEILINGS = {"max_streams": 1 << 31, "max_notifies": 1 << 32}

SPEC = ChipSpec(
    name="v200",
    rtsq_depth=2049,
    expand_reserved=8,
    expand_additional_sqes=8,
    stream_task_limit=32767,
    auto_split=True,
    max_physical_streams=2016,
    max_alloc_streams=65535,
    base_aicpu_stream=65536,
    tasks_per_stream=2014,
    total_tasks=134215680,
    stub_events=131072,
    wait_sqes=3,
    hostfunc_form="notify",
    ai_cores=32,
    aiv_cores=64,
    device_memory=128 * GIB,
    persistent_capture=False,
    persistent_execute=False,
    event_reset_noop=True,
    count_notify=True,
    fusion_kernels=True,
    json_durations="constant",
    launch_while_updating=True,
    same_stream_shortcut=False,
    fresh_capture_event=True,
    software_event_state=True,
    update_full_stream=True,
)
