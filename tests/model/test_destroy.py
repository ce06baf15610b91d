"""Aborting and destroying models in every state, and what they give back."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.driver import IdKind

HEAD, DEFAULT = acl.ACL_MODEL_STREAM_FLAG_HEAD, acl.ACL_MODEL_STREAM_FLAG_DEFAULT


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], a: float) -> None:
    x += a


def persistent() -> Any:
    return acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)


class Gated:
    """A model of one stream: add, wait until `flag` is 1, add."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.flag, self.x = dev.array(np.zeros(1, "i8")), dev.array(np.zeros(1, "f4"))
        self.model, self.stream, self.exe = acl.aclmdlRIBuildBegin(0), persistent(), dev.stream()
        acl.aclmdlRIBindStream(self.model, self.stream, HEAD)
        self.stream.launch(add, self.x, 1.0)
        acl.aclrtValueWait(self.flag, 1, acl.ACL_VALUE_WAIT_EQ, self.stream)
        self.stream.launch(add, self.x, 10.0)
        acl.aclmdlRIEndTask(self.model, self.stream)
        acl.aclmdlRIBuildEnd(self.model)

    async def start(self) -> aclrt.Run:
        """A run that stands at the gate."""
        run = acl.aclmdlRIExecuteAsync(self.model, self.exe)
        before = self.x.numpy()[0]
        while self.x.numpy()[0] == before:  # noqa: ASYNC110
            await asyncio.sleep(0)
        return run


def held(dev: aclrt.Device) -> dict[str, int]:
    """Everything on the device that could leak."""
    driver = dev.npu.driver
    counts = {kind.name: driver.held(kind) for kind in IdKind}
    machine = driver._m
    return counts | {
        "bytes": driver.used_bytes,
        "images": len(machine.images._images),
        "arguments": len(machine.args),
        "models": len(machine.models.models),
        "model SQs": len(machine.models.sqs),
        "faults": len(machine.faults),
        "queues": len(dev.npu.queues),
        "waits": len(dev.npu.waits),
    }


async def code_of(awaitable: Any) -> int:
    with pytest.raises(aclrt.AclError) as caught:
        await awaitable
    return caught.value.code


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_abort_reaches_every_waiter_and_the_next_run_starts_over(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        gated = Gated(dev)
        run = await gated.start()
        waiters = [asyncio.create_task(code_of(run)) for _ in range(3)]
        sync = asyncio.create_task(code_of(gated.exe.synchronize()))
        await asyncio.sleep(0)
        await acl.aclmdlRIAbort(gated.model)
        assert await asyncio.gather(*waiters, sync) == [507023] * 4
        assert gated.x.numpy()[0] == 1  # the rest of the run never came
        await gated.exe.synchronize()  # the failure was told once
        gated.flag.assign([1])
        await acl.aclmdlRIExecuteAsync(gated.model, gated.exe)
        assert gated.x.numpy()[0] == 12


async def test_abort_of_a_model_that_does_not_run_is_nothing() -> None:
    async with aclrt.open_device() as dev:
        gated = Gated(dev)
        await acl.aclmdlRIAbort(gated.model)
        gated.flag.assign([1])
        await acl.aclmdlRIExecuteAsync(gated.model, gated.exe)
        await acl.aclmdlRIAbort(gated.model)
        await acl.aclmdlRIAbort(acl.aclmdlRIBuildBegin(0))


async def test_execute_abort_execute_a_thousand_times_leaks_nothing() -> None:
    async with aclrt.open_device() as dev:
        gated = Gated(dev)
        before = None
        for turn in range(1000):
            gated.flag.assign([0])
            run = acl.aclmdlRIExecuteAsync(gated.model, gated.exe)
            await asyncio.sleep(0)
            await acl.aclmdlRIAbort(gated.model)
            if run.done or turn % 2:
                assert await code_of(run) == 507023
            gated.flag.assign([1])
            await acl.aclmdlRIExecuteAsync(gated.model, gated.exe)
            with pytest.raises(aclrt.AclError):
                await gated.exe.synchronize()
            if turn == 10:
                before = held(dev)
        assert held(dev) == before
        assert gated.model.runs == 0


async def test_a_synchronous_execute_that_times_out_is_aborted() -> None:
    async with aclrt.open_device(clock="virtual") as dev:
        gated = Gated(dev)
        started = dev.now_ns()
        with pytest.raises(TimeoutError) as caught:
            await acl.aclmdlRIExecute(gated.model, 50)
        assert caught.value.code == 507046  # type: ignore[attr-defined]
        assert dev.now_ns() - started == pytest.approx(50e6, rel=0.01)
        assert not dev.npu.driver.model_busy(gated.model.id)
        gated.flag.assign([1])
        await acl.aclmdlRIExecute(gated.model, 50)
        assert gated.x.numpy()[0] == 12
        await dev.synchronize()


BUILT = {
    "begun": lambda model, p, q: None,
    "bound": lambda model, p, q: acl.aclmdlRIBindStream(model, p, HEAD),
    "filled": lambda model, p, q: (acl.aclmdlRIBindStream(model, p, HEAD), p.launch(add, q, 1.0)),
    "ended": lambda model, p, q: (acl.aclmdlRIBindStream(model, p, HEAD), acl.aclmdlRIEndTask(model, p)),
    "complete": lambda model, p, q: (
        acl.aclmdlRIBindStream(model, p, HEAD),
        p.launch(add, q, 1.0),
        acl.aclmdlRIEndTask(model, p),
        acl.aclmdlRIBuildEnd(model),
    ),
}


@pytest.mark.parametrize("state", BUILT)
@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_destroy_in_every_state_of_the_build_gives_everything_back(chip: str, state: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        x = dev.array(np.zeros(1, "f4"))
        stream = persistent()
        before = held(dev)
        model = acl.aclmdlRIBuildBegin(0)
        BUILT[state](model, stream, x)
        if state == "complete":
            await acl.aclmdlRIExecuteAsync(model, dev.default_stream)
            before["STREAM"] += 1  # the default stream
        await acl.aclmdlRIDestroy(model)
        assert held(dev) == before
        assert stream.model is None
        assert await code_of(acl.aclmdlRIDestroy(model)) == 107017
        assert await code_of(acl.aclmdlRIExecute(model, -1)) == 107017
        for call in (acl.aclmdlRIBuildEnd, acl.aclmdlRIGetStreams, acl.aclmdlRIGetId, acl.aclmdlRIGetName):
            with pytest.raises(aclrt.AclError) as caught:
                call(model)
            assert caught.value.code == 107017
        await acl.aclrtDestroyStream(stream)


async def test_destroy_of_a_running_model_ends_its_runs_first() -> None:
    async with aclrt.open_device() as dev:
        gated = Gated(dev)
        first = await gated.start()
        second = acl.aclmdlRIExecuteAsync(gated.model, gated.exe)
        other = acl.aclmdlRIExecuteAsync(gated.model, dev.default_stream)
        await acl.aclmdlRIDestroy(gated.model)
        assert [await code_of(run) for run in (first, second, other)] == [507023] * 3
        assert not dev.npu.driver.waiting()
        with pytest.raises(aclrt.AclError):
            await gated.exe.synchronize()
        with pytest.raises(aclrt.AclError):
            await dev.default_stream.synchronize()


async def test_destroy_of_a_model_whose_run_is_queued_behind_something_gives_up_in_time() -> None:
    async with aclrt.open_device(clock="virtual") as dev:
        gated = Gated(dev)
        blocked = dev.array(np.zeros(1, "i8"))
        acl.aclrtValueWait(blocked, 1, acl.ACL_VALUE_WAIT_EQ, gated.exe)
        run = acl.aclmdlRIExecuteAsync(gated.model, gated.exe)
        assert await code_of(acl.aclmdlRIDestroy(gated.model)) == 107037
        assert dev.now_ns() >= 10e9
        blocked.assign([1])
        gated.flag.assign([1])
        await run  # the model stayed valid
        await acl.aclmdlRIDestroy(gated.model)


async def test_a_stream_bound_to_a_model_is_destroyed_after_it_only() -> None:
    async with aclrt.open_device() as dev:
        gated = Gated(dev)
        assert await code_of(acl.aclrtDestroyStream(gated.stream)) == 107005
        await acl.aclmdlRIDestroy(gated.model)
        await acl.aclrtDestroyStream(gated.stream)
        assert dev.npu.driver.held(IdKind.MODEL) == 0


async def test_arguments_and_host_addresses_live_as_long_as_the_model() -> None:
    async with aclrt.open_device() as dev:
        driver = dev.npu.driver
        x = dev.empty(16)
        model, stream = acl.aclmdlRIBuildBegin(0), persistent()
        acl.aclmdlRIBindStream(model, stream, HEAD)
        before = held(dev)
        for value in range(5):
            stream.launch(add, x, float(value))
        source = acl.aclrtMallocHost(64)
        acl.aclrtMemcpyAsync(x, 64, source, 64, acl.ACL_MEMCPY_HOST_TO_DEVICE, stream)
        source.numpy(np.float32)[:] = 7  # pinned: read at each run
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        assert held(dev)["arguments"] == before["arguments"] + 5
        assert len(stream.kept.arguments) == 5
        assert stream.kept.dma == [source]
        for _ in range(2):
            x.assign(np.zeros(16, "f4"))
            await acl.aclmdlRIExecute(model, -1)
            assert x.numpy()[0] == 7
        await acl.aclmdlRIDestroy(model)
        assert held(dev)["arguments"] == before["arguments"]
        assert stream.kept.dma == []
        assert driver.used_bytes == before["bytes"]


async def test_the_seeds_destroy_order() -> None:
    """Notify, device memory, arguments, labels, callbacks, the destroy task, then the Context lets go."""
    async with aclrt.open_device() as dev:
        driver = dev.npu.driver
        model, stream = acl.aclmdlRIBuildBegin(0), persistent()
        acl.aclmdlRIBindStream(model, stream, HEAD)
        label = acl.aclrtCreateLabel()
        acl.aclrtCreateLabelList([label])
        acl.aclrtSetLabel(label, stream)
        stream.launch(add, dev.empty(1), 1.0)
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        seen: dict[str, Any] = {}

        def callback(_: object) -> None:
            seen.update(
                notify=driver.held(IdKind.NOTIFY),
                images=len(driver._m.images._images),
                arguments=len(stream.kept.arguments),
                label=label.stream,
                bound=stream.model is model,
                models=driver.held(IdKind.MODEL),
                context=model in dev.context.models,
                alive=acl.aclmdlRIGetId(model),
            )

        acl.aclmdlRIDestroyRegisterCallback(model, callback, None)
        await acl.aclmdlRIDestroy(model)
        released = {"notify": 0, "images": 0, "arguments": 0, "label": None}
        assert seen == released | {"bound": True, "models": 1, "context": True, "alive": 0}
        assert model not in dev.context.models


async def test_closing_a_device_with_models_in_every_state() -> None:
    async with aclrt.open_device() as dev:
        for make in BUILT.values():
            make(acl.aclmdlRIBuildBegin(0), persistent(), dev.empty(1))
        gated = Gated(dev)
        await gated.start()
    assert not gated.model.alive


async def test_a_destroyed_context_takes_its_models_along() -> None:
    async with aclrt.open_device() as dev:
        before = held(dev)
        context = acl.aclrtCreateContext(0)
        for make in BUILT.values():
            make(acl.aclmdlRIBuildBegin(0), persistent(), dev.empty(1))
        await acl.aclrtDestroyContext(context)
        after = held(dev)
        assert {key: after[key] for key in after if key != "bytes"} == {
            key: before[key] for key in before if key != "bytes"
        }
