"""The sink of a capturing stream: tasks, events and externals go into its hidden stream. Holds no state of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from aclrt.base.enums import CaptureStatus
from aclrt.base.errors import AclError
from aclrt.base.place import here
from aclrt.graph import cascade, joining, task_group
from aclrt.graph.capture_stream import CaptureStream
from aclrt.task.task import KernelOp

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from aclrt.stream.event import Event
    from aclrt.stream.stream import Stream
    from aclrt.task.kernel import Kernel
    from aclrt.task.task import Op, Task


@final
class CaptureSink:
    """Keeps what it is given in the stream's hidden stream. An open task update first, then the group rules, then the
    cascade."""

    __slots__ = ()

    def append(self, stream: Stream, op: Op) -> Task | None:
        if stream.update_sink is not None:
            return stream.update_sink.append(stream, op)
        return self.keep(stream, op)

    def keep(self, stream: Stream, op: Op) -> Task:
        """`append` for what the runtime itself adds: an update window does not refuse it."""
        capture = stream.capture
        assert isinstance(capture, CaptureStream)
        model = capture.model
        if model.open_groups:
            task_group.admit(model, capture, op)
        queue = capture.queue
        spec = model.npu.spec
        if queue.sqe_count + spec.capture_reserved + spec.expand_reserved >= spec.sq_depth:
            try:
                capture = cascade.extend(stream, capture)
            except AclError as error:
                stream.status = CaptureStatus.INVALIDATED
                model.terminate(error)
                raise
            queue = capture.queue
        task = queue.append(op, model.next_seq(), here(), spec.wait_sqes)
        if capture.group is not None:
            capture.group.add(task)
        return task

    def record_event(self, stream: Stream, event: Event) -> None:
        joining.record(stream, event, self)

    def record_external(self, stream: Stream, event: Event) -> None:
        joining.record_external(stream, event, self)

    def wait_external(self, stream: Stream, event: Event) -> None:
        joining.wait_external(stream, event, self)

    def task_group(self, stream: Stream) -> AbstractContextManager[task_group.TaskGroup]:
        return task_group.scope(stream)

    def kernel(self, stream: Stream, kernel: Kernel, args: tuple[Any, ...], blocks: int) -> Task | None:
        if stream.update_sink is not None:
            return stream.update_sink.kernel(stream, kernel, args, blocks)
        capture = stream.capture
        assert isinstance(capture, CaptureStream)
        npu = stream.npu
        bound = kernel.bind(npu.driver, args)
        handle = npu.driver.args_put(bound.values, bound.bases)
        op = KernelOp(kernel=kernel, args=args, blocks=blocks, program=kernel.program(npu.driver), handle=handle)
        try:
            task = self.keep(stream, op)
        except BaseException:
            npu.driver.args_drop(handle)
            raise
        capture.model.keep_arguments(handle)
        return task


SINK = CaptureSink()
