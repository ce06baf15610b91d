"""Labels: ids, lists, set once, jumps within a stream and across streams, loops, clamped indexes, destruction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import aclrt
from aclrt import acl
from aclrt.stream import label as labels
from hw.driver import IdKind

HEAD, DEFAULT = acl.ACL_MODEL_STREAM_FLAG_HEAD, acl.ACL_MODEL_STREAM_FLAG_DEFAULT


@aclrt.kernel
def note(x: aclrt.InOut[np.float64], digit: float) -> None:
    x[:] = x * 10 + digit


@aclrt.kernel
def count(index: aclrt.InOut[np.uint32], turns: aclrt.InOut[np.int64], last: int) -> None:
    turns += 1
    index[0] = 0 if turns[0] < last else 1


def bound(model: Any, flag: int = HEAD) -> Any:
    stream = acl.aclrtCreateStreamWithConfig(0, acl.ACL_STREAM_PERSISTENT)
    acl.aclmdlRIBindStream(model, stream, flag)
    return stream


def complete(model: Any, last: Any) -> None:
    acl.aclmdlRIEndTask(model, last)
    acl.aclmdlRIBuildEnd(model)


def code_of(call: Any, *args: Any) -> int:
    with pytest.raises(aclrt.AclError) as caught:
        call(*args)
    return caught.value.code


@pytest.mark.parametrize("chip", ["v100", "v200"])
@pytest.mark.parametrize(("index", "seen"), [(0, 123), (1, 23), (2, 3), (3, 3), (0xFFFFFFFF, 3)])
async def test_switch_by_index_takes_the_last_label_beyond_the_end(chip: str, index: int, seen: float) -> None:
    async with aclrt.open_device(chip=chip) as dev:
        model = acl.aclmdlRIBuildBegin(0)
        stream = bound(model)
        x, which = dev.array(np.zeros(1, "f8")), dev.array(np.array([index], "u4"))
        made = [acl.aclrtCreateLabel() for _ in range(3)]
        table = acl.aclrtCreateLabelList(made)
        acl.aclrtSwitchLabelByIndex(which, 3, table, stream)
        stream.launch(note, x, 9.0)  # jumped over
        for digit, label in enumerate(made, 1):
            acl.aclrtSetLabel(label, stream)
            stream.launch(note, x, float(digit))
        complete(model, stream)
        for _ in range(2):
            x.assign([0])
            await acl.aclmdlRIExecute(model, -1)
            assert x.numpy()[0] == seen


async def test_a_loop_in_one_stream() -> None:
    async with aclrt.open_device() as dev:
        model = acl.aclmdlRIBuildBegin(0)
        stream = bound(model)
        index, turns = dev.array(np.zeros(1, "u4")), dev.array(np.zeros(1, "i8"))
        begin, end = acl.aclrtCreateLabel(), acl.aclrtCreateLabel()
        table = acl.aclrtCreateLabelList([begin, end])
        acl.aclrtSetLabel(begin, stream)
        stream.launch(count, index, turns, 1000)
        acl.aclrtSwitchLabelByIndex(index, 2, table, stream)
        acl.aclrtSetLabel(end, stream)
        complete(model, stream)
        await acl.aclmdlRIExecute(model, -1)
        assert turns.numpy()[0] == 1000
        turns.assign([0])
        await acl.aclmdlRIExecute(model, -1)
        assert turns.numpy()[0] == 1000


async def test_goto_jumps_forward_backward_and_across_streams() -> None:
    async with aclrt.open_device() as dev:
        model = acl.aclmdlRIBuildBegin(0)
        one, two = bound(model), bound(model, DEFAULT)
        x = dev.array(np.zeros(1, "f8"))
        middle, there, back = (acl.aclrtCreateLabel() for _ in range(3))
        acl.aclrtCreateLabelList([middle, there, back])
        acl.rtLabelGoto(middle, one)  # forward, before the label is set
        one.launch(note, x, 9.0)
        acl.aclrtSetLabel(back, one)
        one.launch(note, x, 4.0)
        acl.aclmdlRIEndTask(model, one)
        acl.aclrtSetLabel(middle, one)
        one.launch(note, x, 1.0)
        acl.rtLabelGoto(there, one)  # to the other stream, in its middle; this one ends here
        one.launch(note, x, 8.0)
        two.launch(note, x, 7.0)
        acl.aclrtSetLabel(there, two)
        two.launch(note, x, 2.0)
        acl.rtLabelGoto(back, two)  # and back
        acl.aclmdlRIBuildEnd(model)
        await acl.aclmdlRIExecute(model, -1)
        # middle (1), there (2), back: 4, the end-graph record, then on past the label: 1, there, 2, back ... until the
        # end is
        # seen; the run ends with the first pass of the record.
        assert str(int(x.numpy()[0])).startswith("124")
        await acl.aclmdlRIAbort(model)


async def test_a_jump_to_a_label_that_is_set_nowhere_fails_the_run() -> None:
    async with aclrt.open_device():
        model = acl.aclmdlRIBuildBegin(0)
        stream = bound(model)
        label = acl.aclrtCreateLabel()
        acl.aclrtCreateLabelList([label])
        acl.rtLabelGoto(label, stream)
        complete(model, stream)
        with pytest.raises(aclrt.AclError) as caught:
            await acl.aclmdlRIExecute(model, -1)
        assert caught.value.code == 507011


async def test_set_refuses_in_the_recorded_order() -> None:
    async with aclrt.open_device() as dev:
        one, two = acl.aclmdlRIBuildBegin(0), acl.aclmdlRIBuildBegin(0)
        p, q, plain = bound(one), bound(one), dev.stream()
        foreign = bound(two)
        label = acl.aclrtCreateLabel()
        assert code_of(acl.aclrtSetLabel, label, plain) == 107005
        assert code_of(acl.aclrtSetLabel, label, p) == 507000  # in no list
        table = acl.aclrtCreateLabelList([label])
        assert code_of(acl.aclrtCreateLabelList, [label]) == 507000  # in a list
        assert code_of(acl.aclrtSwitchLabelByIndex, dev.empty(4), 0, table, p) == 107000
        assert code_of(acl.aclrtSwitchLabelByIndex, dev.empty(4), 1, table, plain) == 107005
        acl.aclrtSetLabel(label, p)
        for stream in (p, q, foreign):
            assert code_of(acl.aclrtSetLabel, label, stream) == 507000
        assert code_of(acl.aclrtCreateLabelList, []) == 107000
        assert code_of(acl.aclrtSetLabel, None, p) == 100000
        other = acl.aclrtCreateContext(0)
        assert code_of(acl.aclrtSetLabel, label, p) == 507031
        assert code_of(acl.aclrtDestroyLabel, label) == 507031
        await acl.aclrtDestroyContext(other)


async def test_ids_run_out_and_come_back() -> None:
    async with aclrt.open_device(limits={"max_labels": 2}) as dev:
        made = [acl.aclrtCreateLabel() for _ in range(2)]
        assert code_of(acl.aclrtCreateLabel) == 507000
        acl.aclrtDestroyLabel(made[0])
        assert code_of(acl.aclrtDestroyLabel, made[0]) == 107017
        acl.aclrtDestroyLabel(acl.aclrtCreateLabel())
        acl.aclrtDestroyLabel(made[1])
        assert dev.npu.driver.held(IdKind.LABEL) == 0


async def test_a_model_has_an_allocator_of_its_own_and_gives_its_labels_up() -> None:
    async with aclrt.open_device() as dev:
        model, other = acl.aclmdlRIBuildBegin(0), acl.aclmdlRIBuildBegin(0)
        stream, foreign = bound(model), bound(other)
        mine = labels.create(dev.context, model)
        free = acl.aclrtCreateLabel()
        table = acl.aclrtCreateLabelList([mine, free])
        assert code_of(acl.aclrtSetLabel, mine, foreign) == 507000  # made for the other model
        acl.aclrtSetLabel(mine, stream)
        acl.aclrtSetLabel(free, stream)
        assert set(model.labels.values()) == {mine, free}
        await acl.aclmdlRIDestroy(model)
        assert dev.npu.driver.held(IdKind.LABEL) == 1
        assert free.stream is None  # unbound: it may be set again
        acl.aclrtSetLabel(free, foreign)
        acl.aclrtDestroyLabelList(table)
        assert free.address is None
        assert code_of(acl.aclrtDestroyLabelList, table) == 107017


async def test_labels_come_along_when_a_stream_is_bound_again() -> None:
    async with aclrt.open_device() as dev:
        first, second = acl.aclmdlRIBuildBegin(0), acl.aclmdlRIBuildBegin(0)
        stream, x = bound(first), dev.array(np.zeros(1, "f8"))
        label = acl.aclrtCreateLabel()
        acl.aclrtCreateLabelList([label])
        acl.rtLabelGoto(label, stream)
        stream.launch(note, x, 9.0)
        acl.aclrtSetLabel(label, stream)
        stream.launch(note, x, 1.0)
        acl.aclmdlRIUnbindStream(first, stream)
        assert first.labels == {}
        acl.aclmdlRIBindStream(second, stream, HEAD)
        complete(second, stream)
        await acl.aclmdlRIExecute(second, -1)
        assert x.numpy()[0] == 1


async def test_a_destroyed_context_gives_its_labels_back() -> None:
    async with aclrt.open_device() as dev:
        used = dev.used_bytes
        context = acl.aclrtCreateContext(0)
        acl.aclrtCreateLabelList([acl.aclrtCreateLabel() for _ in range(3)])
        await acl.aclrtDestroyContext(context)
        assert dev.npu.driver.held(IdKind.LABEL) == 0
        assert dev.used_bytes == used
