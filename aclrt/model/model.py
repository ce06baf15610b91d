"""A Model: the container of streams that one execute starts. CaptureModel (`graph`) is the captured kind.

Not the build calls (`model.build`) and not a run (`model.execute`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.host_thread import require_task
from aclrt.base.place import here
from aclrt.stream import context as contexts
from hw.driver import IdKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aclrt.base.errors import AclError
    from aclrt.stream.context import Context
    from aclrt.stream.npu import Npu
    from aclrt.stream.stream import Stream
    from aclrt.task.queue import TaskQueue
    from aclrt.task.task import Task
    from hw.chips import SqeKind


class NotifyId:
    """A notify register a model owns, by the id it has now; None while it has none."""

    __slots__ = ("id",)

    def __init__(self) -> None:
        self.id: int | None = None


class Execution(Protocol):
    """What an execute does around the two tasks it submits."""

    def prepare(self, model: Any, stream: Stream) -> None:
        """Get device resources before a run."""

    def before_run(self, model: Any, stream: Stream) -> None:
        """Tasks and writes that come before the run."""

    def after_run(self, model: Any, stream: Stream) -> None:
        """Tasks that go to the execute stream after the run."""


class Model:
    """A model running instance.

    Invariants: `queues` lists every stream of the model newest first, `heads` the ones an execute starts in order of
    binding; `runs` counts executions submitted and not finished; `end_notify.id` is None until EndTask (normal model)
    or while a capture model holds no notify.
    """

    is_capture = False
    is_sub = False
    plain = False  # nothing but its two tasks goes with a run
    replayable = False  # alive, READY, its SQs bound
    execution: Execution | None = None  # how a run gets its resources, when it is not the normal way

    def __init__(self, context: Context) -> None:
        self.context = context
        self.npu: Npu = context.npu
        self.id = self.npu.alloc(IdKind.MODEL, "create a model")
        self.name = ""
        self.alive = True
        self.going = False  # its destroy has begun to free things: destroy callbacks may look, but start nothing
        self.place = here()
        self.queues: list[TaskQueue] = []
        self.heads: list[TaskQueue] = []
        self.end_notify = NotifyId()
        self.loaded = False  # load-complete: SQEs are on the device and the model can be executed (isModelComplete_)
        self.runs = 0
        self.pins = 0  # refCount_: runs sent to the device, whose resources must stay; a held run is not among them
        self.run_blocks: dict[
            tuple[int, int, int | None], bytes
        ] = {}  # (stream, model, notify ids) -> the SQEs of one run
        self.seq = 0  # next sequence id of a task
        self.labels: dict[int, Any] = {}  # labelMap_: label id -> Label
        self.callbacks: dict[
            Callable[[Any], object], Any
        ] = {}  # destroy callback -> userData, in order of registration
        self.owned: list[
            Callable[[], None]
        ] = []  # what tasks registered (host memory, callbacks), released with the model
        self.host_error: AclError | None = None  # what a host function of the current run raised
        self.argument_handles: set[int] = set()  # argLoaderRecord_: argument entries that live as long as the model
        self.on_idle: list[Callable[[], None]] = []  # called once when `runs` falls to 0
        self.on_finish: list[Callable[[], None]] = []  # called once when the next run ends

    def host_function_failed(self, error: AclError) -> None:
        """A host function of this model raised; the current run ends with it (507000, design.md section 3)."""
        self.host_error = self.host_error or error

    # --- names -----------------------------------------------------------------------------------------------------

    def title(self) -> str:
        kind = "graph" if self.is_capture else "model"
        return f'{kind} {self.id} "{self.name}"' if self.name else f"{kind} {self.id}"

    # --- tasks -----------------------------------------------------------------------------------------------------

    def next_seq(self) -> int:
        seq, self.seq = self.seq, self.seq + 1
        return seq

    def tasks(self) -> Iterator[Task]:
        for queue in self.queues:
            yield from queue.tasks

    def keep_arguments(self, handle: int) -> None:
        self.argument_handles.add(handle)

    # --- runs ------------------------------------------------------------------------------------------------------

    def run_started(self) -> None:
        self.runs += 1

    def run_finished(self, failure: AclError | None) -> None:
        """One execution is over (its end-graph wait passed). `failure` is its error, or None."""
        self.runs -= 1
        self.host_error = None
        if failure is not None and failure.code != Code.RT_STREAM_ABORT:  # else only its waiter went: it goes on
            self.clear_gates()
        finished, self.on_finish = self.on_finish, []
        for fn in finished:
            fn()
        if self.runs == 0:
            waiting, self.on_idle = self.on_idle, []
            for fn in waiting:
                fn()

    def clear_gates(self) -> None:
        """A run ended early: the host functions it may have stood at are nobody's any more."""
        for queue in self.queues:
            if queue.gate is not None:
                queue.gate.clear()

    def check_root(self, asked: str) -> None:
        """207000 for a branch of a conditional task."""

    def check_destroyable(self, asked: str) -> None:
        """107026 while a capture is open."""

    def check_executable(self, asked: str, *, asynchronous: bool) -> None:
        """What execute asks of the model's own state: EndTask and, for the asynchronous call, BuildEnd (507011)."""
        if self.end_notify.id is None or (asynchronous and not self.loaded):
            missing = "EndTask" if self.end_notify.id is None else "BuildEnd"
            raise fail(
                Code.RT_MODEL_EXECUTE, asked, f"{self.title()} has no {missing}", f"call aclmdlRI{missing} first"
            )

    def control(self, kind: SqeKind, **fields: int) -> None:
        """Send one control task (maintenance, load, destroy) and read its CQE; 507000 when the device refuses it."""
        driver = self.npu.driver
        cqe = driver.control(driver.chip.encode(kind, stream_id=0, task_id=0, **fields))
        if cqe.status:
            raise fail(
                Code.RT_INTERNAL_ERROR,
                f"{kind.name} of {self.title()}",
                f"the device answered {cqe.status.name}",
                "destroy the model",
            )

    # --- resources -------------------------------------------------------------------------------------------------

    def holdings(self) -> dict[IdKind, int]:
        """What the model holds of each exhaustible resource."""
        return {
            IdKind.SQ: sum(queue.sq is not None for queue in self.queues),
            IdKind.NOTIFY: int(self.end_notify.id is not None),
            IdKind.MODEL: 1,
            IdKind.LABEL: len(self.labels),
        }

    def alloc_end_notify(self) -> int:
        """The notify of the end-graph record; taken once."""
        if self.end_notify.id is None:
            self.end_notify.id = self.npu.alloc(IdKind.NOTIFY, f"end graph of {self.title()}")
        return self.end_notify.id

    def free_end_notify(self) -> None:
        if self.end_notify.id is not None:
            self.npu.driver.free(IdKind.NOTIFY, self.end_notify.id)
            self.end_notify.id = None

    # --- rebuild (model.rebuild calls these in order) --------------------------------------------------------------

    def lose_device(self) -> None:
        """A device reset: SQs, SQE memory and every id are gone; tasks, labels and arguments stay."""
        raise NotImplementedError

    def realloc_stream_ids(self) -> None:
        """Take a stream id for each stream again."""
        raise NotImplementedError

    def resetup(self) -> None:
        """Take a model id and notify ids again."""
        raise NotImplementedError

    def rebind_streams(self) -> None:
        """Put the streams on the device again, as far as they were."""
        raise NotImplementedError

    def release(self) -> None:
        """What is freed before the destroy callbacks run: the end-graph notify and the model's device memory."""

    def discard(self) -> None:
        """Free everything, whatever the state; the last step of destroy and of closing a device."""
        raise NotImplementedError

    def __repr__(self) -> str:
        state = "destroyed" if not self.alive else "loaded" if self.loaded else "building"
        return f"<Model {self.id} {state}, {len(self.queues)} streams, {self.runs} running>"


def check_handle(model: Model, asked: str) -> None:
    """107017 for a destroyed model. RuntimeError outside a task."""
    require_task()
    if not model.alive and model.npu.closed:
        raise fail(
            Code.RT_INVALID_HANDLE, asked, f"{model.title()} is gone, {model.npu.gone()}", "open the device again"
        )
    if not model.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, f"{model.title()} is destroyed", "use a live model")


def refuse_going(model: Model, asked: str) -> None:
    """107017 for a model whose destroy callbacks run: what a run needs is free already."""
    if model.going:
        todo = "run it before it is destroyed"
        raise fail(Code.RT_INVALID_HANDLE, asked, f"{model.title()} is being destroyed", todo)


def require_same(ctx: Context | None, model: Model, asked: str) -> None:
    """107002, then 107004 when the model belongs to another Context."""
    if model.context is not contexts.require(ctx, asked):
        raise fail(
            Code.RT_MODEL_CONTEXT,
            asked,
            f"{model.title()} belongs to another context",
            "make its context current first",
        )
