"""Model rebuild: models live on at the host when the device is reset, and are put on it again (seed model-module 4.3).

Not aclrtResetDevice, which ends a device and all its objects. What a reset takes is what the device keeps of a model:
its SQs and SQE memory, stream ids, model and notify ids. Device memory, streams outside models and their queues stay.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.errors import fail

if TYPE_CHECKING:
    from aclrt.model.model import Model
    from aclrt.stream.npu import Npu


def rebuild(model: Model) -> None:
    """One model off the device and on it again; its next run gives the same results.

    Errors: 107037 while it runs; 107026 while it is being captured.
    """
    asked = f"rebuild {model.title()}"
    _check(model, asked)
    model.lose_device()
    _restore(model)


async def reset_and_rebuild(npu: Npu) -> None:
    """A device reset and the rebuild of every model after it. Runs end with 507023 first.

    Errors: 107026 while a capture is open, 107037 when runs do not end within the time a destroy would wait.
    """
    models: list[Any] = list(npu.models())
    for model in models:
        model.check_destroyable("reset the device")
    limit = npu.driver.clock.now_ns() + npu.spec.destroy_wait_ms * 1_000_000
    while any(model.runs or npu.driver.model_busy(model.id) for model in models):
        for model in models:
            npu.driver.abort_model(model.id)
        if npu.driver.clock.now_ns() > limit:
            running = ", ".join(model.title() for model in models if model.runs)
            raise fail(Code.RT_MODEL_RUNNING, "reset the device", f"still running: {running}", "let their kernels end")
        await asyncio.sleep(0)
    for model in models:
        model.lose_device()
    for model in models:
        _restore(model)


def _check(model: Model, asked: str) -> None:
    model.check_destroyable(asked)
    if model.runs or model.npu.driver.model_busy(model.id):
        raise fail(Code.RT_MODEL_RUNNING, asked, f"it has {model.runs} runs", "wait for them or abort")


def _restore(model: Model) -> None:
    """The seed's steps in their order: ReAllocStreamId, ReSetup, ReBindStreams."""
    model.realloc_stream_ids()
    model.resetup()
    model.rebind_streams()
