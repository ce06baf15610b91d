"""Limits: the documented numbers, and how they are overridden."""

from __future__ import annotations

import pytest

from hw import chips
from hw.chips import SqeKind

# acl_semantics 6.2 and 14.2
NUMBERS: dict[str, dict[str, object]] = {
    "v100": {
        "sq_depth": 32768,
        "rtsq_depth": 2048,
        "max_streams": 1984,
        "max_sqs": 1024,
        "max_events": 65536,
        "max_labels": 65535,
        "max_models": 21845,
        "capture_reserved": 32,
        "expand_reserved": 0,
        "stream_task_limit": 60000,
        "update_limit": 1048576,
        "task_prefetch": 8,
        "wait_sqes": 4,
        "ext_wait_sqes": 3,
        "hostfunc_form": "event",
        "persistent_capture": True,
        "persistent_execute": True,
        "ai_cores": 24,
        "aiv_cores": 48,
    },
    "v200": {
        "sq_depth": 32768,
        "rtsq_depth": 2049,
        "max_streams": 1984,
        "expand_reserved": 8,
        "stream_task_limit": 32767,
        "auto_split": True,
        "task_prefetch": 8,
        "wait_sqes": 3,
        "ext_wait_sqes": 3,
        "hostfunc_form": "notify",
        "persistent_capture": False,
        "persistent_execute": False,
        "count_notify": True,
        "json_durations": "constant",
    },
    "310p": {"rtsq_depth": 2048, "max_streams": 1024, "max_events": 1023, "task_prefetch": 10, "wait_sqes": 4},
}


@pytest.mark.parametrize("name", list(NUMBERS))
def test_documented_numbers(name: str) -> None:
    spec = chips.get(name).spec
    assert spec.name == name
    assert {key: getattr(spec, key) for key in NUMBERS[name]} == NUMBERS[name]


def test_every_number_and_variant_can_be_overridden() -> None:
    for key in chips.ChipSpec.__struct_fields__:
        default = getattr(chips.get("v100").spec, key)
        if isinstance(default, bool):
            value: object = not default
        elif isinstance(default, int):
            value = default - 1 if default > 1 else default + 1
        elif key == "name":
            continue
        else:
            value = getattr(chips.get("v200").spec, key)
        spec = chips.get("v100", {key: value}).spec
        assert getattr(spec, key) == value
        assert spec != chips.get("v100").spec


def test_overriding_leaves_the_registry_alone() -> None:
    assert chips.get("v100", {"max_sqs": 4}).spec.max_sqs == 4
    assert chips.get("v100").spec.max_sqs == 1024


def test_the_wait_sqes_limit_is_what_encode_uses() -> None:
    chip = chips.get("v100", {"wait_sqes": 2})
    assert len(chip.encode(SqeKind.WAIT_VALUE, stream_id=0, task_id=0, address=0, value=0, flag=0)) == 128


def test_unknown_limit_names_the_known() -> None:
    with pytest.raises(ValueError, match=r"no such limit max_sqz; known: sq_depth, .*max_sqs, .*device_memory") as info:
        chips.get("v100", {"max_sqz": 1})
    assert "\n" not in str(info.value)
    with pytest.raises(ValueError, match="no such limit name"):
        chips.get("v100", {"name": "v300"})


def test_unknown_chip_names_the_known() -> None:
    with pytest.raises(ValueError, match="chip 'v300': no such chip; known: v100, v200, 310p"):
        chips.get("v300")


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        ({"max_sqs": -1}, ValueError),
        ({"wait_sqes": 0}, ValueError),
        ({"hostfunc_form": "thread"}, ValueError),
        ({"max_streams": 65537}, ValueError),  # a 16-bit stream id
        ({"max_sqs": "4"}, TypeError),
        ({"max_sqs": True}, TypeError),
        ({"auto_split": 1}, TypeError),
    ],
)
def test_bad_values_are_refused(limits: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error, match="limits of v100"):
        chips.get("v100", limits)
    assert chips.get("v200", {"max_streams": 65537}).spec.max_streams == 65537


def test_names_and_reprs() -> None:
    assert chips.names() == ("v100", "v200", "310p")
    assert repr(chips.get("310p")) == "<Chip 310p>"
