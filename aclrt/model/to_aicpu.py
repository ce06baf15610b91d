"""Model-to-AI-CPU tasks: the AI-CPU engine is told when a model it schedules is loaded, executed and destroyed.

Not a kernel of the user and not the run itself (MODEL_EXECUTE starts that): a task on the AI-CPU engine, for models
with a stream of ACL_STREAM_CPU_SCHEDULE (seed model-module 5, model_to_aicpu_task; acl_semantics 10.3).
"""

from __future__ import annotations

from enum import IntEnum
from itertools import count
from typing import TYPE_CHECKING, final

from aclrt.base.enums import StreamFlag
from aclrt.task.task import ModelToAicpuOp
from hw.chips import Core

if TYPE_CHECKING:
    from aclrt.model.normal import NormalModel
    from aclrt.stream.npu import Npu
    from aclrt.stream.stream import Stream


class Command(IntEnum):
    """What the AI-CPU engine is asked; the numbers are this emulator's own."""

    LOAD = 0
    EXECUTE = 1
    DESTROY = 2


@final
class AicpuModels:
    """The AI-CPU engine's own table of models, written by the tasks when they run.

    `executions` counts EXECUTE commands by model, named by a number that no other model ever has (ids come back). An
    entry appears with the first command that arrives (LOAD and EXECUTE may travel on different streams) and goes with
    DESTROY, which is sent when no run is left.
    """

    __slots__ = ("_serial", "executions", "npu", "program")

    def __init__(self, npu: Npu) -> None:
        self.npu = npu
        self.executions: dict[int, int] = {}
        self.program = npu.driver.load(self.serve, core=Core.AICPU, name="model_to_aicpu", cost_ns=0, offload=False)
        self._serial = count(1)

    def serve(self, command: int, number: int) -> None:
        """Runs on the AI-CPU engine."""
        if command == Command.DESTROY:
            del self.executions[number]
        else:
            self.executions[number] = self.executions.get(number, 0) + (command == Command.EXECUTE)

    def name(self) -> int:
        return next(self._serial)

    def tell(self, stream: Stream, command: Command, number: int) -> None:
        """Submit one task; its arguments are dropped when it is done."""
        driver = self.npu.driver
        handle = driver.args_put((int(command), number), ())
        stream.submit(ModelToAicpuOp(program=self.program, handle=handle))
        stream.own(lambda: driver.args_drop(handle))


def loaded(model: NormalModel) -> None:
    """BuildEnd: LOAD, once, on the context's default stream, for a model with a stream that the AI-CPU schedules."""
    if model.aicpu_number is None and any(stream.flags & StreamFlag.CPU_SCHEDULE for stream in model.streams):
        table = _table(model.npu)
        model.aicpu_number = table.name()
        table.tell(model.context.default_stream(), Command.LOAD, model.aicpu_number)


def executing(model: NormalModel, stream: Stream) -> None:
    """EXECUTE, on the execute stream before the run."""
    if model.aicpu_number is not None:
        _table(model.npu).tell(stream, Command.EXECUTE, model.aicpu_number)


def destroyed(model: NormalModel) -> None:
    """DESTROY, on the context's default stream; a context whose streams answer with a failure sends nothing."""
    if model.aicpu_number is not None and model.context.failure is None:
        _table(model.npu).tell(model.context.default_stream(), Command.DESTROY, model.aicpu_number)
    model.aicpu_number = None


def _table(npu: Npu) -> AicpuModels:
    if npu.aicpu_models is None:
        npu.aicpu_models = AicpuModels(npu)
    table: AicpuModels = npu.aicpu_models
    return table
