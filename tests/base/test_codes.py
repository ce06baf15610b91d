"""The code table and the exceptions made from it."""

from __future__ import annotations

import pickle

import pytest

from aclrt.base import errors
from aclrt.base.codes import AclErrorCode, meaning, name_of

FAMILIES = {
    100000: errors.UsageError,
    107000: errors.UsageError,
    107024: errors.CaptureError,
    200006: errors.ResourceError,
    207000: errors.ResourceError,
    300000: errors.ResourceError,
    500000: errors.ExecutionError,
    507001: errors.ExecutionError,
    507903: errors.CaptureError,
}
TIMEOUTS = {100036, 107019, 107020, 207020, 507012, 507014, 507017, 507034, 507046, 507047}
MEMORY = {200000, 207001, 207018}


def test_table_spot_values() -> None:
    """A few rows typed from acl_semantics 2.6, the gaps of the numbering among them."""
    expected = {
        "INVALID_PARAM": 100000,
        "RT_FILE_OPEN": 107009,
        "STREAM_CAPTURE_CONFLICT": 107032,
        "RT_SUB_ACLGRAPH_IS_CAPTURING": 107045,
        "RT_LINK_TYPE_NOT_SUPPORTED": 207021,
        "RT_SUSPECT_REMOTE_ERROR": 507057,
        "RT_DRV_INTERNAL_ERROR": 507899,
        "RT_STREAM_CAPTURE_INVALIDATED": 507903,
        "RT_CCU_EXCEPTION": 507916,
    }
    assert {name: int(AclErrorCode[name]) for name in expected} == expected


def test_table_is_whole() -> None:
    """Every number of the closed runs exists once, and says what it means."""
    numbers = {int(code) for code in AclErrorCode}
    runs = [(107000, 107045), (207000, 207021), (507000, 507057), (507899, 507916)]
    for first, last in runs:
        assert set(range(first, last + 1)) <= numbers
    assert len(numbers) == len(AclErrorCode.__members__) == sum(b - a + 1 for a, b in runs) + 19
    assert all(code.meaning for code in AclErrorCode)


def test_names_and_meanings_of_plain_numbers() -> None:
    assert name_of(107027) == "RT_STREAM_CAPTURED"
    assert meaning(207008) == "no stream resource"
    assert (name_of(4711), meaning(4711)) == ("UNKNOWN", "")


@pytest.mark.parametrize("code", list(AclErrorCode))
def test_every_code_makes_an_error(code: AclErrorCode) -> None:
    error = errors.of(code, "text")
    assert (error.code, error.name, str(error)) == (int(code), code.name, f"text [{int(code)}]")
    assert type(error.code) is int
    assert isinstance(error, errors.AclError)
    assert isinstance(error, TimeoutError) is (int(code) in TIMEOUTS)
    assert isinstance(error, MemoryError) is (int(code) in MEMORY)
    assert isinstance(error, errors.family(code)) or code is AclErrorCode.RT_STREAM_CAPTURE_INVALIDATED


@pytest.mark.parametrize(("code", "family"), FAMILIES.items())
def test_families(code: int, family: type[errors.AclError]) -> None:
    assert isinstance(errors.of(code, "text"), family)


def test_message_is_one_line_with_the_code_at_its_end() -> None:
    error = errors.fail(107027, "aclrtSynchronizeStream", "stream 3 is capturing", "end the capture first")
    assert str(error) == "aclrtSynchronizeStream: stream 3 is capturing; end the capture first [107027]"
    assert type(error) is errors.StreamCapturedError


def test_cause_is_attached_and_nothing_is_raised() -> None:
    cause = ZeroDivisionError("x")
    assert errors.of(507035, "text", cause=cause).__cause__ is cause
    assert errors.fail(507035, "a", "b", "c", cause=cause).__cause__ is cause


def test_number_outside_the_table_keeps_its_family() -> None:
    error = errors.of(507777, "text")
    assert (type(error), error.code, error.name) == (errors.ExecutionError, 507777, "UNKNOWN")
    assert type(errors.of(42, "text")) is errors.AclError


@pytest.mark.parametrize("code", [107027, 207001, 507046, 507777])
def test_errors_survive_pickling(code: int) -> None:
    error = pickle.loads(pickle.dumps(errors.of(code, "text")))
    assert (str(error), error.code, error.name) == (f"text [{code}]", code, name_of(code))


def test_deadlock_is_no_timeout() -> None:
    error = errors.deadlock("synchronize stream 3", "it waits for event 5")
    assert isinstance(error, errors.AclError)
    assert not isinstance(error, TimeoutError)
    assert error.code == 107020
    assert "synchronize stream 3" in str(error)
    assert str(error).endswith("it waits for event 5 [107020]")


def test_one_class_per_code() -> None:
    with pytest.raises(AssertionError, match="107027"):

        class Second(errors.AclError, code=107027):
            pass
