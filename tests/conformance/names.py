"""`Names` holds the handles and the prepared buffers of one recording.

It makes no call of its own but for those buffers.
"""

from __future__ import annotations

from typing import Any

from aclrt import acl

Args = dict[str, Any]
Out = dict[str, Any]

NBYTES = 64


class Names:
    """What a recording has bound so far. A name that is not bound reads as None, which is NULL."""

    def __init__(self) -> None:
        self.streams: dict[str, Any] = {}
        self.destroyed_streams: set[str] = set()
        self.events: dict[str, Any] = {}
        self.models: dict[str, Any] = {}
        self.groups: dict[str, Any] = {}
        self.conditions: dict[str, Any] = {}
        self.notifies: dict[str, Any] = {}
        self.labels: dict[str, Any] = {}
        self.label_lists: dict[str, Any] = {}
        self.contexts: dict[str, Any] = {}
        self.buffers: dict[str, Any] = {}

    def buffer(self, which: str) -> Any:
        """One of the prepared buffers of 64 bytes: device memory `d0` `d1`, `pinned`, or `pageable` host memory."""
        if which not in self.buffers:
            if which == "pinned":
                made: Any = acl.aclrtMallocHost(NBYTES)
            elif which == "pageable":
                made = bytearray(NBYTES)
            else:
                made = acl.aclrtMalloc(NBYTES, acl.ACL_MEM_MALLOC_HUGE_FIRST)
            self.buffers[which] = made
        return self.buffers[which]

    def ends(self, way: str, host: str) -> tuple[Any, Any]:
        """Destination and source of a copy."""
        if way == "same":
            return self.buffer("d0"), self.buffer("d0")
        if way == "d2d":
            return self.buffer("d0"), self.buffer("d1")
        if way == "h2d":
            return self.buffer("d0"), self.buffer(host)
        return self.buffer(host), self.buffer("d0")

    def known(self, model: object, out: Out, name: str | None) -> None:
        out["model"] = "null" if model is None else "set"
        same = next((known for known in sorted(self.models) if self.models[known] is model), None)
        if model is not None and same is not None:
            out["same"] = same
        if model is not None and name is not None:
            self.models[name] = model
