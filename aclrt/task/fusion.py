"""Fused kernels: several kernels launched as one task, one SQE whose parts run in order on the device.

Not a sequence of launches: nothing runs between the parts, one completion reports them all, and a part that fails ends
the task. Source: acl_semantics 11.1 (FUSION_KERNEL), 14.2; the seed's KernelFusionTask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail
from aclrt.base.host_thread import require_task
from aclrt.task.kernel import Bound, Kernel
from aclrt.task.lower import LiveSink
from aclrt.task.task import KernelOp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aclrt.task.kernel import CoreName
    from hw.driver import Driver

Part = tuple[Kernel[...], tuple[Any, ...]]


@final
class FusedKernel:
    """The parts of one fused launch, shaped as a kernel so that every sink takes it: its arguments are its parts'.

    `core` is "aic" when a part runs on the cube cores (such a task may be in a task group on v200), else the first
    part's.
    """

    __slots__ = ("core", "name", "parts")

    fused = True

    def __init__(self, parts: Sequence[Part]) -> None:
        if not parts:
            raise ValueError("launch_fused: there is no part; give (kernel, arguments) pairs")
        for part in parts:
            good = isinstance(part, tuple) and len(part) == 2
            if not good or not isinstance(part[0], Kernel) or not isinstance(part[1], tuple):
                raise TypeError(f"launch_fused: a part is (kernel, tuple of arguments), not {part!r}")
        self.parts = tuple(parts)
        self.name = "+".join(kernel.name for kernel, _ in parts)
        cores = [kernel.core for kernel, _ in parts]
        self.core: CoreName = "aic" if "aic" in cores else cores[0]

    def program(self, driver: Driver) -> int:
        """The first part's program; the SQE names none, its argument entry names them all."""
        return self.parts[0][0].program(driver)

    def bind(self, driver: Driver, args: tuple[Any, ...]) -> Bound:
        """One entry of the argument table: ((program, values), ...) in order. Errors as Kernel.bind."""
        values: list[tuple[int, tuple[Any, ...]]] = []
        bases: list[int] = []
        for kernel, part_args in self.parts:
            bound = kernel.bind(driver, part_args)
            values.append((kernel.program(driver), bound.values))
            bases += [base for base in bound.bases if base not in bases]
        return Bound(tuple(values), tuple(bases), ())

    def __repr__(self) -> str:
        return f"<FusedKernel {self.name} {self.core}>"


def launch(stream: Any, parts: Sequence[Part], blocks: int) -> None:
    """Launch a fused kernel on a Stream (this floor knows none), wherever its tasks go now. Errors: see
    `Stream.launch_fused`."""
    asked = "launch a fused kernel"
    require_task()
    kernel: Any = FusedKernel(parts)
    if not stream.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, f"stream {stream.id} is destroyed", "use a live stream")
    if not stream.npu.spec.fusion_kernels:
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT,
            asked,
            f"chip {stream.npu.spec.name} has no fused kernels",
            "launch the parts one by one",
        )
    stream.check_failure(asked)
    if not isinstance(stream.sink, LiveSink):
        stream.sink.kernel(stream, kernel, (), blocks)
        return
    driver = stream.npu.driver
    bound = kernel.bind(driver, ())
    handle = driver.args_put(bound.values, bound.bases)
    op = KernelOp(kernel=kernel, args=(), blocks=blocks, program=kernel.program(driver), handle=handle)
    stream.submit(op)
    stream.own(lambda: driver.args_drop(handle))
