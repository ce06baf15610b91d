"""A Notify: a one-bit signal between streams, cleared by the wait that takes it. Never part of a capture's joining."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.host_thread import require_task
from aclrt.base.place import here
from aclrt.stream import context as contexts
from aclrt.stream.checks import resolve
from aclrt.task.task import NotifyRecordOp, NotifyWaitOp
from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream


@final
class Notify:
    """One notify register. `id` stays with it until it is destroyed."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.npu = context.npu
        self.id: int | None = context.npu.alloc(IdKind.NOTIFY, "aclrtCreateNotify")
        self.place = here()
        context.notifies.append(self)

    @property
    def alive(self) -> bool:
        return self.id is not None

    def __repr__(self) -> str:
        return f"<Notify {self.id if self.alive else 'destroyed'}>"


def _check(notify: Notify, asked: str) -> None:
    require_task()
    if not notify.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, "the notify is destroyed", "use a live notify")


def _refuse_foreign(notify: Notify, stream: Stream, asked: str) -> None:
    """107000: a register means something on its own device only."""
    if notify.npu is not stream.npu:
        met = f"{notify!r} is of device {notify.npu.index}, the stream of device {stream.npu.index}"
        raise fail(Code.RT_PARAM_INVALID, asked, met, "use a notify of the stream's device")


def create(ctx: Context | None, flag: int = 0) -> Notify:
    """aclrtCreateNotify. Errors: 107000 (flag above 1), 107002, 207009. Source: acl_semantics 1.8."""
    if flag not in (0, 1):
        raise fail(
            Code.RT_PARAM_INVALID, "aclrtCreateNotify", f"flag is {flag:#x}", "give 0 or ACL_NOTIFY_DEVICE_USE_ONLY"
        )
    return Notify(contexts.require(ctx, "aclrtCreateNotify"))


def destroy(ctx: Context | None, notify: Notify) -> None:
    """aclrtDestroyNotify: at once; whether a graph uses it is not checked. Errors: 107017."""
    _check(notify, "aclrtDestroyNotify")
    discard(notify)


def discard(notify: Notify) -> None:
    assert notify.id is not None
    notify.npu.driver.free(IdKind.NOTIFY, notify.id)
    notify.id = None
    notify.context.notifies.remove(notify)
    notify.npu.resources_freed()


def record(ctx: Context | None, notify: Notify, stream: Stream | None) -> None:
    """aclrtRecordNotify: a task of the stream, captured or not. Errors: 107017, 107002, 107003."""
    asked = "aclrtRecordNotify"
    _check(notify, asked)
    stream = resolve(ctx, stream, asked)
    contexts.require_same(ctx, stream, asked)
    _refuse_foreign(notify, stream, asked)
    stream.submit(NotifyRecordOp(notify=notify))


def wait(ctx: Context | None, notify: Notify, stream: Stream | None, timeout_s: int = 0) -> None:
    """aclrtWaitAndResetNotify: device-time limit in seconds, 0 for none (107020 at the next sync). Errors as record."""
    asked = "aclrtWaitAndResetNotify"
    _check(notify, asked)
    stream = resolve(ctx, stream, asked)
    contexts.require_same(ctx, stream, asked)
    _refuse_foreign(notify, stream, asked)
    stream.submit(NotifyWaitOp(notify=notify, timeout_ms=max(timeout_s, 0) * 1000))


def get_id(notify: Notify) -> int:
    """aclrtGetNotifyId. Errors: 107017."""
    _check(notify, "aclrtGetNotifyId")
    assert notify.id is not None
    return notify.id
