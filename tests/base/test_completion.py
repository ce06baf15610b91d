"""A Completion has one outcome and any number of waits that know nothing of each other."""

from __future__ import annotations

import asyncio
import gc
import traceback
from typing import Any

import anyio
import pytest

from aclrt.base.completion import Completion
from aclrt.base.errors import deadlock


async def settle(passes: int = 3) -> None:
    """Let every task that can run reach its next wait."""
    for _ in range(passes):
        await asyncio.sleep(0)


async def wait_for(completion: Completion) -> str:
    await completion
    return "done"


@pytest.fixture(autouse=True)
async def loop_complaints() -> Any:
    """What reaches the loop's exception handler; a test that expects some empties the list."""
    seen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: seen.append(context))
    yield seen
    gc.collect()
    await settle()
    assert seen == []


async def test_many_waiters_one_outcome() -> None:
    completion = Completion()
    tasks = [asyncio.create_task(wait_for(completion)) for _ in range(5)]
    await settle()
    assert (completion.waiters, completion.done) == (5, False)
    completion.set()
    assert completion.done
    assert await asyncio.gather(*tasks) == ["done"] * 5
    assert completion.waiters == 0


async def test_await_after_the_outcome_does_not_yield() -> None:
    completion = Completion()
    completion.set()
    ran: list[str] = []
    asyncio.get_running_loop().call_soon(ran.append, "somebody else")
    await completion
    await completion
    assert ran == []


async def test_failure_is_raised_at_every_wait_unchanged() -> None:
    completion, error = Completion(), ValueError("x")
    tasks = [asyncio.create_task(wait_for(completion)) for _ in range(3)]
    await settle()
    completion.fail(error)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(result is error for result in results)
    with pytest.raises(ValueError, match="x"):
        await completion
    assert (completion.failed, completion.error) == (True, error)


async def test_traceback_does_not_grow_with_waits() -> None:
    completion = Completion()
    completion.fail(ValueError("x"))
    depths = []
    for _ in range(10):
        try:
            await completion
        except ValueError as error:
            depths.append(len(traceback.extract_tb(error.__traceback__)))
    assert len(set(depths)) == 1


async def test_one_outcome_only() -> None:
    completion = Completion()
    completion.set()
    with pytest.raises(RuntimeError, match="one outcome"):
        completion.fail(ValueError("x"))
    with pytest.raises(RuntimeError, match="one outcome"):
        completion.set()
    assert not completion.failed


async def test_cancelling_one_waiter_leaves_the_others() -> None:
    completion = Completion()
    first, second, third = (asyncio.create_task(wait_for(completion)) for _ in range(3))
    await settle()
    second.cancel()
    await settle()
    assert second.cancelled()
    assert not first.done()
    assert not third.done()
    assert (completion.waiters, completion.done) == (2, False)
    completion.set()
    assert await first == await third == "done"


async def test_cancel_and_outcome_in_one_pass() -> None:
    """The outcome comes first: the cancelled task still ends cancelled, its neighbour is told, nothing is logged."""
    for fail in (False, True):
        completion = Completion()
        doomed, other = (asyncio.create_task(wait_for(completion)) for _ in range(2))
        await settle()
        if fail:
            completion.fail(ValueError("x"))
        else:
            completion.set()
        doomed.cancel()
        results = await asyncio.gather(doomed, other, return_exceptions=True)
        assert isinstance(results[0], asyncio.CancelledError)
        assert isinstance(results[1], ValueError) if fail else results[1] == "done"


async def test_outcome_after_cancel_in_one_pass() -> None:
    completion = Completion()
    doomed, other = (asyncio.create_task(wait_for(completion)) for _ in range(2))
    await settle()
    doomed.cancel()
    completion.set()
    results = await asyncio.gather(doomed, other, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1] == "done"


async def test_timeouts_end_the_wait_alone() -> None:
    completion = Completion()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await completion
    with pytest.raises(TimeoutError):
        with anyio.fail_after(0):
            await completion
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(completion, 0.001)
    assert (completion.waiters, completion.done) == (0, False)
    completion.set()
    await completion


async def test_a_cancelled_anyio_scope_may_wait_again_under_a_shield() -> None:
    completion = Completion()
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await completion
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                asyncio.get_running_loop().call_soon(completion.set)
                await completion
            raise
    assert scope.cancelled_caught
    assert completion.done


async def test_ten_thousand_cancellations_leave_nothing() -> None:
    completion = Completion()
    tasks = [asyncio.create_task(wait_for(completion)) for _ in range(10_000)]
    await settle()
    assert completion.waiters == 10_000
    for task in tasks[1:]:
        task.cancel()
    await settle()
    assert completion.waiters == 1
    completion.set()
    assert await tasks[0] == "done"


async def test_waiters_wake_in_order_of_arrival() -> None:
    completion, order = Completion(), []

    async def waiter(number: int) -> None:
        await completion
        order.append(number)

    tasks = [asyncio.create_task(waiter(number)) for number in range(4)]
    await settle()
    completion.set()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3]


async def test_callbacks_run_at_once_in_order_before_waiters() -> None:
    completion, order = Completion(), []

    async def waiter() -> None:
        await completion
        order.append("waiter")

    task = asyncio.create_task(waiter())
    await settle()
    completion.add_callback(lambda c: order.append("first" if c is completion else "wrong"))
    completion.add_callback(lambda _: order.append("second"))
    completion.set()
    assert order == ["first", "second"]
    await task
    completion.add_callback(lambda _: order.append("late"))
    assert order == ["first", "second", "waiter", "late"]


async def test_a_removed_callback_is_not_called() -> None:
    completion, seen = Completion(), []
    wait = Completion()
    completion.add_callback(wait.copy)
    completion.add_callback(seen.append)
    assert completion.remove_callback(wait.copy) == 1
    assert completion.remove_callback(wait.copy) == 0
    completion.set()
    assert not wait.done
    assert seen == [completion]


async def test_a_raising_callback_harms_nobody(loop_complaints: list[dict[str, Any]]) -> None:
    completion, seen = Completion(), []

    def bad(_: Completion) -> None:
        raise LookupError("mine")

    completion.add_callback(bad)
    completion.add_callback(seen.append)
    completion.set()
    await completion
    assert seen == [completion]
    assert isinstance(loop_complaints[0]["exception"], LookupError)
    loop_complaints.clear()


async def test_a_callback_may_set_another_completion() -> None:
    first, second = Completion(), Completion()
    first.add_callback(lambda _: second.set())
    task = asyncio.create_task(wait_for(second))
    await settle()
    first.set()
    assert await task == "done"


async def test_copy_takes_over_the_outcome_once() -> None:
    source, copy, error = Completion(), Completion(), ValueError("x")
    source.add_callback(copy.copy)
    source.fail(error)
    assert copy.error is error
    assert source.observed
    other = Completion()
    other.set()
    copy.copy(other)
    assert copy.error is error


async def test_interrupt_ends_the_waits_in_progress_and_no_other() -> None:
    completion = Completion()
    tasks = [asyncio.create_task(wait_for(completion)) for _ in range(3)]
    await settle()
    tasks[0].cancel()
    error = deadlock("await a run", "it waits for event 5")
    assert completion.interrupt(error) == 2
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [error, error]
    assert (completion.done, completion.waiters) == (False, 0)
    again = asyncio.create_task(wait_for(completion))
    await settle()
    completion.set()
    assert await again == "done"


async def test_interrupted_and_cancelled_in_one_pass_logs_nothing() -> None:
    completion = Completion()
    task = asyncio.create_task(wait_for(completion))
    await settle()
    completion.interrupt(ValueError("x"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_interrupt_then_outcome_in_one_pass() -> None:
    completion = Completion()
    task = asyncio.create_task(wait_for(completion))
    await settle()
    completion.interrupt(ValueError("x"))
    completion.set()
    with pytest.raises(ValueError, match="x"):
        await task
    assert completion.done


async def test_interrupt_without_waiters() -> None:
    completion = Completion()
    assert completion.interrupt(ValueError("x")) == 0
    completion.set()
    assert completion.interrupt(ValueError("x")) == 0
    await completion


async def test_observed_only_once_somebody_was_told() -> None:
    completion = Completion()
    completion.fail(ValueError("x"))
    assert completion.error is not None
    assert not completion.observed
    with pytest.raises(ValueError, match="x"):
        completion.result()
    assert completion.observed


async def test_result_while_pending() -> None:
    with pytest.raises(RuntimeError, match="pending"):
        Completion().result()


async def test_a_dropped_failure_complains_to_nobody() -> None:
    """Who must hear of it is decided above (the stream keeps it); the object itself makes no noise."""
    completion = Completion()
    completion.fail(ValueError("x"))
    del completion
    gc.collect()
    await settle()


async def test_repr() -> None:
    completion = Completion()
    assert repr(completion) == "<Completion pending, 0 waiters>"
    completion.fail(ValueError("x"))
    assert repr(completion) == "<Completion failed: ValueError('x')>"
