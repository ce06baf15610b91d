"""What a refusal says: which stream, how it came to be captured, which call invalidated what, and where it stands."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import aclrt
from aclrt import acl

from .software import Lab, add

if TYPE_CHECKING:
    from collections.abc import Iterator

SYNC = acl.ACL_EVENT_SYNC


def line(back: int = 0) -> str:
    """ "file:line" of the caller's line, or of the one `back` lines above it."""
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno - back}"


@contextmanager
def says(code: int, *words: str) -> Iterator[pytest.ExceptionInfo[aclrt.AclError]]:
    with pytest.raises(aclrt.AclError) as caught:
        yield caught
    text = str(caught.value)
    assert caught.value.code == code, text
    assert text.endswith(f"[{code}]")
    assert "\n" not in text
    for word in words:
        assert word in text, text


class Fork:
    """A capture on `s` that `side` has joined, and the places of it."""

    def __init__(self, dev: aclrt.Device) -> None:
        self.event: Any
        self.lab = Lab(dev)
        self.s, self.side, self.third = self.lab.s, *self.lab.others
        acl.aclmdlRICaptureBegin(self.s, acl.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
        self.began = line(1)
        self.event = acl.aclrtCreateEventExWithFlag(SYNC)
        acl.aclrtRecordEvent(self.event, self.s)
        self.recorded = line(1)
        acl.aclrtStreamWaitEvent(self.side, self.event)
        self.joined = line(1)
        self.graph = acl.aclmdlRICaptureGetInfo(self.s).modelRI

    @property
    def how(self) -> tuple[str, ...]:
        """What every refusal of the joined stream must say."""
        return (
            f"stream {self.side.id}",
            f"joined at {self.joined} through event {self.event.capture.id} recorded at {self.recorded}",
        )


REFUSED_WHILE_CAPTURING: dict[str, tuple[int, Any]] = {
    "begin": (107027, lambda f: acl.aclmdlRICaptureBegin(f.side, 0)),
    "query": (107027, lambda f: acl.aclrtStreamQuery(f.side)),
    "synchronize": (107027, lambda f: acl.aclrtSynchronizeStream(f.side)),
    "destroy": (107027, lambda f: acl.aclrtDestroyStream(f.side)),
    "configure": (107027, lambda f: acl.aclrtSetStreamOverflowSwitch(f.side, 1)),
    "execute on it": (107027, lambda f: acl.aclmdlRIExecuteAsync(f.old, f.side)),
    "update on it": (107027, lambda f: acl.aclmdlRICaptureTaskUpdateBegin(f.side, f.group)),
    "add it": (107027, lambda f: acl.rtStreamAddToModel(f.side, f.graph)),
    "end on it": (107036, lambda f: acl.aclmdlRICaptureEnd(f.side)),
    "wait for an outside event": (107024, lambda f: acl.aclrtStreamWaitEvent(f.side, f.outside)),
    "record a classic event": (207000, lambda f: acl.aclrtRecordEvent(f.classic, f.side)),
    "pageable copy": (107000, lambda f: acl.aclrtMemcpyAsync(f.lab.x, 16, f.host, 16, 1, f.side)),
}


@pytest.mark.parametrize("what", REFUSED_WHILE_CAPTURING)
async def test_a_refusal_says_how_the_stream_came_to_be_captured(what: str) -> None:
    code, call = REFUSED_WHILE_CAPTURING[what]
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        async with aclrt.capture(lab.s) as old:
            with lab.s.task_group() as group:
                lab.s.launch(add, lab.x, 1.0)
        fork: Any = Fork(dev)
        fork.old, fork.group, fork.host, fork.classic = old, group, np.zeros(4, np.float32), acl.aclrtCreateEvent()
        fork.outside = acl.aclrtCreateEventExWithFlag(SYNC)
        acl.aclrtRecordEvent(fork.outside, fork.third)
        with says(code, *fork.how):
            waiting = call(fork)
            if waiting is not None:
                await waiting


async def test_the_stream_that_began_and_the_one_that_was_added() -> None:
    async with aclrt.open_device() as dev:
        fork = Fork(dev)
        acl.rtStreamAddToModel(fork.third, fork.graph)
        added = line(1)
        hows = {fork.s: f"began the capture at {fork.began}", fork.third: f"added by rtStreamAddToModel at {added}"}
        for stream, how in hows.items():
            with says(107027, f"stream {stream.id}", how):
                acl.aclrtStreamQuery(stream)


async def test_refusals_that_are_not_about_one_stream_name_one_too() -> None:
    async with aclrt.open_device() as dev:
        fork = Fork(dev)
        began = f"stream {fork.s.id}"
        with says(107030, began, "GLOBAL", f"began the capture at {fork.began}"):
            await acl.aclrtMemset(fork.lab.x.address, 4, 0, 4)
        with says(107041, began, f"began the capture at {fork.began}"):
            acl.aclrtMemcpyAsync(fork.lab.x, 16, np.zeros(4, np.float32), 16, 1, fork.third)
        with says(107027, began, f"began the capture at {fork.began}"):
            await acl.aclrtSynchronizeDevice()
        with says(107026, began, f"began the capture at {fork.began}"):
            await acl.aclmdlRIDestroy(fork.graph)
        with says(107028, f"recorded at {fork.recorded}"):
            await acl.aclrtSynchronizeEvent(fork.event)
        with says(107031, "default stream", f"recorded at {fork.recorded}"):
            acl.aclrtStreamWaitEvent(None, fork.event)


# --- 507903: what invalidated the capture ----------------------------------------------------------------------------


async def test_end_names_the_call_that_invalidated_the_capture() -> None:
    async with aclrt.open_device() as dev:
        fork = Fork(dev)
        acl.aclmdlRICaptureBegin(fork.third, 0)
        event = f"event {fork.event.capture.id} recorded at {fork.recorded}"
        with says(107032, f"stream {fork.third.id}", event) as caught:
            acl.aclrtStreamWaitEvent(fork.third, fork.event)
        where = line(1)
        fork.s.launch(add, fork.lab.x, 1.0)
        for stream in (fork.s, fork.third):
            with says(507903, where, "aclrtStreamWaitEvent", "107032") as ended:
                acl.aclmdlRICaptureEnd(stream)
            assert ended.value.__cause__ is caught.value


async def test_the_first_call_is_the_one_that_counts() -> None:
    async with aclrt.open_device(limits={"max_events": 2}) as dev:
        fork = Fork(dev)
        event = acl.aclrtCreateEventExWithFlag(SYNC)
        acl.aclrtRecordEvent(event, fork.s)
        with says(207007, "event resource") as caught:
            acl.aclrtRecordEvent(acl.aclrtCreateEventExWithFlag(SYNC), fork.side)
        where = line(1)
        with says(207007):
            acl.aclrtRecordEvent(acl.aclrtCreateEventExWithFlag(SYNC), fork.s)
        with says(507903, where, "207007") as ended:
            acl.aclmdlRICaptureEnd(fork.s)
        assert ended.value.__cause__ is caught.value


@pytest.mark.parametrize(("code", "kind"), [(107034, "another stream"), (507009, "a copy")])
async def test_a_broken_group_is_the_cause(code: int, kind: str) -> None:
    async with aclrt.open_device() as dev:
        fork = Fork(dev)
        acl.aclmdlRICaptureTaskGrpBegin(fork.s)
        opened = line(1)
        with says(code, opened) as caught:
            if kind == "another stream":
                fork.side.launch(add, fork.lab.x, 1.0)
            else:
                acl.aclrtMemsetAsync(fork.lab.x.address, 4, 0, 4, fork.s)
        with says(code):
            acl.aclmdlRICaptureTaskGrpEnd(fork.s)
        with says(507903, str(code)) as ended:
            acl.aclmdlRICaptureEnd(fork.s)
        assert ended.value.__cause__ is caught.value


async def test_the_pythonic_capture_raises_what_the_body_raised() -> None:
    """A body that lets the failing call's exception out sees that one; one that swallows it gets 507903 at the end."""
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        with says(507009):
            async with aclrt.capture(lab.s):
                with lab.s.task_group():
                    acl.aclrtMemsetAsync(lab.x.address, 4, 0, 4, lab.s)
        with says(507903, "507009", "test_diagnostics.py") as ended:
            async with aclrt.capture(lab.s):
                acl.aclmdlRICaptureTaskGrpBegin(lab.s)
                with says(507009):
                    acl.aclrtMemsetAsync(lab.x.address, 4, 0, 4, lab.s)
        assert ended.value.__cause__.code == 507009  # type: ignore[union-attr]
        assert acl.aclmdlRICaptureGetInfo(lab.s).status == 0


# --- 107025: which rule of joining broke -----------------------------------------------------------------------------


async def test_the_last_task_is_no_record() -> None:
    async with aclrt.open_device() as dev:
        fork = Fork(dev)
        fork.side.launch(add, fork.lab.x, 1.0)
        last = line(1)
        with says(107025, *fork.how, f"KERNEL_AIVEC from {last}", "not the record of a captured event"):
            acl.aclmdlRICaptureEnd(fork.s)


async def test_nobody_waited_for_the_last_record() -> None:
    async with aclrt.open_device() as dev:
        fork = Fork(dev)
        event = acl.aclrtCreateEventExWithFlag(SYNC)
        acl.aclrtRecordEvent(event, fork.side)
        last = f"event {event.capture.id} recorded at {line(1)}"  # type: ignore[union-attr]
        with says(107025, *fork.how, last, "nobody waited"):
            acl.aclmdlRICaptureEnd(fork.s)


async def test_only_an_added_stream_waited() -> None:
    """Every last record was waited for, but not by a stream that began the capture: an added one does not count."""
    async with aclrt.open_device() as dev:
        fork = Fork(dev)
        acl.rtStreamAddToModel(fork.third, fork.graph)
        event = acl.aclrtCreateEventExWithFlag(SYNC)
        acl.aclrtRecordEvent(event, fork.side)
        last = f"event {event.capture.id} recorded at {line(1)}"  # type: ignore[union-attr]
        acl.aclrtStreamWaitEvent(fork.third, event)
        with says(107025, *fork.how, last, "not by an origin"):
            acl.aclmdlRICaptureEnd(fork.s)


async def test_a_stream_that_joined_in_the_middle_of_a_chain() -> None:
    async with aclrt.open_device() as dev:
        fork = Fork(dev)
        event = acl.aclrtCreateEventExWithFlag(SYNC)
        acl.aclrtRecordEvent(event, fork.side)
        recorded = f"event {event.capture.id} recorded at {line(1)}"  # type: ignore[union-attr]
        acl.aclrtStreamWaitEvent(fork.third, event)
        joined = f"joined at {line(1)} through {recorded}"
        with says(107025, f"stream {fork.third.id}", joined, "EVENT_WAIT"):
            acl.aclmdlRICaptureEnd(fork.s)


# --- places ----------------------------------------------------------------------------------------------------------


async def test_every_captured_task_knows_its_place() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        places = []
        async with aclrt.capture(lab.s) as graph:
            lab.s.launch(add, lab.x, 1.0)
            places.append(line(1))
            acl.aclrtLaunchKernel(add, 1, [lab.x, 2.0], lab.s)
            places.append(line(1))
            acl.aclrtMemsetAsync(lab.x.address, 4, 0, 4, lab.s)
            places.append(line(1))
            for _ in range(2):
                lab.s.record(acl.aclrtCreateEventExWithFlag(SYNC))
                places.append(line(1))
        (stream,) = graph.streams
        assert [str(task.place) for task in stream.queue.tasks[:5]] == places
        assert places[0] in graph.to_dot()


async def test_places_cost_nothing_until_they_are_asked_for() -> None:
    async with aclrt.open_device() as dev:
        lab = Lab(dev)
        async with aclrt.capture(lab.s) as graph:
            for _ in range(100):
                lab.s.launch(add, lab.x, 1.0)
        (stream,) = graph.streams
        assert len({id(task.place) for task in stream.queue.tasks}) == 1  # one line, one object
