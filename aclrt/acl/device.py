"""aclInit, device and context functions. Holds no logic; codes are `aclrt.device`'s and `aclrt.stream.context`'s."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from aclrt import device as devices
from aclrt.acl.handles import DONE, handle
from aclrt.stream import context as contexts
from aclrt.stream import progress
from aclrt.stream.context import Context, current

if TYPE_CHECKING:
    from aclrt.base.completion import Completion
    from aclrt.stream.stream import Stream


def aclInit(configPath: str | None = None) -> None:
    """Start the runtime. Errors: 100002 when it is started already (usable all the same)."""
    devices.init(configPath)


async def aclFinalize() -> None:
    """Stop the runtime whatever the number of aclInit calls. Errors: 100037 when it is not started."""
    await devices.finalize()


async def aclFinalizeReference() -> int:
    """Take one aclInit back; returns how many are left. Errors: 100037."""
    return await devices.finalize_reference()


def aclrtSetDevice(deviceId: int) -> None:
    """Make the device's primary Context current for this task. Errors: 107001."""
    devices.set_device(index(deviceId))


async def aclrtResetDevice(deviceId: int) -> None:
    """Drop one reference to the device; the last one drains and frees it. Errors: 107001."""
    await devices.reset_device(index(deviceId))


async def aclrtResetDeviceForce(deviceId: int) -> None:
    """Drop every reference to the device. Errors: 107001."""
    await devices.reset_device(index(deviceId), force=True)


def aclrtGetDevice() -> int:
    """The device of the current Context. Errors: 107002."""
    return contexts.require(current(), "aclrtGetDevice").npu.index


def aclrtGetDeviceCount() -> int:
    """How many devices there are."""
    return devices.device_count()


async def aclrtSynchronizeDevice() -> None:
    """Wait for every stream of the current Context. Errors: 107002, 107027 while any of them is capturing."""
    await progress.synchronize_device(current())


async def aclrtSynchronizeDeviceWithTimeout(timeout: int) -> None:
    """As aclrtSynchronizeDevice for at most `timeout` ms of device time, -1 for ever. Errors: 107000, 507046."""
    await progress.synchronize_device(current(), index(timeout))


def aclrtCreateContext(deviceId: int) -> Context:
    """A Context of the device, which becomes current. Errors: 107001."""
    return devices.create_context(index(deviceId))


def aclrtDestroyContext(context: Context | None) -> Completion:
    """Free a Context and all it owns, now; may be awaited. Errors: 100000, 107000, 107002 for a primary one."""
    devices.destroy_context(handle(context, Context, "aclrtDestroyContext", "context"))
    return DONE


def aclrtSetCurrentContext(context: Context | None) -> None:
    """Make a Context current for this task. Errors: 100000, 107000 for a destroyed one."""
    contexts.make_current(handle(context, Context, "aclrtSetCurrentContext", "context"))


def aclrtGetCurrentContext() -> Context:
    """The current Context. Errors: 107002."""
    return contexts.require(current(), "aclrtGetCurrentContext")


def aclrtCtxGetCurrentDefaultStream() -> Stream:
    """The current Context's default stream. Errors: 107002."""
    return contexts.require(current(), "aclrtCtxGetCurrentDefaultStream").default_stream()


def aclrtSetOpWaitTimeout(timeout: int) -> None:
    """Limit, in seconds of device time, of event waits submitted from now on; 0 is no limit. Errors: 107002."""
    devices.set_op_wait_timeout(current(), index(timeout))


def aclrtSetOpExecuteTimeOut(timeout: int) -> None:
    """Limit, in seconds, of AI core and AICPU tasks; what runs longer fails with 507014 or 507017. Errors: 107002."""
    devices.set_op_execute_timeout(current(), index(timeout) * 1_000_000_000)


def aclrtSetOpExecuteTimeOutWithMs(timeout: int) -> None:
    """As aclrtSetOpExecuteTimeOut, in milliseconds."""
    devices.set_op_execute_timeout(current(), index(timeout) * 1_000_000)


def aclrtSetOpExecuteTimeOutV2(timeout: int) -> int:
    """As aclrtSetOpExecuteTimeOut, in microseconds; returns the limit that took effect."""
    devices.set_op_execute_timeout(current(), index(timeout) * 1_000)
    return timeout
