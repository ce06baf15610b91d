"""`Reference`: a small model of capture written from the rules, to compare the runtime with.

It is not an emulator: it knows streams, events, three modes and task groups, and answers each call with its code. It
shares nothing with `aclrt`. Events are new-mode SYNC events (aclrtCreateEventExWithFlag(1)).
"""

from __future__ import annotations

from typing import Any

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
ACTIVE, INVALIDATED = 1, 2
OK = 0


class Counts:
    """How many captures are open in each mode; the strictest one counts."""

    def __init__(self) -> None:
        self.open = [0, 0, 0]

    def leave(self, mode: int) -> None:
        self.open[mode] = max(0, self.open[mode] - 1)

    @property
    def mode(self) -> int | None:
        return next((mode for mode in (GLOBAL, THREAD_LOCAL, RELAXED) if self.open[mode]), None)


class Thread:
    def __init__(self) -> None:
        self.counts = Counts()
        self.exchange = GLOBAL


class Mark:
    """One record of an event inside a capture, and the hidden streams that waited for it."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.recorded = False
        self.waited: list[Side] = []


class Capture:
    def __init__(self, mode: int, thread: Thread) -> None:
        self.mode = mode
        self.thread = thread
        self.invalidated = False
        self.open = True
        self.sides: list[Side] = []
        self.events: list[
            Event
        ] = []  # recorded in it; they lose their mark at the end, whichever capture it is of by then
        self.grouping: Side | None = None
        self.group_error = OK


class Side:
    """A stream's part in a capture. `last` is its last task: the mark it records, or the name of another kind."""

    def __init__(self, capture: Capture, stream: Stream, *, origin: bool) -> None:
        self.capture = capture
        self.stream = stream
        self.origin = origin
        self.last: Mark | str | None = None
        capture.sides.append(self)
        stream.side = self

    def add(self, task: Mark | str) -> int:
        """Append a task. While a group is open only its own stream takes tasks, and only kernels."""
        capture = self.capture
        if capture.grouping is not None:
            code = OK
            if capture.grouping is not self:
                code = 107034
            elif task != "kernel":
                code = 507009
            if code:
                capture.invalidated = True
                capture.group_error = code
                return code
        self.last = task
        return OK


class Stream:
    """`sampling` outlives a capture that ends with the group open."""

    def __init__(self) -> None:
        self.side: Side | None = None
        self.sampling = False


class Event:
    def __init__(self) -> None:
        self.mark: Mark | None = None
        self.recorded_outside = False

    @property
    def captured(self) -> bool:
        return self.mark is not None and self.mark.side.capture.open


class Reference:
    """The answers of one Context. Names that are not known read as None, which is NULL."""

    def __init__(self, chip: str = "v100") -> None:
        self.chip = chip
        self.counts = Counts()
        self.threads: dict[int, Thread] = {}
        self.streams: dict[str, Stream] = {}
        self.events: dict[str, Event] = {}

    def do(self, thread: int, op: str, args: dict[str, Any]) -> int:
        """The code of one call; the operations are those of the recordings."""
        return int(getattr(self, op)(self.threads.setdefault(thread, Thread()), **args))

    def statuses(self) -> dict[str, int]:
        return {name: ACTIVE for name, stream in self.streams.items() if stream.side is not None}

    # setting up

    def create_stream(self, thread: Thread, out: str) -> int:
        self.streams[out] = Stream()
        return OK

    def create_event(self, thread: Thread, kind: str, flag: int, out: str) -> int:
        assert (kind, flag) == ("ex", 1)
        self.events[out] = Event()
        return OK

    # modes

    def exchange_mode(self, thread: Thread, mode: int) -> int:
        if mode not in (GLOBAL, THREAD_LOCAL, RELAXED):
            return 107000
        thread.exchange = mode
        return OK

    def memset(self, thread: Thread) -> int:
        context, own = self.counts.mode, thread.counts.mode
        if context is None or thread.exchange == RELAXED:
            return OK
        if thread.exchange == GLOBAL:
            return OK if context != GLOBAL and own != THREAD_LOCAL else 107030
        return OK if own not in (GLOBAL, THREAD_LOCAL) else 107030

    # capture

    def capture_begin(self, thread: Thread, s: str, mode: int) -> int:
        if mode not in (GLOBAL, THREAD_LOCAL, RELAXED):
            return 107000
        stream = self.streams[s]
        if stream.side is not None:
            return 107027
        Side(Capture(mode, thread), stream, origin=True)
        self.counts.open[mode] += 1
        thread.counts.open[mode] += 1
        return OK

    def capture_end(self, thread: Thread, s: str, **_: object) -> int:
        side = self.streams[s].side
        if side is None:
            return 107029
        if not side.origin:
            return 107036
        capture = side.capture
        wrong_thread = capture.thread is not thread and capture.mode != RELAXED
        self.counts.leave(capture.mode)
        thread.counts.leave(capture.mode)
        capture.open = False
        for each in capture.sides:
            each.stream.side = None
        for event in capture.events:
            event.mark = None
        if wrong_thread:
            return 107038
        if capture.invalidated:
            return 507903
        if capture.grouping is not None:
            return 107033
        return self._joined(capture)

    def _joined(self, capture: Capture) -> int:
        """Every fork must end with a record that is waited for; at least one of them by the origin."""
        forks = [side for side in capture.sides if not side.origin]
        to_origin = not forks
        for fork in forks:
            if not isinstance(fork.last, Mark) or not fork.last.waited:
                return 107025
            to_origin = to_origin or any(side.origin for side in fork.last.waited)
        return OK if to_origin else 107025

    def kernel(self, thread: Thread, s: str) -> int:
        side = self.streams[s].side
        return OK if side is None else side.add("kernel")

    def memset_async(self, thread: Thread, s: str) -> int:
        side = self.streams[s].side
        return OK if side is None else side.add("memset")

    def stream_sync(self, thread: Thread, s: str) -> int:
        return OK if self.streams[s].side is None else 107027

    def device_sync(self, thread: Thread) -> int:
        return 107027 if any(stream.side for stream in self.streams.values()) else OK

    # events

    def record(self, thread: Thread, e: str, s: str) -> int:
        event, side = self.events[e], self.streams[s].side
        if side is None:
            event.recorded_outside = True
            return OK
        mark = event.mark
        if mark is None or mark.recorded or self.chip == "v200":  # v100 takes up a mark whose record failed
            mark = event.mark = Mark(side)
            side.capture.events.append(event)
        elif mark.side.capture is not side.capture:
            mark.side.capture.invalidated = side.capture.invalidated = True
            return 107032
        code = side.add(mark)
        mark.recorded = code == OK
        return code

    def wait(self, thread: Thread, e: str, s: str) -> int:
        event, stream = self.events[e], self.streams[s]
        if not event.captured:
            return 107024 if stream.side is not None and event.recorded_outside else OK
        mark = event.mark
        assert mark is not None
        capture = mark.side.capture
        if stream.side is None:
            if capture.invalidated:
                return 507000
            Side(capture, stream, origin=False)
        assert stream.side is not None
        if stream.side.capture is not capture:
            capture.invalidated = stream.side.capture.invalidated = True
            return 107032
        code = stream.side.add("wait")
        if code:
            return code
        mark.waited.append(stream.side)
        return OK

    def event_query_status(self, thread: Thread, e: str) -> int:
        return 107028 if self.events[e].captured else OK

    event_sync = event_query_status

    # task groups

    def task_grp_begin(self, thread: Thread, s: str) -> int:
        stream = self.streams[s]
        if stream.side is None:
            return 107029
        if stream.sampling:
            return 107033
        code = stream.side.add("nop")
        if code == OK:
            stream.sampling = True
            stream.side.capture.grouping = stream.side
        return code

    def task_grp_end(self, thread: Thread, s: str, **_: object) -> int:
        stream = self.streams[s]
        if stream.side is None:
            return 107029
        if not stream.sampling:
            return 107033
        capture = stream.side.capture
        if capture.grouping is not stream.side:
            return 507000
        stream.sampling = False
        capture.grouping = None
        code, capture.group_error = capture.group_error, OK
        return code or (507903 if capture.invalidated else OK)
