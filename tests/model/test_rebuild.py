"""Models after a device reset: new ids, the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.model import rebuild
from hw.driver import IdKind

HEAD, DEFAULT = acl.ACL_MODEL_STREAM_FLAG_HEAD, acl.ACL_MODEL_STREAM_FLAG_DEFAULT


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], a: float) -> None:
    x += a


def bound(model: Any, flag: int = HEAD) -> Any:
    stream = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
    acl.aclmdlRIBindStream(model, stream, flag)
    return stream


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_a_built_model_runs_again_with_the_same_results(chip: str) -> None:
    async with aclrt.open_device(chip=chip, limits={"stream_task_limit": 100 if chip == "v200" else 60000}) as dev:
        model, exe = acl.aclmdlRIBuildBegin(0), dev.stream()
        head, side = bound(model), bound(model, DEFAULT)
        x = dev.array(np.zeros(1, "f4"))
        skip = acl.aclrtCreateLabel()
        acl.aclrtCreateLabelList([skip])
        acl.rtLabelGoto(skip, head)
        head.launch(add, x, 1000.0)
        acl.aclrtSetLabel(skip, head)
        for _ in range(150):
            head.launch(add, x, 1.0)
        acl.aclrtActiveStream(side, head)
        side.launch(add, x, 0.5)
        acl.aclmdlRIEndTask(model, side)
        acl.aclmdlRIBuildEnd(model)
        await acl.aclmdlRIExecuteAsync(model, exe)
        assert x.numpy()[0] == 150.5
        held = {kind: dev.npu.driver.held(kind) for kind in IdKind}
        blocker = acl.aclmdlRIBuildBegin(0)
        for _ in range(2):
            await dev.rebuild()
            await acl.aclmdlRIExecuteAsync(model, exe)
        assert x.numpy()[0] == 3 * 150.5
        await acl.aclmdlRIDestroy(blocker)
        assert {kind: dev.npu.driver.held(kind) for kind in IdKind} == held
        assert acl.aclmdlRIGetStreams(model) == [side, head]
        await acl.aclmdlRIDestroy(model)


async def test_ids_are_taken_anew() -> None:
    async with aclrt.open_device():
        low = acl.aclmdlRIBuildBegin(0)
        model = acl.aclmdlRIBuildBegin(0)
        stream = bound(model)
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        before = acl.aclmdlRIGetId(model), stream.id
        await acl.aclmdlRIDestroy(low)
        rebuild.rebuild(model)
        assert (acl.aclmdlRIGetId(model), before[0]) == (0, 1)
        await acl.aclmdlRIExecute(model, -1)


async def test_models_that_were_not_complete_can_be_completed() -> None:
    async with aclrt.open_device() as dev:
        x = dev.array(np.zeros(1, "f4"))
        begun, open_, ended = (acl.aclmdlRIBuildBegin(0) for _ in range(3))
        p, q = bound(open_), bound(ended)
        p.launch(add, x, 1.0)
        q.launch(add, x, 10.0)
        acl.aclmdlRIEndTask(ended, q)
        await dev.rebuild()
        r = bound(begun)
        r.launch(add, x, 100.0)
        for model, stream in ((begun, r), (open_, p)):
            acl.aclmdlRIEndTask(model, stream)
        for model in (begun, open_, ended):
            acl.aclmdlRIBuildEnd(model)
            await acl.aclmdlRIExecute(model, -1)
        assert x.numpy()[0] == 111


async def test_runs_end_with_an_abort_before_the_reset() -> None:
    async with aclrt.open_device() as dev:
        model, exe = acl.aclmdlRIBuildBegin(0), dev.stream()
        stream, flag = bound(model), dev.array(np.zeros(1, "i8"))
        acl.aclrtValueWait(flag, 1, acl.ACL_VALUE_WAIT_EQ, stream)
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        runs = [acl.aclmdlRIExecuteAsync(model, exe) for _ in range(2)]
        with pytest.raises(aclrt.AclError) as caught:
            rebuild.rebuild(model)
        assert caught.value.code == 107037
        await dev.rebuild()
        for run in runs:
            with pytest.raises(aclrt.AclError) as caught:
                await run
            assert caught.value.code == 507023
        with pytest.raises(aclrt.AclError):
            await exe.synchronize()
        flag.assign([1])
        await acl.aclmdlRIExecuteAsync(model, exe)


async def test_captured_graphs_with_branches_and_events_are_rebuilt_too() -> None:
    async with aclrt.open_device() as dev:
        s, side = dev.stream(), dev.stream()
        x, y = dev.array(np.zeros(1, "f4")), dev.array(np.zeros(1, "f4"))
        async with aclrt.capture(s) as graph:
            s.launch(add, x, 1.0)
            async with s.fork(side) as (b,):
                b.launch(add, y, 2.0)
            go = graph.condition(default=1)
            async with graph.if_(go) as body:
                body.launch(add, x, 10.0)
        await graph.replay(s)
        await dev.rebuild()
        await graph.replay(s)
        assert (x.numpy()[0], y.numpy()[0]) == (22, 4)
        assert graph.build_count == 2
        await acl.aclmdlRIDestroy(graph)
        assert dev.npu.driver.held(IdKind.MODEL) == 0
        assert dev.npu.driver.held(IdKind.SQ) == 0


async def test_a_plain_graph_with_queued_runs_of_several_streams() -> None:
    async with aclrt.open_device() as dev:
        streams = [dev.stream() for _ in range(3)]
        x = dev.array(np.zeros(1, "f4"))
        async with aclrt.capture(streams[0]) as graph:
            for _ in range(5):
                streams[0].launch(add, x, 1.0)
        for stream in streams:
            await graph.replay(stream)
        await dev.rebuild()
        for run in [graph.launch(stream) for stream in streams]:
            await run
        assert x.numpy()[0] == 30


async def test_a_capture_in_progress_forbids_it() -> None:
    async with aclrt.open_device() as dev:
        s = dev.stream()
        acl.aclmdlRICaptureBegin(s, acl.ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
        with pytest.raises(aclrt.AclError) as caught:
            await dev.rebuild()
        assert caught.value.code == 107026
        acl.aclmdlRICaptureEnd(s)
