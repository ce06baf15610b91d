"""The chrome trace of a run, from records made by hand and by the recorder."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from aclrt.views.trace import Recorder, TaskName, TraceRecord, What, chrome_trace, reason_text

if TYPE_CHECKING:
    from hw.observe import Observer

RUN = [
    TraceRecord(5_000, What.TASK_START, 1, 0, "axpy", place="m.py:3"),
    TraceRecord(7_250, What.TASK_END, 1, 0),
    TraceRecord(4_000, What.MODEL_START, 0, model_id=9),
    TraceRecord(7_250, What.TASK_START, 1, 1, "EVENT_WAIT"),
    TraceRecord(7_300, What.PARKED, 1, name="event 5"),
    TraceRecord(9_001, What.WOKEN, 1),
    TraceRecord(9_002, What.TASK_END, 1, 1, status=3),
    TraceRecord(9_500, What.MODEL_END, model_id=9),
]


def events(text: str, phase: str = "X") -> list[dict[str, Any]]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == phase]


def test_golden() -> None:
    text = chrome_trace(RUN, rows={1: 'stream 3 "main"'}, models={9: "model 9 decode"}, status_name=lambda s: f"S{s}")
    assert text == (
        '{"displayTimeUnit":"ns","traceEvents":[\n'
        '{"name":"process_name","ph":"M","pid":0,"args":{"name":"device 0"}},\n'
        '{"name":"thread_name","ph":"M","pid":0,"tid":19,"args":{"name":"model 9 decode"}},\n'
        '{"name":"thread_sort_index","ph":"M","pid":0,"tid":19,"args":{"sort_index":0}},\n'
        '{"name":"thread_name","ph":"M","pid":0,"tid":2,"args":{"name":"stream 3 \\"main\\""}},\n'
        '{"name":"thread_sort_index","ph":"M","pid":0,"tid":2,"args":{"sort_index":1}},\n'
        '{"name":"run","cat":"model","ph":"X","pid":0,"tid":19,"ts":0.000,"dur":5.500,"args":{"sq":0}},\n'
        '{"name":"axpy","cat":"task","ph":"X","pid":0,"tid":2,"ts":1.000,"dur":2.250,'
        '"args":{"slot":0,"place":"m.py:3"}},\n'
        '{"name":"EVENT_WAIT","cat":"task","ph":"X","pid":0,"tid":2,"ts":3.250,"dur":1.752,'
        '"args":{"slot":1,"status":"S3"}},\n'
        '{"name":"waits for event 5","cat":"wait","ph":"X","pid":0,"tid":2,"ts":3.300,"dur":1.701,"args":{}}\n'
        "]}"
    )


def test_no_records() -> None:
    assert events(chrome_trace([])) == []


def test_what_never_ended_says_so() -> None:
    (task,) = events(chrome_trace([*RUN[:1], TraceRecord(6_000, What.WOKEN, 2)]))
    assert task["dur"] == 1.0
    assert task["args"]["unfinished"] is True


def test_a_second_start_ends_the_first() -> None:
    first, second = events(chrome_trace([RUN[0], TraceRecord(8_000, What.TASK_START, 1, 0, "axpy")]))
    assert (first["dur"], first["args"]["unfinished"], second["ts"]) == (3.0, True, 3.0)


def test_an_end_without_a_start_is_left_out() -> None:
    assert events(chrome_trace([TraceRecord(1, What.TASK_END, 1, 0), TraceRecord(2, What.MODEL_END, model_id=3)])) == []


def test_exact_far_from_zero() -> None:
    far = 2**60
    records = [TraceRecord(far, What.WOKEN, 0), TraceRecord(far + 1, What.PARKED, 0, name="x")]
    assert '"ts":0.001,"dur":0.000' in chrome_trace(records)


def test_recorder_is_an_observer() -> None:
    clock = iter(range(0, 1000, 100))
    recorder = Recorder(lambda: next(clock), lambda sq, slot, sqe: TaskName(f"{sqe.kind.name} {slot}", "m.py:1"))
    observer: Observer = recorder
    sqe = SimpleNamespace(kind=SimpleNamespace(name="EVENT_WAIT"))
    observer.model_start(9, 0)
    observer.task_start(1, 4, sqe)
    observer.parked(1, ("value", 4096, 0, "wanted >= 1"))
    observer.woken(1)
    observer.task_end(1, 4, sqe, 0)
    observer.model_end(9, 0)
    assert [record.what for record in recorder.records] == [
        What.MODEL_START,
        What.TASK_START,
        What.PARKED,
        What.WOKEN,
        What.TASK_END,
        What.MODEL_END,
    ]
    assert repr(recorder) == "<Recorder 6 records>"
    run, task, wait = events(chrome_trace(recorder.records))
    assert (task["name"], task["dur"], task["args"]["place"]) == ("EVENT_WAIT 4", 0.3, "m.py:1")
    assert (wait["name"], wait["dur"], run["dur"]) == ("waits for value at 0x1000 0 wanted >= 1", 0.1, 0.5)


def test_default_name_is_the_kind() -> None:
    recorder = Recorder(lambda: 0)
    recorder.task_start(0, 0, SimpleNamespace(kind=SimpleNamespace(name="NOP")))
    recorder.task_start(0, 1, SimpleNamespace(kind=17))
    assert [record.name for record in recorder.records] == ["NOP", "17"]


def test_reasons() -> None:
    assert reason_text(("event", 5)) == "event 5"
    assert reason_text(("clock",)) == "clock"


records = st.builds(
    TraceRecord,
    at_ns=st.integers(0, 10**12),
    what=st.sampled_from(What),
    sq=st.integers(0, 3),
    slot=st.integers(0, 3),
    name=st.text(),
    model_id=st.integers(0, 3),
    status=st.integers(0, 2),
    place=st.text(),
)


@given(st.lists(records))
def test_any_records_give_a_trace(seen: list[TraceRecord]) -> None:
    for event in events(chrome_trace(seen)):
        assert event["ts"] >= 0
        assert event["dur"] >= 0
