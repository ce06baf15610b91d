"""Good arguments for every `acl` function, by the names of its parameters: tests then spoil one thing. Not a test."""

from __future__ import annotations

import inspect
import os
from typing import Any

import aclrt
from aclrt import acl

from .bench import add, array

FUNCTIONS = [name for name, value in vars(acl).items() if inspect.isfunction(value) and name.startswith(("acl", "rt"))]

HANDLES = {
    "stream": "s",
    "stm": "s",
    "activeStream": "s",
    "trueStream": "s",
    "modelRI": "graph",
    "captureMdl": "graph",
    "event": "event",
    "startEvent": "event",
    "endEvent": "event",
    "notify": "notify",
    "label": "label",
    "lbl": "label",
    "labels": "labels",
    "labelList": "label_list",
    "handle_": "handle",
    "task": "task",
    "context": "context",
    "params": "params",
    "func": "func",
    "hostPtr": "pinned",
    "devPtr": "address",
    "devAddr": "address",
    "dst": "address",
    "src": "other",
    "ptr": "address",
    "leftValue": "address",
    "rightValue": "address",
}
VALUES: dict[str, Any] = {
    "size": 32,
    "count": 8,
    "destMax": 32,
    "maxCount": 32,
    "dpitch": 8,
    "spitch": 8,
    "width": 8,
    "height": 1,
    "kind": acl.ACL_MEMCPY_DEVICE_TO_DEVICE,
    "fn": print,
    "args": (),
    "userData": None,
    "path": os.devnull,
    "name": "never",
    "falseStream": None,
    "numBlocks": 1,
    "reserve": None,
    "configPath": None,
    "numStreams": None,
    "numTasks": None,
    "blockType": 0,
    "timeout": 1,
    "cond": 0,
}


class Things:
    """One live object of each kind."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.dev = dev
        self.s, self.x, self.y = dev.stream(), array(dev), array(dev)
        self.address, self.other = acl.aclrtMalloc(32), acl.aclrtMalloc(32)
        self.pinned = acl.aclrtMallocHost(32)
        self.event, self.notify = dev.event(timing=True), dev.notify()
        self.label = acl.aclrtCreateLabel()
        self.labels = [acl.aclrtCreateLabel()]
        self.label_list = acl.aclrtCreateLabelList([acl.aclrtCreateLabel()])
        self.context = acl.aclrtGetCurrentContext()
        acl.aclmdlRICaptureBegin(self.s, 1)
        acl.aclmdlRICaptureTaskGrpBegin(self.s)
        self.s.launch(add, self.x, 1.0)
        self.group = acl.aclmdlRICaptureTaskGrpEnd(self.s)
        half = acl.aclmdlRICaptureGetInfo(self.s).modelRI
        self.cond = acl.aclmdlRICondHandleCreate(half, 0, 0)
        self.graph = acl.aclmdlRICaptureEnd(self.s)
        self.task = acl.aclmdlRIGetTasksByStream(acl.aclmdlRIGetStreams(self.graph)[0])[-1]
        self.params = acl.aclmdlRITaskGetParams(self.graph_kernel())

    def graph_kernel(self) -> Any:
        return next(t for t in self.graph.tasks() if t.op.type_name.startswith("KERNEL"))

    def argument(self, function: str, parameter: str) -> Any:
        if parameter == "handle_":
            return self.group if "Update" in function else self.cond
        if parameter == "params" and function == "aclmdlRIAddCondTask":
            return acl.aclmdlRICondTaskParams(handle=self.cond, type=0, size=1)
        if parameter == "func":
            return add if function == "aclrtLaunchKernel" else print
        if parameter == "args" and function == "aclrtLaunchKernel":
            return [self.x, 1.0]
        if parameter in HANDLES:
            return getattr(self, HANDLES[parameter])
        return VALUES.get(parameter, 0)

    def arguments(self, function: str) -> list[Any]:
        """Those of a call that is good."""
        return [self.argument(function, name) for name in inspect.signature(getattr(acl, function)).parameters]

    async def destroy(self) -> None:
        """Destroy everything here that has a handle."""
        await acl.aclmdlRIDestroy(self.graph)
        acl.aclrtDestroyEvent(self.event)
        acl.aclrtDestroyNotify(self.notify)
        acl.aclrtDestroyLabelList(self.label_list)
        for label in (self.label, *self.labels):
            acl.aclrtDestroyLabel(label)
        await acl.aclrtDestroyStream(self.s)
        acl.aclrtFreeHost(self.pinned)
        for address in (self.address, self.other):
            acl.aclrtFree(address)
