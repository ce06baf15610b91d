"""Hand-made listings that the tests of the views share."""

from __future__ import annotations

from typing import Any

from aclrt.views.listing import (
    BranchListing,
    EdgeKind,
    EdgeListing,
    GroupListing,
    ModelListing,
    StreamListing,
    TaskListing,
    TaskRef,
)


def kernel(task_id: int, label: str = "axpy", seq: int | None = None, **more: Any) -> TaskListing:
    more = {"kind": "KERNEL_AIVEC", "type_name": "KERNEL_AIVEC", "numblocks": 8, "mix_type": "NO_MIX", **more}
    return TaskListing(task_id=task_id, seq=task_id if seq is None else seq, label=label, schem_mode=0, **more)


def task(task_id: int, type_name: str, *, kind: str | None = None, seq: int | None = None, **more: Any) -> TaskListing:
    return TaskListing(
        task_id=task_id, seq=task_id if seq is None else seq, kind=kind or type_name, type_name=type_name, **more
    )


def stream(stream_id: int, *tasks: TaskListing, **more: Any) -> StreamListing:
    return StreamListing(stream_id=stream_id, tasks=tasks, **more)


def fork_and_join(chip: str = "v100") -> ModelListing:
    """Two streams, forked and joined through hardware events, one group, in list order (the joined stream first)."""
    origin = stream(
        7,
        kernel(0, place="m.py:10"),
        task(1, "EVENT_RECORD", event_id=5, place="m.py:11"),
        kernel(2, "mul", place="m.py:12"),
        task(3, "EVENT_WAIT", kind="STREAM_WAIT_EVENT", event_id=6, place="m.py:15"),
        label="main",
        origin="captured at m.py:9",
    )
    side = stream(
        8,
        task(0, "EVENT_WAIT", kind="STREAM_WAIT_EVENT", event_id=5, place="m.py:13"),
        task(1, "EVENT_RECORD", event_id=6, place="m.py:14"),
        origin="joined through event 5 recorded at m.py:11",
    )
    return ModelListing(
        model_id=3,
        name="decode",
        chip=chip,
        streams=(side, origin),
        groups=(GroupListing(0, ((7, 2, 2),)), GroupListing(1, ())),
        edges=(
            EdgeListing(TaskRef(7, 1), TaskRef(8, 0), EdgeKind.EVENT, "event 5"),
            EdgeListing(TaskRef(8, 1), TaskRef(7, 3), EdgeKind.EVENT, "event 6"),
            EdgeListing(TaskRef(7, 0), TaskRef(7, 1), EdgeKind.ORDER),
        ),
    )


def loop() -> ModelListing:
    """A model with one while loop."""
    body = ModelListing(model_id=4, streams=(stream(9, kernel(0, "step")),))
    return ModelListing(
        model_id=3,
        streams=(stream(7, task(0, "CONDITION_OP", kind="CAPTURE_CONDITION")),),
        branches=(BranchListing(TaskRef(7, 0), "while", body),),
    )
