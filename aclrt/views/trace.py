"""The trace of a run: a recorder that watches the task scheduler, and its records as chrome-trace JSON.

Not the dump of a model (`dump` shows what would run, in a made-up time; this shows what ran, in device time).
A recorder is an observer of `hw.observe`; attach it with the driver's `observe` and detach it before reading.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


@final
class What(StrEnum):
    """What a record saw (the calls of hw.observe's protocol)."""

    TASK_START = "task_start"
    TASK_END = "task_end"
    PARKED = "parked"
    WOKEN = "woken"
    MODEL_START = "model_start"
    MODEL_END = "model_end"


@final
class TraceRecord(msgspec.Struct, frozen=True, gc=False):
    """One thing seen at one time. Fields that do not belong to `what` keep their defaults."""

    at_ns: int
    what: What
    sq: int = -1
    slot: int = -1
    name: str = ""  # of the task; of what an SQ parked on
    model_id: int = -1
    status: int = 0  # of the task or the model; 0: success
    place: str = ""  # "file:line" of the launch


@final
class TaskName(msgspec.Struct, frozen=True, gc=False):
    """How a task is called in a trace, and where it was launched."""

    name: str
    place: str = ""


def sqe_name(sq: int, slot: int, sqe: Any) -> TaskName:
    """The name when nobody knows a better one: the kind of the decoded SQE."""
    kind = sqe.kind
    return TaskName(str(getattr(kind, "name", kind)))


@final
class Recorder:
    """An observer that keeps a record of everything it is told.

    `now_ns` is the device's clock. `name_of(sq, slot, sqe)` names a task when it starts.
    """

    __slots__ = ("_name_of", "_now_ns", "records")

    def __init__(self, now_ns: Callable[[], int], name_of: Callable[[int, int, Any], TaskName] = sqe_name) -> None:
        self._now_ns = now_ns
        self._name_of = name_of
        self.records: list[TraceRecord] = []

    def __repr__(self) -> str:
        return f"<Recorder {len(self.records)} records>"

    def task_start(self, sq: int, slot: int, sqe: Any) -> None:
        at = self._now_ns()
        named = self._name_of(sq, slot, sqe)
        self.records.append(TraceRecord(at, What.TASK_START, sq, slot, named.name, place=named.place))

    def task_end(self, sq: int, slot: int, sqe: Any, status: int) -> None:
        self.records.append(TraceRecord(self._now_ns(), What.TASK_END, sq, slot, status=status))

    def parked(self, sq: int, reason: tuple[Any, ...]) -> None:
        self.records.append(TraceRecord(self._now_ns(), What.PARKED, sq, name=reason_text(reason)))

    def woken(self, sq: int) -> None:
        self.records.append(TraceRecord(self._now_ns(), What.WOKEN, sq))

    def model_start(self, model: int, sq: int) -> None:
        self.records.append(TraceRecord(self._now_ns(), What.MODEL_START, sq, model_id=model))

    def model_end(self, model: int, status: int) -> None:
        self.records.append(TraceRecord(self._now_ns(), What.MODEL_END, model_id=model, status=status))


def reason_text(reason: Sequence[Any]) -> str:
    """`("event", 5)` as "event 5", `("value", address, current, wanted)` with the address in hex."""
    if reason and reason[0] == "value" and len(reason) > 1 and isinstance(reason[1], int):
        return " ".join(["value", f"at {reason[1]:#x}", *(str(part) for part in reason[2:])])
    return " ".join(str(part) for part in reason)


def chrome_trace(
    records: Iterable[TraceRecord],
    *,
    rows: Mapping[int, str] | None = None,
    models: Mapping[int, str] | None = None,
    process: str = "device 0",
    status_name: Callable[[int], str] = str,
) -> str:
    """The run as chrome-trace JSON (an object with "traceEvents"), for chrome://tracing or Perfetto.

    One row for each SQ, named by `rows` (SQ -> "stream 3 decode"), and one for each model, named by `models`. Tasks and
    parked times are complete events ("X"); times are microseconds since the first record, exact to the nanosecond.
    Records are sorted by time; those of one time stay in their order. A task, wait or run that never ended ends with
    the last record and says "unfinished".
    """
    ordered = sorted(records, key=lambda record: record.at_ns)
    events = _Events(ordered[0].at_ns if ordered else 0)
    for record in ordered:
        events.take(record, status_name)
    if ordered:
        events.close_open(ordered[-1].at_ns)
    lines = [*_names(events, rows or {}, models or {}, process), *(_line(event) for event in events.out)]
    return '{"displayTimeUnit":"ns","traceEvents":[\n' + ",\n".join(lines) + "\n]}"


_Key = tuple[str, int, int]  # category, SQ or model, slot


@final
class _Span(msgspec.Struct, gc=False):
    """Something open on a row, or finished."""

    at_ns: int
    row: tuple[int, int]  # (0, sq) or (1, model)
    name: str
    category: str
    args: dict[str, Any]
    dur_ns: int = 0


@final
class _Events:
    """Pairs starts with ends. `out` is in order of start."""

    __slots__ = ("_open", "_origin_ns", "out", "rows")

    def __init__(self, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        self._open: dict[_Key, _Span] = {}
        self.out: list[_Span] = []
        self.rows: dict[tuple[int, int], None] = {}

    def take(self, record: TraceRecord, status_name: Callable[[int], str]) -> None:
        sq, model = record.sq, record.model_id
        match record.what:
            case What.TASK_START:
                args: dict[str, Any] = {"slot": record.slot}
                if record.place:
                    args["place"] = record.place
                self._start(("task", sq, record.slot), (0, sq), record.name, record.at_ns, args)
            case What.TASK_END:
                self._end(("task", sq, record.slot), record, status_name)
            case What.PARKED:
                self._start(("wait", sq, 0), (0, sq), f"waits for {record.name}", record.at_ns, {})
            case What.WOKEN:
                self._end(("wait", sq, 0), record, status_name)
            case What.MODEL_START:
                self._start(("model", model, 0), (1, model), "run", record.at_ns, {"sq": sq})
            case What.MODEL_END:
                self._end(("model", model, 0), record, status_name)

    def _start(self, key: _Key, row: tuple[int, int], name: str, at_ns: int, args: dict[str, Any]) -> None:
        self._close(key, at_ns)  # a second start without an end: the recorder was attached late or an SQ was aborted
        span = _Span(at_ns - self._origin_ns, row, name, key[0], args)
        self._open[key] = span
        self.out.append(span)
        self.rows[row] = None

    def _end(self, key: _Key, record: TraceRecord, status_name: Callable[[int], str]) -> None:
        span = self._open.pop(key, None)
        if span is None:
            return  # began before the recorder was attached
        span.dur_ns = record.at_ns - self._origin_ns - span.at_ns
        if record.status:
            span.args["status"] = status_name(record.status)

    def _close(self, key: _Key, at_ns: int) -> None:
        span = self._open.pop(key, None)
        if span is not None:
            span.dur_ns = at_ns - self._origin_ns - span.at_ns
            span.args["unfinished"] = True

    def close_open(self, at_ns: int) -> None:
        for key in list(self._open):
            self._close(key, at_ns)


def _names(events: _Events, rows: Mapping[int, str], models: Mapping[int, str], process: str) -> list[str]:
    """Metadata events: the process's name, each row's, models first and then SQs by number."""
    lines = [f'{{"name":"process_name","ph":"M","pid":0,"args":{{"name":{_quoted(process)}}}}}']
    for order, row in enumerate(sorted(events.rows, key=lambda row: (-row[0], row[1]))):
        kind, number = row
        name = models.get(number, f"model {number}") if kind else rows.get(number, f"SQ {number}")
        where = f'"ph":"M","pid":0,"tid":{_tid(row)}'
        lines.append(f'{{"name":"thread_name",{where},"args":{{"name":{_quoted(name)}}}}}')
        lines.append(f'{{"name":"thread_sort_index",{where},"args":{{"sort_index":{order}}}}}')
    return lines


def _line(span: _Span) -> str:
    return (
        f'{{"name":{_quoted(span.name)},"cat":"{span.category}","ph":"X","pid":0,"tid":{_tid(span.row)},'
        f'"ts":{_us(span.at_ns)},"dur":{_us(span.dur_ns)},"args":{json.dumps(span.args, separators=(",", ":"))}}}'
    )


def _tid(row: tuple[int, int]) -> int:
    # Two kinds of rows in one number space: SQs even, models odd.
    return 2 * row[1] + row[0]


def _us(ns: int) -> str:
    # Written from the integer, so that no float rounds it.
    return f"{ns // 1000}.{ns % 1000:03d}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())
