"""An open device: the Pythonic entry, and the place where chip, contexts, streams and graphs are wired together.

Not a Context and not the host's book-keeping (`stream.npu`).
"""

from __future__ import annotations

import asyncio
import warnings
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, final
from weakref import WeakKeyDictionary

import anyio

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import EventFlag
from aclrt.base.errors import UnobservedErrorWarning, fail
from aclrt.base.host_thread import another_loop, current_context, require_task, set_current_context
from aclrt.graph import capture, explain
from aclrt.graph.graph import Graph
from aclrt.model import rebuild
from aclrt.stream import context as contexts
from aclrt.stream import event as events
from aclrt.stream import label as labels
from aclrt.stream import lifecycle, progress
from aclrt.stream import notify as notifies
from aclrt.stream.context import Context
from aclrt.stream.npu import Npu
from aclrt.task import memory
from hw import open_chip

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    import numpy.typing as npt

    from aclrt.stream.event import Event
    from aclrt.stream.notify import Notify
    from aclrt.stream.stream import Stream
    from aclrt.task.memory import DeviceArray

DEVICES = 8
"""How many devices exist; ids above are 107001."""

CLOSE_LIMIT_S = 2.0
"""Wall time that closing gives work which can still run; a kernel that loops for ever is stopped then."""


@final
class Device:
    """One open NPU. Made by `open_device`; freed when its block is left."""

    def __init__(self, npu: Npu) -> None:
        self.npu = npu
        self.context = npu.primary = Context(npu, primary=True)
        self.references = 1

    def stream(self, *, priority: int = 0, persistent: bool = False) -> Stream:
        """A new stream in the primary context. Errors: 207008."""
        require_task()
        return lifecycle.create(self.context, priority, 4 if persistent else 0)

    @property
    def default_stream(self) -> Stream:
        require_task()
        return contexts.require(self.context, "default stream").default_stream()

    def event(self, *, timing: bool = False, external: bool = False) -> Event:
        """An event that can be captured; `external=True` gives one that is never captured but recorded, waited for and
        reset in graphs (ACL_EVENT_EXTERNAL). `timing` keeps time stamps. Errors: 207007."""
        require_task()
        if external:
            return events.create_with_flag(self.context, EventFlag.EXTERNAL)
        return events.create_ex_with_flag(
            self.context, EventFlag.SYNC | (EventFlag.TIME_LINE if timing else EventFlag(0))
        )

    def notify(self) -> Notify:
        """A notify register. Errors: 207009."""
        require_task()
        return notifies.create(self.context)

    def array(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """A device array holding a copy of `values`, made now. Errors: 107030, 207001."""
        return memory.upload(self.context, values, dtype)

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = "f4") -> DeviceArray:
        """A zeroed device array. Errors: 207001."""
        return memory.allocate(self.context, shape, dtype)

    async def synchronize(self, timeout_ms: int = -1) -> None:
        """Wait for every stream of the primary context. Errors: 107027 while one captures, 507046, a task's failure."""
        require_task()
        await progress.synchronize_device(self.context, timeout_ms)

    async def rebuild(self) -> None:
        """Reset what the chip keeps of models (SQs, stream, model and notify ids) and rebuild each; memory stays.

        Runs end with 507023 first; the next run of every model gives the same results as before. Errors: 107026 while a
        capture is open. Source: seed model-module 4.3, Model Rebuild.
        """
        require_task()
        contexts.require(self.context, "rebuild")
        await rebuild.reset_and_rebuild(self.npu)

    def explain(self) -> str:
        """Who waits for whom, now: one line per parked stream and per host wait."""
        return self.npu.explain()

    def now_ns(self) -> int:
        """Device time in ns (virtual under clock="virtual")."""
        return self.npu.driver.clock.now_ns()

    @property
    def used_bytes(self) -> int:
        """Device memory in use."""
        return self.npu.driver.used_bytes

    def __repr__(self) -> str:
        state = "closed" if self.npu.closed else "open"
        held = f"{len(self.context.streams)} streams, {len(self.context.models)} graphs"
        return f"<Device {self.npu.index} {self.npu.spec.name} {state}, {held}>"

    # --- closing ---------------------------------------------------------------------------------------------------

    async def close(self, *, drain: bool = True) -> None:
        """Stop and free everything. What can still run runs first (when `drain`); what is parked is stopped.

        Failures that nobody was told become one UnobservedErrorWarning each. Cancelled, it closes at once.
        """
        if require_task().get_loop() is not self.npu.loop and not self.npu.closed:
            another_loop()
        if self.npu.closed:
            return
        for context in self.npu.contexts:
            for stream in list(context.streams):
                if stream.capture_mode is not None:
                    capture.cancel(stream)
        try:
            if drain:
                with anyio.CancelScope(shield=True):
                    await self._settle()
        except BaseException as error:  # a scope of anyio is held off, a cancel of asyncio is not
            for untold in self._end():
                error.add_note(untold)
            raise
        for untold in self._end():
            warnings.warn(untold, UnobservedErrorWarning, stacklevel=2)

    def _end(self) -> list[str]:
        """Stop and free everything now; returns the failures nobody was told of."""
        npu = self.npu
        if npu.closed:  # another task closed it meanwhile
            return []
        npu.closed = True
        unobserved = [
            stream.error for context in npu.contexts for stream in context.streams if stream.error is not None
        ]
        for context in npu.contexts:
            context.alive = False
            for stream in context.streams:
                stream.alive = False
        for context in npu.contexts:
            for stream in context.streams:
                stream.advance(
                    stream.submitted
                )  # whoever waited lets go of ids and memory while the driver still has them
            for model in context.models:
                model.alive = False  # type: ignore[attr-defined]
        npu.end_waits()
        npu.driver.close()
        OPEN[asyncio.get_running_loop()].pop(npu.index, None)
        untold = {
            id(error): f"nobody was told of a device failure: {error}"
            for error in [*npu.unobserved, *unobserved]
            if error.__traceback__ is None
            and error.code not in ASKED_FOR  # never raised, and no stop that was asked for
            and not passed_on(error)
        }
        return list(untold.values())

    async def _settle(self) -> None:
        """Run the loop until nothing has moved by itself for some passes, within CLOSE_LIMIT_S."""
        loop = asyncio.get_running_loop()
        limit = loop.time() + CLOSE_LIMIT_S
        quiet = 0
        while quiet < 4 and loop.time() < limit:
            quiet = quiet + 1 if self.npu.driver.resting() else 0
            await asyncio.sleep(0)


def passed_on(error: BaseException | None) -> bool:
    """Whether an interrupt is behind a failure: that went to whoever runs the loop."""
    return error is not None and (isinstance(error, KeyboardInterrupt | SystemExit) or passed_on(error.__cause__))


ASKED_FOR = (Code.RT_STREAM_ABORT, Code.RT_MODEL_ABORT_NORMAL)
"""What aborting or destroying leaves on a stream: whoever did it knows."""

OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, Device]] = WeakKeyDictionary()
"""Devices open in each event loop, by id."""


def open_now(
    index: int,
    *,
    chip: str = "v100",
    clock: Literal["wall", "virtual"] = "wall",
    limits: Mapping[str, int] | None = None,
    policy: Any = None,
    engine: Literal["ts", "null"] = "ts",
    on_execute_error: Literal["fault", "ready"] = "fault",
) -> Device:
    """Open a device of the running loop. RuntimeError outside asyncio or when it is open already."""
    require_asyncio()
    if not isinstance(index, int) or isinstance(index, bool):
        raise TypeError(f"open a device: id is {index!r}; give a whole number")
    if isinstance(policy, type) or (policy is not None and not callable(getattr(policy, "choose", None))):
        raise TypeError(f"open_device: policy is {policy!r}, which chooses nothing; use one of hw.ts.policy, or None")
    if not 0 <= index < DEVICES:
        raise fail(Code.RT_INVALID_DEVICEID, "open a device", f"id is {index}", f"use 0 to {DEVICES - 1}")
    if on_execute_error not in ("fault", "ready"):
        raise ValueError(f"open_device: on_execute_error is {on_execute_error!r}; use 'fault' or 'ready'")
    devices = OPEN.setdefault(asyncio.get_running_loop(), {})
    if index in devices:
        raise RuntimeError(f"device {index} is already open in this event loop; close it first")
    npu = Npu(open_chip(chip, limits=limits, engine=engine, clock=clock, policy=policy), index, null=engine == "null")
    npu.new_default = lifecycle.new_default
    npu.new_graph = Graph
    npu.on_execute_error = on_execute_error
    npu.explain = lambda: explain.explain(npu)
    npu.headline = lambda: explain.headline(npu)
    npu.locate = lambda record: explain.locate(npu, record)
    devices[index] = device = Device(npu)
    return device


def require_asyncio() -> None:
    """RuntimeError, with the reason, where there is no asyncio event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "aclrt runs in an asyncio event loop (uvloop included); under trio or outside a loop it cannot work"
        ) from None
    require_task()


@asynccontextmanager
async def open_device(
    index: int = 0,
    *,
    chip: str = "v100",
    clock: Literal["wall", "virtual"] = "wall",
    limits: Mapping[str, int] | None = None,
    policy: Any = None,
    engine: Literal["ts", "null"] = "ts",
    on_execute_error: Literal["fault", "ready"] = "fault",
) -> AsyncIterator[Device]:
    """Open an emulated NPU for the length of the block and make its primary context current.

    chip: "v100" (910B, A2, A3), "v200" (950) or "310p". clock: "wall", or "virtual", which jumps by itself when
    nothing can run. limits: any field of the chip's spec. policy: who runs next (`hw.ts.policy`). engine: "null"
    completes every task without running it. on_execute_error: "fault" (the design: a failed run makes the graph
    FAULT) or "ready" (as shipped).
    Leaving the block runs what can still run, stops what is parked and frees everything; by exception it only stops,
    and the exception passes unchanged.
    """
    device = open_now(
        index, chip=chip, clock=clock, limits=limits, policy=policy, engine=engine, on_execute_error=on_execute_error
    )
    before = current_context()
    set_current_context(device.context)
    try:
        yield device
    except BaseException as error:
        try:
            await device.close(drain=False)
        except UnobservedErrorWarning as warning:  # warnings are errors here: they must not mask this one
            error.add_note(str(warning))
        raise
    else:
        await device.close()
    finally:
        set_current_context(before)


# --- the C functions (acl.device) ------------------------------------------------------------------------------------

_inits: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


def init(config: str | None = None) -> None:
    """aclInit: counts. Errors: 100002 when it was called before (the count still rises). acl_semantics 1.5."""
    require_asyncio()
    loop = asyncio.get_running_loop()
    _inits[loop] = _inits.get(loop, 0) + 1
    if _inits[loop] > 1:
        raise fail(
            Code.REPEAT_INITIALIZE, "aclInit", f"called {_inits[loop]} times", "call it once; the runtime is usable"
        )


async def finalize() -> None:
    """aclFinalize: closes every device whatever the count. Errors: 100037 without an aclInit."""
    require_asyncio()
    loop = asyncio.get_running_loop()
    if not _inits.pop(loop, 0):
        raise fail(Code.REPEAT_FINALIZE, "aclFinalize", "the runtime is not initialised", "call aclInit first")
    for device in list(OPEN.get(loop, {}).values()):
        await device.close()


async def finalize_reference() -> int:
    """aclFinalizeReference: one count less; the last one finalizes. Returns what is left. Errors: 100037."""
    require_asyncio()
    loop = asyncio.get_running_loop()
    if _inits.get(loop, 0) > 1:
        _inits[loop] -= 1
        return _inits[loop]
    await finalize()
    return 0


def device_count() -> int:
    return DEVICES


def _find(index: int, asked: str) -> Device | None:
    require_asyncio()
    if not 0 <= index < DEVICES:
        raise fail(Code.RT_INVALID_DEVICEID, asked, f"device id is {index}", f"use 0 to {DEVICES - 1}")
    return OPEN.get(asyncio.get_running_loop(), {}).get(index)


def set_device(index: int) -> None:
    """aclrtSetDevice: open the device if need be, take a reference, make its primary context current. Errors:
    107001."""
    device = _find(index, "aclrtSetDevice")
    if device is None:
        device = open_now(index)
    else:
        device.references += 1
    contexts.set_current(device.context)


async def reset_device(index: int, *, force: bool = False) -> None:
    """aclrtResetDevice(Force): drop one reference, or all; the last one closes the device. Errors: 107001."""
    device = _find(index, "aclrtResetDevice")
    if device is None:
        raise fail(
            Code.RT_INVALID_DEVICEID, "aclrtResetDevice", f"device {index} is not set", "call aclrtSetDevice first"
        )
    device.references = 0 if force else device.references - 1
    if device.references <= 0:
        await device.close()


def create_context(index: int) -> Context:
    """aclrtCreateContext: becomes current. Errors: 107001."""
    device = _find(index, "aclrtCreateContext") or open_now(index)
    context = Context(device.npu, primary=False)
    contexts.set_current(context)
    return context


def destroy_context(context: Context) -> None:
    """aclrtDestroyContext: frees its models and streams. Errors: 107000 destroyed, 107002 for a primary context."""
    asked = "aclrtDestroyContext"
    require_task()
    if not context.alive:
        raise fail(Code.RT_PARAM_INVALID, asked, f"{context!r}", "destroy a context once")
    if context.primary:
        raise fail(Code.RT_CONTEXT_NULL, asked, "it is the primary context", "use aclrtResetDevice")
    for stream in list(context.streams):
        if stream.capture_mode is not None:
            capture.cancel(stream)
    for model in list(context.models):
        model.discard()
    for stream in list(context.streams):
        lifecycle.close(stream)
    for notify in list(context.notifies):
        notifies.discard(notify)
    labels.discard_all(context)
    context.alive = False
    context.npu.contexts.remove(context)


def set_op_wait_timeout(ctx: Context | None, timeout_s: int) -> None:
    """aclrtSetOpWaitTimeout: limit of event waits submitted from now on; 0 for none. Errors: 107002."""
    contexts.require(ctx, "aclrtSetOpWaitTimeout").op_wait_timeout_ms = timeout_s * 1000


def set_op_execute_timeout(ctx: Context | None, timeout_ns: int) -> None:
    """aclrtSetOpExecuteTimeOut: limit of one kernel's device time; 0 for none. Errors: 107002."""
    contexts.require(ctx, "aclrtSetOpExecuteTimeOut").npu.driver.set_execute_timeout(timeout_ns)
