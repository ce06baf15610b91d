"""The wait-for graph: which stream waits for what, who could end that wait, who is stuck, and in which cycles.

Not a text (`waits` writes it) and not the device's state: the caller lists the waits, what is queued behind them, and
what is known of the things waited for.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@final
class TargetKind(StrEnum):
    """What can be waited for."""

    EVENT = "event"
    NOTIFY = "notify"
    EXTERNAL = "external event"
    VALUE = "value"  # a word of device memory; ident is its address
    ACTIVATION = "activation"  # a stream that only a STREAM_ACTIVE or a switch starts; ident is the stream
    STREAM = "stream"  # all work of a stream; ident is the stream
    MODEL = "model"  # the run of a model; ident is the model
    END = "end"  # the end of a call of the host, whatever that needs
    HOST = "host"  # something that only host code does (a callback, a report)
    TIME = "time"  # the clock
    CORE = "core"  # a free core of the device
    KERNEL = "kernel"  # a kernel or a copy that is being executed
    RESOURCE = "resource"  # SQs or notifies that runs of other models hold


@final
class Target(msgspec.Struct, frozen=True, gc=False):
    """One thing waited for. Two waits meet when kind and ident agree; `detail` is for the reader alone."""

    kind: TargetKind
    ident: int = 0
    detail: str = ""  # "is 0, wanted >= 1"; "all 24 AI cores are busy"; "aclrtProcessReport of thread 2"

    @property
    def key(self) -> tuple[TargetKind, int]:
        return (self.kind, self.ident)


@final
class WaitListing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stream whose head task waits. Everything else of the stream is queued behind that task."""

    stream_id: int
    target: Target
    label: str = ""  # the stream's name
    origin: str = ""  # "captured at f.py:3", "joined through event 3 recorded at f.py:9"
    model_id: int | None = None  # the model that the stream runs for
    model_name: str = ""
    task: str = ""  # "task 12 EVENT_WAIT"
    place: str = ""  # "file:line" of that task
    deadline_ns: int | None = None  # device time at which the wait gives up


@final
class HostWaitListing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A host task that awaits the device."""

    task: str  # the asyncio task's name
    target: Target  # STREAM, EVENT, MODEL, END or HOST
    call: str = ""  # "aclrtSynchronizeStream"
    place: str = ""
    deadline_ns: int | None = None


@final
class SignalListing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A queued task, not executed yet, that would satisfy a wait for `target`."""

    target: Target
    stream_id: int
    task: str = ""  # "task 7 EVENT_RECORD"
    place: str = ""


@final
class HistoryListing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a target's past: the last signal, and what erased it (a reset that came too late)."""

    target: Target
    recorded: str = ""  # "by stream 2, task 4 at f.py:8"
    erased: str = ""  # "by stream 3, task 6 EVENT_RESET at f.py:5"


# target kind -> what a signal does to it. Kinds that are not here have no signals.
SIGNAL_VERB = {
    TargetKind.EVENT: "record",
    TargetKind.NOTIFY: "record",
    TargetKind.EXTERNAL: "record",
    TargetKind.VALUE: "write",
    TargetKind.ACTIVATION: "activate",
}
# Satisfied when every stream behind them is through; the others need one signal.
_ALL_OF = frozenset({TargetKind.STREAM, TargetKind.MODEL})


@final
class WaitGraph:
    """The listings, indexed, with what follows from them."""

    __slots__ = ("blockers", "history", "signals", "stuck", "waits")

    def __init__(
        self, waits: Iterable[WaitListing], signals: Iterable[SignalListing], history: Iterable[HistoryListing]
    ) -> None:
        self.waits = {wait.stream_id: wait for wait in waits}
        self.signals: dict[tuple[TargetKind, int], list[SignalListing]] = {}
        for signal in signals:
            self.signals.setdefault(signal.target.key, []).append(signal)
        self.history = {entry.target.key: entry for entry in history}
        members: dict[int, list[int]] = {}
        for wait in self.waits.values():
            if wait.model_id is not None:
                members.setdefault(wait.model_id, []).append(wait.stream_id)
        # stream -> the streams it waits for; for one-of targets the signalling streams, else all that must finish
        self.blockers = {sid: self._behind(wait.target, sid, members) for sid, wait in self.waits.items()}
        self.stuck = self._find_stuck()

    def _behind(self, target: Target, sid: int, members: dict[int, list[int]]) -> list[int]:
        if target.kind is TargetKind.MODEL:
            return [other for other in members.get(target.ident, ()) if other != sid]
        if target.kind is TargetKind.STREAM:
            return [target.ident]
        return list(dict.fromkeys(signal.stream_id for signal in self.signals.get(target.key, ())))

    def _find_stuck(self) -> set[int]:
        """The streams that no queued work can ever wake. Time-outs do not count: they satisfy no wait.

        Least fixpoint of "can go on", walked backwards from the waits that clearly can.
        """
        waiting_for: dict[int, list[int]] = {}
        missing: dict[int, int] = {}
        ready: deque[int] = deque()
        for sid, wait in self.waits.items():
            parked = [other for other in self.blockers[sid] if other in self.waits]
            missing[sid] = len(parked) if wait.target.kind in _ALL_OF else 1
            for other in parked:
                waiting_for.setdefault(other, []).append(sid)
            if self._open(wait, parked):
                missing[sid] = 0
                ready.append(sid)
        going: set[int] = set(ready)
        while ready:
            for sid in waiting_for.get(ready.popleft(), ()):
                missing[sid] -= 1
                if missing[sid] <= 0 and sid not in going:
                    going.add(sid)
                    ready.append(sid)
        return set(self.waits) - going

    def _open(self, wait: WaitListing, parked: Sequence[int]) -> bool:
        """Whether this wait can end without any other parked stream going on first, or cannot be shown not to."""
        kind = wait.target.kind
        if kind in _ALL_OF:
            return not parked
        if kind not in SIGNAL_VERB:
            return True
        if len(parked) < len(self.blockers[wait.stream_id]):
            return True  # a stream that is not parked will signal it
        # A kernel or a copy may store the value as well, and nobody can list those.
        return kind is TargetKind.VALUE and not parked

    def cycles(self) -> list[list[int]]:
        """Disjoint cycles among the stuck streams, at least one for each knot; iterative, graphs may be deep."""
        found: list[list[int]] = []
        taken: set[int] = set()
        done: set[int] = set()
        for root in self.waits:
            if root in done or root not in self.stuck:
                continue
            path: dict[int, int] = {root: 0}  # stream -> next blocker to look at; insertion order is the path
            while path:
                sid = next(reversed(path))
                blockers = self.blockers[sid]
                if path[sid] == len(blockers):
                    del path[sid]
                    done.add(sid)
                    continue
                other = blockers[path[sid]]
                path[sid] += 1
                if other in path:
                    way = list(path)
                    cycle = way[way.index(other) :]
                    if taken.isdisjoint(cycle):
                        taken.update(cycle)
                        found.append(cycle)
                elif other in self.stuck and other not in done:
                    path[other] = 0
        return found
