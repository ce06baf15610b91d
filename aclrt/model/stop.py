"""Stopping a model: its abort and its destroy, and how both wait for the device. Not the end of a run by itself
(`model.execute`)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.completion import Completion
from aclrt.base.errors import fail
from aclrt.model.model import check_handle, require_same
from aclrt.model.names import run_callbacks

if TYPE_CHECKING:
    from aclrt.model.model import Model
    from aclrt.stream.context import Context

FETCH_TURNS = 64
"""Turns of the loop in which the device fetches what was submitted, also while much else runs."""

LOOK_MS = 100
"""How often a destroy looks, in device time, whether a queued run has begun."""


async def abort(ctx: Context | None, model: Model) -> None:
    """aclmdlRIAbort: the running instance stops at its next task boundary and reports 507023; idle models are left
    alone.

    Errors: 107017, 207000 (branch), 107002, 107004, 107019 (not done in 10 s of device time). Source: acl_semantics
    1.2.
    """
    asked = "aclmdlRIAbort"
    check_handle(model, asked)
    model.check_root(asked)
    require_same(ctx, model, asked)
    npu = model.npu
    await _let_fetch(model)
    if not model.runs:
        await _stop_left(model, asked, npu.spec.abort_wait_ms, Code.RT_WAIT_TIMEOUT)
    if not _on_device(model):
        return
    ended = Completion()
    model.on_finish.append(ended.set)
    npu.driver.abort_model(model.id)
    if _on_device(model):
        await npu.wait(ended, f"{asked} of {model.title()}", npu.spec.abort_wait_ms, Code.RT_WAIT_TIMEOUT)


def _on_device(model: Model) -> bool:
    """Whether the device runs it. Of a destroyed model the id may be another one's."""
    return model.alive and model.npu.driver.model_busy(model.id)


async def _let_fetch(model: Model) -> None:
    """A run that nothing is in front of is in progress once the device had a turn: it may have had none since the
    launch. A run that waits behind other tasks of its stream is not."""
    driver = model.npu.driver
    for _ in range(FETCH_TURNS):
        if not model.runs or _on_device(model) or driver.resting():
            return
        await asyncio.sleep(0)


async def destroy(ctx: Context | None, model: Model) -> None:
    """aclmdlRIDestroy. A running graph is waited for 10 s of device time, then 107037 and it stays valid.

    Errors: 107017, 207000 (branch), 107002, 107004, 107026 (capturing), 107037. Callbacks have run when it returns.
    Source: acl_semantics 7.6, 10.11; seed model-module "模型销毁流程".
    """
    asked = "aclmdlRIDestroy"
    check_handle(model, asked)
    model.check_root(asked)
    require_same(ctx, model, asked)
    model.check_destroyable(asked)
    npu = model.npu
    while model.runs or _on_device(model):  # others may submit runs while this waits
        if model.is_capture:
            await _wait_idle(model, asked)
        await _stop_runs(model, asked)
    if not model.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, f"{model.title()} was destroyed meanwhile", "destroy a model once")
    model.release()
    model.going = True
    try:
        raised = run_callbacks(model)
    finally:  # a callback may end the program
        model.discard()
        npu.resources_freed()
    if raised:
        raise raised[0] if len(raised) == 1 else BaseExceptionGroup(f"destroy callbacks of {model.title()}", raised)


async def _wait_idle(model: Model, asked: str) -> None:
    """A running graph is waited for; runs that are submitted meanwhile count too."""
    clock, npu = model.npu.driver.clock, model.npu
    limit = clock.now_ns() + npu.spec.destroy_wait_ms * 1_000_000
    while model.runs:
        idle = Completion()
        model.on_idle.append(idle.set)
        left_ms = max(1, -(-(limit - clock.now_ns()) // 1_000_000))
        await npu.wait(idle, f"{asked} of {model.title()}", left_ms, Code.RT_MODEL_RUNNING)


async def _stop_runs(model: Model, asked: str) -> None:
    """A normal model is destroyed while it runs: each run ends with 507023, within the time a graph would be waited
    for. A run that waits behind other tasks of its stream is stopped when it has begun."""
    npu = model.npu
    limit = npu.driver.clock.now_ns() + npu.spec.destroy_wait_ms * 1_000_000
    while model.runs:
        ended = Completion()
        model.on_finish.append(ended.set)
        await _let_fetch(model)
        if _on_device(model):
            npu.driver.abort_model(model.id)
        left_ms = -(-(limit - npu.driver.clock.now_ns()) // 1_000_000)
        if left_ms <= LOOK_MS:
            await npu.wait(ended, f"{asked} of {model.title()}", max(1, left_ms), Code.RT_MODEL_RUNNING)
            continue
        with suppress(TimeoutError):
            await npu.wait(ended, f"{asked} of {model.title()}", LOOK_MS, Code.RT_STREAM_SYNC_TIMEOUT)
    await _stop_left(model, asked, npu.spec.destroy_wait_ms, Code.RT_MODEL_RUNNING)


async def _stop_left(model: Model, asked: str, wait_ms: int, code: Code) -> None:
    """Tasks no run waits for: behind the end-graph record, on a worker thread, of a run whose waiter is gone."""
    driver = model.npu.driver
    limit = driver.clock.now_ns() + wait_ms * 1_000_000
    while _on_device(model) and not model.runs:
        driver.abort_model(model.id)
        if driver.clock.now_ns() > limit:
            raise fail(code, asked, f"{model.title()} does not stop", "let its kernels end")
        await asyncio.sleep(0)
    if not model.runs:
        model.clear_gates()
