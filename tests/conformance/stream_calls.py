"""The recorded operations on streams, events, memory, kernels and labels, one method each.

Not a runtime: a method looks its names up, makes the one public call and notes what came back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import aclrt
from aclrt import acl

from .names import NBYTES, Args, Names, Out

if TYPE_CHECKING:
    from collections.abc import Awaitable

NO_SUCH_LABEL = -3
KIND = {
    "h2d": acl.ACL_MEMCPY_HOST_TO_DEVICE,
    "d2h": acl.ACL_MEMCPY_DEVICE_TO_HOST,
    "d2d": acl.ACL_MEMCPY_DEVICE_TO_DEVICE,
    "same": acl.ACL_MEMCPY_DEVICE_TO_DEVICE,
}


@aclrt.kernel
def nothing() -> None:
    """A kernel that has no arguments and no effect."""


def ignore(_: object) -> None:
    """A host function that does nothing."""


class StreamCalls(Names):
    """What a recording does on streams."""

    # streams, contexts, synchronisation

    def create_stream(self, a: Args, out: Out) -> None:
        stream = acl.aclrtCreateStreamWithConfig(0, a["flags"]) if "flags" in a else acl.aclrtCreateStream()
        self.streams[a["out"]] = stream
        self.destroyed_streams.discard(a["out"])

    def default_stream(self, a: Args, out: Out) -> None:
        self.streams[a["out"]] = acl.aclrtCtxGetCurrentDefaultStream()

    async def destroy_stream(self, a: Args, out: Out) -> None:
        stream = self.streams.get(a["s"])
        destroy = acl.aclrtDestroyStreamForce if a.get("force") else acl.aclrtDestroyStream
        await destroy(stream)
        self.destroyed_streams.update(name for name, known in self.streams.items() if known is stream)

    def stream_sync(self, a: Args, out: Out) -> Awaitable[None]:
        stream = self.streams.get(a["s"])
        if "timeout" in a:
            return acl.aclrtSynchronizeStreamWithTimeout(stream, a["timeout"])
        return acl.aclrtSynchronizeStream(stream)

    def stream_query(self, a: Args, out: Out) -> None:
        acl.aclrtStreamQuery(self.streams.get(a["s"]))

    def device_sync(self, a: Args, out: Out) -> Awaitable[None]:
        if "timeout" in a:
            return acl.aclrtSynchronizeDeviceWithTimeout(a["timeout"])
        return acl.aclrtSynchronizeDevice()

    def set_failure_mode(self, a: Args, out: Out) -> None:
        acl.aclrtSetStreamFailureMode(self.streams.get(a["s"]), a["mode"])

    def set_overflow_switch(self, a: Args, out: Out) -> None:
        acl.aclrtSetStreamOverflowSwitch(self.streams.get(a["s"]), a["flag"])

    def active_stream(self, a: Args, out: Out) -> None:
        acl.aclrtActiveStream(self.streams.get(a["s2"]), self.streams.get(a["s"]))

    def switch_stream(self, a: Args, out: Out) -> None:
        left, right = self.buffer("d0"), self.buffer("d1")
        acl.aclrtSwitchStream(left, 0, right, 0, self.streams.get(a["s2"]), None, self.streams.get(a["s"]))

    def get_context(self, a: Args, out: Out) -> None:
        self.contexts[a["out"]] = acl.aclrtGetCurrentContext()

    def set_context(self, a: Args, out: Out) -> None:
        acl.aclrtSetCurrentContext(self.contexts.get(a["c"]))

    def create_context(self, a: Args, out: Out) -> None:
        self.contexts[a["out"]] = acl.aclrtCreateContext(0)

    # events and notifies

    def create_event(self, a: Args, out: Out) -> None:
        if a["kind"] == "plain":
            event = acl.aclrtCreateEvent()
        elif a["kind"] == "flag":
            event = acl.aclrtCreateEventWithFlag(a["flag"])
        else:
            event = acl.aclrtCreateEventExWithFlag(a["flag"])
        self.events[a["out"]] = event

    def destroy_event(self, a: Args, out: Out) -> None:
        acl.aclrtDestroyEvent(self.events.get(a["e"]))

    def record(self, a: Args, out: Out) -> None:
        acl.aclrtRecordEvent(self.events.get(a["e"]), self.streams.get(a["s"]))

    def record_flag(self, a: Args, out: Out) -> None:
        acl.aclrtRecordEventWithFlag(self.events.get(a["e"]), self.streams.get(a["s"]), a["flag"])

    def wait(self, a: Args, out: Out) -> None:
        acl.aclrtStreamWaitEvent(self.streams.get(a["s"]), self.events.get(a["e"]))

    def wait_flag(self, a: Args, out: Out) -> None:
        acl.aclrtStreamWaitEventWithFlag(self.streams.get(a["s"]), self.events.get(a["e"]), a["timeout"], a["flag"])

    def reset(self, a: Args, out: Out) -> None:
        acl.aclrtResetEvent(self.events.get(a["e"]), self.streams.get(a["s"]))

    def event_sync(self, a: Args, out: Out) -> Awaitable[None]:
        return acl.aclrtSynchronizeEvent(self.events.get(a["e"]))

    def event_query(self, a: Args, out: Out) -> None:
        acl.aclrtQueryEvent(self.events.get(a["e"]))

    def event_query_status(self, a: Args, out: Out) -> None:
        acl.aclrtQueryEventStatus(self.events.get(a["e"]))

    def event_query_wait(self, a: Args, out: Out) -> None:
        acl.aclrtQueryEventWaitStatus(self.events.get(a["e"]))

    def event_elapsed(self, a: Args, out: Out) -> None:
        acl.aclrtEventElapsedTime(self.events.get(a["e"]), self.events.get(a["e2"]))

    def notify_create(self, a: Args, out: Out) -> None:
        self.notifies[a["out"]] = acl.aclrtCreateNotify(0)

    def notify_record(self, a: Args, out: Out) -> None:
        acl.aclrtRecordNotify(self.notifies.get(a["n"]), self.streams.get(a["s"]))

    def notify_wait(self, a: Args, out: Out) -> None:
        acl.aclrtWaitAndResetNotify(self.notifies.get(a["n"]), self.streams.get(a["s"]), 0)

    # memory

    def malloc(self, a: Args, out: Out) -> None:
        acl.aclrtMalloc(NBYTES, acl.ACL_MEM_MALLOC_HUGE_FIRST)

    def memcpy(self, a: Args, out: Out) -> Awaitable[None]:
        dst, src = self.ends(a["way"], "pageable")
        return acl.aclrtMemcpy(dst, NBYTES, src, NBYTES, KIND[a["way"]])

    def memcpy2d(self, a: Args, out: Out) -> Awaitable[None]:
        dst, src = self.ends("h2d", "pageable")
        return acl.aclrtMemcpy2d(dst, 8, src, 8, 8, 8, KIND["h2d"])

    def memset(self, a: Args, out: Out) -> Awaitable[None]:
        return acl.aclrtMemset(self.buffer("d0"), NBYTES, 0, NBYTES)

    def memcpy_async(self, a: Args, out: Out) -> None:
        way = a.get("way", "h2d")
        dst, src = self.ends(way, a.get("host", "pinned"))
        acl.aclrtMemcpyAsync(dst, NBYTES, src, NBYTES, KIND[way], self.streams.get(a["s"]))

    def memcpy_async_cond(self, a: Args, out: Out) -> None:
        dst, src = self.ends("h2d", a["host"])
        acl.aclrtMemcpyAsyncWithCondition(dst, NBYTES, src, NBYTES, KIND["h2d"], self.streams.get(a["s"]))

    def memcpy2d_async(self, a: Args, out: Out) -> None:
        dst, src = self.ends("h2d", a["host"])
        acl.aclrtMemcpy2dAsync(dst, 8, src, 8, 8, 8, KIND["h2d"], self.streams.get(a["s"]))

    def memset_async(self, a: Args, out: Out) -> None:
        acl.aclrtMemsetAsync(self.buffer("d0"), NBYTES, 0, NBYTES, self.streams.get(a["s"]))

    def value_write(self, a: Args, out: Out) -> None:
        acl.aclrtValueWrite(self.buffer("d0"), a.get("value", 1), a.get("flag", 0), self.streams.get(a["s"]))

    def value_wait(self, a: Args, out: Out) -> None:
        acl.aclrtValueWait(self.buffer("d0"), a.get("value", 1), a.get("flag", 0), self.streams.get(a["s"]))

    # kernels and host functions

    def kernel(self, a: Args, out: Out) -> None:
        stream = self.streams.get(a["s"])
        for _ in range(a.get("n", 1)):
            acl.aclrtLaunchKernel(nothing, 1, [], stream)

    def host_func(self, a: Args, out: Out) -> None:
        acl.aclrtLaunchHostFunc(self.streams.get(a["s"]), ignore, None)

    def callback(self, a: Args, out: Out) -> None:
        acl.aclrtLaunchCallback(ignore, None, a["block"], self.streams.get(a["s"]))

    # labels

    def label_create(self, a: Args, out: Out) -> None:
        self.labels[a["out"]] = acl.aclrtCreateLabel()

    def label_list(self, a: Args, out: Out) -> int | None:
        if any(name not in self.labels for name in a["labels"]):
            return NO_SUCH_LABEL
        self.label_lists[a["out"]] = acl.aclrtCreateLabelList([self.labels[name] for name in a["labels"]])
        return None

    def label_set(self, a: Args, out: Out) -> None:
        acl.aclrtSetLabel(self.labels.get(a["l"]), self.streams.get(a["s"]))

    def label_switch(self, a: Args, out: Out) -> None:
        which, labels = self.buffer("d0"), self.label_lists.get(a["ll"])
        acl.aclrtSwitchLabelByIndex(which, a.get("max", 1), labels, self.streams.get(a["s"]))
