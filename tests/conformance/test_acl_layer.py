"""The acl layer itself: what is async, NULL codes, wrong kinds and types, identities. Not the runtime's own rules."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

import aclrt
from aclrt import acl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aclrt import Device

MAY_BLOCK = {
    "aclFinalize",
    "aclFinalizeReference",
    "aclmdlRIAbort",
    "aclmdlRIDestroy",
    "aclmdlRIExecute",
    "aclrtDestroyStream",
    "aclrtMemcpy",
    "aclrtMemcpy2d",
    "aclrtMemset",
    "aclrtProcessReport",
    "aclrtResetDevice",
    "aclrtResetDeviceForce",
    "aclrtStreamAbort",
    "aclrtSynchronizeDevice",
    "aclrtSynchronizeDeviceWithTimeout",
    "aclrtSynchronizeEvent",
    "aclrtSynchronizeEventWithTimeout",
    "aclrtSynchronizeStream",
    "aclrtSynchronizeStreamWithTimeout",
}
FUNCTIONS = {
    name: value for name, value in vars(acl).items() if inspect.isfunction(value) and name.startswith(("acl", "rt"))
}


@aclrt.kernel
def nothing() -> None:
    """Has no effect."""


def ignore(_: object) -> None:
    """A host function that does nothing."""


@pytest.fixture
async def device() -> AsyncIterator[Device]:
    async with aclrt.open_device(engine="null") as dev:
        yield dev


async def maybe(call: Any, *args: Any) -> None:
    """Make a call, and wait if it is one that may block."""
    result = call(*args)
    if inspect.isawaitable(result):
        await result


async def code_of(call: Any, *args: Any) -> int:
    """The code a call is refused with."""
    with pytest.raises(aclrt.AclError) as caught:
        await maybe(call, *args)
    assert str(caught.value).endswith(f"[{caught.value.code}]")
    assert "\n" not in str(caught.value)
    return caught.value.code


def test_async_exactly_where_c_may_block() -> None:
    assert {name for name, function in FUNCTIONS.items() if inspect.iscoroutinefunction(function)} == MAY_BLOCK


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_says_what_it_does(name: str) -> None:
    assert FUNCTIONS[name].__doc__


# NULL where C takes a pointer: 100000 where the acl layer tests it, else 107000 from below. S is a live stream.
NULLS: list[tuple[str, tuple[Any, ...], int]] = [
    ("aclmdlRICaptureBegin", (None, 0), 100000),
    ("aclmdlRICaptureEnd", (None,), 100000),
    ("aclmdlRICaptureGetInfo", (None,), 100000),
    ("aclmdlRICaptureThreadExchangeMode", (None,), 100000),
    ("aclmdlRICaptureToModelRIBegin", ("S", None, 0), 100000),
    ("aclmdlRICaptureTaskGrpBegin", (None,), 100000),
    ("aclmdlRICaptureTaskGrpEnd", (None,), 100000),
    ("aclmdlRICaptureTaskUpdateBegin", ("S", None), 100000),
    ("aclmdlRICaptureTaskUpdateEnd", (None,), 100000),
    ("aclmdlRICondHandleCreate", (None, 0, 0), 100000),
    ("aclmdlRICondHandleGetCondPtr", (None,), 100000),
    ("aclmdlRIBindStream", (None, "S", 0), 100000),
    ("aclmdlRIBuildEnd", (None,), 100000),
    ("aclmdlRIEndTask", (None, "S"), 100000),
    ("aclmdlRIExecute", (None, -1), 100000),
    ("aclmdlRIExecuteAsync", (None, "S"), 100000),
    ("aclmdlRIDestroy", (None,), 100000),
    ("aclmdlRIAbort", (None,), 107000),
    ("aclmdlRIUpdate", (None,), 107000),
    ("aclmdlRISetName", (None, "a"), 100000),
    ("aclmdlRIGetName", (None, 8), 100000),
    ("aclmdlRIGetId", (None,), 100000),
    ("aclmdlRIGetStreams", (None,), 107000),
    ("aclmdlRIGetTasksByStream", (None,), 107000),
    ("aclmdlRITaskGetType", (None,), 107000),
    ("aclmdlRITaskGetSeqId", (None,), 107000),
    ("aclmdlRITaskGetParams", (None,), 107000),
    ("aclmdlRITaskSetParams", (None, None), 107000),
    ("aclmdlRITaskDisable", (None,), 107000),
    ("aclmdlRIKernelTaskGetAttribute", (None, 1), 100000),
    ("aclmdlRIDestroyRegisterCallback", (None, ignore), 107000),
    ("aclmdlRIDestroyUnregisterCallback", (None, ignore), 107000),
    ("aclmdlRIDebugPrint", (None,), 100000),
    ("aclmdlRIDebugJsonPrint", (None, "x"), 100000),
    ("aclrtDestroyStream", (None,), 100000),
    ("aclrtDestroyStreamForce", (None,), 100000),
    ("aclrtStreamAbort", (None,), 100000),
    ("aclrtActiveStream", (None, "S"), 100000),
    ("aclrtSwitchStream", (None, 0, 8, 0, "S", None, "S"), 100000),
    ("aclrtSwitchStream", (8, 0, 8, 0, "S", "S", "S"), 100000),
    ("aclrtDestroyEvent", (None,), 100000),
    ("aclrtRecordEvent", (None, "S"), 100000),
    ("aclrtStreamWaitEvent", ("S", None), 100000),
    ("aclrtResetEvent", (None, "S"), 100000),
    ("aclrtSynchronizeEvent", (None,), 100000),
    ("aclrtQueryEventStatus", (None,), 100000),
    ("aclrtEventElapsedTime", (None, None), 100000),
    ("aclrtDestroyNotify", (None,), 100000),
    ("aclrtRecordNotify", (None, "S"), 100000),
    ("aclrtWaitAndResetNotify", (None, "S", 0), 100000),
    ("aclrtMalloc", (0, 0), 100000),
    ("aclrtFree", (None,), 100000),
    ("aclrtMallocHost", (0,), 100000),
    ("aclrtMemcpy", (None, 8, bytearray(8), 8, 1), 100000),
    ("aclrtMemcpyAsync", (None, 8, bytearray(8), 8, 1, "S"), 100000),
    ("aclrtMemset", (None, 8, 0, 8), 100000),
    ("aclrtMemsetAsync", (None, 8, 0, 8, "S"), 100000),
    ("aclrtValueWrite", (None, 1, 0, "S"), 100000),
    ("aclrtValueWait", (None, 1, 0, "S"), 100000),
    ("aclrtLaunchKernel", (None, 1, [], "S"), 100000),
    ("aclrtLaunchKernel", (nothing, 1, None, "S"), 100000),
    ("aclrtLaunchKernel", (nothing, 0, [], "S"), 107000),
    ("aclrtLaunchHostFunc", ("S", None, None), 107000),
    ("aclrtLaunchCallback", (ignore, None, 7, "S"), 100000),
    ("aclrtProcessReport", (0,), 100000),
    ("aclrtSetLabel", (None, "S"), 100000),
    ("aclrtCreateLabelList", (None,), 100000),
    ("aclrtSetCurrentContext", (None,), 100000),
    ("aclrtDestroyContext", (None,), 100000),
    ("aclrtSetDevice", (-1,), 107001),
]


@pytest.mark.parametrize(("name", "args", "code"), NULLS, ids=[f"{name}-{i}" for i, (name, _, _) in enumerate(NULLS)])
async def test_null_and_ranges(device: Device, name: str, args: tuple[Any, ...], code: int) -> None:
    stream = acl.aclrtCreateStream()
    assert await code_of(FUNCTIONS[name], *(stream if arg == "S" else arg for arg in args)) == code


async def test_handle_of_another_kind(device: Device) -> None:
    event = acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC)
    stream = acl.aclrtCreateStream()
    assert await code_of(acl.aclmdlRICaptureBegin, event, 0) == 107017
    assert await code_of(acl.aclrtRecordEvent, stream, stream) == 107017
    assert await code_of(acl.aclmdlRIDestroy, stream) == 107017
    assert await code_of(acl.aclrtLaunchKernel, nothing, 1, [], event) == 107017


@pytest.mark.parametrize(
    "call",
    [
        lambda: acl.aclmdlRICaptureBegin(7, 0),  # type: ignore[arg-type]
        lambda: acl.aclrtRecordEvent("event", None),  # type: ignore[arg-type]
        lambda: acl.aclrtCreateStreamWithConfig(0, "flags"),  # type: ignore[arg-type]
        lambda: acl.aclmdlRICaptureThreadExchangeMode(1.5),  # type: ignore[arg-type]
        lambda: acl.aclrtLaunchKernel(print, 1, [], None),  # type: ignore[arg-type]
        lambda: acl.aclrtLaunchHostFunc(None, 3, None),  # type: ignore[arg-type]
        lambda: acl.aclmdlRIBuildBegin(None),  # type: ignore[arg-type]
        lambda: acl.aclmdlRIAddCondTask(5, acl.aclrtCreateStream()),  # type: ignore[arg-type]
    ],
)
async def test_wrong_python_type(device: Device, call: Any) -> None:
    with pytest.raises(TypeError):
        call()


async def test_destroyed_handles(device: Device) -> None:
    stream, event = acl.aclrtCreateStream(), acl.aclrtCreateEvent()
    model = acl.aclmdlRIBuildBegin()
    await acl.aclrtDestroyStream(stream)
    acl.aclrtDestroyEvent(event)
    await acl.aclmdlRIDestroy(model)
    assert await code_of(acl.aclmdlRICaptureGetInfo, stream) == 107017
    assert await code_of(acl.aclrtQueryEventStatus, event) == 107017
    assert await code_of(acl.aclmdlRIGetName, model) == 107017


async def test_info_and_end_give_one_model(device: Device) -> None:
    stream = acl.aclrtCreateStream()
    acl.aclmdlRICaptureBegin(stream, acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
    status, model = acl.aclmdlRICaptureGetInfo(stream)
    assert status == acl.ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE
    assert acl.aclmdlRICaptureEnd(stream) is model
    assert acl.aclmdlRICaptureGetInfo(stream) == (acl.ACL_MODEL_RI_CAPTURE_STATUS_NONE, None)
    assert isinstance(model, aclrt.Graph)


async def test_exchange_returns_the_old_mode(device: Device) -> None:
    assert acl.aclmdlRICaptureThreadExchangeMode(2) is acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
    assert acl.aclmdlRICaptureThreadExchangeMode(0) is acl.ACL_MODEL_RI_CAPTURE_MODE_RELAXED


async def test_condition_structs(device: Device) -> None:
    stream = acl.aclrtCreateStream()
    acl.aclmdlRICaptureBegin(stream, 0)
    model = acl.aclmdlRICaptureGetInfo(stream).modelRI
    handle = acl.aclmdlRICondHandleCreate(model, 1, 1)
    assert isinstance(acl.aclmdlRICondHandleGetCondPtr(handle), int)
    params = acl.aclmdlRICondTaskParams(handle=handle, type=acl.ACL_MODEL_RI_COND_TYPE_IF, size=2)
    branches = acl.aclmdlRIAddCondTask(params, stream, 0)
    assert params.modelRIArray == branches
    assert len(branches) == 2


async def test_room_of_an_array(device: Device) -> None:
    stream = acl.aclrtCreateStream()
    acl.aclmdlRICaptureBegin(stream, 0)
    acl.aclrtLaunchKernel(nothing, 1, [], stream)
    model = acl.aclmdlRICaptureEnd(stream)
    (hidden,) = acl.aclmdlRIGetStreams(model, 1)
    assert await code_of(acl.aclmdlRIGetStreams, model, 0) == 107039
    (task,) = acl.aclmdlRIGetTasksByStream(hidden)
    assert acl.aclmdlRITaskGetType(task) == acl.ACL_MODEL_RI_TASK_KERNEL
    assert acl.aclmdlRITaskGetParams(task).kernelTaskParams.funcHandle is nothing


async def test_no_current_context(device: Device) -> None:
    context = acl.aclrtCreateContext(0)
    await maybe(acl.aclrtDestroyContext, context)
    assert await code_of(acl.aclrtCreateStream) == 107002
    assert await code_of(acl.aclmdlRICaptureThreadExchangeMode, 0) == 107002
    assert await code_of(acl.aclrtGetCurrentContext) == 107002


def test_outside_a_loop() -> None:
    with pytest.raises(RuntimeError):
        acl.aclrtSetDevice(0)
