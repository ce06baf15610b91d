"""Host functions in graphs and on streams: what holds the stream at them, and what an abort leaves behind."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.driver import IdKind

from .software import Lab, add, held, push


@pytest.mark.parametrize(("chip", "kind"), [("v100", IdKind.EVENT), ("v200", IdKind.NOTIFY)])
async def test_one_register_serves_all_calls_of_a_stream(chip: str, kind: IdKind) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        lab = Lab(dev)
        before = held(dev)
        seen: list[int] = []
        for number in range(10_000):  # more than v200 has notifies
            acl.aclrtLaunchHostFunc(lab.s, seen.append, number)
        await lab.s.synchronize()
        async with aclrt.capture(lab.s) as graph:
            for number in range(100):
                acl.aclrtLaunchHostFunc(lab.s, seen.append, number)
        assert dev.npu.driver.held(kind) == before[kind.name] + 2  # the stream's own, and the captured one's
        await graph.replay(lab.s)
        assert seen == [*range(10_000), *range(100)]
        await graph.close()
        await acl.aclrtDestroyStream(lab.s)
        after = held(dev)
        assert after[kind.name] == before[kind.name]
        assert after["STREAM"] == before["STREAM"] - 1


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_the_stream_waits_for_the_call(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        lab = Lab(dev)
        order: list[Any] = []
        async with aclrt.capture(lab.s) as graph:
            for number in range(3):
                lab.s.launch(push, lab.trace, number + 1)
                lab.s.callback(lambda: order.append(lab.dev.npu.driver.view(lab.trace.address, (1,), "i8")[0].item()))
        for _ in range(2):
            lab.trace.assign([0])
            order.clear()
            await graph.replay(lab.s)
            assert order == [1, 12, 123]


@pytest.mark.parametrize("chip", ["v100", "v200"])
@pytest.mark.parametrize("passes", range(6))
async def test_an_abort_around_a_call_does_not_let_the_next_run_through(chip: str, passes: int) -> None:
    """However far the aborted run had got: in the next one the task behind the call comes after the call."""
    async with aclrt.open_device(chip=chip) as dev:
        lab = Lab(dev)
        calls: list[float] = []

        def fn(_: object) -> None:
            calls.append(float(dev.npu.driver.view(lab.x.address, (4,), "f4")[0]))

        async with aclrt.capture(lab.s) as graph:
            lab.s.launch(add, lab.x, 1.0)
            acl.aclrtLaunchHostFunc(lab.s, fn, None)
            lab.s.launch(add, lab.x, 1.0)
        for _ in range(4):
            lab.x.assign(np.zeros(4, np.float32))
            run = graph.launch(lab.s)
            for _ in range(passes):
                await asyncio.sleep(0)
            if not run.done:
                await graph.abort()
            with suppress(aclrt.AclError):
                await run
            with suppress(aclrt.AclError):  # told once more, when the run was aborted
                await lab.s.synchronize()
            lab.x.assign(np.zeros(4, np.float32))
            calls.clear()
            await graph.replay(lab.s)
            assert calls[-1] == 1.0
            assert lab.value == 2


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_a_call_whose_stream_was_aborted_changes_nothing_afterwards(chip: str) -> None:
    """A callback is taken by the application late, when its stream stands at another call."""
    async with aclrt.open_device(chip=chip) as dev:
        lab = Lab(dev)
        acl.aclrtSubscribeReport(aclrt.host_thread_id(), lab.s)
        calls: list[str] = []
        acl.aclrtLaunchCallback(calls.append, "old", acl.ACL_CALLBACK_BLOCK, lab.s)
        lab.s.launch(add, lab.x, 1.0)
        await lab.until(lambda: dev.npu.driver.waiting() == 1)
        await acl.aclrtStreamAbort(lab.s)
        with pytest.raises(aclrt.AclError):
            await lab.s.synchronize()
        acl.aclrtLaunchCallback(calls.append, "new", acl.ACL_CALLBACK_BLOCK, lab.s)
        lab.s.launch(add, lab.x, 10.0)
        await lab.until(lambda: dev.npu.driver.waiting() == 1)
        await acl.aclrtProcessReport(100)
        for _ in range(5):
            await asyncio.sleep(0)
        assert (calls, lab.value) == (["old"], 0)
        await acl.aclrtProcessReport(100)
        await lab.s.synchronize()
        assert (calls, lab.value) == (["old", "new"], 10)
