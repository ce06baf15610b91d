"""Who waits for whom: a text over the waits of a device and of its host tasks, with the cycles among them.

Not a detector that runs by itself: it says what the listings (`waitgraph`) hold, at the moment they were made.
`DeadlockError` and time-outs carry this text; `Device.explain()` gives it at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aclrt.views.waitgraph import SIGNAL_VERB, Target, TargetKind, WaitGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aclrt.views.waitgraph import HistoryListing, HostWaitListing, SignalListing, WaitListing

_STREAMS_NAMED = 4  # signalling streams named on one line


def explain(
    waits: Iterable[WaitListing],
    hosts: Iterable[HostWaitListing] = (),
    signals: Iterable[SignalListing] = (),
    history: Iterable[HistoryListing] = (),
) -> str:
    """Who waits for whom: a summary line, one line for each waiter, one for each cycle. No newline at the end.

    `waits` has one entry for each parked stream; a stream without an entry is taken to be able to run. `signals` lists
    what is queued and would satisfy a wait, `history` what happened to a target before. Order of lines: as given.
    """
    graph = WaitGraph(waits, signals, history)
    host_list = list(hosts)
    if not graph.waits and not host_list:
        return "nobody waits"
    lines = [_summary(graph, host_list)]
    lines += [_wait_line(graph, wait) for wait in graph.waits.values()]
    lines += [_host_line(graph, host) for host in host_list]
    lines += [_cycle_line(graph, cycle) for cycle in graph.cycles()]
    return "\n".join(lines)


def headline(
    waits: Iterable[WaitListing], signals: Iterable[SignalListing] = (), history: Iterable[HistoryListing] = ()
) -> str:
    """The root of the trouble on one line, for an error's message: a cycle, else a wait that nothing will end.

    "" when every wait may still end.
    """
    graph = WaitGraph(waits, signals, history)
    for cycle in graph.cycles():
        return _cycle_line(graph, cycle)
    for sid, wait in graph.waits.items():
        if sid in graph.stuck and not graph.blockers[sid]:
            return _wait_line(graph, wait)
    return ""


def _summary(graph: WaitGraph, hosts: Sequence[HostWaitListing]) -> str:
    parts = []
    if graph.waits:
        parts.append(_count(len(graph.waits), "stream"))
    if hosts:
        parts.append(_count(len(hosts), "host task"))
    total = len(graph.waits) + len(hosts)
    text = f"{' and '.join(parts)} {'waits' if total == 1 else 'wait'}"
    if not graph.stuck:
        return f"{text}; nothing is stuck for good"
    verb = "is" if len(graph.stuck) == 1 else "are"
    return f"{text}; {_count(len(graph.stuck), 'stream')} {verb} stuck: nothing queued can wake {_them(graph)}"


def _them(graph: WaitGraph) -> str:
    text = "it" if len(graph.stuck) == 1 else "them"
    timed = any(graph.waits[sid].deadline_ns is not None for sid in graph.stuck)
    return f"{text}, only a time-out" if timed else text


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _wait_line(graph: WaitGraph, wait: WaitListing) -> str:
    name = f"stream {wait.stream_id}" + (f' "{wait.label}"' if wait.label else "")
    facts = [wait.origin]
    if wait.model_id is not None:
        facts.append(f"of model {wait.model_id}" + (f' "{wait.model_name}"' if wait.model_name else ""))
    facts.append(_at(wait.task, wait.place))
    inner = ", ".join(fact for fact in facts if fact)
    who = f"{name} ({inner})" if inner else name
    return f"{who} waits {_for(wait.target)}{_outlook(graph, wait)}{_deadline(wait.deadline_ns)}"


def _host_line(graph: WaitGraph, host: HostWaitListing) -> str:
    inner = _at(host.call, host.place)
    who = f'host task "{host.task}" ({inner})' if inner else f'host task "{host.task}"'
    target = host.target
    text = f"{who} waits {_for(target)}"
    if target.kind is TargetKind.STREAM:
        text += f", which {_state(graph, target.ident)}"
    elif target.kind is TargetKind.MODEL:
        text += _members(graph, [w.stream_id for w in graph.waits.values() if w.model_id == target.ident])
    elif target.kind in SIGNAL_VERB:
        text += _signalled(graph, target, None)
    return text + _deadline(host.deadline_ns)


def _outlook(graph: WaitGraph, wait: WaitListing) -> str:
    """What would end this wait."""
    kind = wait.target.kind
    if kind is TargetKind.STREAM:
        return f", which {_state(graph, wait.target.ident)}"
    if kind is TargetKind.MODEL:
        return _members(graph, graph.blockers[wait.stream_id])
    if kind in SIGNAL_VERB:
        return _signalled(graph, wait.target, wait.stream_id)
    return ""


def _signalled(graph: WaitGraph, target: Target, own: int | None) -> str:
    """Who would satisfy a wait for `target`, and what those streams do now. `own` is the stream that waits."""
    verb = SIGNAL_VERB[target.kind]
    signals = graph.signals.get(target.key, [])
    if not signals:
        if target.kind is TargetKind.VALUE:
            return "; no value write that is queued stores there" + _past(graph, target)
        return f"; nothing that is queued will ever {verb} it" + _past(graph, target)
    streams = list(dict.fromkeys(signal.stream_id for signal in signals))
    others = [sid for sid in streams if sid != own]
    verb = "do" if target.kind is TargetKind.ACTIVATION else verb
    task = _at(signals[0].task, signals[0].place)
    if not others:
        what = task or "a task"
        return f", which only {what} would {verb}, queued behind this wait on the same stream" + _past(graph, target)
    where = f" ({task})" if task and len(signals) == 1 else ""
    states = ", ".join(f"stream {sid} {_state(graph, sid)}" for sid in others[:_STREAMS_NAMED])
    return f", which only {_named(others)} would {verb}{where}; {states}" + _past(graph, target)


def _past(graph: WaitGraph, target: Target) -> str:
    entry = graph.history.get(target.key)
    if entry is None or not (entry.recorded or entry.erased):
        return ""
    if not entry.erased:
        return f" (last recorded {entry.recorded})"
    recorded = f"recorded {entry.recorded}, " if entry.recorded else ""
    return f" (the signal was lost: {recorded}erased {entry.erased})"


def _members(graph: WaitGraph, streams: Sequence[int]) -> str:
    """The parked streams of the run waited for."""
    if not streams:
        return ", which can run"
    states = ", ".join(f"stream {sid} {_state(graph, sid)}" for sid in streams[:_STREAMS_NAMED])
    rest = len(streams) - _STREAMS_NAMED
    return f"; of it {states}" + (f" and {_count(rest, 'more stream')} parked" if rest > 0 else "")


def _named(streams: Sequence[int]) -> str:
    names = [str(sid) for sid in streams[:_STREAMS_NAMED]]
    rest = len(streams) - len(names)
    if rest > 0:
        return f"streams {', '.join(names)} and {rest} more"
    if len(names) == 1:
        return f"stream {names[0]}"
    return f"streams {', '.join(names[:-1])} and {names[-1]}"


def _state(graph: WaitGraph, sid: int) -> str:
    wait = graph.waits.get(sid)
    return "can run" if wait is None else f"is parked on {_thing(wait.target)}"


def _for(target: Target) -> str:
    detail = f" ({target.detail})" if target.detail else ""
    if target.kind is TargetKind.ACTIVATION:
        return f"to be activated{detail}"
    return f"for {_thing(target)}{detail}"


# The thing waited for, by kind; {0} is its number.
_THING = {
    TargetKind.EVENT: "event {0}",
    TargetKind.NOTIFY: "notify {0}",
    TargetKind.EXTERNAL: "external event {0}",
    TargetKind.VALUE: "the value at {0:#x}",
    TargetKind.ACTIVATION: "its activation",
    TargetKind.STREAM: "stream {0}",
    TargetKind.MODEL: "the run of model {0}",
    TargetKind.END: "its end",
    TargetKind.HOST: "host code",
    TargetKind.TIME: "the clock",
    TargetKind.CORE: "a free core",
    TargetKind.KERNEL: "work that is being executed",
    TargetKind.RESOURCE: "device resources",
}


def _thing(target: Target) -> str:
    return _THING[target.kind].format(target.ident)


def _at(what: str, place: str) -> str:
    if not place:
        return what
    return f"{what} at {place}" if what else f"at {place}"


def _deadline(deadline_ns: int | None) -> str:
    return "" if deadline_ns is None else f"; gives up at {deadline_ns / 1e6:.3f} ms of device time"


def _cycle_line(graph: WaitGraph, cycle: Sequence[int]) -> str:
    steps = "".join(f"stream {sid} -> {_thing(graph.waits[sid].target)} -> " for sid in cycle)
    return f"cycle: {steps}stream {cycle[0]}"
