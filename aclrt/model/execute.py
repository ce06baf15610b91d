"""Runs: executing a model and waiting for it, one way for normal and captured models. Not their stop (`model.stop`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.completion import Completion
from aclrt.base.enums import StreamFlag
from aclrt.base.errors import fail
from aclrt.model import fill, stop, to_aicpu
from aclrt.model.held import HeldRun, HeldSink, Shortage
from aclrt.model.model import check_handle, refuse_going, require_same
from aclrt.model.normal import NormalModel
from aclrt.stream import checks as streams
from aclrt.stream import context as contexts
from aclrt.task.lower import LiveSink, encode
from aclrt.task.task import ModelExecuteOp, NotifyWaitOp

if TYPE_CHECKING:
    from collections.abc import Generator

    from aclrt.base.errors import AclError
    from aclrt.model.model import Execution, Model
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream
    from aclrt.task.task import Op

RUN_BLOCKS = 64
"""Encoded runs a model keeps, one per stream it was executed on."""

EXECUTE_TYPES = StreamFlag.PERSISTENT | StreamFlag.CPU_SCHEDULE | StreamFlag.DEVICE_USE_ONLY


@final
class NormalExecution:
    """A normal model has its resources since load-complete."""

    def prepare(self, model: Model, stream: Stream) -> None:
        """507000 without a HEAD stream (recorded)."""
        if not model.loaded and isinstance(model, NormalModel):
            fill.send(
                model
            )  # the synchronous call does not notice a missing BuildEnd (recorded): it runs what there is
        if not model.heads:
            raise fail(
                Code.RT_INTERNAL_ERROR,
                f"execute {model.title()}",
                "it has no HEAD stream",
                "bind one with ACL_MODEL_STREAM_FLAG_HEAD",
            )

    def before_run(self, model: Model, stream: Stream) -> None:
        """A model that the AI-CPU schedules is announced to it."""
        if isinstance(model, NormalModel) and model.aicpu_number is not None:
            to_aicpu.executing(model, stream)

    def after_run(self, model: Model, stream: Stream) -> None: ...


NORMAL = NormalExecution()


def execution_of(model: Model) -> Execution:
    return model.execution or NORMAL


@final
class Run:
    """One execution: awaitable any number of times, by several tasks, or dropped.

    Awaiting it raises the execution's failure; the stream keeps the failure for its next synchronize as well.
    """

    __slots__ = ("_done", "_failure", "model", "pinned", "position", "stream")

    def __init__(self, model: Model, stream: Stream) -> None:
        self.model = model
        self.stream = stream
        self.position = 0  # of the end-graph wait on the execute stream
        self.pinned = False  # sent to the device, not held at the host
        self._done = Completion()
        self._failure: AclError | None = None

    @property
    def done(self) -> bool:
        return self._done.done

    @property
    def failure(self) -> AclError | None:
        return self._done.error if self._done.done else None  # type: ignore[return-value]

    def __await__(self) -> Generator[Any, None, None]:
        if self._done.done:
            self._done.result()
            return
        yield from self.model.npu.waiting_for(self._done, self)

    async def _wait(self, timeout_ms: int | None) -> None:
        await self.model.npu.wait(self._done, str(self), timeout_ms, Code.RT_STREAM_SYNC_TIMEOUT)

    async def abort(self) -> None:
        """aclmdlRIAbort of the model if this run has not ended; its waiters get 507023."""
        if not self.done:
            await stop.abort(self.model.context, self.model)

    # --- called by the execute path --------------------------------------------------------------------------------

    def submitted(self) -> None:
        """The end-graph wait is in the stream: from its position on, completion and failure are this run's."""
        stream = self.stream
        self.position = position = stream.submitted
        self.model.run_started()
        stream.on_failure(position, self._failed)
        stream.when(position, self._finished)

    def pin(self) -> None:
        """The run goes to the device: from now on the model keeps its resources until the run has ended."""
        self.pinned = True
        self.model.pins += 1

    def _failed(self, error: AclError) -> None:
        self._failure = error

    def _finished(self) -> None:
        self.stream.forget_failure(self.position)
        if self._failure is None and not self.stream.alive:
            self._failure = fail(
                Code.RT_STREAM_ABORT,
                f"execution of {self.model.title()}",
                f"{self.stream!r} was destroyed",
                "execute again",
            )
        if self._failure is None and self.model.host_error is not None:
            self._failure = self.stream.error = self.model.host_error
        if self.pinned:
            self.model.pins -= 1
        self.model.run_finished(self._failure)
        if self._failure is None:
            self._done.set()
        else:
            self._done.fail(self._failure)
        self.model.npu.resources_freed()

    def __str__(self) -> str:
        return f"execution of {self.model.title()} on stream {self.stream.id}"

    def __repr__(self) -> str:
        state = "running" if not self.done else "failed" if self._failure is not None else "done"
        return f"<Run of {self.model.title()} on stream {self.stream.id} {state}>"


def execute_async(ctx: Context | None, model: Model, stream: Stream | None) -> Run:
    """aclmdlRIExecuteAsync: has enqueued when it returns. Check order: acl_semantics 1.3.

    Errors: 107017, 107000 (bound stream; v200: stream type), 107027, 207000 (branch), 107002, 107004, 107026, 507011,
    107000 (no streams), 207005, 207009, 107003, 507000 (no head stream), 507009 (open update window).
    """
    if stream is not None and _plain(ctx, model, stream):
        block = model.run_blocks.get((stream.id, model.id, model.end_notify.id))
        if block is not None:
            streams.require_loop(stream)
            run = Run(model, stream)
            stream.live.send(stream, block)  # type: ignore[attr-defined]
            run.pin()
            run.submitted()
            return run
    asked = "aclmdlRIExecuteAsync"
    check_handle(model, asked)
    refuse_going(model, asked)
    stream = streams.resolve(ctx, stream, asked)
    if stream.model is not None:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"stream {stream.id} is bound to {stream.model.title()}",
            "execute on an unbound stream",
        )
    streams.refuse_capturing(stream, asked)
    if not stream.npu.spec.persistent_execute and stream.flags & EXECUTE_TYPES:
        raise fail(
            Code.RT_PARAM_INVALID, asked, f"{stream!r} has a type this chip does not execute on", "use a plain stream"
        )
    model.check_root(asked)
    require_same(ctx, model, asked)
    if not model.is_capture:
        contexts.require_same(ctx, stream, asked)
    model.check_executable(asked, asynchronous=True)
    return _start(ctx, model, stream, asked)


def _plain(ctx: Context | None, model: Model, stream: Stream) -> bool:
    """A repeated replay that no check below could refuse and no step beside its two tasks belongs to.

    A live sink means: not capturing, not bound, no open update window, not held.
    """
    return (
        model.plain
        and model.replayable
        and not model.going
        and model.context is ctx is stream.context
        and ctx.alive
        and ctx.failure is None
        and stream.alive
        and stream.sink.__class__ is LiveSink
        and (not stream.flags or not stream.flags & EXECUTE_TYPES)
    )


def _start(ctx: Context | None, model: Model, stream: Stream, asked: str) -> Run:
    stream.check_failure(asked)
    streams.refuse_updating(stream, asked)
    run = Run(model, stream)
    shortage: Shortage | None = None
    try:
        execution_of(model).prepare(model, stream)
    except Shortage as missing:
        shortage = missing
    contexts.require_same(ctx, stream, asked)
    execution = execution_of(model)
    held = shortage is not None or isinstance(stream.live, HeldSink)
    if held:
        ops = _ops(model)
        HeldRun(run, ops, lambda: execution.prepare(model, stream), shortage)
    execution.before_run(model, stream)
    if held:
        for op in ops:
            stream.submit(op)
    else:
        _submit(model, stream)
        run.pin()
    run.submitted()
    execution.after_run(model, stream)
    return run


def _submit(model: Model, stream: Stream) -> None:
    """The two tasks of a run. On a live stream their bytes are kept: a replay encodes nothing."""
    sink = stream.sink
    if not isinstance(sink, LiveSink):
        for op in _ops(model):
            stream.submit(op)
        return
    streams.require_loop(stream)
    key = (stream.id, model.id, model.end_notify.id)
    block = model.run_blocks.get(key)
    if block is None:
        if len(model.run_blocks) >= RUN_BLOCKS:
            model.run_blocks.clear()
        block = model.run_blocks[key] = b"".join(encode(model.npu.driver, op, stream.id, 0) for op in _ops(model))
    sink.send(stream, block)


def _ops(model: Model) -> tuple[Op, Op]:
    return ModelExecuteOp(model=model.id), NotifyWaitOp(notify=model.end_notify)


async def execute(ctx: Context | None, model: Model, timeout_ms: int = -1) -> None:
    """aclmdlRIExecute of a normal model: run on the default stream and wait, at most `timeout_ms` of device time.

    Errors: 107017, 107000 (time-out value, captured graph), 107002, 107004, 507011, 507000 (no head stream), 507046
    (the run is then aborted), the failure of the run. Source: acl_semantics 1.2, 10.8.
    """
    asked = "aclmdlRIExecute"
    check_handle(model, asked)
    refuse_going(model, asked)
    streams.check_timeout(timeout_ms, asked)
    if model.is_capture:
        raise fail(Code.RT_PARAM_INVALID, asked, f"{model.title()} is a captured graph", "use aclmdlRIExecuteAsync")
    require_same(ctx, model, asked)
    model.check_executable(asked, asynchronous=False)
    stream = model.context.default_stream()
    run = _start(ctx, model, stream, asked)
    try:
        await run._wait(timeout_ms)
    except TimeoutError:
        await stop.abort(ctx, model)
        raise
    finally:
        if run.done:
            stream.take_error()
