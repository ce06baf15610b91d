"""Random capture calls over four streams, three host threads and three events, against `reference.Reference`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
import uvloop
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from .adapter import Adapter
from .reference import Reference

if TYPE_CHECKING:
    from collections.abc import Callable

STREAMS = ("s0", "s1", "s2", "s3")
EVENTS = ("e0", "e1", "e2")

threads = st.integers(0, 2)
streams = st.sampled_from(STREAMS)
events = st.sampled_from(EVENTS)
modes = st.integers(0, 2)


class CaptureCalls(RuleBasedStateMachine):
    """Every rule makes one call on both sides; every code and every stream status must agree."""

    chip = "v100"
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=self.loop_factory)
        self.adapter = Adapter(self.chip)
        self.reference = Reference(self.chip)
        self.runner.run(self.adapter.__aenter__())

    def teardown(self) -> None:
        self.runner.run(self.adapter.__aexit__(None, None, None))
        self.runner.close()

    def call(self, thread: int, op: str, **args: Any) -> None:
        expected = self.reference.do(thread, op, args)
        code, _ = self.runner.run(self.adapter.do(thread, op, args))
        assert code == expected, f"{op} {args} in thread {thread}"

    @initialize()
    def make(self) -> None:
        for name in STREAMS:
            self.call(0, "create_stream", out=name)
        for name in EVENTS:
            self.call(0, "create_event", kind="ex", flag=1, out=name)

    @invariant()
    def statuses_agree(self) -> None:
        async def statuses() -> dict[str, int]:
            return self.adapter.statuses()

        assert self.runner.run(statuses()) == self.reference.statuses()

    @rule(t=threads, s=streams, mode=modes)
    def begin(self, t: int, s: str, mode: int) -> None:
        self.call(t, "capture_begin", s=s, mode=mode)

    @rule(t=threads, s=streams)
    def end(self, t: int, s: str) -> None:
        self.call(t, "capture_end", s=s, out="m0")

    @rule(t=threads, e=events, s=streams)
    def record(self, t: int, e: str, s: str) -> None:
        self.call(t, "record", e=e, s=s)

    @rule(t=threads, e=events, s=streams)
    def wait(self, t: int, e: str, s: str) -> None:
        self.call(t, "wait", e=e, s=s)

    @rule(t=threads, e=events, s=streams, back=streams)
    def fork_and_join(self, t: int, e: str, s: str, back: str) -> None:
        """A record and a wait that belong together, which single random calls seldom hit."""
        self.call(t, "record", e=e, s=s)
        self.call(t, "wait", e=e, s=back)

    @rule(t=threads, s=streams, op=st.sampled_from(("kernel", "memset_async")))
    def submit(self, t: int, s: str, op: str) -> None:
        self.call(t, op, s=s)

    @rule(t=threads, mode=st.integers(0, 3))
    def exchange(self, t: int, mode: int) -> None:
        self.call(t, "exchange_mode", mode=mode)

    @rule(t=threads)
    def unsafe(self, t: int) -> None:
        self.call(t, "memset")

    @rule(t=threads, s=streams)
    def synchronize(self, t: int, s: str) -> None:
        self.call(t, "stream_sync", s=s)

    @rule(t=threads)
    def synchronize_device(self, t: int) -> None:
        self.call(t, "device_sync")

    @rule(t=threads, e=events, op=st.sampled_from(("event_sync", "event_query_status")))
    def ask_event(self, t: int, e: str, op: str) -> None:
        self.call(t, op, e=e)

    @rule(t=threads, s=streams)
    def group_begin(self, t: int, s: str) -> None:
        self.call(t, "task_grp_begin", s=s)

    @rule(t=threads, s=streams)
    def group_end(self, t: int, s: str) -> None:
        self.call(t, "task_grp_end", s=s, out="g0")


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("chip", ["v100", "v200"])
def test_capture_calls_agree_with_the_rules(chip: str, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    machine = type("Machine", (CaptureCalls,), {"chip": chip, "loop_factory": staticmethod(loop_factory)})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=120,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        ),
    )
