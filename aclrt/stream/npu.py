"""One emulated NPU as the host library holds it: the driver, who owns which SQ, who is waiting, what failed.

Not the public `Device` (that is `aclrt.device`) and not the chip (that is `hw`).
"""

from __future__ import annotations

import asyncio
from _thread import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, final

from aclrt.base import errors
from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.completion import Completion
from aclrt.base.errors import AclError, DeadlockError
from aclrt.base.host_thread import host_function, without_calls
from hw.chips import CqeKind, Status
from hw.driver import IdKind, NoMemory, NoResource

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from aclrt.stream.context import Context
    from aclrt.task.queue import TaskQueue
    from hw.chips import Cqe
    from hw.driver import Driver, FaultRecord

# Device status -> the code its caller sees (acl_semantics 11.3).
STATUS_CODES: dict[Status, Code] = {
    Status.AICORE_EXCEPTION: Code.RT_AICORE_EXCEPTION,
    Status.AIV_EXCEPTION: Code.RT_VECTOR_CORE_EXCEPTION,
    Status.AICPU_EXCEPTION: Code.RT_AICPU_EXCEPTION,
    Status.AICORE_TIMEOUT: Code.RT_AICORE_TIMEOUT,
    Status.AIV_TIMEOUT: Code.RT_VECTOR_CORE_TIMEOUT,
    Status.AICPU_TIMEOUT: Code.RT_AICPU_TIMEOUT,
    Status.SDMA_ERROR: Code.RT_SYS_DMA,
    Status.SDMA_TIMEOUT: Code.RT_TASK_TIMEOUT,
    Status.TASK_TIMEOUT: Code.RT_TASK_TIMEOUT,
    Status.MODEL_FAILED: Code.RT_MODEL_EXECUTE,
    Status.MODEL_ABORTED: Code.RT_MODEL_ABORT_NORMAL,
    Status.STREAM_ABORTED: Code.RT_STREAM_ABORT,
    Status.ILLEGAL_PARAM: Code.RT_TS_ERROR,
    Status.SQE_ERROR: Code.RT_TS_ERROR,
}

# Exhausted resource -> code and the word clients search for (design.md section 3, "Exhaustion").
RESOURCE_CODES: dict[IdKind, tuple[Code, str]] = {
    IdKind.STREAM: (Code.RT_NO_STREAM_RESOURCE, "stream resource"),
    IdKind.SQ: (Code.RT_RESOURCE_ALLOC_FAIL, "SQ/CQ resource"),
    IdKind.EVENT: (Code.RT_NO_EVENT_RESOURCE, "event resource"),
    IdKind.NOTIFY: (Code.RT_NO_NOTIFY_RESOURCE, "notify resource"),
    IdKind.MODEL: (Code.RT_NO_MODEL_RESOURCE, "model resource"),
    IdKind.LABEL: (Code.RT_INTERNAL_ERROR, "label resource"),
}


class SqOwner(Protocol):
    """What a stream offers the completion path."""

    @property
    def id(self) -> int: ...

    def advance(self, position: int) -> None: ...

    def failed(self, position: int, error: AclError) -> None: ...


class HeldStream(Protocol):
    """A stream kept at the host until resources are free (`model.held`)."""

    @property
    def stream(self) -> Any: ...

    def resume(self) -> bool: ...

    def drop(self, error: AclError) -> None: ...

    def explain(self) -> str: ...


class HoldsIds(Protocol):
    """A model, seen as a holder of resources (for the message of an exhausted one)."""

    def holdings(self) -> dict[IdKind, int]: ...

    def title(self) -> str: ...

    def discard(self) -> None: ...


@final
class Npu:
    """Host-side record of one open device.

    `streams` maps an SQ to the stream that owns it; `waits` holds every host wait that has not ended, with its text.
    """

    def __init__(self, driver: Driver, index: int, *, null: bool = False) -> None:
        self.driver = driver
        self.index = index
        self.null = null
        self.spec = driver.chip.spec
        self.contexts: list[Context] = []
        self.primary: Context | None = None
        self.streams: dict[int, SqOwner] = {}
        self.queues: dict[int, TaskQueue] = {}  # SQ of the pool -> the model stream bound to it
        self.reports: dict[int, Any] = {}  # host thread id -> its stream.callback.Reports
        self.waits: dict[Completion, object] = {}
        self.short: list[HeldStream] = []  # the longest held first
        self.unobserved: list[AclError] = []
        self.on_execute_error = "fault"
        self.model_updates = 0  # aclmdlRIUpdate calls that rebuilt a graph; the chip counts up to `update_limit`
        self.new_default: Callable[[Context], Any] = unwired  # makes a context's default stream
        self.new_graph: Callable[..., Any] = unwired  # makes a CaptureModel: (context, sub_of=None)
        self.explain: Callable[[], str] = lambda: ""  # wired in aclrt.device, as the two below
        self.headline: Callable[[], str] = lambda: ""
        self.locate: Callable[[FaultRecord], str] = lambda record: f"stream {record.stream_id}"
        self.closed = False
        self.loop = asyncio.get_running_loop()
        self.thread = get_ident()
        self.aicpu_models: Any = None  # model.to_aicpu.AicpuModels, made with the first model the AI-CPU schedules
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next_callback = 0
        driver.listen(self._on_cqe)
        driver.on_stuck = self._on_stuck

    def gone(self) -> str:
        """Why everything of this device is dead, for messages."""
        return f"device {self.index} was closed"

    # --- completions -----------------------------------------------------------------------------------------------

    def _on_cqe(self, cqe: Cqe) -> None:
        if cqe.kind is CqeKind.HEAD:
            owner = self.streams.get(cqe.sq)
            if owner is not None:
                owner.advance(cqe.position)
        elif cqe.kind is CqeKind.ERROR:
            owner = self.streams.get(cqe.sq)
            if owner is not None:
                owner.failed(cqe.position, self.device_error(cqe.status, cqe.fault, owner.id))
        elif cqe.kind is CqeKind.CALLBACK:
            self._callbacks[cqe.callback]()

    def device_error(self, status: Status, fault: int, stream_id: int) -> AclError:
        """The exception for a device failure; its cause chain is the core exception, then what the kernel raised."""
        code = STATUS_CODES[status]
        if fault < 0:
            return AclError.of(code, f"tasks of stream {stream_id}: ended with {status.name}")
        record = self.driver.fault(fault)
        self.driver.fault_drop(fault)
        what = f"kernel {record.program}" if record.program else "task"
        where = self.locate(record)
        story = f"{what} ({where}): {describe(record.exception, record.status.name)}"
        if status is not Status.MODEL_FAILED:
            return AclError.of(code, story, cause=record.exception)
        inner = AclError.of(STATUS_CODES[record.status], story, cause=record.exception)
        if record.status is Status.AICPU_TIMEOUT:
            code = Code.RT_AICPU_TIMEOUT  # the one device failure a model's run reports as itself (acl_semantics 11.3)
        return AclError.of(code, f"model execution failed: {story}", cause=inner)

    def _on_stuck(self) -> None:
        """Nothing can run and no deadline is left: whoever waits learns why (design.md section 3, virtual clock)."""
        if not self.waits:
            return
        story, root = self.explain(), self.headline()
        for completion, what in list(self.waits.items()):
            error = DeadlockError.of_waits(
                f"{what}: nothing can run and no deadline is left; {root or 'see the notes'}"
            )
            error.add_note(story)
            completion.interrupt(error)

    def end_waits(self) -> None:
        """The device is closing: whoever still waits for it learns that (107002)."""
        for completion, what in list(self.waits.items()):
            completion.interrupt(errors.fail(Code.RT_CONTEXT_NULL, str(what), self.gone(), "open the device again"))

    # --- host waits ------------------------------------------------------------------------------------------------

    async def wait(self, completion: Completion, what: str, timeout_ms: int | None, code: Code) -> None:
        """Wait for `completion`; after `timeout_ms` of device time raise `code` with the who-waits-for-whom text."""
        if timeout_ms is None or timeout_ms < 0 or completion.done:
            await completion if completion.done else await _Until(self, completion, what)
            return
        wait = Completion()  # ends with the completion or the deadline, whichever comes first

        def copy(done: Completion) -> None:
            if not wait.done:
                wait.set() if done.error is None else wait.fail(done.error)

        completion.add_callback(copy)

        def expire() -> None:
            if not wait.done:
                met = f"not done after {timeout_ms} ms of device time; {self.headline() or 'see the notes'}"
                error = errors.fail(code, what, met, "wait longer or abort")
                error.add_note(self.explain())
                wait.fail(error)

        timer = self.driver.clock.call_at(self.driver.clock.now_ns() + timeout_ms * 1_000_000, expire)
        try:
            await _Until(self, wait, what)
        finally:
            completion.remove_callback(copy)
            timer.cancel()

    def waiting_for(self, completion: Completion, what: object) -> Generator[Any, None, None]:
        """Await `completion` as one of the host's waits; `what` says which, as text, if anyone asks."""
        without_calls("a kernel", self.driver.assist)
        if completion.done:
            completion.result()
            return
        self.waits[completion] = what
        if self.driver.clock.virtual:
            self.driver.nudge()
        try:
            yield from completion.__await__()
        finally:
            if not completion.waiters:
                self.waits.pop(completion, None)

    # --- resources -------------------------------------------------------------------------------------------------

    def alloc(self, kind: IdKind, asked: str) -> int:
        """A device id, or the resource error of its kind."""
        try:
            return self.driver.alloc(kind)
        except NoResource as shortage:
            self.exhausted(kind, asked, shortage)

    def exhausted(self, kind: IdKind, asked: str, shortage: Exception | None = None) -> NoReturn:
        """Raise the error of an exhausted resource, naming the limit and who holds it."""
        code, word = RESOURCE_CODES[kind]
        met = f"no {word} left: {self.usage(kind)}"
        raise errors.fail(code, asked, met, "destroy models or streams that are no longer needed") from shortage

    def usage(self, kind: IdKind) -> str:
        """How many of a resource are in use, of how many, and the models that hold most of them."""
        holders = [(model.title(), model.holdings().get(kind, 0)) for model in self.models()]
        held = ", ".join(f"{title} {count}" for title, count in sorted(holders, key=lambda h: -h[1])[:8] if count)
        return f"{self.driver.held(kind)} of {self.driver.limit(kind)} in use (by models: {held or 'none'})"

    def models(self) -> Iterator[HoldsIds]:
        for context in self.contexts:
            yield from context.models

    def malloc(self, nbytes: int, asked: str) -> int:
        """Device memory, or 207001."""
        try:
            return self.driver.malloc(nbytes)
        except NoMemory as shortage:
            raise errors.fail(Code.RT_MEMORY_ALLOCATION, asked, str(shortage), "free device memory") from shortage

    def resources_freed(self) -> None:
        """A run ended or something was destroyed: let each held stream try again, the longest held first."""
        for held in list(self.short):
            if held in self.short and held.resume():
                self.short.remove(held)

    def try_again_soon(self) -> None:
        """`resources_freed` in a moment: what is missing comes free without a run that ends."""
        asyncio.get_running_loop().call_soon(self.resources_freed)

    # --- host functions --------------------------------------------------------------------------------------------

    def register_callback(self, run: Callable[[], None]) -> int:
        """A number for a CALLBACK CQE to name; runs on the loop's thread, outside any task."""
        number = self._next_callback = self._next_callback + 1
        self._callbacks[number] = run
        return number

    def unregister_callback(self, number: int) -> None:
        del self._callbacks[number]

    def run_host_function(
        self, fn: Callable[[Any], object], args: Any, then: Callable[[BaseException | None], None]
    ) -> None:
        """Call `fn(args)` in a callback of the loop, where runtime calls are refused, then tell `then` how it ended."""

        def run() -> None:
            failure: BaseException | None = None
            with host_function():
                try:
                    fn(args)
                except (KeyboardInterrupt, SystemExit) as interrupt:  # the loop's caller's, but the stream goes on
                    then(interrupt)
                    raise
                except BaseException as error:  # its failure is a device result (507000), reported at the synchronize
                    failure = error
            then(failure)

        asyncio.get_running_loop().call_soon(run)

    def __repr__(self) -> str:
        name = f"{self.index} {self.spec.name}{' null' if self.null else ''}"
        return f"<Npu {name}, {len(self.streams)} SQs, {len(self.waits)} waiting>"


class _Until:
    """Awaits a completion as one of the host's waits."""

    __slots__ = ("completion", "npu", "what")

    def __init__(self, npu: Npu, completion: Completion, what: object) -> None:
        self.npu = npu
        self.completion = completion
        self.what = what

    def __await__(self) -> Generator[Any, None, None]:
        return self.npu.waiting_for(self.completion, self.what)


def unwired(*_: object, **__: object) -> NoReturn:
    """Stands where `aclrt.device` puts a factory."""
    raise RuntimeError("this Npu was made without aclrt.device")


def describe(exception: BaseException | None, status: str) -> str:
    """One clause about what went wrong in a task."""
    return f"raised {type(exception).__name__}: {exception}" if exception is not None else f"ended with {status}"
