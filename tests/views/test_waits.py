"""Who waits for whom: golden texts for the situations people meet, and the verdicts against a brute-force answer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aclrt.views.waitgraph import (
    HistoryListing,
    HostWaitListing,
    SignalListing,
    Target,
    TargetKind,
    WaitGraph,
    WaitListing,
)
from aclrt.views.waits import explain, headline


def event(number: int) -> Target:
    return Target(TargetKind.EVENT, number)


def wait(stream_id: int, number: int) -> WaitListing:
    return WaitListing(stream_id=stream_id, target=event(number))


def signal(stream_id: int, number: int) -> SignalListing:
    return SignalListing(stream_id=stream_id, target=event(number))


def test_nobody() -> None:
    assert explain([]) == "nobody waits"
    assert headline([]) == ""


def test_two_streams_wait_for_each_other() -> None:
    waits = [
        WaitListing(
            stream_id=3,
            target=event(5),
            label="main",
            origin="captured at m.py:9",
            task="task 12 EVENT_WAIT",
            place="m.py:20",
        ),
        WaitListing(stream_id=4, target=event(6), task="task 3 EVENT_WAIT", place="m.py:24"),
    ]
    signals = [
        SignalListing(target=event(5), stream_id=4, task="task 4 EVENT_RECORD", place="m.py:25"),
        SignalListing(target=event(6), stream_id=3, task="task 13 EVENT_RECORD", place="m.py:21"),
    ]
    hosts = [
        HostWaitListing(
            task="Task-1", target=Target(TargetKind.STREAM, 3), call="aclrtSynchronizeStream", place="m.py:30"
        )
    ]
    assert explain(waits, hosts, signals).split("\n") == [
        "2 streams and 1 host task wait; 2 streams are stuck: nothing queued can wake them",
        'stream 3 "main" (captured at m.py:9, task 12 EVENT_WAIT at m.py:20) waits for event 5, which only stream 4'
        " would record (task 4 EVENT_RECORD at m.py:25); stream 4 is parked on event 6",
        "stream 4 (task 3 EVENT_WAIT at m.py:24) waits for event 6, which only stream 3 would record (task 13"
        " EVENT_RECORD at m.py:21); stream 3 is parked on event 5",
        'host task "Task-1" (aclrtSynchronizeStream at m.py:30) waits for stream 3, which is parked on event 5',
        "cycle: stream 3 -> event 5 -> stream 4 -> event 6 -> stream 3",
    ]
    assert headline(waits, signals) == "cycle: stream 3 -> event 5 -> stream 4 -> event 6 -> stream 3"


def test_nothing_will_ever_record_it() -> None:
    assert explain([wait(3, 5)]).split("\n") == [
        "1 stream waits; 1 stream is stuck: nothing queued can wake it",
        "stream 3 waits for event 5; nothing that is queued will ever record it",
    ]
    assert headline([wait(3, 5)]) == "stream 3 waits for event 5; nothing that is queued will ever record it"


def test_D1_a_lost_signal_is_told() -> None:
    target = Target(TargetKind.EXTERNAL, 2)
    stuck = WaitListing(stream_id=9, target=target, model_id=3, model_name="decode", task="task 0 EXTERNAL_EVENT_WAIT")
    lost = HistoryListing(
        target=target, recorded="by stream 5 at m.py:40", erased="by the reset of replay 1 at m.py:12"
    )
    assert explain([stuck], history=[lost]).split("\n")[1] == (
        'stream 9 (of model 3 "decode", task 0 EXTERNAL_EVENT_WAIT) waits for external event 2; nothing that is queued'
        " will ever record it (the signal was lost: recorded by stream 5 at m.py:40, erased by the reset of replay 1 at"
        " m.py:12)"
    )


def test_a_past_record_that_nothing_erased() -> None:
    seen = HistoryListing(target=event(5), recorded="by stream 2 at m.py:4")
    assert explain([wait(3, 5)], history=[seen]).endswith("record it (last recorded by stream 2 at m.py:4)")


def test_D6_recorded_behind_its_own_wait() -> None:
    waits = [wait(3, 5)]
    signals = [SignalListing(target=event(5), stream_id=3, task="task 8 EVENT_RECORD", place="m.py:7")]
    assert explain(waits, (), signals).split("\n")[1:] == [
        "stream 3 waits for event 5, which only task 8 EVENT_RECORD at m.py:7 would record, queued behind this wait on"
        " the same stream",
        "cycle: stream 3 -> event 5 -> stream 3",
    ]


def test_a_stream_that_can_run_will_record_it() -> None:
    assert explain([wait(3, 5)], (), [signal(4, 5)]).split("\n") == [
        "1 stream waits; nothing is stuck for good",
        "stream 3 waits for event 5, which only stream 4 would record; stream 4 can run",
    ]
    assert headline([wait(3, 5)], [signal(4, 5)]) == ""


def test_one_of_several_is_enough() -> None:
    waits = [wait(3, 5), wait(4, 6)]
    text = explain(waits, (), [signal(4, 5), signal(6, 5), signal(6, 5)])
    assert "1 stream is stuck: nothing queued can wake it" in text
    assert "which only streams 4 and 6 would record; stream 4 is parked on event 6, stream 6 can run" in text


def test_many_signallers_are_counted() -> None:
    text = explain([wait(3, 5)], (), [signal(n, 5) for n in range(10, 20)])
    assert "which only streams 10, 11, 12, 13 and 6 more would record" in text


def test_deadlines_are_told_and_satisfy_nothing() -> None:
    waits = [WaitListing(stream_id=3, target=event(5), deadline_ns=12_000_000)]
    assert explain(waits).split("\n") == [
        "1 stream waits; 1 stream is stuck: nothing queued can wake it, only a time-out",
        "stream 3 waits for event 5; nothing that is queued will ever record it; gives up at 12.000 ms of device time",
    ]


def test_the_run_of_a_model_hangs_on_its_streams() -> None:
    waits = [
        WaitListing(stream_id=1, target=Target(TargetKind.MODEL, 7)),
        WaitListing(stream_id=9, target=event(5), model_id=7),
        WaitListing(stream_id=10, target=Target(TargetKind.TIME, 0, "until 4 ms"), model_id=7),
    ]
    hosts = [HostWaitListing(task="main", target=Target(TargetKind.MODEL, 7))]
    assert explain(waits, hosts).split("\n") == [
        "3 streams and 1 host task wait; 2 streams are stuck: nothing queued can wake them",
        "stream 1 waits for the run of model 7; of it stream 9 is parked on event 5, stream 10 is parked on the clock",
        "stream 9 (of model 7) waits for event 5; nothing that is queued will ever record it",
        "stream 10 (of model 7) waits for the clock (until 4 ms)",
        'host task "main" waits for the run of model 7; of it stream 9 is parked on event 5, stream 10 is parked on the'
        " clock",
    ]


def test_a_run_with_nothing_parked_can_run() -> None:
    assert explain([WaitListing(stream_id=1, target=Target(TargetKind.MODEL, 7))]).endswith(
        "waits for the run of model 7, which can run"
    )


def test_values() -> None:
    target = Target(TargetKind.VALUE, 0x1000, "is 0, wanted >= 1")
    alone = [WaitListing(stream_id=3, target=target)]
    assert explain(alone).split("\n") == [
        "1 stream waits; nothing is stuck for good",  # a kernel might store it: nobody can list that
        "stream 3 waits for the value at 0x1000 (is 0, wanted >= 1); no value write that is queued stores there",
    ]
    written = SignalListing(target=Target(TargetKind.VALUE, 0x1000), stream_id=4, task="task 2", place="m.py:8")
    assert explain(alone, (), [written]).endswith(
        "(is 0, wanted >= 1), which only stream 4 would write (task 2 at m.py:8); stream 4 can run"
    )


def test_activation() -> None:
    asleep = [WaitListing(stream_id=3, target=Target(TargetKind.ACTIVATION, 3))]
    assert explain(asleep).endswith("stream 3 waits to be activated; nothing that is queued will ever activate it")
    starter = SignalListing(target=Target(TargetKind.ACTIVATION, 3), stream_id=4)
    assert explain(asleep, (), [starter]).endswith(
        "waits to be activated, which only stream 4 would do; stream 4 can run"
    )


def test_other_things_to_wait_for() -> None:
    kinds = {
        TargetKind.HOST: "for host code (x)",
        TargetKind.CORE: "for a free core (x)",
        TargetKind.KERNEL: "for work that is being executed (x)",
        TargetKind.RESOURCE: "for device resources (x)",
        TargetKind.STREAM: "for stream 0 (x), which can run",
        TargetKind.NOTIFY: "for notify 0 (x); nothing that is queued will ever record it",
    }
    for kind, text in kinds.items():
        assert explain([WaitListing(stream_id=1, target=Target(kind, 0, "x"))]).endswith(f"stream 1 waits {text}")


def test_host_waiting_for_an_event() -> None:
    host = HostWaitListing(task="Task-2", target=event(5), deadline_ns=1_500_000)
    assert explain([], [host]) == (
        "1 host task waits; nothing is stuck for good\n"
        'host task "Task-2" waits for event 5; nothing that is queued will ever record it; gives up at 1.500 ms of'
        " device time"
    )


def test_a_long_chain_does_not_recurse() -> None:
    n = 20_000
    waits = [wait(i, i) for i in range(n)]
    ring = [signal((i + 1) % n, i) for i in range(n)]
    graph = WaitGraph(waits, ring, ())
    assert len(graph.stuck) == n
    assert [len(cycle) for cycle in graph.cycles()] == [n]
    chain = WaitGraph(waits, [*ring[:-1], signal(n, n - 1)], ())  # stream n is not parked
    assert not chain.stuck


def brute_stuck(waits: list[WaitListing], signals: list[SignalListing]) -> set[int]:
    """Run the thing: wake whoever can be woken until nobody moves. The independent answer."""
    parked = {w.stream_id: w for w in waits}
    moved = True
    while moved:
        moved = False
        for sid, w in list(parked.items()):
            if any(s.target.key == w.target.key and s.stream_id not in parked for s in signals):
                del parked[sid]
                moved = True
    return set(parked)


@given(
    waits=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), max_size=8, unique_by=lambda pair: pair[0]),
    signals=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), max_size=16),
)
def test_stuck_and_cycles_agree_with_brute_force(waits: list[tuple[int, int]], signals: list[tuple[int, int]]) -> None:
    parked, queued = [wait(*pair) for pair in waits], [signal(*pair) for pair in signals]
    graph = WaitGraph(parked, queued, ())
    stuck = brute_stuck(parked, queued)
    assert graph.stuck == stuck
    seen: set[int] = set()
    for cycle in graph.cycles():
        assert seen.isdisjoint(cycle)
        seen.update(cycle)
        assert all(b in graph.blockers[a] for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        assert set(cycle) <= stuck
    # a stuck stream always leads to a cycle or to a wait that nothing signals
    roots = seen | {sid for sid in stuck if not graph.blockers[sid]}
    assert bool(stuck) == bool(roots)
    assert bool(stuck) == bool(headline(parked, queued))
    explain(parked, (), queued)
