"""What the tests of external events share: the two kinds of them, and their calls in C names. Not a test."""

from __future__ import annotations

from typing import Any

from aclrt import acl

D2D = acl.ACL_MEMCPY_DEVICE_TO_DEVICE
D2H = acl.ACL_MEMCPY_DEVICE_TO_HOST
EXTERNAL = acl.ACL_EVENT_RECORD_EXTERNAL
assert acl.ACL_EVENT_WAIT_EXTERNAL == EXTERNAL == 1


def sync_event() -> Any:
    return acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC)


def external_event() -> Any:
    return acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL)


def record_external(event: Any, stream: Any) -> None:
    acl.aclrtRecordEventWithFlag(event, stream, EXTERNAL)


def wait_external(stream: Any, event: Any) -> None:
    acl.aclrtStreamWaitEventWithFlag(stream, event, 0, EXTERNAL)


def copy(dst: Any, src: Any, stream: Any, kind: int = D2D) -> None:
    acl.aclrtMemcpyAsync(dst, 32, src, 32, kind, stream)
