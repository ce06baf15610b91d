"""The numbers of a chip: how many of each thing it has, and which of the documented variants it follows.

Not behaviour: nothing here encodes, decodes or runs anything. Every number of acl_semantics 6.2 is a field, so that
a test can shrink or grow it (``open_device(limits={"max_sqs": 4})``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

SQE_BYTES = 64
"""Size of one SQ slot on every chip (acl_semantics 6.2)."""

GIB = 1 << 30


class ChipSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and variants of one chip. Defaults are those of ``v100`` (910B, A2, A3); acl_semantics 6.2 and 14.2."""

    name: str

    # Streams and SQs. Depths and reserves count SQEs (64-byte slots).
    sq_depth: int = 32768  # a hidden capture stream: its software SQ
    rtsq_depth: int = 2048  # the ring of a user stream
    max_streams: int = 1984  # live user streams and hidden capture streams together
    max_sqs: int = 1024  # the pool of software-SQ models only; also the bound of one execute
    capture_reserved: int = 32  # a capture stream cascades when count + reserves >= sq_depth
    expand_reserved: int = 0
    expand_additional_sqes: int = 1
    stream_task_limit: int = 60000  # SQEs a persistent stream holds: 507002 beyond it, or a split (auto_split)
    auto_split: bool = False
    max_physical_streams: int = 2038
    max_alloc_streams: int = 32768
    base_aicpu_stream: int = 2048
    tasks_per_stream: int = 2013
    total_tasks: int = 67108864
    stream_task_buffer: int = 1025
    host_sq_max: int = 32767

    # Events, notifies, labels, models.
    max_events: int = 65536
    stub_events: int = 65536
    event_pool: int = 64
    hard_events_reserved: int = 8192
    max_notifies: int = 8192
    max_labels: int = 65535
    max_models: int = 21845
    model_name_length: int = 512  # bytes, with the end mark; documented, not enforced
    update_limit: int = 1024 * 1024  # model updates per device

    # SQEs of one task.
    sqes_per_task: int = 4  # the most a task may take
    wait_sqes: int = 4  # WAIT_VALUE: value wait, wait on a captured event
    ext_wait_sqes: int = 3  # EXT_WAIT
    task_prefetch: int = 8  # NOPs put before a task group
    hostfunc_form: str = "event"  # what blocks the SQ after a callback: "event" (wait + reset) or "notify"

    # Engines and memory.
    ai_cores: int = 24  # cube cores
    aiv_cores: int = 48  # vector cores
    aicpu_cores: int = 6
    device_memory: int = 64 * GIB  # bytes

    # Waits of the host library, in milliseconds.
    abort_wait_ms: int = 10000
    destroy_wait_ms: int = 10000
    recycle_wait_ms: int = 3000

    # Variants (acl_semantics 14.2).
    persistent_capture: bool = True  # a PERSISTENT stream may be captured
    persistent_execute: bool = True  # ... and may be an execute stream
    event_reset_noop: bool = False  # reset of a default event outside a model does nothing
    count_notify: bool = False
    fusion_kernels: bool = False  # FUSION kernels with an AIC part may be in a task group
    json_durations: str = "by_type"  # "by_type" or "constant"
    launch_while_updating: bool = False  # a kernel captured on a stream with an open task update is taken, not 107027
    same_stream_shortcut: bool = True  # a wait for an event of the same stream is dropped, also while updating
    fresh_capture_event: bool = False  # each captured record makes a new hidden event
    software_event_state: bool = False  # the host can query an event in software mode
    update_full_stream: bool = False  # a task update reaches into the full first stream of a cascade


_AT_LEAST_ONE = frozenset({"sqes_per_task", "wait_sqes", "ext_wait_sqes", "rtsq_depth", "sq_depth"})
_CHOICES = {"hostfunc_form": ("event", "notify"), "json_durations": ("by_type", "constant")}


def with_limits(spec: ChipSpec, limits: Mapping[str, object] | None) -> ChipSpec:
    """`spec` with the fields named in `limits` replaced.

    Raises ValueError for a key that is no field (the message lists the known ones) and for a value outside the
    field's range, TypeError for a value of another type. ``name`` is not a limit.
    """
    if not limits:
        return spec
    known = [name for name in ChipSpec.__struct_fields__ if name != "name"]
    unknown = sorted(set(limits) - set(known))
    if unknown:
        raise ValueError(f"limits of {spec.name}: no such limit {', '.join(unknown)}; known: {', '.join(known)}")
    for name, value in limits.items():
        _check(spec, name, value)
    return msgspec.structs.replace(spec, **limits)


def _check(spec: ChipSpec, name: str, value: object) -> None:
    kind = type(getattr(spec, name))
    if type(value) is not kind:
        raise TypeError(f"limits of {spec.name}: {name} is of type {kind.__name__}, not {type(value).__name__}")
    least = 1 if name in _AT_LEAST_ONE else 0
    if isinstance(value, int) and value < least:
        raise ValueError(f"limits of {spec.name}: {name}={value} is too small; give {least} or more")
    if name in _CHOICES and value not in _CHOICES[name]:
        raise ValueError(f"limits of {spec.name}: {name}={value!r} is not one of {', '.join(_CHOICES[name])}")
