"""Heavy kernels leave the loop's thread, light ones stay, and nothing else changes by it."""

from __future__ import annotations

import asyncio
import itertools
import threading
from time import thread_time_ns

import pytest

from hw.chips import SqeFlag, Status
from hw.ts.sq import RunQueue
from tests.hw.rig import K, Rig

HERE = threading.get_ident()


def burn(ns: int) -> None:
    """Busy for `ns` on a core: a kernel as heavy as it says, without a sleep and on a busy machine too."""
    end = thread_time_ns() + ns
    while thread_time_ns() < end:
        pass


class Thread:
    """A kernel that notes which thread it ran on; `ns` of work can be changed between runs."""

    def __init__(self, ns: int) -> None:
        self.ns, self.on = ns, []  # type: tuple[int, list[bool]]

    def __call__(self) -> None:
        self.on.append(threading.get_ident() == HERE)
        burn(self.ns)


async def test_an_eager_kernel_goes_to_a_worker_once_it_is_known_to_be_heavy() -> None:
    rig = Rig()
    sq, kernel = rig.sq(), Thread(600_000)
    task = rig.kernel(kernel)
    for _ in range(4):
        await rig.run(sq, task)
    assert kernel.on[0] is True
    assert kernel.on[-1] is False
    kernel.ns = 0
    for _ in range(6):
        await rig.run(sq, task)
    assert kernel.on[-1] is True  # light again: back on the loop's thread
    rig.driver.close()


async def test_a_heavy_segment_of_a_model_goes_to_a_worker_and_comes_back() -> None:
    rig = Rig()
    sq, heavy, light = rig.sq(), Thread(600_000), Thread(0)
    model = rig.model([rig.kernel(light), rig.kernel(heavy), rig.kernel(heavy), rig.kernel(light)])
    for _ in range(4):
        await rig.until(sq, rig.execute(sq, model))
    assert heavy.on == [True] * 4 + [False] * 4  # one long look may be an interruption: the second decides
    assert all(light.on)
    heavy.ns = 0
    for _ in range(3):
        await rig.until(sq, rig.execute(sq, model))
    assert heavy.on[-2:] == [True, True]
    rig.driver.close()


async def test_a_very_long_task_goes_to_a_worker_after_one_look() -> None:
    rig = Rig()
    sq, heavy = rig.sq(), Thread(5_500_000)
    model = rig.model([rig.kernel(heavy)])
    for _ in range(2):
        await rig.until(sq, rig.execute(sq, model))
    assert heavy.on == [True, False]
    rig.driver.close()


@pytest.mark.parametrize("taken_off", [True, False])
async def test_a_task_is_not_heavy_because_the_system_took_the_thread_off_its_core(
    monkeypatch: pytest.MonkeyPatch, taken_off: bool
) -> None:
    rig = Rig()
    sq, once, again = rig.sq(), Thread(6_000_000), Thread(600_000)
    task, model = rig.kernel(once), rig.model([rig.kernel(again)] * 2)
    times = itertools.count()
    monkeypatch.setattr("hw.stopwatch.taken_off", lambda: next(times) if taken_off else 0)
    monkeypatch.setattr("hw.stopwatch.thread_time_ns", lambda: 0)  # it had no time at all for itself
    for _ in range(4):
        await rig.run(sq, task)
        await rig.until(sq, rig.execute(sq, model))
    assert (False in once.on, False in again.on) == (not taken_off, not taken_off)
    rig.driver.close()


@pytest.mark.parametrize("taken_off", [True, False])
def test_a_slice_far_too_long_is_laid_to_its_tasks_the_second_time_and_if_they_had_the_core(
    monkeypatch: pytest.MonkeyPatch, taken_off: bool
) -> None:
    times = itertools.count()
    monkeypatch.setattr("hw.stopwatch.taken_off", lambda: next(times) if taken_off else 0)
    monkeypatch.setattr("hw.stopwatch.thread_time_ns", lambda: 0)
    queue = RunQueue(lambda: None)
    told = []
    for _ in range(3):
        queue.open_slice()
        burn(1_200_000)
        assert queue.over()
        told.append(queue.late)
    assert told == ([False] * 3 if taken_off else [False, True, True])


async def test_offload_true_and_false_are_obeyed_from_the_first_run() -> None:
    rig = Rig()
    sq, always, never = rig.sq(), Thread(0), Thread(600_000)
    tasks = [rig.kernel(always, offload=True), rig.kernel(never, offload=False)]
    model = rig.model(tasks)
    for _ in range(3):
        await rig.run(sq, *tasks)
        await rig.until(sq, rig.execute(sq, model))
    assert not any(always.on)
    assert all(never.on)
    rig.driver.close()


async def test_register_writes_between_heavy_kernels_stay_on_the_loop() -> None:
    rig = Rig()
    d, sq, heavy = rig.driver, rig.sq(), Thread(400_000)
    kernel = rig.kernel(heavy)
    tasks = [kernel, rig.sqe(K.EVENT_RECORD, event_id=1), kernel, rig.sqe(K.EVENT_WAIT, event_id=2), kernel]
    other = [rig.sqe(K.EVENT_WAIT, event_id=1), kernel, rig.sqe(K.EVENT_RECORD, event_id=2)]
    reset = [rig.sqe(K.EVENT_RESET, event_id=n) for n in (1, 2)]
    model = rig.model([*tasks, *reset], other, heads=2)
    for _ in range(4):
        await rig.until(sq, rig.execute(sq, model))
    assert heavy.on == [True] * 8 + [False] * 8
    assert rig.errors() == []
    d.close()


@pytest.mark.parametrize("eager", [True, False])
async def test_a_fault_on_a_worker_is_the_right_tasks(eager: bool) -> None:
    rig = Rig()
    d, sq, heavy = rig.driver, rig.sq(), Thread(400_000)
    work, boom = rig.kernel(heavy, offload=True), rig.boom("on a worker", offload=True)
    if eager:
        await rig.run(sq, work, boom, rig.say("on"))
        assert rig.ran == ["on"]
    else:
        model = rig.model([work, work, boom, rig.say("never")])
        await rig.until(sq, rig.execute(sq, model))
        assert rig.ran == []
    error = rig.errors()[0]
    assert (error.status, error.position) == (Status.AIV_EXCEPTION, 2)
    assert str(d.fault(error.fault).exception) == "on a worker"
    d.close()


async def test_the_loop_lives_while_a_worker_runs() -> None:
    rig = Rig()
    sq = rig.sq()
    gate = threading.Event()
    position = rig.submit(sq, rig.kernel(gate.wait, 10, offload=True), rig.say("after"))
    for _ in range(200):
        await asyncio.sleep(0)
    assert [w.what for w in rig.driver.waits()] == [("worker",)]
    assert rig.ran == []
    gate.set()
    await rig.until_real(sq, position)
    assert rig.ran == ["after"]
    rig.driver.close()


async def test_an_abort_takes_effect_when_the_worker_returns() -> None:
    rig = Rig()
    d, sq, other = rig.driver, rig.sq(), rig.sq()
    gate = threading.Event()
    blocked = rig.kernel(gate.wait, 10, offload=True)
    model = rig.model([blocked, rig.say("never")])
    position = rig.execute(sq, model)
    eager = rig.submit(other, blocked, rig.say("never"))
    await rig.settle()
    d.abort_model(model.id)
    d.sq_abort(other)
    await rig.settle()
    assert d.model_busy(model.id)
    assert rig.head(other) == 0
    gate.set()
    await rig.until_real(sq, position)
    await rig.until_real(other, eager)
    assert rig.ran == []
    assert [e.status for e in rig.errors(sq)] == [Status.MODEL_ABORTED]
    assert [e.status for e in rig.errors(other)] == [Status.STREAM_ABORTED]
    assert not d.model_busy(model.id)
    d.close()


async def test_independent_heavy_streams_run_side_by_side() -> None:
    rig = Rig()
    a, b = rig.sq(), rig.sq()
    meet = threading.Barrier(2, timeout=10)
    for sq in (a, b):
        rig.submit(sq, rig.kernel(meet.wait, offload=True))  # passes only if both run at one time
    await rig.until_real(a, 1)
    await rig.until_real(b, 1)
    assert rig.errors() == []
    rig.driver.close()


async def test_one_shot_arguments_of_a_heavy_kernel_are_dropped() -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    program, handle = d.load(rig.ran.append, offload=True), d.args_put((1,), ())
    d.submit_kernel(sq, 0, 1, program, handle, 1, SqeFlag.ONE_SHOT)
    await rig.until_real(sq, 1)
    assert rig.ran == [1]
    with pytest.raises(KeyError):
        d.args_get(handle)
    d.close()


@pytest.mark.parametrize("options", [{"clock": "virtual"}])
async def test_nothing_is_offloaded_where_order_is_promised(options: dict[str, str]) -> None:
    rig = Rig(**options)
    sq, heavy = rig.sq(), Thread(300_000)
    task = rig.kernel(heavy)
    model = rig.model([task, task])
    for _ in range(3):
        await rig.run(sq, task)
        await rig.until(sq, rig.execute(sq, model))
    assert all(heavy.on)
    rig.driver.close()


async def test_a_chunk_that_is_slow_altogether_is_cut_by_time() -> None:
    rig = Rig()
    sq = rig.sq()
    kernel = Thread(20_000)
    model = rig.model([rig.kernel(kernel)] * 400)  # 8 ms in all, each far from heavy
    await rig.until(sq, rig.execute(sq, model))
    position, passes = rig.execute(sq, model), 0
    while rig.head(sq) < position:
        await asyncio.sleep(0)
        passes += 1
    assert passes >= 8  # about 0.5 ms each
    rig.driver.close()


async def test_closing_waits_for_the_worker_and_reports_nothing_more() -> None:
    rig = Rig()
    sq = rig.sq()
    gate = threading.Event()
    rig.submit(sq, rig.kernel(gate.wait, 10, offload=True), rig.say("never"))
    await rig.settle()
    gate.set()
    rig.driver.close()
    await rig.settle()
    assert rig.log == []
    assert rig.ran == []


@pytest.mark.parametrize("eager", [True, False])
async def test_an_abort_stops_between_two_heavy_kernels(eager: bool) -> None:
    rig = Rig()
    d, sq = rig.driver, rig.sq()
    gates = [threading.Event() for _ in range(3)]
    program = d.load(threading.Event.wait, offload=True)
    tasks = [rig.sqe(K.KERNEL, core=1, program=program, args=d.args_put((gate, 10), ())) for gate in gates]
    model = rig.model(tasks)
    position = rig.submit(sq, *tasks) if eager else rig.execute(sq, model)
    await rig.settle()
    if eager:
        d.sq_abort(sq)
    else:
        d.abort_model(model.id)
    gates[0].set()
    await rig.until_real(sq, position)  # the second and third gate stay shut
    assert [e.status for e in rig.errors(sq)] == [Status.STREAM_ABORTED if eager else Status.MODEL_ABORTED]
    d.close()
