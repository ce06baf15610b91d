"""aclmdlRIDebugPrint and aclmdlRIDebugJsonPrint against hand-written texts (acl_semantics 12.1, 12.2)."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclrt.views.dump import debug_lines, debug_print, json_print, json_text
from aclrt.views.listing import GroupListing, ModelListing
from tests.views.listings import fork_and_join, kernel, stream, task

if TYPE_CHECKING:
    from pathlib import Path

    from aclrt.views.listing import TaskListing


def one(*tasks: TaskListing, chip: str = "v100") -> ModelListing:
    return ModelListing(model_id=3, chip=chip, streams=(stream(7, *tasks),))


def record(*tasks: TaskListing, chip: str = "v100", verbose: bool = False) -> str:
    """The only record of a model with one task."""
    return json_text(one(*tasks, chip=chip), verbose=verbose, pid=1).split("\n")[1]


def test_the_sample_of_the_reference_byte_for_byte() -> None:
    word = 140726000000128
    model = ModelListing(
        model_id=3,
        streams=(
            stream(7, kernel(0, "MyAdd"), task(1, "EVENT_RECORD", kind="CAPTURE_RECORD", address=word)),
            stream(8, task(0, "EVENT_WAIT", kind="CAPTURE_WAIT", address=word)),
        ),
    )
    assert json_text(model, pid=4242) == (
        "[\n"
        '{"name":"MyAdd","pid":"4242 aclGraph","tid":"stream7","ts":0,"dur":9.5,"ph":"X","args":{"Model Id":3,'
        '"Stream Id":7,"Task Id":0,"Task Type":"KERNEL_AIVEC","Numblocks":8,"Schem Mode":0}},\n'
        '{"name":"EVENT_RECORD_140726000000128","pid":"4242 aclGraph","tid":"stream7","ts":10,"dur":4.5,"ph":"X",'
        '"args":{"Model Id":3,"Stream Id":7,"Task Id":1,"Task Type":"EVENT_RECORD"}},\n'
        '{"name":"EVENT_WAIT_140726000000128","pid":"4242 aclGraph","tid":"stream8","ts":0,"dur":14.5,"ph":"X",'
        '"args":{"Model Id":3,"Stream Id":8,"Task Id":0,"Task Type":"EVENT_WAIT"}}\n'
        "]"
    )


V100_TIMES = [
    ("NOP", 0.5, 1),
    ("EVENT_RECORD", 4.5, 5),
    ("NOTIFY_RECORD", 4.5, 5),
    ("CAPTURE_RECORD_EXTERNAL", 4.5, 5),
    ("EVENT_WAIT", 14.5, 15),
    ("MEM_WAIT_VALUE", 14.5, 15),
    ("MEM_WRITE_VALUE", 9.5, 10),
    ("EVENT_RESET", 9.5, 10),
    ("CONDITION_OP", 9.5, 10),
    ("MEMCPY_ASYNC", 9.5, 10),
    ("KERNEL_AICORE", 9.5, 10),
]


@pytest.mark.parametrize(("type_name", "dur", "step"), V100_TIMES)
def test_v100_time_model(type_name: str, dur: float, step: int) -> None:
    first, second = json.loads(json_text(one(task(0, type_name), task(1, "NOP"))))
    assert (first["ts"], first["dur"], second["ts"]) == (0, dur, step)


@pytest.mark.parametrize("type_name", [row[0] for row in V100_TIMES])
def test_v200_time_is_the_same_for_every_task(type_name: str) -> None:
    first, second = json.loads(json_text(one(task(0, type_name), task(1, "NOP"), chip="v200")))
    assert [first["ts"], first["dur"], second["ts"], second["dur"]] == [0, 9.5, 10, 9.5]


@pytest.mark.parametrize(
    ("listed", "v100", "v200"),
    [
        (task(0, "EVENT_RECORD", event_id=5), "EVENT_RECORD_5", "EVENT_RECORD_5"),
        (task(0, "NOTIFY_WAIT", notify_id=2), "NOTIFY_WAIT_2", "NOTIFY_WAIT_2"),
        (task(0, "MEM_WRITE_VALUE", address=0x10), "MEM_WRITE_VALUE_16", "MEM_WRITE_VALUE_16"),
        (task(0, "EVENT_RESET", kind="MEM_WRITE_VALUE", address=32), "EVENT_RESET_32", "EVENT_RESET_32"),
        (task(0, "EVENT_RECORD", event_id=5, address=9), "EVENT_RECORD_5", "EVENT_RECORD_5"),
        (task(0, "CAPTURE_RECORD_EXTERNAL", address=64), "CAPTURE_RECORD_EXTERNAL", "CAPTURE_RECORD_EXTERNAL_64"),
        (task(0, "EXTERNAL_EVENT_WAIT", kind="EXT_WAIT", event_id=4), "EXTERNAL_EVENT_WAIT", "EXTERNAL_EVENT_WAIT_4"),
        (task(0, "KERNEL_AICPU", label="Cast"), "Cast", "Cast"),
        (task(0, "MEMCPY_ASYNC"), "MEMCPY_ASYNC", "MEMCPY_ASYNC"),
    ],
)
def test_names_and_their_numbers(listed: TaskListing, v100: str, v200: str) -> None:
    assert json.loads(json_text(one(listed)))[0]["name"] == v100
    assert json.loads(json_text(one(listed, chip="v200")))[0]["name"] == v200


def test_order_of_the_args() -> None:
    mix = kernel(0, type_name="KERNEL_MIX_AIC", task_ration=2, extend_info='a"b', kernel_args=(1, 2))
    assert list(json.loads(json_text(one(mix), verbose=True))[0]["args"]) == [
        "Model Id",
        "Stream Id",
        "Task Id",
        "Task Type",
        "ExtendInfo",
        "Numblocks",
        "Task Ration",
        "Schem Mode",
        "Kernel Args",
        "Kernel Args Size",
    ]


def test_args_that_only_some_task_types_have() -> None:
    active = task(0, "STREAM_ACTIVE", active_stream_id=12)
    assert record(active).endswith('"Task Type":"STREAM_ACTIVE","Active Stream Id":12}}')
    assert "Active Stream Id" not in record(task(0, "STREAM_SWITCH", active_stream_id=12))
    assert "Task Ration" not in record(kernel(0, task_ration=2))
    assert '"Task Ration":0,' in record(kernel(0, type_name="KERNEL_MIX_AIV", task_ration=0))


def test_kernel_args_are_for_verbose_only() -> None:
    listed = kernel(0, kernel_args=(0x12C0_0000_1000, 3, -1))
    assert "Kernel Args" not in record(listed)
    assert record(listed, verbose=True).endswith(
        '"Kernel Args":"0x000012c000001000 0x0000000000000003 0xffffffffffffffff","Kernel Args Size":24}}'
    )


def test_kernel_args_drop_trailing_bytes_and_mark_placeholders() -> None:
    listed = kernel(0, kernel_args=(1, 2, 3), kernel_args_size=20, placeholders=((1, "placeHolderAddr0"),))
    assert record(listed, verbose=True).endswith(
        '"Kernel Args":"0x0000000000000001 (placeHolderAddr0)0x0000000000000002","Kernel Args Size":20}}'
    )


def test_no_kernel_args_at_all() -> None:
    assert "Kernel Args" not in record(kernel(0, kernel_args=()), verbose=True)
    assert "Kernel Args" not in record(kernel(0), verbose=True)


def test_no_streams_or_no_tasks_is_an_empty_array() -> None:
    assert json_text(ModelListing(model_id=0, streams=())) == "[\n]"
    assert json_text(ModelListing(model_id=0, streams=(stream(1), stream(2)))) == "[\n]"


def test_valid_json_when_the_last_stream_is_empty() -> None:
    model = ModelListing(model_id=0, streams=(stream(1, task(0, "NOP")), stream(2)))
    assert [entry["tid"] for entry in json.loads(json_text(model))] == ["stream1"]


def test_unbound_streams_are_left_out() -> None:
    model = ModelListing(model_id=0, streams=(stream(1, task(0, "NOP"), bound=False), stream(2, task(0, "NOP"))))
    assert [entry["tid"] for entry in json.loads(json_text(model))] == ["stream2"]
    assert not any("stream_id=1," in line for line in debug_lines(model))


@given(label=st.text(min_size=1), info=st.text(), args=st.lists(st.integers()), size=st.integers(0, 100))
def test_always_valid_json_and_utf8(label: str, info: str, args: list[int], size: int) -> None:
    listed = kernel(0, label, extend_info=info, kernel_args=args, kernel_args_size=size)
    entry = json.loads(json_text(one(listed, kernel(1)), verbose=True).encode())[0]
    assert entry["name"] == label
    assert entry["args"].get("ExtendInfo", "") == info


def test_debug_lines_in_order() -> None:
    assert list(debug_lines(fork_and_join())) == [
        "aclmdlRIDebugPrint begin, device_id=0, model_id=3",
        "device_id=0, stream_id=8, task_id=0, task_type=EVENT_WAIT, event_id=5",
        "device_id=0, stream_id=8, task_id=1, task_type=EVENT_RECORD, event_id=6",
        "device_id=0, stream_id=7, task_id=0, task_type=KERNEL_AIVEC, mix_type=NO_MIX",
        "device_id=0, stream_id=7, task_id=1, task_type=EVENT_RECORD, event_id=5",
        "device_id=0, stream_id=7, task_id=2, task_type=KERNEL_AIVEC, mix_type=NO_MIX",
        "device_id=0, stream_id=7, task_id=3, task_type=EVENT_WAIT, event_id=6",
        "device_id=0, model_id=3, taskGroupId=0, stream_id=7, first task_id=2, last task_id=2",
        "device_id=0, model_id=3, taskGroupId=1, the task group is empty",
        "aclmdlRIDebugPrint end, device_id=0, model_id=3",
    ]


def test_groups_are_printed_by_task_id_although_listed_by_seq() -> None:
    wrapped = stream(7, kernel(65535, seq=65535), kernel(0, seq=65536))
    model = ModelListing(model_id=3, streams=(wrapped,), groups=(GroupListing(2, ((7, 65535, 65536),)),))
    assert "taskGroupId=2, stream_id=7, first task_id=65535, last task_id=0" in list(debug_lines(model))[3]


def test_address_in_debug_lines_of_v200_only() -> None:
    listed = task(0, "EVENT_RECORD", kind="CAPTURE_RECORD", address=0x1000)
    assert list(debug_lines(one(listed)))[1].endswith("task_type=EVENT_RECORD")
    assert list(debug_lines(one(listed, chip="v200")))[1].endswith("task_type=EVENT_RECORD, dev_addr=0x1000")


def test_debug_print_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "aclrt.debug"):
        debug_print(fork_and_join())
    assert caplog.messages == list(debug_lines(fork_and_join()))
    assert {r.name for r in caplog.records} == {"aclrt.debug"}


def test_json_print_truncates_writes_and_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "model.json"
    path.write_text("x" * 100_000)
    with caplog.at_level(logging.INFO, "aclrt.debug"):
        json_print(fork_and_join(), path)
    assert path.read_text(encoding="utf-8") == json_text(fork_and_join())
    assert caplog.messages == list(debug_lines(fork_and_join()))[1:-1]


def test_json_print_into_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        json_print(fork_and_join(), tmp_path / "nowhere" / "model.json")
