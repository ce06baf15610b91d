"""A CaptureModel: the graph a capture records, its streams, events, groups and states. Not the calls that fill it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import ModelStatus
from aclrt.base.errors import AclError, ResourceError, fail
from aclrt.base.place import here
from aclrt.base.states import Table
from aclrt.graph.orphan import orphan
from aclrt.graph.patches import give_up_image
from aclrt.model.model import Model
from hw.chips import SqeKind
from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.base.place import Place
    from aclrt.graph.capture_stream import CaptureStream
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream
    from aclrt.task.task import Task

S = ModelStatus
STATUS = Table(
    "CaptureModel",
    {
        (S.NONE, "begin"): S.CAPTURE_ACTIVE,
        (S.CAPTURE_ACTIVE, "invalidate"): S.CAPTURE_INVALIDATED,
        (S.CAPTURE_INVALIDATED, "invalidate"): S.CAPTURE_INVALIDATED,
        (S.CAPTURE_ACTIVE, "exit"): S.READY,
        (S.CAPTURE_INVALIDATED, "exit"): S.READY,  # every End of a branch, and one on the wrong thread (recorded)
        (S.READY, "edit"): S.UPDATING,
        (S.UPDATING, "edit"): S.UPDATING,
        (S.UPDATING, "update"): S.READY,
        (S.UPDATING, "fail"): S.FAULT,
        (S.READY, "fail"): S.FAULT,  # a run that ended by a device error (seed acl-graph 7.2)
        (S.FAULT, "fail"): S.FAULT,
    },
)
"""Legal moves of RtCaptureModelStatus (seed acl-graph 7.2, acl_semantics 3.2)."""


class CaptureModel(Model):
    """A captured graph. `status` moves only along STATUS.

    Invariants: `streams` are the hidden streams newest first and `queues` their queues in the same order; a stream is
    in `users` exactly while its capture is this model; `open_groups` holds the hidden streams with an open task group;
    `invalidated` is set exactly when the capture was invalidated.
    """

    is_capture = True

    def __init__(self, context: Context, *, sub_of: Any = None) -> None:
        super().__init__(context)
        self.status = S.NONE
        self.parent_handle = sub_of  # the CondHandle this is a branch of, or None for a root
        self.is_sub = sub_of is not None
        self.streams: list[CaptureStream] = []
        self.users: list[Stream] = []
        self.origin: CaptureStream | None = None  # first hidden stream of the stream that began the capture
        self.capture_events: list[Any] = []  # hidden events in order of creation
        self.externals: dict[Any, Any] = {}  # user event -> the external record or wait task that uses it
        self.open_groups: list[Any] = []
        self.group_error: AclError | None = None
        self.groups: list[Any] = []
        self.cond_handles: list[Any] = []
        self.added: list[Any] = []  # rtStreamAddToModel: one AddedStream each
        self.invalidated: tuple[AclError, Place] | None = None
        self.end_place: Place | None = None
        self.plain = (
            False  # built, and nothing but its two tasks goes with a run: no added stream, external event, condition
        )
        self.bound = False  # SQs are bound: sqCqNum_ != 0
        self.build_count = 0  # how often SQs were bound; tests of recycling read it
        self.external_table: int | None = None  # device address of the refresh table
        self.external_run: Any = None  # what `external.prepare` took for the run being submitted
        self.launch_attributes: dict[Task, dict[int, int]] = {}  # of kernel tasks configured by TaskSetParams
        if not self.is_sub:
            context.models.append(self)

    @property
    def replayable(self) -> bool:  # type: ignore[override]
        return self.status is S.READY and self.bound and self.alive

    # --- status ----------------------------------------------------------------------------------------------------

    def move(self, verb: str) -> None:
        self.status = STATUS.next(self.status, verb, self)

    @property
    def capturing(self) -> bool:
        return self.status in (S.CAPTURE_ACTIVE, S.CAPTURE_INVALIDATED)

    @property
    def active(self) -> bool:
        return self.status is S.CAPTURE_ACTIVE

    def terminate(self, error: AclError) -> None:
        """Invalidate the capture; the first reason is the one End tells (acl_semantics 3.4)."""
        if self.capturing:
            self.move("invalidate")
            if self.invalidated is None:
                self.invalidated = (error, here())

    def run_finished(self, failure: AclError | None) -> None:
        if (
            failure is not None
            and self.npu.on_execute_error == "fault"
            and not isinstance(failure, ResourceError)  # a run that never began
            and failure.code not in (Code.RT_MODEL_ABORT_NORMAL, Code.RT_STREAM_ABORT)
            and self.status in (S.READY, S.UPDATING, S.FAULT)
        ):
            self.move("fail")
        super().run_finished(failure)

    def clear_gates(self) -> None:
        super().clear_gates()
        for handle in self.cond_handles:
            for branch in handle.models:
                branch.clear_gates()

    # --- what execute and stop ask (model.execute, model.stop) -----------------------------------------------------

    def check_root(self, asked: str) -> None:
        if self.is_sub:
            raise fail(
                Code.RT_FEATURE_NOT_SUPPORT,
                asked,
                f"{self.title()} is a branch of a conditional task",
                "use the graph it belongs to",
            )

    def check_destroyable(self, asked: str) -> None:
        if self.capturing:
            since = f" (stream {self.origin.user.id} {self.origin.joined_how()})" if self.origin is not None else ""
            met = f"{self.title()} is {self.status.name}{since}"
            raise fail(Code.RT_MODEL_CAPTURED, asked, met, "end the capture first")

    def check_executable(self, asked: str, *, asynchronous: bool) -> None:
        self.check_destroyable(asked)
        if self.status is not S.READY:
            todo = "destroy it and capture again" if self.status is S.FAULT else "call aclmdlRIUpdate first"
            raise fail(Code.RT_MODEL_EXECUTE, asked, f"{self.title()} is {self.status.name}", todo)

    # --- streams ---------------------------------------------------------------------------------------------------

    def add_stream(self, stream: CaptureStream, *, head: bool) -> None:
        self.streams.insert(0, stream)
        self.queues.insert(0, stream.queue)
        if head:
            self.heads.append(stream.queue)

    def everything(self) -> list[CaptureModel]:
        """This model and all its branches, nested ones included, parents first."""
        models = [self]
        for handle in self.cond_handles:
            for branch in handle.models:
                models += branch.everything()
        return models

    @property
    def root(self) -> CaptureModel:
        return self.parent_handle.model.root if self.parent_handle is not None else self

    # --- resources -------------------------------------------------------------------------------------------------

    def holdings(self) -> dict[IdKind, int]:
        held = super().holdings()
        held[IdKind.STREAM] = len(self.streams)
        held[IdKind.EVENT] = len(self.capture_events)
        held[IdKind.NOTIFY] += sum(handle.notify.id is not None for handle in self.cond_handles)
        held[IdKind.NOTIFY] += sum(added.notifies for added in self.added)
        for queue in self.queues:
            if queue.gate is not None:
                held[queue.gate.kind] = held.get(queue.gate.kind, 0) + 1
        for handle in self.cond_handles:
            for branch in handle.models:
                for kind, number in branch.holdings().items():
                    held[kind] = held.get(kind, 0) + number
        return held

    def discard(self) -> None:
        """Order of acl_semantics 9.6: capture events, SQs and notify ids, streams, stream notifies, cond handles."""
        if not self.alive:
            return
        self.alive = False
        for stream in list(self.users):
            if self.is_sub:
                orphan(stream)
            else:
                stream.capture.leave(stream)  # type: ignore[union-attr]
        driver = self.npu.driver
        for event in self.capture_events:
            event.discard()
        self.unbind_sqs()
        self.free_end_notify()
        for hidden in self.streams:
            hidden.discard()
        for added in self.added:
            added.discard()
        for handle in self.cond_handles:
            handle.discard()
        owned, self.owned = self.owned, []
        for release in owned:
            release()
        for number in self.argument_handles:
            driver.args_drop(number)
        self.argument_handles.clear()
        if self.external_table is not None:
            self.npu.driver.free(self.external_table)
        for group in self.groups:
            group.model = None
        if self.loaded:
            self.control(SqeKind.MODEL_DESTROY, model=self.id)
            self.loaded = False
        driver.free(IdKind.MODEL, self.id)
        if self in self.context.models:
            self.context.models.remove(self)

    # --- rebuild ---------------------------------------------------------------------------------------------------

    def lose_device(self) -> None:
        """Branches are lost first. The next execute builds everything anew."""
        driver = self.npu.driver
        for handle in self.cond_handles:
            for branch in handle.models:
                branch.lose_device()
            handle.free_notify()
        self.unbind_sqs()
        self.free_end_notify()
        if self.loaded:
            self.control(SqeKind.MODEL_DESTROY, model=self.id)
            self.loaded = False
        for queue in self.queues:
            give_up_image(self, queue)
            driver.free(IdKind.STREAM, queue.stream_id)
        driver.free(IdKind.MODEL, self.id)

    def realloc_stream_ids(self) -> None:
        for stream in reversed(self.streams):
            stream.id = stream.queue.stream_id = self.npu.alloc(IdKind.STREAM, f"rebuild {self.title()}")
        for handle in self.cond_handles:
            for branch in handle.models:
                branch.realloc_stream_ids()

    def resetup(self) -> None:
        self.id = self.npu.alloc(IdKind.MODEL, "rebuild a graph")
        for handle in self.cond_handles:
            for branch in handle.models:
                branch.resetup()

    def rebind_streams(self) -> None:
        """Nothing: SQs are bound by the next execute."""

    def unbind_sqs(self) -> int:
        """Give the SQs back to the pool; the images keep their SQEs. Returns how many were freed."""
        bound = [queue for queue in self.queues if queue.sq is not None]
        if not bound:
            return 0
        driver = self.npu.driver
        for queue in bound:
            assert queue.sq is not None
            self.control(SqeKind.MODEL_DEL, model=self.id, sq=queue.sq)
        driver.sq_unbind([queue.sq for queue in bound if queue.sq is not None])
        for queue in bound:
            assert queue.sq is not None
            del self.npu.queues[queue.sq]
            driver.free(IdKind.SQ, queue.sq)
            queue.sq = None
        self.bound = False
        return len(bound)

    def __repr__(self) -> str:
        state = "destroyed" if not self.alive else self.status.name
        tasks = sum(len(queue.tasks) for queue in self.queues)
        name = f"{type(self).__name__} {self.id}{' branch' if self.is_sub else ''}"
        return f"<{name} {state}, {len(self.streams)} streams, {tasks} tasks, {self.runs} running>"
