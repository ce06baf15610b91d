"""Host functions and callbacks: Python called when a stream reaches a point. Not kernels (those run on the device)."""

from __future__ import annotations

import inspect
from collections import deque
from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.completion import Completion
from aclrt.base.enums import CallbackBlockType
from aclrt.base.errors import AclError, fail
from aclrt.base.host_thread import host_function, host_thread_id
from aclrt.stream import context as contexts
from aclrt.stream.checks import resolve
from aclrt.stream.gate import Gate
from aclrt.task.task import HostFuncOp, InnerEventOp, NotifyWaitOp
from hw.driver import IdKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream


@final
class Reports:
    """Callbacks waiting for `aclrtProcessReport` of one host thread, in report order."""

    __slots__ = ("arrived", "queue", "streams")

    def __init__(self) -> None:
        self.queue: deque[Callable[[], None]] = deque()
        self.arrived = Completion()
        self.streams = 0

    def put(self, run: Callable[[], None]) -> None:
        self.queue.append(run)
        if not self.arrived.done:
            self.arrived.set()


def check_plain(fn: object, asked: str) -> None:
    """TypeError for what cannot be called, or would only make a coroutine when it is."""
    if not callable(fn) or inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn):
        raise TypeError(f"{asked}: {fn!r} is not a plain function; a host function is called once, to its end")


def launch_host_func(ctx: Context | None, stream: Stream | None, fn: Callable[[Any], object] | None, args: Any) -> None:
    """aclrtLaunchHostFunc: `fn(args)` runs on the loop's thread, outside any task; the stream waits for it.

    Errors: 107000 (fn NULL), 107017, 107011 (subscribed by the user), 107002, 107003. What `fn` raises is 507000 at the
    next synchronize. Source: acl_semantics 1.10, design.md section 3.
    """
    asked = "aclrtLaunchHostFunc"
    if fn is None:
        raise fail(Code.RT_PARAM_INVALID, asked, "the function is NULL", "give a function of one argument")
    check_plain(fn, asked)
    stream = resolve(ctx, stream, asked)
    if stream.subscriber is not None:
        raise fail(
            Code.RT_STREAM_SUBSCRIBE,
            asked,
            f"stream {stream.id} is subscribed by a host thread",
            "use aclrtLaunchCallback",
        )
    contexts.require_same(ctx, stream, asked)
    npu, call = stream.npu, fn
    _launch(stream, call, lambda then: npu.run_host_function(call, args, then), block=True)


def _launch(
    stream: Stream,
    fn: Callable[..., object],
    run: Callable[[Callable[[BaseException | None], None]], None],
    *,
    block: bool,
) -> None:
    """The task set of a callback: three tasks with an event, two with a notify, or one when it does not block."""
    npu = stream.npu
    gate = _gate(stream) if block else None
    owner = stream.capture.model if stream.capture is not None else stream.model

    def called() -> None:
        call = gate.enter() if gate is not None else 0

        def ended(failure: BaseException | None) -> None:
            if failure is not None and (gate is None or gate.call == call):
                _failed(stream, owner, fn, failure)
            if gate is not None:
                gate.leave(call)

        run(ended)

    number = npu.register_callback(called)
    try:
        stream.submit(HostFuncOp(callback=number, fn=fn))
        if gate is not None and gate.kind is IdKind.EVENT:
            stream.submit(InnerEventOp(event=gate))
            stream.submit(InnerEventOp(event=gate, reset=True))
        elif gate is not None:
            stream.submit(NotifyWaitOp(notify=gate))
    except BaseException:
        npu.unregister_callback(number)
        raise
    stream.own(lambda: npu.unregister_callback(number))


def _gate(stream: Stream) -> Gate:
    """The gate of the stream's blocking calls as it is now: capturing, with persistent tasks, or live."""
    if stream.capture is not None:
        queue = stream.capture.queue
        if queue.gate is None:
            queue.gate = Gate(stream.npu)
            stream.capture.model.owned.append(queue.gate.drop)
        return queue.gate  # type: ignore[no-any-return]
    if stream.kept is not None and stream.sink is stream.kept:
        queue = stream.kept.queue
        if queue.gate is None or queue.gate.id is None:
            queue.gate = Gate(stream.npu)
            stream.kept.hold(queue.gate.drop)
        return queue.gate  # type: ignore[no-any-return]
    if stream.gate is None:
        stream.gate = Gate(stream.npu)
    return stream.gate


def _failed(stream: Stream, owner: Any, fn: Callable[..., object], failure: BaseException) -> None:
    """A host function raised: 507000 on the stream, or on the run of the model that holds it."""
    name = getattr(fn, "__qualname__", repr(fn))
    error = AclError.of(
        Code.RT_INTERNAL_ERROR,
        f"host function {name} on stream {stream.id}: raised {type(failure).__name__}: {failure}",
        cause=failure,
    )
    if owner is None:
        stream.failed(-1, error)  # of no task that a run ends with
    else:
        owner.host_function_failed(error)


def launch_callback(
    ctx: Context | None, fn: Callable[[Any], object] | None, data: Any, block: CallbackBlockType, stream: Stream | None
) -> None:
    """aclrtLaunchCallback: `fn(data)` runs inside aclrtProcessReport of the subscribed host thread.

    Errors: 107000, 107017, 107002, 107003, 107015 (not subscribed, also while capturing: recorded).
    """
    asked = "aclrtLaunchCallback"
    if fn is None:
        raise fail(Code.RT_PARAM_INVALID, asked, "the function is NULL", "give a function of one argument")
    check_plain(fn, asked)
    stream = resolve(ctx, stream, asked)
    contexts.require_same(ctx, stream, asked)
    reports = stream.subscriber
    if reports is None:
        raise fail(
            Code.RT_STREAM_NO_CB_REG, asked, f"stream {stream.id} has no subscriber", "call aclrtSubscribeReport first"
        )
    assert isinstance(reports, Reports)
    call = fn

    def run(then: Callable[[BaseException | None], None]) -> None:
        def report() -> None:
            failure: BaseException | None = None
            with host_function():
                try:
                    call(data)
                except (KeyboardInterrupt, SystemExit) as interrupt:  # the caller's, but the stream goes on
                    then(interrupt)
                    raise
                except BaseException as error:  # a device result (507000), told to the stream below
                    failure = error
            then(failure)

        reports.put(report)

    _launch(stream, call, run, block=block is CallbackBlockType.BLOCK)


def subscribe(ctx: Context | None, thread_id: int, stream: Stream | None) -> None:
    """aclrtSubscribeReport: `thread_id` is `aclrt.host_thread_id()` of the task that will process. Errors: 107017,
    107011."""
    asked = "aclrtSubscribeReport"
    stream = resolve(ctx, stream, asked)
    if stream.subscriber is not None:
        raise fail(Code.RT_STREAM_SUBSCRIBE, asked, f"stream {stream.id} is subscribed", "unsubscribe it first")
    reports: Reports = stream.npu.reports.setdefault(thread_id, Reports())
    reports.streams += 1
    stream.subscriber = reports


def unsubscribe(ctx: Context | None, thread_id: int, stream: Stream | None) -> None:
    """aclrtUnSubscribeReport. Errors: 107017, 107012 (the thread has no subscription), 107011 (another's)."""
    asked = "aclrtUnSubscribeReport"
    stream = resolve(ctx, stream, asked)
    reports = stream.npu.reports.get(thread_id)
    if reports is None:
        raise fail(Code.RT_THREAD_SUBSCRIBE, asked, f"thread {thread_id} is not subscribed", "subscribe it first")
    subscribed: bool = stream.subscriber is reports
    if not subscribed:
        raise fail(
            Code.RT_STREAM_SUBSCRIBE,
            asked,
            f"stream {stream.id} is not subscribed by thread {thread_id}",
            "name its thread",
        )
    stream.subscriber = None
    reports.streams -= 1
    if not reports.streams:
        del stream.npu.reports[thread_id]


async def process(ctx: Context | None, timeout_ms: int) -> None:
    """aclrtProcessReport: wait for one callback at most `timeout_ms` of device time and run it here.

    Errors: 100000 (time-out 0 or below -1), 107002, 107012 (no subscription), 507012 (time-out).
    """
    asked = "aclrtProcessReport"
    if timeout_ms == 0 or timeout_ms < -1:
        raise fail(Code.INVALID_PARAM, asked, f"timeout is {timeout_ms}", "give milliseconds above 0, or -1")
    npu = contexts.require(ctx, asked).npu
    reports = npu.reports.get(host_thread_id())
    if reports is None:
        raise fail(
            Code.RT_THREAD_SUBSCRIBE, asked, "this host thread has no subscription", "call aclrtSubscribeReport first"
        )
    if not reports.queue:
        await npu.wait(reports.arrived, asked, timeout_ms, Code.RT_REPORT_TIMEOUT)
    run = reports.queue.popleft()
    if not reports.queue:
        reports.arrived = Completion()
    run()
