"""The official examples on updating and on external events, with the numbers their texts print (acl_semantics 13)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

CHIPS = ["v100", "v200"]
SYNC, EXTERNAL = acl.ACL_EVENT_SYNC, acl.ACL_EVENT_EXTERNAL
D2D = acl.ACL_MEMCPY_DEVICE_TO_DEVICE
BYTES = 32


@aclrt.kernel
def axpy(a: aclrt.In[np.float32], b: aclrt.In[np.float32], out: aclrt.Out[np.float32], alpha: float) -> None:
    out[:] = a + np.float32(alpha) * b


def launch(stream: Any, *args: Any) -> None:
    acl.aclrtLaunchKernel(axpy, 1, list(args), stream)


@pytest.mark.parametrize("chip", CHIPS)
async def test_1_model_update(chip: str) -> None:
    async with aclrt.open_device(0, chip=chip):
        event = acl.aclrtCreateEventWithFlag(EXTERNAL)
        stream, updates = acl.aclrtCreateStream(), acl.aclrtCreateStream()
        one, other, tmp, out = (aclrt.view(acl.aclrtMalloc(BYTES, 0), (8,), np.float32) for _ in range(4))
        host_one, host_other = np.arange(1, 9, dtype=np.float32), np.full(8, 2, np.float32)

        acl.aclmdlRICaptureBegin(stream, acl.ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
        await acl.aclrtMemcpy(one, BYTES, host_one, BYTES, acl.ACL_MEMCPY_HOST_TO_DEVICE)  # allowed: RELAXED
        await acl.aclrtMemcpy(other, BYTES, host_other, BYTES, acl.ACL_MEMCPY_HOST_TO_DEVICE)
        launch(stream, one, other, tmp, 1.1)
        acl.aclrtStreamWaitEvent(stream, event)
        acl.aclrtResetEvent(event, stream)
        acl.aclmdlRICaptureTaskGrpBegin(stream)
        launch(stream, tmp, other, out, 1.1)
        handle = acl.aclmdlRICaptureTaskGrpEnd(stream)
        model = acl.aclmdlRICaptureEnd(stream)

        printed = []
        for loop in range(2):
            acl.aclmdlRIExecuteAsync(model, stream)
            if loop == 1:
                acl.aclmdlRICaptureTaskUpdateBegin(updates, handle)
                launch(updates, tmp, other, out, 2.2)
                acl.aclmdlRICaptureTaskUpdateEnd(updates)
            acl.aclrtRecordEvent(event, updates)
            await acl.aclrtSynchronizeStream(updates)
            await acl.aclrtSynchronizeStream(stream)
            host = np.zeros(8, np.float32)
            await acl.aclrtMemcpy(host, BYTES, out, BYTES, acl.ACL_MEMCPY_DEVICE_TO_HOST)
            printed.append([f"{value:.1f}" for value in host])
        assert printed == [
            ["5.4", "6.4", "7.4", "8.4", "9.4", "10.4", "11.4", "12.4"],
            ["7.6", "8.6", "9.6", "10.6", "11.6", "12.6", "13.6", "14.6"],
        ]
        await acl.aclmdlRIDestroy(model)


@pytest.mark.parametrize("chip", CHIPS)
async def test_4_model_sync_external_scenario_1(chip: str) -> None:
    """An external wait in the graph, an ordinary record on another stream."""
    async with aclrt.open_device(0, chip=chip) as dev:
        event = acl.aclrtCreateEventExWithFlag(SYNC)
        graph, other = acl.aclrtCreateStream(), acl.aclrtCreateStream()
        src, dst = dev.array(np.zeros(8, "i4")), dev.array(np.zeros(8, "i4"))
        acl.aclmdlRICaptureBegin(graph, acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
        acl.aclrtStreamWaitEventWithFlag(graph, event, 0, acl.ACL_EVENT_WAIT_EXTERNAL)
        acl.aclrtMemcpyAsync(dst, BYTES, src, BYTES, D2D, graph)
        model = acl.aclmdlRICaptureEnd(graph)
        pinned = acl.aclrtMallocHost(BYTES)
        pinned.numpy(np.int32)[:] = np.arange(1, 9)
        acl.aclrtMemcpyAsync(src, BYTES, pinned, BYTES, acl.ACL_MEMCPY_HOST_TO_DEVICE, other)
        acl.aclrtRecordEvent(event, other)
        acl.aclmdlRIExecuteAsync(model, graph)
        await acl.aclrtSynchronizeStream(graph)
        assert dst.numpy().tolist() == list(range(1, 9))


@pytest.mark.parametrize("chip", CHIPS)
async def test_4_model_sync_external_scenario_2(chip: str) -> None:
    """An external record in the graph, an ordinary wait on another stream."""
    async with aclrt.open_device(0, chip=chip) as dev:
        event = acl.aclrtCreateEventExWithFlag(SYNC)
        graph, other = acl.aclrtCreateStream(), acl.aclrtCreateStream()
        src, dst = dev.array(np.arange(1, 9, dtype="i4")), dev.array(np.zeros(8, "i4"))
        acl.aclmdlRICaptureBegin(graph, acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
        acl.aclrtMemcpyAsync(dst, BYTES, src, BYTES, D2D, graph)
        acl.aclrtRecordEventWithFlag(event, graph, acl.ACL_EVENT_RECORD_EXTERNAL)
        model = acl.aclmdlRICaptureEnd(graph)
        acl.aclmdlRIExecuteAsync(model, graph)
        pinned = acl.aclrtMallocHost(BYTES)
        acl.aclrtStreamWaitEvent(other, event)
        acl.aclrtMemcpyAsync(pinned, BYTES, dst, BYTES, acl.ACL_MEMCPY_DEVICE_TO_HOST, other)
        await acl.aclrtSynchronizeStream(other)
        assert pinned.numpy(np.int32).tolist() == list(range(1, 9))


@pytest.mark.parametrize("chip", CHIPS)
async def test_4_model_sync_external_scenario_3(chip: str) -> None:
    """One graph records externally, another waits externally."""
    async with aclrt.open_device(0, chip=chip) as dev:
        event = acl.aclrtCreateEventExWithFlag(SYNC)
        first, second = acl.aclrtCreateStream(), acl.aclrtCreateStream()
        src, mid, dst = (
            dev.array(np.arange(1, 9, dtype="i4")),
            dev.array(np.zeros(8, "i4")),
            dev.array(np.zeros(8, "i4")),
        )
        acl.aclmdlRICaptureBegin(first, acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
        acl.aclrtMemcpyAsync(mid, BYTES, src, BYTES, D2D, first)
        acl.aclrtRecordEventWithFlag(event, first, acl.ACL_EVENT_RECORD_EXTERNAL)
        producer = acl.aclmdlRICaptureEnd(first)
        acl.aclmdlRICaptureBegin(second, acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
        acl.aclrtStreamWaitEventWithFlag(second, event, 0, acl.ACL_EVENT_WAIT_EXTERNAL)
        acl.aclrtMemcpyAsync(dst, BYTES, mid, BYTES, D2D, second)
        consumer = acl.aclmdlRICaptureEnd(second)
        acl.aclmdlRIExecuteAsync(producer, first)
        acl.aclmdlRIExecuteAsync(consumer, second)
        await acl.aclrtSynchronizeStream(second)
        assert dst.numpy().tolist() == list(range(1, 9))
