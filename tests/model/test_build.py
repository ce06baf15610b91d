"""The build calls: what they leave behind, at the host and on the device."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.chips import Status
from hw.driver import IdKind

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD, DEFAULT = acl.ACL_MODEL_STREAM_FLAG_HEAD, acl.ACL_MODEL_STREAM_FLAG_DEFAULT


@aclrt.kernel
def add(x: aclrt.InOut[np.float32], a: float) -> None:
    x += a


@aclrt.kernel
def note(x: aclrt.InOut[np.float32], digit: float) -> None:
    x[:] = x * 10 + digit


def persistent() -> Any:
    return acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)


def controls(dev: aclrt.Device) -> tuple[list[str], list[Status]]:
    """What goes to the control SQ from now on, and how the device answers."""
    kinds: list[str] = []
    answers: list[Status] = []
    driver = dev.npu.driver
    send: Callable[[bytes], Any] = driver.control

    def control(sqe: bytes) -> Any:
        kinds.append(driver.chip.decode(sqe).kind.name)
        cqe = send(sqe)
        answers.append(cqe.status)
        return cqe

    driver.control = control  # type: ignore[method-assign]
    return kinds, answers


@pytest.mark.parametrize("chip", ["v100", "v200"])
async def test_nothing_runs_before_the_execute_and_all_of_it_at_each(chip: str) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        x = dev.array(np.zeros(4, "f4"))
        model, stream, exe = acl.aclmdlRIBuildBegin(0), persistent(), dev.stream()
        acl.aclmdlRIBindStream(model, stream, HEAD)
        for digit in (1, 2, 3):
            stream.launch(note, x, float(digit))
        acl.aclmdlRIEndTask(model, stream)
        await dev.synchronize()
        acl.aclmdlRIBuildEnd(model)
        await dev.synchronize()
        assert x.numpy()[0] == 0
        await acl.aclmdlRIExecuteAsync(model, exe)
        assert x.numpy()[0] == 123
        await acl.aclmdlRIExecute(model, -1)
        assert x.numpy()[0] == 123123


async def test_model_and_stream_refer_to_each_other() -> None:
    async with aclrt.open_device():
        model, first, second = acl.aclmdlRIBuildBegin(0), persistent(), persistent()
        acl.aclmdlRIBindStream(model, first, HEAD)
        acl.aclmdlRIBindStream(model, second, DEFAULT)
        assert acl.aclmdlRIGetStreams(model) == [second, first]  # newest first
        assert first.model is model
        assert model.heads == [first.queue]
        acl.aclmdlRIUnbindStream(model, first)
        assert first.model is None
        assert model.streams == [second]
        assert model.heads == []
        assert f"model {model.id}" in repr(second)


async def test_maintenance_tasks_reach_the_device_and_are_acknowledged() -> None:
    async with aclrt.open_device() as dev:
        kinds, answers = controls(dev)
        model, stream = acl.aclmdlRIBuildBegin(0), persistent()
        acl.aclmdlRIBindStream(model, stream, HEAD)
        assert kinds == ["MODEL_ADD"]
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        assert kinds == ["MODEL_ADD", "MODEL_LOAD"]
        acl.aclmdlRIUnbindStream(model, stream)
        await acl.aclmdlRIDestroy(model)
        assert kinds == ["MODEL_ADD", "MODEL_LOAD", "MODEL_DEL", "MODEL_DESTROY"]
        assert set(answers) == {Status.OK}


async def test_a_refused_control_task_is_an_internal_error() -> None:
    async with aclrt.open_device() as dev:
        model, stream = acl.aclmdlRIBuildBegin(0), persistent()
        acl.aclmdlRIBindStream(model, stream, HEAD)
        flag = dev.array(np.zeros(1, "i8"))
        acl.aclrtValueWait(flag, 1, acl.ACL_VALUE_WAIT_EQ, stream)
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        run = acl.aclmdlRIExecuteAsync(model, dev.stream())
        for _ in range(3):
            await asyncio.sleep(0)
        with pytest.raises(aclrt.AclError) as caught:  # the device refuses to take an SQ from a model that runs
            acl.aclmdlRIUnbindStream(model, stream)
        assert caught.value.code == 507000
        assert stream.model is model
        flag.assign([1])
        await run
        acl.aclmdlRIUnbindStream(model, stream)


async def test_the_batch_fill_writes_each_stream_once_and_moves_its_tail() -> None:
    async with aclrt.open_device() as dev:
        driver = dev.npu.driver
        writes: list[int] = []
        write = driver.image_write
        driver.image_write = lambda image, slot, data: (writes.append(len(data) // 64), write(image, slot, data))[1]  # type: ignore[method-assign,assignment]
        x = dev.array(np.zeros(4, "f4"))
        model, first, second = acl.aclmdlRIBuildBegin(0), persistent(), persistent()
        acl.aclmdlRIBindStream(model, first, HEAD)
        acl.aclmdlRIBindStream(model, second, HEAD)
        for _ in range(100):
            first.launch(add, x, 1.0)
        second.launch(add, x, 1.0)
        acl.aclmdlRIEndTask(model, first)
        assert writes == []
        acl.aclmdlRIBuildEnd(model)
        assert sorted(writes) == [1, 101]
        assert driver.sq_status(first.queue.sq).tail == 101
        acl.aclmdlRIBuildEnd(model)  # nothing new: nothing is written again
        assert len(writes) == 2


async def test_tasks_after_build_end_wait_for_the_next_build_end() -> None:
    async with aclrt.open_device() as dev:
        x = dev.array(np.zeros(4, "f4"))
        model, stream = acl.aclmdlRIBuildBegin(0), persistent()
        acl.aclmdlRIBindStream(model, stream, HEAD)
        stream.launch(add, x, 1.0)
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        stream.launch(add, x, 10.0)
        await acl.aclmdlRIExecute(model, -1)
        assert x.numpy()[0] == 1
        acl.aclmdlRIBuildEnd(model)
        await acl.aclmdlRIExecute(model, -1)
        await dev.synchronize()
        assert x.numpy()[0] == 12


async def test_an_unbound_stream_keeps_its_tasks_and_brings_them_to_the_next_model() -> None:
    async with aclrt.open_device() as dev:
        x, exe = dev.array(np.zeros(4, "f4")), dev.stream()
        first, stream = acl.aclmdlRIBuildBegin(0), persistent()
        acl.aclmdlRIBindStream(first, stream, HEAD)
        stream.launch(add, x, 1.0)
        acl.aclmdlRIEndTask(first, stream)
        acl.aclmdlRIBuildEnd(first)
        await acl.aclmdlRIExecuteAsync(first, exe)
        acl.aclmdlRIUnbindStream(first, stream)
        await acl.aclmdlRIDestroy(first)
        second = acl.aclmdlRIBuildBegin(0)
        acl.aclmdlRIBindStream(second, stream, HEAD)
        assert [task.kind.name for task in acl.aclmdlRIGetTasksByStream(stream)] == ["KERNEL_AIVEC"]
        stream.launch(add, x, 10.0)
        acl.aclmdlRIEndTask(second, stream)
        acl.aclmdlRIBuildEnd(second)
        await acl.aclmdlRIExecuteAsync(second, exe)
        assert x.numpy()[0] == 12


async def test_before_the_bind_a_persistent_stream_runs_at_once_on_v100_and_keeps_its_tasks_on_v200() -> None:
    seen: dict[str, tuple[float, int, float]] = {}
    for chip in ("v100", "v200"):
        async with aclrt.open_device(chip=chip) as dev:
            x = dev.array(np.zeros(4, "f4"))
            model, stream = acl.aclmdlRIBuildBegin(0), persistent()
            stream.launch(add, x, 1.0)
            while not dev.npu.driver.idle():  # noqa: ASYNC110
                await asyncio.sleep(0)
            before = float(x.numpy()[0])
            acl.aclmdlRIBindStream(model, stream, HEAD)
            listed = len(acl.aclmdlRIGetTasksByStream(stream))
            acl.aclmdlRIEndTask(model, stream)
            acl.aclmdlRIBuildEnd(model)
            await acl.aclmdlRIExecute(model, -1)
            seen[chip] = (before, listed, float(x.numpy()[0]))
    assert seen == {"v100": (1, 0, 1), "v200": (0, 1, 1)}


async def test_the_end_graph_notify_counts_every_execution() -> None:
    async with aclrt.open_device() as dev:
        model, stream, exe = acl.aclmdlRIBuildBegin(0), persistent(), dev.stream()
        acl.aclmdlRIBindStream(model, stream, HEAD)
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIBuildEnd(model)
        for executions in range(1, 4):
            await acl.aclmdlRIExecuteAsync(model, exe)
            assert dev.npu.driver.notify_state(model.end_notify.id) == (False, executions)


async def test_a_model_takes_a_notify_at_the_first_end_task_and_no_pool_sq() -> None:
    async with aclrt.open_device(limits={"max_sqs": 0, "max_notifies": 1}) as dev:
        driver = dev.npu.driver
        model, stream = acl.aclmdlRIBuildBegin(0), persistent()
        acl.aclmdlRIBindStream(model, stream, HEAD)
        assert driver.held(IdKind.NOTIFY) == 0
        acl.aclmdlRIEndTask(model, stream)
        acl.aclmdlRIEndTask(model, stream)
        assert driver.held(IdKind.NOTIFY) == 1
        other, q = acl.aclmdlRIBuildBegin(0), persistent()
        acl.aclmdlRIBindStream(other, q, HEAD)
        with pytest.raises(aclrt.AclError, match="notify resource") as caught:
            acl.aclmdlRIEndTask(other, q)
        assert caught.value.code == 207009
        acl.aclmdlRIBuildEnd(model)
        await acl.aclmdlRIExecute(model, -1)
        await acl.aclmdlRIDestroy(model)
        assert driver.held(IdKind.NOTIFY) == 0


async def test_model_ids_run_out() -> None:
    async with aclrt.open_device(limits={"max_models": 2}):
        models = [acl.aclmdlRIBuildBegin(0) for _ in range(2)]
        with pytest.raises(aclrt.AclError) as caught:
            acl.aclmdlRIBuildBegin(0)
        assert caught.value.code == 207010
        await acl.aclmdlRIDestroy(models[0])
        assert acl.aclmdlRIGetId(acl.aclmdlRIBuildBegin(0)) == 0
