"""A Context: the runtime's unit of ownership on one device. Not a device and not a host thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from aclrt.base import errors
from aclrt.base.capture_mode import ModeCounts, unsafe_allowed
from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import FailureMode
from aclrt.base.host_thread import another_loop, current_context, host_thread, require_task, set_current_context

if TYPE_CHECKING:
    from aclrt.base.errors import AclError
    from aclrt.stream.label import Label, LabelAllocator, LabelList
    from aclrt.stream.notify import Notify
    from aclrt.stream.npu import HoldsIds, Npu
    from aclrt.stream.stream import Stream


@final
class Context:
    """Owns streams, events and models. `modes` counts the captures open in it, per mode (acl_semantics 4.5)."""

    def __init__(self, npu: Npu, *, primary: bool) -> None:
        self.npu = npu
        self.primary = primary
        self.streams: list[Stream] = []  # live, in order of creation, the default stream included
        self.models: list[HoldsIds] = []  # root models in order of creation (recycling walks it)
        self.notifies: list[Notify] = []
        self.labels: set[Label] = set()
        self.label_lists: set[LabelList] = set()
        self.label_allocator: LabelAllocator | None = None  # made with the first label
        self.op_wait_timeout_ms = 0  # aclrtSetOpWaitTimeout: limit of event waits submitted afterwards, 0 for none
        self.modes = ModeCounts()
        self.failure_mode = FailureMode.CONTINUE
        self.failure: AclError | None = None  # first failure once the context is in STOP mode
        self.alive = True
        self.default: Stream | None = None
        self.spare_streams: list[Stream] = []  # hidden user streams, idle: the next branch is captured on one
        npu.contexts.append(self)

    def check_unsafe(self, asked: str, code: Code = Code.RT_CAPTURE_MODE_NOT_SUPPORT) -> None:
        """Refuse an unsafe call that the capture modes forbid: 107030 (or 107041 for an async copy turned sync)."""
        if self.modes.strictest is None:
            return
        thread = host_thread()
        if unsafe_allowed(self.modes.strictest, thread.modes.strictest, thread.exchange_mode):
            return
        names = ", ".join(
            f"stream {stream.id} ({stream.capture_mode.name}, {stream.capture.joined_how()})"
            for stream in self.streams
            if stream.capture_mode is not None and stream.capture is not None
        )
        raise errors.fail(
            code,
            asked,
            f"refused while a capture is open ({names or 'begun on another thread'}), "
            f"exchange mode {thread.exchange_mode.name}",
            "capture it as an asynchronous call, or exchange this thread's mode to RELAXED",
        )

    def default_stream(self) -> Stream:
        """The default stream, made on first use."""
        if self.default is None:
            self.default = self.npu.new_default(self)
        return self.default

    def capturing(self) -> Stream | None:
        """Some stream of this context that is capturing."""
        return next((stream for stream in self.streams if stream.capturing), None)

    def __repr__(self) -> str:
        kind = "primary" if self.primary else "created"
        state = "" if self.alive else " destroyed"
        held = f"{len(self.streams)} streams, {len(self.models)} models"
        return f"<Context {kind} of device {self.npu.index}{state}, {held}>"


def current() -> Context | None:
    """The calling task's current Context, or None. A child task inherits it (design.md, host threads).

    RuntimeError outside a task: a callback or a worker thread has a copy of the variable, but is no host thread.
    """
    require_task()
    context = current_context()
    assert context is None or isinstance(context, Context)
    return context if context is None or context.alive else None


def set_current(context: Context | None) -> None:
    set_current_context(context)


def make_current(context: Context) -> None:
    """aclrtSetCurrentContext. Errors: 107000 for a destroyed one."""
    require_task()
    if not context.alive:
        raise errors.fail(Code.RT_PARAM_INVALID, "aclrtSetCurrentContext", f"{context!r}", "use a live context")
    set_current_context(context)


def require(ctx: Context | None, asked: str) -> Context:
    """107002 without a usable Context. RuntimeError outside a task of its device's event loop."""
    if ctx is not None and ctx.npu.closed:
        raise errors.fail(Code.RT_CONTEXT_NULL, asked, f"no current context, {ctx.npu.gone()}", "open the device again")
    if ctx is None or not ctx.alive:
        raise errors.fail(
            Code.RT_CONTEXT_NULL, asked, "no current context", "call aclrtSetDevice or aclrtSetCurrentContext first"
        )
    if require_task().get_loop() is not ctx.npu.loop:
        another_loop()
    return ctx


def require_same(ctx: Context | None, stream: Stream, asked: str) -> Context:
    """107002, then 107003 when the stream belongs to another Context."""
    ctx = require(ctx, asked)
    if stream.context is not ctx:
        raise errors.fail(
            Code.RT_STREAM_CONTEXT,
            asked,
            f"stream {stream.id} belongs to another context",
            "make its context current first",
        )
    return ctx
