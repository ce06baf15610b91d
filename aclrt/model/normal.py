"""A normal model: user streams bound to it by the build calls, and everything it frees when it goes.

Not the build calls (`model.build`), not the SQ memory of its streams (`model.fill`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from aclrt.model import fill, to_aicpu
from aclrt.model.model import Model
from aclrt.stream.label import LabelAllocator
from hw.chips import SqeKind
from hw.driver import IdKind

if TYPE_CHECKING:
    from aclrt.stream.context import Context
    from aclrt.stream.label import Label
    from aclrt.stream.stream import Stream


@final
class NormalModel(Model):
    """A model of aclmdlRIBuildBegin.

    Invariants: `streams` lists the bound streams newest first, `queues` their queues in the same order; a stream is in
    `streams` exactly while `stream.model` is this model; `labels` has every label set in a bound stream (labelMap_);
    `known_to_device` is True once a control task named the model.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.streams: list[Stream] = []
        self.labels: dict[int, Label] = {}
        self.label_allocator = LabelAllocator(self.npu)
        self.known_to_device = False
        self.aicpu_number: int | None = None  # its name in the AI-CPU engine's table, when that schedules it
        self._released = False
        self._ended = False  # had an end-graph notify when the device was reset
        context.models.append(self)

    # --- streams ---------------------------------------------------------------------------------------------------

    def adopt(self, stream: Stream, *, head: bool) -> None:
        """Bidirectional reference between model and stream; `stream.kept` is set and known to the device."""
        assert stream.kept is not None
        stream.model = self
        self.streams.insert(0, stream)
        self.queues.insert(0, stream.kept.queue)
        if head:
            self.heads.append(stream.kept.queue)
        for label in stream.kept.labels:
            label.model = self
            self.labels[label.id] = label

    def release_stream(self, stream: Stream) -> None:
        """The stream is nobody's again; it keeps its tasks. Where the chip does not split, new ones run at once."""
        kept = stream.kept
        assert kept is not None
        self.streams.remove(stream)
        self.queues.remove(kept.queue)
        if kept.queue in self.heads:
            self.heads.remove(kept.queue)
        for label in kept.labels:
            self.labels.pop(label.id, None)
        stream.model = None
        if not self.npu.spec.auto_split:
            stream.model_sink = None
        stream.choose_sink()

    # --- resources -------------------------------------------------------------------------------------------------

    def holdings(self) -> dict[IdKind, int]:
        """Its SQs are its streams' own, outside the pool; slave streams take stream ids."""
        held = super().holdings()
        held[IdKind.SQ] = 0
        held[IdKind.STREAM] = sum(
            max(len(stream.kept.parts) - 1, 0) for stream in self.streams if stream.kept is not None
        )
        return held

    def release(self) -> None:
        """First half of the destroy flow, in the seed's order: end-graph notify, device memory, argument records, DMA
        address records, labels, label allocator. Destroy callbacks run after it (acl_semantics 10.11)."""
        if self._released:
            return
        self._released = True
        if self.npu.driver.model_busy(self.id):
            self.npu.driver.abort_model(self.id)
        self.free_end_notify()
        for stream in self.streams:
            assert stream.kept is not None
            fill.detach(self, stream.kept)
        for stream in self.streams:
            assert stream.kept is not None
            stream.kept.drop()
        owned, self.owned = self.owned, []
        for free in owned:
            free()
        for label in list(self.labels.values()):
            label.unset()
        self.labels.clear()
        self.label_allocator.release()

    def discard(self) -> None:
        """Second half: the destroy task, then streams, Context and model id. Frees everything, whatever the state."""
        if not self.alive:
            return
        self.release()
        self.alive = False
        self.loaded = False
        to_aicpu.destroyed(self)
        if self.known_to_device:
            self.control(SqeKind.MODEL_DESTROY, model=self.id)
        for stream in list(self.streams):
            self.release_stream(stream)
        self.context.models.remove(self)
        self.npu.driver.free(IdKind.MODEL, self.id)

    # --- rebuild ---------------------------------------------------------------------------------------------------

    def lose_device(self) -> None:
        for stream in self.streams:
            assert stream.kept is not None
            fill.detach(self, stream.kept)
        if self.known_to_device:
            self.control(SqeKind.MODEL_DESTROY, model=self.id)
            self.known_to_device = False
        self._ended = self.end_notify.id is not None
        self.free_end_notify()
        driver = self.npu.driver
        for stream in self.streams:
            driver.free(IdKind.STREAM, stream.id)
        driver.free(IdKind.MODEL, self.id)

    def realloc_stream_ids(self) -> None:
        for stream in reversed(self.streams):
            stream.id = self.npu.alloc(IdKind.STREAM, f"rebuild {self.title()}")
            assert stream.queue is not None
            stream.queue.stream_id = stream.id

    def resetup(self) -> None:
        self.id = self.npu.alloc(IdKind.MODEL, "rebuild a model")
        if self._ended:
            self.alloc_end_notify()

    def rebind_streams(self) -> None:
        for stream in reversed(self.streams):
            assert stream.kept is not None
            fill.attach(self, stream.kept, head=stream.queue in self.heads)
        if self.loaded:
            fill.send(self)

    def __repr__(self) -> str:
        state = (
            "destroyed"
            if not self.alive
            else "loaded"
            if self.loaded
            else "ended"
            if self.end_notify.id is not None
            else "building"
        )
        tasks = sum(len(queue.tasks) for queue in self.queues)
        counts = f"{len(self.streams)} streams, {len(self.heads)} heads, {tasks} tasks, {self.runs} running"
        return f"<Model {self.id} {state}, {counts}>"
