"""The virtual clock: it jumps by itself, time-outs count device time, a deadlock is proved, one seed gives one run."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from tests.timeline import settle

from .bench import add, array, code_of, held, refused, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MS = 1_000_000


@aclrt.kernel(cost_ns=5 * MS)
def slow(x: aclrt.InOut[np.float32]) -> None:
    x += 1


@pytest.fixture(params=["v100", "v200"])
async def dev(request: pytest.FixtureRequest) -> AsyncIterator[aclrt.Device]:
    async with aclrt.open_device(chip=request.param, clock="virtual") as device:
        yield device


# --- time ------------------------------------------------------------------------------------------------------------


async def test_a_task_costs_what_it_says_and_no_wall_time(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    began, before = time.perf_counter(), dev.now_ns()
    for _ in range(200):
        s.launch(slow, x)
    await s.synchronize()
    assert dev.now_ns() - before >= 200 * 5 * MS
    assert time.perf_counter() - began < 0.9  # a second of device time
    assert x.numpy()[0] == 200


async def test_streams_overlap(dev: aclrt.Device) -> None:
    a, b, x, y = dev.stream(), dev.stream(), array(dev), array(dev)
    before = dev.now_ns()
    for _ in range(10):
        a.launch(slow, x)
        b.launch(slow, y)
    await dev.synchronize()
    assert 50 * MS <= dev.now_ns() - before < 60 * MS


async def test_elapsed_time_is_device_time(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    start, end = dev.event(timing=True), dev.event(timing=True)
    s.record(start)
    s.launch(slow, x)
    s.record(end)
    await s.synchronize()
    assert 5 <= acl.aclrtEventElapsedTime(start, end) < 6


async def test_time_stands_still_while_the_host_works(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    s.launch(slow, x)
    await s.synchronize()
    before = dev.now_ns()
    await settle(200)
    assert dev.now_ns() == before


# --- time-outs -------------------------------------------------------------------------------------------------------


async def test_a_synchronize_that_is_too_short(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    for _ in range(3):
        s.launch(slow, x)
    began = dev.now_ns()
    with refused(507046, "7 ms of device time", f"stream {s.id}") as caught:
        await s.synchronize(7)
    assert isinstance(caught.value, TimeoutError)
    assert dev.now_ns() - began == 7 * MS
    assert caught.value.__notes__
    await s.synchronize(60_000)  # the time-out changed nothing
    assert x.numpy()[0] == 3


async def test_every_wait_counts_device_time(dev: aclrt.Device) -> None:
    s, never, event, me = dev.stream(), dev.event(external=True), dev.event(), aclrt.host_thread_id()
    acl.aclrtSubscribeReport(me, s)
    s.wait(never)
    s.record(event)
    waits: list[tuple[Callable[[], Any], int]] = [
        (lambda: s.synchronize(1_000), 507046),
        (lambda: dev.synchronize(2_000), 507046),
        (lambda: event.synchronize(3_000), 507047),
        (lambda: acl.aclrtProcessReport(4_000), 507012),
    ]
    for number, (wait, code) in enumerate(waits, 1):
        began = dev.now_ns()
        with pytest.raises(TimeoutError) as caught:
            await wait()
        assert isinstance(caught.value, aclrt.AclError)
        assert caught.value.code == code
        assert dev.now_ns() - began == number * 1_000 * MS
    acl.aclrtUnSubscribeReport(me, s)


async def test_destroying_a_running_graph_gives_up_after_ten_seconds(dev: aclrt.Device) -> None:
    s, gate = dev.stream(), dev.array(np.zeros(1, "i8"))
    async with aclrt.capture(s) as graph:
        acl.aclrtValueWait(gate, 1, acl.ACL_VALUE_WAIT_EQ, s)
    run = graph.launch(s)
    began = dev.now_ns()
    with refused(107037, "graph"):
        await graph.close()
    assert dev.now_ns() - began == 10_000 * MS
    assert graph.alive
    gate.assign(1)
    await run
    await graph.close()


@pytest.mark.parametrize("way", ["event", "operation time-out", "notify", "in a graph"])
async def test_a_device_wait_that_times_out(dev: aclrt.Device, way: str) -> None:
    """107020 at the next synchronize; what follows it runs."""
    s, x, event, notify = dev.stream(), array(dev), dev.event(external=True), dev.notify()
    began, graph = dev.now_ns(), None
    if way == "event":
        acl.aclrtStreamWaitEventWithTimeout(s, event, 2)
    elif way == "operation time-out":
        acl.aclrtSetOpWaitTimeout(2)
        s.wait(event)
        acl.aclrtSetOpWaitTimeout(0)
        s.launch(add, x, 1.0)
    elif way == "notify":
        s.wait(notify, timeout_ms=2_000)
    else:
        async with aclrt.capture(s) as graph:
            s.wait(notify, timeout_ms=2_000)
            s.launch(add, x, 1.0)
        run = graph.launch(s)
    s.launch(add, x, 10.0)
    code = await code_of(s.synchronize())
    assert 2_000 * MS <= dev.now_ns() - began < 2_001 * MS
    assert x.numpy()[0] in (10, 11)
    if graph is None:
        assert code == 107020
    else:
        with refused(507011) as caught:
            await run
        assert code == 507011
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert getattr(caught.value.__cause__, "code", 0) == 107020
        assert x.numpy()[0] == 10
    assert await code_of(s.synchronize()) == 0
    assert not dev.npu.driver.waiting()


async def test_a_wait_that_is_met_in_time(dev: aclrt.Device) -> None:
    s, other, x, event = dev.stream(), dev.stream(), array(dev), dev.event(external=True)
    acl.aclrtStreamWaitEventWithTimeout(s, event, 1)
    s.launch(add, x, 1.0)
    other.launch(slow, x)
    other.record(event)
    await s.synchronize()
    assert x.numpy()[0] == 2
    assert dev.now_ns() < 1_000 * MS  # the deadline was taken back


async def test_a_kernel_over_the_execution_limit(dev: aclrt.Device) -> None:
    s, x = dev.stream(), array(dev)
    acl.aclrtSetOpExecuteTimeOutWithMs(2)
    s.launch(slow, x)
    assert await code_of(s.synchronize()) in (507034, 507014)
    acl.aclrtSetOpExecuteTimeOutWithMs(20)
    s.launch(slow, x)
    await s.synchronize()


# --- deadlock --------------------------------------------------------------------------------------------------------


async def test_whoever_waits_is_told_of_a_deadlock(dev: aclrt.Device) -> None:
    a, b = dev.stream(), dev.stream()
    first, second = dev.event(external=True), dev.event(external=True)
    a.wait(first)
    a.record(second)
    b.wait(second)
    b.record(first)
    behind = dev.event()
    b.record(behind)
    waits = [a.synchronize(), b.synchronize(), dev.synchronize(), behind.synchronize()]
    errors = await asyncio.gather(*waits, return_exceptions=True)
    for error in errors:
        assert isinstance(error, aclrt.DeadlockError)
        assert not isinstance(error, TimeoutError)  # no time passed
        assert error.code == 107020
        assert str(error).endswith("[107020]")
        assert "\n" not in str(error)
        story = "\n".join(error.__notes__)
        assert f"stream {a.id}" in story
        assert f"stream {b.id}" in story
        assert "cycle" in story.lower()
    assert dev.now_ns() == 0
    assert not dev.npu.waits
    await acl.aclrtStreamAbort(a)  # and it can be undone
    await acl.aclrtStreamAbort(b)
    assert [await code_of(s.synchronize()) for s in (a, b)] == [107023, 107023]


async def test_a_wait_on_the_stream_that_would_record_it(dev: aclrt.Device) -> None:
    s, x, event = dev.stream(), array(dev), dev.event(external=True)
    s.wait(event)
    s.launch(add, x, 1.0)
    s.record(event)
    with pytest.raises(aclrt.DeadlockError, match=rf"cycle: stream {s.id} -> event \d+ -> stream {s.id}") as caught:
        await s.synchronize()
    assert "queued behind this wait on the same stream" in "\n".join(caught.value.__notes__)


async def test_a_run_that_waits_for_what_nobody_records(dev: aclrt.Device) -> None:
    s, x, event = dev.stream(), array(dev), dev.event(external=True)
    async with aclrt.capture(s, name="stuck") as graph:
        s.launch(add, x, 1.0)
        s.wait(event)
        s.reset(event)
        s.launch(add, x, 10.0)
    run = graph.launch(s)
    with pytest.raises(aclrt.DeadlockError) as caught:
        await run
    story = "\n".join(caught.value.__notes__)
    assert "stuck" in story
    assert "test_virtual_clock.py" in story
    assert not run.done  # the verdict is about the wait; the run is as it was
    other = dev.stream()
    other.record(event)
    await run
    assert x.numpy()[0] == 11


async def test_no_deadlock_while_somebody_can_still_act(dev: aclrt.Device) -> None:
    """The host is part of the story: a task that will record after a few passes of the loop is waited for."""
    s, x, event = dev.stream(), array(dev), dev.event(external=True)
    s.wait(event)
    s.launch(add, x, 1.0)

    async def rescue() -> None:
        await asyncio.sleep(0)
        dev.stream().record(event)

    task = asyncio.create_task(rescue())
    await s.synchronize()
    await task
    assert x.numpy()[0] == 1


async def test_a_timeout_comes_before_the_verdict(dev: aclrt.Device) -> None:
    s, event = dev.stream(), dev.event(external=True)
    s.wait(event)
    assert await code_of(s.synchronize(5)) == 507046
    with pytest.raises(aclrt.DeadlockError):
        await s.synchronize()
    with pytest.raises(aclrt.DeadlockError):  # each new wait is judged
        await s.synchronize()
    dev.stream().record(event)
    await s.synchronize()


async def test_the_reset_that_loses_a_signal(dev: aclrt.Device) -> None:
    """Reports D1: the host records for step i + 1 before step i's graph has reset the flag."""
    s, u, x, event = dev.stream(), dev.stream(), array(dev), dev.event(external=True)
    async with aclrt.capture(s) as graph:
        s.wait(event)
        s.reset(event)
        s.launch(add, x, 1.0)
    for _ in range(2):
        graph.launch(s)
        u.record(event)
    with pytest.raises(aclrt.DeadlockError):
        await s.synchronize()
    assert x.numpy()[0] == 1
    u.record(event)
    await s.synchronize()
    assert x.numpy()[0] == 2


# --- explain ---------------------------------------------------------------------------------------------------------


async def test_explain_on_the_wall_clock() -> None:
    async with aclrt.open_device() as dev:
        assert dev.explain() == "nobody waits"
        s, other, gate, event = dev.stream(), dev.stream(), dev.array(np.zeros(1, "i8")), dev.event(external=True)
        acl.aclrtValueWait(gate, 3, acl.ACL_VALUE_WAIT_EQ, s)
        other.wait(event)
        waiting = asyncio.create_task(code_of(other.synchronize(60_000)))
        await until(lambda: len(dev.npu.driver.waits()) == 2 and bool(dev.npu.waits))
        text = dev.explain()
        assert f"stream {s.id} (WAIT_VALUE)" in text
        assert "wanted" in text
        assert f"stream {other.id} (EVENT_WAIT) waits for event {event.id}" in text
        assert "aclrtSynchronizeStream" in text
        gate.assign(3)
        s.record(event)
        assert await waiting == 0
        await s.synchronize()
        assert dev.explain() == "nobody waits"


async def test_the_clock_leaves_nothing_armed(dev: aclrt.Device) -> None:
    s, x, event = dev.stream(), array(dev), dev.event(external=True)
    before = held(dev)
    for _ in range(10):
        acl.aclrtStreamWaitEventWithTimeout(s, event, 1)
        s.launch(slow, x)
        dev.default_stream.record(event)
        await s.synchronize(60_000)
        dev.default_stream.reset(event)
        await dev.synchronize()
    assert dev.npu.driver.clock.next_ns() is None  # type: ignore[attr-defined]
    after = held(dev)
    assert after["host waits"] == before["host waits"] == 0


@pytest.mark.parametrize("kind", ["while", "label"])
async def test_an_endless_loop_of_tasks_that_cost_nothing_gives_the_event_loop_its_turns(kind: str) -> None:
    async with aclrt.open_device(clock="virtual") as dev:
        stream, x = dev.stream(), dev.array(np.zeros(1, np.float32))
        if kind == "while":
            async with aclrt.capture(stream) as graph:
                async with graph.while_(graph.condition(default=1)) as body:
                    body.launch(add, x, 1.0)
            run = graph.launch(stream)
        else:
            loop = dev.stream(persistent=True)
            model = acl.aclmdlRIBuildBegin(0)
            acl.aclmdlRIBindStream(model, loop, 0)
            label = acl.aclrtCreateLabel()
            targets = acl.aclrtCreateLabelList([label])
            acl.aclrtSetLabel(label, loop)
            loop.launch(add, x, 1.0)
            acl.rtLabelGoto(label, loop)
            acl.aclmdlRIEndTask(model, loop)
            acl.aclmdlRIBuildEnd(model)
            assert targets
            run = acl.aclmdlRIExecuteAsync(model, stream)
        for _ in range(20):
            await asyncio.sleep(0)
        assert 0 < x.numpy()[0] < 20 * 4096
        await run.abort()
        with pytest.raises(aclrt.AclError) as caught:
            await run
        assert caught.value.code == 507023
