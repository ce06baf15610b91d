"""From a task to its SQE bytes, and the live sink that sends them. Decides nothing: legality is settled before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.place import here
from aclrt.task import task as t
from aclrt.task.kernel import CORES
from hw.chips import SqeError, SqeKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from aclrt.task.kernel import Kernel
    from aclrt.task.queue import TaskQueue
    from hw.driver import Driver

Fields = dict[str, Any]
NO_SQ = 0xFFFFFFFF


def _kernel(op: t.KernelOp) -> tuple[SqeKind, Fields]:
    if op.fused:
        return SqeKind.FUSION, {"args": op.handle}
    return SqeKind.KERNEL, {
        "core": CORES[op.kernel.core],
        "program": op.program,
        "args": op.handle,
        "blocks": op.blocks,
    }


def _sq(target: TaskQueue) -> int:
    """The SQ a task starts; one that exists nowhere when the target has none, so that the device reports it."""
    return target.sq if target.sq is not None else NO_SQ


def _notify(op: t.NotifyRecordOp | t.NotifyWaitOp) -> int:
    """A captured or bound task may name a notify that was destroyed since; its id may be another's by now."""
    if op.notify.id is None:
        todo = "keep it as long as the model, or build the model again"
        raise fail(Code.RT_INVALID_HANDLE, f"load {op.type_name}", "the notify it names was destroyed", todo)
    return op.notify.id


LOWER: dict[type[t.Op], Callable[[Any], tuple[SqeKind, Fields]]] = {
    t.Nop: lambda op: (SqeKind.NOP, {}),
    t.KernelOp: _kernel,
    t.EventRecordOp: lambda op: (SqeKind.EVENT_RECORD, {"event_id": op.event.id}),
    t.EventWaitOp: lambda op: (SqeKind.EVENT_WAIT, {"event_id": op.event.id, "timeout_ms": op.timeout_ms}),
    t.EventResetOp: lambda op: (SqeKind.EVENT_RESET, {"event_id": op.event.id}),
    t.InnerEventOp: lambda op: (
        SqeKind.EVENT_RESET if op.reset else SqeKind.EVENT_WAIT,
        {"event_id": op.event.id} if op.reset else {"event_id": op.event.id, "timeout_ms": 0},
    ),
    t.NotifyRecordOp: lambda op: (SqeKind.NOTIFY_RECORD, {"notify_id": _notify(op)}),
    t.NotifyWaitOp: lambda op: (SqeKind.NOTIFY_WAIT, {"notify_id": _notify(op), "timeout_ms": op.timeout_ms}),
    t.ValueWriteOp: lambda op: (
        SqeKind.WRITE_VALUE,
        {"address": op.address, "value": op.value & _M64, "width": op.width},
    ),
    t.ValueWaitOp: lambda op: (
        SqeKind.WAIT_VALUE,
        {"address": op.address, "value": op.value & _M64, "flag": op.flag, "width": op.width},
    ),
    t.CopyOp: lambda op: (SqeKind.MEMCPY, {"dst": op.dst, "src": op.src, "nbytes": op.nbytes}),
    t.Copy2dOp: lambda op: (
        SqeKind.MEMCPY2D,
        {
            "dst": op.dst,
            "dpitch": op.dpitch,
            "src": op.src,
            "spitch": op.spitch,
            "width": op.width,
            "height": op.height,
        },
    ),
    t.SetOp: lambda op: (SqeKind.MEMSET, {"dst": op.dst, "value": op.value, "nbytes": op.nbytes}),
    t.HostFuncOp: lambda op: (SqeKind.HOSTFUNC, {"callback": op.callback}),
    t.ModelExecuteOp: lambda op: (SqeKind.MODEL_EXECUTE, {"model": op.model}),
    t.ModelToAicpuOp: lambda op: (SqeKind.KERNEL, {"core": CORES["aicpu"], "program": op.program, "args": op.handle}),
    t.ActiveOp: lambda op: (SqeKind.STREAM_ACTIVE, {"sq": _sq(op.target)}),
    t.SwitchOp: lambda op: (
        SqeKind.STREAM_SWITCH,
        {"left": op.left, "right": op.right, "cond": op.cond, "dtype": op.dtype, "true_sq": _sq(op.target)},
    ),
    t.LabelSetOp: lambda op: (SqeKind.LABEL_SET, {"label": op.label.id}),
    t.LabelGotoOp: lambda op: (SqeKind.LABEL_GOTO, {"address": op.address}),
    t.LabelSwitchOp: lambda op: (SqeKind.LABEL_SWITCH, {"index": op.index, "max": op.maximum, "list": op.list_address}),
    t.ExternalRecordOp: lambda op: (SqeKind.EXT_RECORD, {"table": op.table}),
    t.ExternalWaitOp: lambda op: (SqeKind.EXT_WAIT, {"table": op.table}),
    t.PatchOp: lambda op: (
        SqeKind.SQE_UPDATE,
        {"image": op.image, "slot": op.slot, "source": op.source, "n": op.slots},
    ),
}
_M64 = (1 << 64) - 1


def encode(driver: Driver, op: t.Op, stream_id: int, task_id: int) -> bytes:
    """The SQEs of `op`: 64 bytes each, `op.sqes()` of them. Errors: 107000 for a number that no SQE can hold."""
    try:
        return _encode(driver, op, stream_id, task_id)
    except SqeError as error:
        raise fail(Code.RT_PARAM_INVALID, f"send {op.type_name}", str(error), "give a number that fits") from error


def _encode(driver: Driver, op: t.Op, stream_id: int, task_id: int) -> bytes:
    if isinstance(op, t.CondOp):
        return b"".join(
            driver.chip.encode(kind, stream_id=stream_id, task_id=task_id, **fields)
            for kind, fields in op.handle.lower()
        )
    kind, fields = LOWER[type(op)](op)
    return driver.chip.encode(kind, stream_id=stream_id, task_id=task_id, **fields)


def encode_queue(driver: Driver, queue: TaskQueue) -> bytes:
    """All SQEs of a model stream, in order. Kernels, which are nearly all of them, are packed without names."""
    chip, stream_id = driver.chip, queue.stream_id
    pack, word, ident = chip.kernel_pack.pack, chip.kernel_word(0), chip.ident
    return b"".join(
        pack(word, ident(stream_id, task.task_id), CORES[op.kernel.core], op.program, op.handle, op.blocks)
        if isinstance(op := task.op, t.KernelOp) and not op.fused
        else encode(driver, op, stream_id, task.task_id)
        for task in queue.tasks
    )


def send_queue(driver: Driver, queue: TaskQueue, image: int, asked: str) -> None:
    """Write all SQEs of a model stream to SQ memory. Errors: 507052 when the transport to the device fails
    (OSError)."""
    try:
        driver.image_write(image, 0, encode_queue(driver, queue))
    except OSError as error:
        met = f"SQEs of stream {queue.stream_id} did not reach the device: {error}"
        raise fail(Code.RT_COPY_DATA, asked, met, "try again") from error


@final
class LiveSink:
    """Sends what it is given to the stream's own SQ at once."""

    __slots__ = ("driver",)

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def append(self, stream: Any, op: t.Op) -> None:
        stream.launcher.flush()
        stream.submitted = self.driver.submit(stream.sq, encode(self.driver, op, stream.id, stream.next_task_id()))

    def send(self, stream: Any, block: bytes) -> None:
        """SQEs that are encoded already."""
        stream.launcher.flush()
        stream.submitted = self.driver.submit(stream.sq, block)

    def kernel(self, stream: Any, kernel: Kernel, args: tuple[Any, ...], blocks: int) -> None:
        driver = self.driver
        handle, flags = kernel.arguments(driver, args)
        launcher, core, program = stream.launcher, CORES[kernel.core], kernel.program(driver)
        launcher.flush()
        launcher.note(here())
        if blocks == 1 and not flags and not driver.clock.virtual:
            chip = driver.chip
            word, ident = chip.kernel_word(flags), chip.ident(stream.id, 0)
            launcher.prepare(kernel, args, chip.kernel_pack.pack(word, ident, core, program, handle, 1))
        stream.submitted = driver.submit_kernel(stream.sq, stream.next_task_id(), core, program, handle, blocks, flags)


@final
class RefusedSink:
    """The live sink of a stream for the device's own use: it takes no task (recorded: 507000)."""

    __slots__ = ()

    def append(self, stream: Any, op: t.Op) -> None:
        raise fail(
            Code.RT_INTERNAL_ERROR,
            f"submit {op.type_name}",
            f"stream {stream.id} is for the device's own use",
            "use a plain stream",
        )

    def kernel(self, stream: Any, kernel: Kernel, args: tuple[Any, ...], blocks: int) -> None:
        raise fail(
            Code.RT_INTERNAL_ERROR,
            f"launch {kernel.name}",
            f"stream {stream.id} is for the device's own use",
            "use a plain stream",
        )


REFUSED = RefusedSink()
