"""The enumerations against the C header's numbers, and the table of C spellings against the enumerations."""

from __future__ import annotations

import enum

import pytest

from aclrt.acl import constants
from aclrt.base import enums
from aclrt.base.codes import AclErrorCode

# Recorded or documented numbers, one row per enumeration (acl_semantics 1.1).
EXPECTED: dict[type[enum.IntEnum | enum.IntFlag], str] = {
    enums.CaptureMode: "GLOBAL=0 THREAD_LOCAL=1 RELAXED=2",
    enums.CaptureStatus: "NONE=0 ACTIVE=1 INVALIDATED=2",
    enums.TaskType: "DEFAULT=0 KERNEL=1 EVENT_RECORD=2 EVENT_WAIT=3 EVENT_RESET=4 VALUE_WRITE=5 VALUE_WAIT=6",
    enums.CondType: "IF=0 WHILE=1 SWITCH=2",
    enums.CondHandleFlag: "ASSIGN_DEFAULT=1",
    enums.BindFlag: "HEAD=0 DEFAULT=2147483647",
    enums.StreamFlag: "FAST_LAUNCH=1 FAST_SYNC=2 PERSISTENT=4 HUGE=8 CPU_SCHEDULE=16 DEVICE_USE_ONLY=32",
    enums.EventFlag: "SYNC=1 CAPTURE_STREAM_PROGRESS=2 DDSYNC=4 TIME_LINE=8 DEVICE_USE_ONLY=16 EXTERNAL=32 IPC=64",
    enums.RecordFlag: "DEFAULT=0 EXTERNAL=1",
    enums.WaitFlag: "DEFAULT=0 EXTERNAL=1",
    enums.ValueWaitFlag: "GEQ=0 EQ=1 AND=2 NOR=3",
    enums.FailureMode: "CONTINUE=0 STOP=1",
    enums.EventStatus: "COMPLETE=0 NOT_READY=1 RESERVED=2",
    enums.EventRecordedStatus: "NOT_READY=0 COMPLETE=1",
    enums.EventWaitStatus: "COMPLETE=0 NOT_READY=1 RESERVED=65535",
    enums.StreamStatus: "COMPLETE=0 NOT_READY=1 RESERVED=65535",
    enums.CallbackBlockType: "NO_BLOCK=0 BLOCK=1",
    enums.CompareOp: "EQUAL=0 NOT_EQUAL=1 GREATER=2 GREATER_OR_EQUAL=3 LESS=4 LESS_OR_EQUAL=5",
    enums.SwitchDataType: "INT32=0 INT64=1",
}
HOST_ONLY = {enums.ModelStatus, enums.TaskGroupStatus}  # the runtime's own, without a C spelling
SPELLINGS = {name: value for name, value in vars(constants).items() if name.startswith("ACL_")}
ENUMERATIONS = [
    value for value in vars(enums).values() if isinstance(value, enum.EnumMeta) and value.__module__ == enums.__name__
]


@pytest.mark.parametrize("kind", EXPECTED, ids=lambda kind: kind.__name__)
def test_numbers(kind: type[enum.IntEnum]) -> None:
    assert " ".join(f"{member.name}={int(member)}" for member in kind) == EXPECTED[kind]


@pytest.mark.parametrize("kind", ENUMERATIONS, ids=lambda kind: kind.__name__)
def test_every_member_has_its_c_spelling(kind: type[enum.IntEnum]) -> None:
    spelled = {value.name for value in SPELLINGS.values() if isinstance(value, kind)}
    without = {"DDSYNC", "NONE"} if issubclass(kind, enum.IntFlag) else set()
    assert set(kind.__members__) - spelled <= (set(kind.__members__) if kind in HOST_ONLY else without)


def test_every_error_macro_is_its_number() -> None:
    macros = {name: value for name, value in SPELLINGS.items() if name.startswith("ACL_ERROR_")}
    assert macros == {"ACL_ERROR_NONE": 0} | {f"ACL_ERROR_{code.name}": int(code) for code in AclErrorCode}
    assert all(type(value) is int for value in macros.values())


def test_spellings_that_clients_use() -> None:
    assert constants.ACL_SUCCESS == 0
    assert constants.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL is enums.CaptureMode.GLOBAL
    assert constants.ACL_MEMCPY_HOST_TO_DEVICE == 1
    assert constants.ACL_MEMCPY_DEVICE_TO_DEVICE == 3
    assert constants.ACL_EVENT_SYNC == 1
    assert constants.ACL_EVENT_RECORD_EXTERNAL == constants.ACL_EVENT_WAIT_EXTERNAL == 1
    assert constants.ACL_STREAM_PERSISTENT == 4
    assert constants.ACL_MODEL_STREAM_FLAG_HEAD == 0
    assert constants.ACL_MODEL_STREAM_FLAG_DEFAULT == 0x7FFFFFFF
    assert constants.ACL_MEM_MALLOC_HUGE_FIRST == 0
    assert constants.ACL_STOP_ON_FAILURE == 1
    assert constants.ACL_VALUE_WAIT_NOR is constants.ACL_STREAM_WAIT_VALUE_NOR
    assert constants.ACL_HBM_MEM == 1
    assert constants.ACL_ERROR_RT_STREAM_CAPTURED == 107027
    assert constants.aclmdlRICaptureMode is enums.CaptureMode


def test_flags_keep_unknown_bits() -> None:
    assert int(enums.EventFlag(0x80 | 1)) == 0x81
    assert int(enums.StreamFlag(0x1000)) == 0x1000
