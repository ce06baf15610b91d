"""Running out: each resource, the call that meets it, the code, the message, and that nothing is lost by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from hw.driver import IdKind

from .software import Lab, add, held

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

GLOBAL = acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL


def sync_event() -> Any:
    return acl.aclrtCreateEventExWithFlag(acl.ACL_EVENT_SYNC)


def take_streams(lab: Lab, leave: int = 0) -> None:
    pool = lab.dev.npu.driver
    while pool.limit(IdKind.STREAM) - pool.held(IdKind.STREAM) > leave:
        acl.aclrtCreateStream()


def begin(lab: Lab) -> Any:
    acl.aclmdlRICaptureBegin(lab.s, GLOBAL)
    return acl.aclmdlRICaptureGetInfo(lab.s).modelRI


async def create_stream(lab: Lab) -> None:
    take_streams(lab)
    acl.aclrtCreateStream()


async def begin_without_a_stream(lab: Lab) -> None:
    take_streams(lab)
    begin(lab)


async def join_without_a_stream(lab: Lab) -> None:
    begin(lab)
    take_streams(lab)
    event = sync_event()
    acl.aclrtRecordEvent(event, lab.s)
    acl.aclrtStreamWaitEvent(lab.side, event)


async def add_without_a_stream(lab: Lab) -> None:
    graph = begin(lab)
    take_streams(lab)
    acl.rtStreamAddToModel(lab.side, graph)


async def cascade_without_a_stream(lab: Lab) -> None:
    begin(lab)
    take_streams(lab)
    for _ in range(40):
        lab.s.launch(add, lab.x, 1.0)


async def default_without_a_stream(lab: Lab) -> None:
    take_streams(lab)
    acl.aclrtCtxGetCurrentDefaultStream()


async def begin_without_a_model(lab: Lab) -> None:
    for _ in range(3):
        acl.aclmdlRIBuildBegin(0)
    begin(lab)


async def build_without_a_model(lab: Lab) -> None:
    for _ in range(4):
        acl.aclmdlRIBuildBegin(0)


async def branches_without_a_model(lab: Lab) -> None:
    handle = acl.aclmdlRICondHandleCreate(begin(lab), 0, 0)
    acl.aclmdlRIAddCondTask(acl.aclmdlRICondTaskParams(handle=handle, type=2, size=3), lab.s, 0)


async def create_event(lab: Lab) -> None:
    lab.keep = [acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL) for _ in range(5)]  # type: ignore[attr-defined]


async def record_without_an_event(lab: Lab) -> None:
    begin(lab)
    for _ in range(5):
        acl.aclrtRecordEvent(sync_event(), lab.s)


async def record_live_without_an_event(lab: Lab) -> None:
    lab.keep = [sync_event() for _ in range(5)]  # type: ignore[attr-defined]
    for event in lab.keep:  # type: ignore[attr-defined]
        acl.aclrtRecordEvent(event, lab.s)


async def create_notify(lab: Lab) -> None:
    for _ in range(5):
        acl.aclrtCreateNotify(0)


async def end_without_a_notify(lab: Lab) -> None:
    graph = begin(lab)
    for stream in lab.others:
        acl.rtStreamAddToModel(stream, graph)
    acl.aclmdlRICaptureEnd(lab.s)


async def end_task_without_a_notify(lab: Lab) -> None:
    for _ in range(4):
        acl.aclrtCreateNotify(0)
    model = acl.aclmdlRIBuildBegin(0)
    stream = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
    acl.aclmdlRIBindStream(model, stream, acl.ACL_MODEL_STREAM_FLAG_HEAD)
    acl.aclmdlRIEndTask(model, stream)


async def execute_without_a_notify(lab: Lab) -> None:
    for _ in range(4):
        acl.aclrtCreateNotify(0)
    acl.aclmdlRIExecuteAsync(await lab.adding(), lab.s)


async def execute_without_an_sq(lab: Lab) -> None:
    acl.aclmdlRIExecuteAsync(await lab.adding(sides=2), lab.s)


STREAM, SQ, EVENT, NOTIFY, MODEL = "stream", "SQ/CQ", "event", "notify", "model"
UNHARMED = 3
# The call, its code, the word clients search for, the limit that is met, and how the capture is left: with the status
# of its stream (0 not open, 1 and 2 invalidated), or unharmed.
CASES: list[tuple[Any, int, str, dict[str, int], int]] = [
    (create_stream, 207008, STREAM, {"max_streams": 8}, 0),
    (default_without_a_stream, 207008, STREAM, {"max_streams": 8}, 0),
    (begin_without_a_stream, 207008, STREAM, {"max_streams": 8}, 0),
    (join_without_a_stream, 207008, STREAM, {"max_streams": 8}, 1),
    (add_without_a_stream, 207008, STREAM, {"max_streams": 8}, 1),
    (cascade_without_a_stream, 207008, STREAM, {"max_streams": 8, "sq_depth": 64}, 2),
    (begin_without_a_model, 207010, MODEL, {"max_models": 3}, 0),
    (build_without_a_model, 207010, MODEL, {"max_models": 3}, 0),
    (branches_without_a_model, 207010, MODEL, {"max_models": 3}, UNHARMED),
    (create_event, 207007, EVENT, {"max_events": 4}, 0),
    (record_without_an_event, 207007, EVENT, {"max_events": 4}, 1),
    (record_live_without_an_event, 207007, EVENT, {"max_events": 4}, 0),
    (create_notify, 207009, NOTIFY, {"max_notifies": 4}, 0),
    (end_without_a_notify, 207009, NOTIFY, {"max_notifies": 4}, 0),
    (end_task_without_a_notify, 207009, NOTIFY, {"max_notifies": 4}, 0),
    (execute_without_a_notify, 207009, NOTIFY, {"max_notifies": 4}, 0),
    (execute_without_an_sq, 207005, SQ, {"max_sqs": 2}, 0),
]


@pytest.mark.parametrize("chip", ["v100", "v200"])
@pytest.mark.parametrize(("call", "code", "word", "limits", "left"), CASES, ids=[case[0].__name__ for case in CASES])
async def test_the_call_that_meets_the_limit(
    chip: str, call: Callable[[Lab], Awaitable[None]], code: int, word: str, limits: dict[str, int], left: int
) -> None:
    async with aclrt.open_device(chip=chip, limits=limits) as dev:
        lab = Lab(dev)
        with pytest.raises(aclrt.ResourceError) as caught:
            await call(lab)
        text = str(caught.value)
        assert caught.value.code == code
        assert "\n" not in text
        assert text.endswith(f"[{code}]")
        assert f"{word} resource" in text
        assert str(next(iter(limits.values()))) in text
        status = acl.aclmdlRICaptureGetInfo(lab.s).status
        assert status == (1 if left == UNHARMED else left)
        if left == UNHARMED:
            assert acl.aclmdlRICaptureEnd(lab.s).alive
        elif left:
            with pytest.raises(aclrt.CaptureError) as ended:
                acl.aclmdlRICaptureEnd(lab.s)
            assert ended.value.code == 507903
            assert ended.value.__cause__ is caught.value
            assert acl.aclmdlRICaptureGetInfo(lab.s) == (0, None)


@pytest.mark.parametrize("call", [*(case[0] for case in CASES if case[4] in (1, 2)), end_without_a_notify])
async def test_what_was_taken_comes_back(call: Callable[[Lab], Awaitable[None]]) -> None:
    limits = next(case[3] for case in CASES if case[0] is call)
    async with aclrt.open_device(limits=limits) as dev:
        lab = Lab(dev)
        before = held(dev)
        streams = set(dev.context.streams)
        with pytest.raises(aclrt.AclError):
            await call(lab)
        if acl.aclmdlRICaptureGetInfo(lab.s).status:
            with pytest.raises(aclrt.AclError):
                acl.aclmdlRICaptureEnd(lab.s)
        for stream in set(dev.context.streams) - streams:
            await acl.aclrtDestroyStream(stream)
        assert held(dev) == before
        for stream in (lab.s, *lab.others):
            assert acl.aclmdlRICaptureGetInfo(stream).status == 0
        graph = await lab.adding()
        await graph.replay(lab.s)
        assert lab.value == 1


async def test_the_message_names_who_holds_how_many() -> None:
    async with aclrt.open_device(limits={"max_streams": 10}) as dev:
        lab = Lab(dev)
        await lab.adding(name="decode", sides=2)
        await lab.adding(name="prefill", sides=1)
        await lab.adding()
        await lab.adding()
        with pytest.raises(aclrt.AclError) as caught:
            await lab.adding()
        assert 'by models: graph 0 "decode" 3, graph 1 "prefill" 2, graph 2 1' in str(caught.value)
        assert "10 of 10 in use" in str(caught.value)


async def test_events_and_notifies_are_told_by_holder_too() -> None:
    async with aclrt.open_device(limits={"max_events": 9, "max_notifies": 5}) as dev:
        lab = Lab(dev)
        graph = await lab.adding(name="decode", sides=2)
        events = [acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL) for _ in range(5)]
        with pytest.raises(aclrt.AclError, match=r'event resource left: 9 of 9 in use.*graph 0 "decode" 4'):
            acl.aclrtCreateEventWithFlag(acl.ACL_EVENT_EXTERNAL)
        await graph.replay(lab.s)
        async with aclrt.capture(lab.s, name="added") as added:
            acl.rtStreamAddToModel(lab.side, added)
            lab.side.launch(add, lab.x, 1.0)
        dev.notify()
        with pytest.raises(aclrt.AclError, match=r'notify resource left: 5 of 5 in use.*"added" 3, graph 0 "decode" 1'):
            dev.notify()
        await added.close()
        for _ in range(3):
            dev.notify()
        del events


async def test_a_destroyed_graph_makes_room() -> None:
    async with aclrt.open_device(limits={"max_streams": 5, "max_models": 1}) as dev:
        lab = Lab(dev)
        for turn in range(4):
            graph = await lab.adding(sides=1)
            with pytest.raises(aclrt.AclError) as caught:
                await lab.adding()
            assert caught.value.code == 207010
            await graph.replay(lab.s)
            assert lab.value == turn + 1
            await graph.close()


async def test_device_memory_runs_out() -> None:
    async with aclrt.open_device(limits={"device_memory": 1 << 20}) as dev:
        with pytest.raises(MemoryError) as caught:
            dev.empty(1 << 20, np.float32)
        assert caught.value.code == 207001  # type: ignore[attr-defined]
        with pytest.raises(MemoryError):
            acl.aclrtMalloc(2 << 20, 0)
        acl.aclrtFree(acl.aclrtMalloc(1 << 18, 0))
