"""aclrt: an asyncio-native runtime for Ascend's model-running-instance API and ACL Graph, on an emulated NPU.

The Pythonic face is here; the C names are in `aclrt.acl`. Both are one set of objects.
"""

from __future__ import annotations

from aclrt.base.codes import AclErrorCode
from aclrt.base.errors import (
    AclError,
    CaptureError,
    DeadlockError,
    ExecutionError,
    ResourceError,
    UnobservedErrorWarning,
    UsageError,
)
from aclrt.base.host_thread import host_thread_id
from aclrt.device import Device, open_device
from aclrt.graph.graph import Graph
from aclrt.graph.graph import capture_graph as capture
from aclrt.graph.task_group import TaskGroup
from aclrt.model.execute import Run
from aclrt.stream.event import Event
from aclrt.stream.notify import Notify
from aclrt.stream.stream import Stream
from aclrt.task.kernel import Kernel, kernel
from aclrt.task.memory import DeviceArray, HostBuffer, view
from aclrt.task.params import In, InOut, Out

__all__ = [
    "AclError",
    "AclErrorCode",
    "CaptureError",
    "DeadlockError",
    "Device",
    "DeviceArray",
    "Event",
    "ExecutionError",
    "Graph",
    "HostBuffer",
    "In",
    "InOut",
    "Kernel",
    "Notify",
    "Out",
    "ResourceError",
    "Run",
    "Stream",
    "TaskGroup",
    "UnobservedErrorWarning",
    "UsageError",
    "capture",
    "host_thread_id",
    "kernel",
    "open_device",
    "view",
]


def __dir__() -> list[str]:
    return sorted(__all__)
