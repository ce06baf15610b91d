"""A Stream: an ordered queue of tasks on one SQ, and what the host knows of its progress.

Not the capture that may have taken the stream over: that is another sink, put in place by `graph`.
"""

from __future__ import annotations

import heapq
from contextlib import AbstractContextManager, asynccontextmanager
from itertools import count
from operator import index as as_int
from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.completion import Completion
from aclrt.base.enums import CaptureStatus, EventFlag, FailureMode, MemcpyKind, StreamFlag, TaskGroupStatus
from aclrt.base.errors import fail
from aclrt.base.host_thread import another_loop, require_task
from aclrt.base.place import here
from aclrt.stream import callback as callbacks
from aclrt.stream import event as events
from aclrt.stream import notify as notifies
from aclrt.stream import ordering, progress, transfer
from aclrt.stream.checks import check_blocks, check_handle, require_loop
from aclrt.stream.copy_end import size_of
from aclrt.task import fusion
from aclrt.task.kernel import Kernel, kernel
from aclrt.task.launcher import Launcher
from aclrt.task.lower import REFUSED, LiveSink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from aclrt.base.enums import CaptureMode
    from aclrt.base.errors import AclError
    from aclrt.stream.context import Context
    from aclrt.stream.event import Event
    from aclrt.stream.gate import Gate
    from aclrt.stream.notify import Notify
    from aclrt.stream.persistent import PersistentTasks
    from aclrt.stream.roles import BoundTo, Captured, CapturingSink
    from aclrt.task.memory import DeviceArray
    from aclrt.task.queue import TaskQueue
    from aclrt.task.task import Op, Task, TaskSink

UNSUPPORTED_FLAGS = StreamFlag.CPU_SCHEDULE | StreamFlag.DEVICE_USE_ONLY
"""Stream types the capture functions reject (acl_semantics 4.1 step 5)."""


def _fill(out: Any, value: Any) -> None:
    out[...] = value


FILL = kernel(_fill, name="fill")


@final
class Stream:
    """One user stream. Made by `create`, `Context.default` or `Device.stream()`.

    Invariants: `capture is None` exactly when `status is NONE`; `capture_mode` and `begin_thread` are set only on the
    stream that began a capture; `completed <= submitted`, both count SQEs since the stream was opened; `sink` follows
    from (capture, group_status, model) and changes only in `choose_sink`.
    """

    def __init__(
        self, context: Context, stream_id: int, flags: StreamFlag, priority: int, *, default: bool = False
    ) -> None:
        npu = context.npu
        self.context = context
        self.npu = npu
        self.id = stream_id
        self.flags = flags
        self.priority = priority
        # What the flags say, read once: IntFlag arithmetic costs more than all else a submit does.
        self.persistent = bool(flags & StreamFlag.PERSISTENT)
        self.cpu_schedule = bool(flags & StreamFlag.CPU_SCHEDULE)
        self.takes_tasks = not flags & StreamFlag.DEVICE_USE_ONLY  # False: of the device's own use
        self.never_waited = (
            self.persistent or self.cpu_schedule or not self.takes_tasks
        )  # synchronize passes it at once
        # What a capture takes; v200 also rejects PERSISTENT (acl_semantics 4.1 step 5, 14.2).
        self.supports_capture = not (flags & UNSUPPORTED_FLAGS) and (npu.spec.persistent_capture or not self.persistent)
        self.is_default = default
        self.place = here()
        self.alive = True
        self.sq = npu.driver.sq_open(stream_id, npu.spec.rtsq_depth)
        self.completed = 0
        self.live: TaskSink = LiveSink(npu.driver) if self.takes_tasks else REFUSED
        self.sink: TaskSink = self.live
        self.launcher = Launcher(npu.driver, self.sq, self.start)
        # capture (graph writes these)
        self.status = CaptureStatus.NONE
        self.capture: Captured | None = None
        self.capture_sink: CapturingSink | None = None
        self.capture_mode: CaptureMode | None = None
        self.begin_thread: object | None = None
        # task groups (graph.task_group writes these)
        self.group_status = TaskGroupStatus.NONE
        self.update_sink: TaskSink | None = None
        self.updating: Any = None  # the TaskGroup an open update window on this stream patches
        # model (model.build writes these); kept has the persistent tasks and stays when the stream is unbound
        self.model: BoundTo | None = None
        self.kept: PersistentTasks | None = None
        self.queue: TaskQueue | None = None  # kept.queue
        self.model_sink: TaskSink | None = None
        # failures
        self.failure_mode = FailureMode.CONTINUE
        self.error: AclError | None = None  # the last failure nobody has synchronised on; a later one overwrites it
        self.subscriber: object | None = None  # host thread of aclrtSubscribeReport
        self.gate: Gate | None = None  # of the host functions launched live; model streams have theirs in the queue
        self._task_id = 0
        self._serial = count()
        self._marks: list[tuple[int, int, Callable[[], None]]] = []  # heap of (position, serial, fn)
        self._failures: dict[int, Callable[[AclError], None]] = {}  # position of a run's end -> who takes its failure
        npu.streams[self.sq] = self
        context.streams.append(self)
        self.choose_sink()

    @property
    def submitted(self) -> int:
        """SQEs handed to the device since the stream was opened; what is still collected is handed over first."""
        launcher = self.launcher
        return launcher.flush() if launcher.sqes else launcher.written

    @submitted.setter
    def submitted(self, position: int) -> None:
        self.launcher.written = position

    # --- state -----------------------------------------------------------------------------------------------------

    @property
    def capturing(self) -> bool:
        """True while the capture status is not NONE; an INVALIDATED stream still counts (acl_semantics 3.1)."""
        return self.status is not CaptureStatus.NONE

    def choose_sink(self) -> None:
        """Point `sink` at where tasks go now: capture first, then an open update window, then the bound model."""
        if self.capture_sink is not None:
            self.sink = self.capture_sink
        elif self.update_sink is not None:
            self.sink = self.update_sink
        elif self.model_sink is not None:
            self.sink = self.model_sink
        else:
            self.sink = self.live
        fast = (
            self.sink is self.live and isinstance(self.live, LiveSink) and self.alive and self.context.failure is None
        )
        if fast:
            self.launch = self.launcher.launch  # type: ignore[method-assign]  # the same call, for less
        else:
            self.__dict__.pop("launch", None)

    # --- work ------------------------------------------------------------------------------------------------------

    def next_task_id(self) -> int:
        self._task_id = (self._task_id + 1) & 0xFFFF
        return self._task_id

    def submit(self, op: Op) -> Task | None:
        """Hand one operation to where this stream's tasks go now."""
        require_loop(self)
        self.check_failure("submit a task")
        return self.sink.append(self, op)

    def launch(self, kernel: Kernel, *args: Any, blocks: int = 1) -> None:
        """Launch a kernel on this stream: device arrays and scalars as its parameters say.

        Raises TypeError for a wrong argument, AclError 107017 for a destroyed stream, and what a capture or an update
        window refuses. Source: acl_semantics 1.10.
        """
        self.start(kernel, args, blocks)

    def launch_fused(self, parts: Sequence[tuple[Kernel, tuple[Any, ...]]], blocks: int = 1) -> None:
        """Launch several kernels as one fused task: one SQE whose parts, (kernel, arguments) each, run in order.

        A part that raises ends the task; the parts behind it do not run. Raises what `launch` does, ValueError
        without a part, AclError 207000 where the chip has no fused kernels (v100, 310p). Source: acl_semantics 11.1,
        14.2.
        """
        fusion.launch(self, parts, blocks)

    def start(self, kernel: Kernel, args: tuple[Any, ...], blocks: int) -> None:
        """`launch` with the arguments as a tuple (aclrtLaunchKernel). RuntimeError outside a task of the device's
        loop."""
        if require_task().get_loop() is not self.launcher.loop:
            another_loop()
        if not self.alive:
            check_handle(self, "launch a kernel")
        if kernel.__class__ is not Kernel:
            raise TypeError(f"launch: {kernel!r} is not a kernel; make it one with @aclrt.kernel")
        if blocks != 1:
            check_blocks(kernel, blocks)
        if self.context.failure is not None:
            self.check_failure("launch a kernel")
        self.sink.kernel(self, kernel, args, blocks)

    def record(self, event: Event | Notify | None = None) -> Event | Notify:
        """Record an event (a new one by default) or a notify here, and return it. Errors: `ordering.record`."""
        require_task()
        if isinstance(event, notifies.Notify):
            notifies.record(self.context, event, self)
            return event
        if event is None:
            event = events.create_ex_with_flag(self.context, EventFlag.SYNC | EventFlag.TIME_LINE)
        ordering.record(self.context, event, self)
        return event

    def wait(self, event: Event | Notify, *, timeout_ms: int = 0) -> None:
        """Let what follows on this stream wait for an event or a notify. `timeout_ms` is device time, 0 for no
        limit."""
        timeout_ms = as_int(timeout_ms)
        if isinstance(event, notifies.Notify):
            if timeout_ms < 0:
                met = f"timeout is {timeout_ms} ms"
                raise fail(Code.RT_PARAM_INVALID, "wait for a notify", met, "give 0 for no limit, or more")
            notifies.wait(self.context, event, self, -(-timeout_ms // 1000))
        else:
            ordering.wait(self.context, self, event, timeout_ms=timeout_ms)

    def reset(self, event: Event) -> None:
        """Reset an old-mode event (`dev.event(external=True)`) here. Errors: `ordering.reset`."""
        ordering.reset(self.context, event, self)

    def copy(self, dst: Any, src: Any) -> None:
        """Copy all bytes of `src` to `dst` on this stream. Either is a DeviceArray, HostBuffer or numpy array.

        Pageable host memory (a plain numpy array) is refused while capturing (107000). Errors: `transfer.memcpy_async`.
        """
        require_task()
        nbytes = size_of(src)
        transfer.memcpy_async(self.context, dst, size_of(dst), src, nbytes, MemcpyKind.DEFAULT, self)

    def fill(self, dst: DeviceArray, value: complex) -> None:
        """Set every element of `dst` to `value` on this stream."""
        self.launch(FILL, dst, value)

    def callback(self, fn: Callable[[], object]) -> None:
        """Call `fn()` on the loop's thread, outside any task, when the stream gets there. See aclrtLaunchHostFunc."""
        require_task()
        callbacks.check_plain(fn, "callback")

        def call(_: object) -> object:
            return fn()

        call.__qualname__ = getattr(fn, "__qualname__", repr(fn))  # messages and dumps name the user's function
        callbacks.launch_host_func(self.context, self, call, None)

    def task_group(self) -> AbstractContextManager[Any]:
        """`with stream.task_group() as group`: what is launched inside can be updated later. 107029 outside a
        capture."""
        require_task()
        if self.capture_sink is None:
            raise fail(
                Code.RT_STREAM_NOT_CAPTURED,
                "task_group",
                f"stream {self.id} is not capturing",
                "use it inside a capture",
            )
        return self.capture_sink.task_group(self)

    @asynccontextmanager
    async def fork(self, *sides: Stream) -> AsyncIterator[tuple[Stream, ...]]:
        """Let `sides` start after what is here, and what follows here wait for them: they cannot stay unjoined."""
        require_task()
        for side in sides:
            if not isinstance(side, Stream):
                raise TypeError(f"fork: {side!r} is not a Stream")
            self._order(self, side)
        yield sides
        for side in sides:
            self._order(side, self)

    def _order(self, first: Stream, then: Stream) -> None:
        event = events.create_ex_with_flag(self.context, EventFlag.SYNC)
        ordering.record(self.context, event, first)
        ordering.wait(self.context, then, event)
        events.discard(event)

    @property
    def graph(self) -> Any:
        """The graph this stream is capturing into, or None."""
        return self.capture.model if self.capture is not None else None

    # --- completion (called by Npu) --------------------------------------------------------------------------------

    def advance(self, position: int) -> None:
        """The device reported its head. Runs whoever waited for a position up to it."""
        self.completed = self.launcher.done = position
        marks = self._marks
        while marks and marks[0][0] <= position:
            heapq.heappop(marks)[2]()

    def failed(self, position: int, error: AclError) -> None:
        """The task that ends at `position` failed; remembered until a synchronize raises it (acl_semantics 11.3)."""
        take = self._failures.pop(position, None)
        if take is not None:
            take(error)
        if self.context.failure is None:  # else it is the end of what was dropped below
            self.error = error
        if self.context.failure_mode is FailureMode.STOP and self.context.failure is None:
            self.context.failure = error
            for stream in self.context.streams:
                stream.choose_sink()
            self.launcher.drop()
            self.npu.driver.sq_abort(self.sq)  # what follows never runs: nobody need wait for it

    def place_of(self, position: int) -> str:
        """ "file:line" of the launch of a live kernel that ended at `position`; "" when it is not known any more."""
        place = self.launcher.place_of(position - 1)
        return str(place) if place is not None else ""

    def when(self, position: int, fn: Callable[[], None]) -> None:
        """Call `fn` when everything up to `position` is done; at once if it is."""
        if position <= self.completed:
            fn()
        else:
            heapq.heappush(self._marks, (position, next(self._serial), fn))

    def own(self, release: Callable[[], None]) -> None:
        """Call `release` when the task just submitted needs it no more: with its graph, with the persistent tasks it
        is one
        of, or when it is done."""
        if self.capture is not None:
            self.capture.model.owned.append(release)
        elif self.kept is not None and self.sink is self.kept:
            self.kept.hold(release)
        else:
            self.when(self.submitted, release)

    def lose(self, position: int, promised: int, error: AclError) -> None:
        """Tasks that were to end up to `promised` will never be sent: nothing behind `position` comes, runs fail."""
        for at in sorted(at for at in self._failures if position < at <= promised):
            self._failures.pop(at)(error)
            self.error = error
        marks, self._marks = sorted(self._marks), []
        for at, _, fn in marks:
            self.when(position if at > position else at, fn)

    def on_failure(self, position: int, take: Callable[[AclError], None]) -> None:
        """Who is told when the task ending at `position` fails (a model run's end)."""
        self._failures[position] = take

    def forget_failure(self, position: int) -> None:
        self._failures.pop(position, None)

    def take_error(self) -> AclError | None:
        """The stored failure; cleared by this read unless the context is in STOP mode."""
        error, self.error = self.error, None
        if self.context.failure is not None and not self.is_default:
            return self.context.failure
        return error

    def check_failure(self, asked: str) -> None:
        """In STOP mode the context's first failure answers every later call (acl_semantics 11.3)."""
        if self.context.failure is not None and self.model is None:
            raise self.context.failure

    async def drained(self, asked: str, timeout_ms: int | None = None) -> None:
        """Wait until everything submitted so far is done."""
        if self.completed >= self.submitted or self.npu.null:
            return
        done = Completion()
        self.when(self.submitted, done.set)
        await self.npu.wait(done, f"{asked}: stream {self.id}", timeout_ms, Code.RT_STREAM_SYNC_TIMEOUT)

    async def synchronize(self, timeout_ms: int = -1) -> None:
        """Wait for everything submitted so far, then raise the failure stored on the stream, if any.

        `timeout_ms` is device time; -1 waits for ever. Errors: 107027 while capturing, 507046 on time-out, the code
        of a failed task. Source: acl_semantics 1.6, 11.3.
        """
        require_loop(self)
        await progress.synchronize(self.context, self, timeout_ms)

    def __repr__(self) -> str:
        if not self.alive:
            state = "destroyed"
        elif self.capture is not None:
            tasks = len(self.capture.queue.tasks)
            state = f"{self.status.name.lower()} capturing→{self.capture.model.title()}, {tasks} tasks"
        elif self.model is not None:
            state = f"bound→{self.model.title()}"
        else:
            state = "idle" if self.completed >= self.submitted else "running"
        return f"<Stream {self.id} {state}, head {self.completed}/{self.submitted}>"
