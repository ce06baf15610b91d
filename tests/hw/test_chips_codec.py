"""The codec beside its golden bytes: round trips, the batch path of kernels, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw import chips
from hw.chips import SQE_BYTES, Chip, Core, Sqe, SqeError, SqeFlag, SqeKind

if TYPE_CHECKING:
    from collections.abc import Container

CHIPS = [chips.get("v100"), chips.get("v200")]
WIDTHS = {"u1": (1 << 8) - 1, "u2": (1 << 16) - 1, "u4": (1 << 32) - 1, "u8": (1 << 64) - 1}


@st.composite
def sqes(draw: st.DrawFn) -> tuple[Chip, SqeKind, int, int, dict[str, int]]:
    chip = draw(st.sampled_from(CHIPS))
    kind = draw(st.sampled_from(list(SqeKind)))
    fields = {}
    for field in chip.layout(kind).fields:
        if not field.name or field.name in ("type", "flags", "slots", "stream_id", "task_id"):
            continue
        allowed: Container[int] | None = field.allowed
        choice = st.integers(0, WIDTHS[field.code])
        fields[field.name] = draw(choice if allowed is None else st.sampled_from([v for v in range(9) if v in allowed]))
    return chip, kind, draw(st.integers(0, 65535)), draw(st.integers(0, 65535)), fields


@given(sqes(), st.integers(0, 255), st.integers(1, 5))
def test_encode_then_decode_gives_the_fields_back(
    case: tuple[Chip, SqeKind, int, int, dict[str, int]], flags: int, slots: int
) -> None:
    chip, kind, stream_id, task_id, fields = case
    data = chip.encode(kind, stream_id=stream_id, task_id=task_id, flags=flags, slots=slots, **fields)
    assert len(data) == slots * SQE_BYTES
    stream = stream_id if chip.task_shift else chips.NO_STREAM
    assert chip.decode(data) == Sqe(kind, flags, slots, stream, task_id, fields)
    for at in range(1, slots):
        rest = chip.decode(memoryview(data), at * SQE_BYTES)
        assert (rest.kind, rest.slots, rest.task_id) == (SqeKind.PLACE_HOLDER, 1, task_id)


@given(st.binary(min_size=64, max_size=64), st.sampled_from(CHIPS))
def test_any_64_bytes_decode_or_are_refused(data: bytes, chip: Chip) -> None:
    try:
        sqe = chip.decode(data)
    except SqeError:
        return
    assert sqe.kind == data[0]
    assert SqeKind(data[0]).name in repr(sqe)


@pytest.mark.parametrize("chip", CHIPS, ids=repr)
@pytest.mark.parametrize("flags", range(4))
def test_the_batch_path_writes_the_same_bytes(chip: Chip, flags: int) -> None:
    ring = bytearray(b"\xff" * (4 * SQE_BYTES))
    base = chip.ident(9, 0)
    ident = base | (70000 & chip.task_mask) << chip.task_shift
    chip.kernel_pack.pack_into(ring, SQE_BYTES, chip.kernel_word(flags), ident, Core.AICPU, 7, 11, 24)
    plain = chip.encode(
        SqeKind.KERNEL, stream_id=9, task_id=70000, flags=flags, core=Core.AICPU, program=7, args=11, blocks=24
    )
    assert ring[SQE_BYTES : 2 * SQE_BYTES] == plain
    assert ident == chip.ident(9, 70000)
    assert ring[2 * SQE_BYTES :] == b"\xff" * (2 * SQE_BYTES)
    assert chip.kernel_scan.unpack_from(ring, SQE_BYTES) == (SqeKind.KERNEL, flags, Core.AICPU, 7, 11)
    assert list(chip.kernel_scan.iter_unpack(plain * 3)) == [(SqeKind.KERNEL, flags, Core.AICPU, 7, 11)] * 3


def test_one_flipped_byte_is_another_sqe() -> None:
    chip = chips.get()
    ring = bytearray(chip.encode(SqeKind.KERNEL, stream_id=1, task_id=2, core=Core.AIV, program=5, args=6))
    ring[chip.layout(SqeKind.KERNEL).offset("program")] = 8
    assert chip.decode(ring)["program"] == 8


@pytest.mark.parametrize("chip", CHIPS, ids=repr)
@pytest.mark.parametrize("type_byte", sorted(set(range(256)) - {int(kind) for kind in SqeKind}))
def test_other_type_bytes_are_refused(chip: Chip, type_byte: int) -> None:
    with pytest.raises(SqeError, match=f"type {type_byte} is no kind"):
        chip.decode(bytes([type_byte]).ljust(64, b"\0"))


@pytest.mark.parametrize("offset", [-64, 1, 64])
def test_a_slot_must_be_whole(offset: int) -> None:
    chip = chips.get()
    with pytest.raises(SqeError, match="a slot is 64 bytes"):
        chip.decode(chip.encode(SqeKind.NOP, stream_id=0, task_id=0), offset)


def test_a_field_outside_its_values_is_refused_both_ways() -> None:
    chip = chips.get("v200")
    with pytest.raises(SqeError, match="KERNEL SQE of v200: field core=3 is not a legal value"):
        chip.encode(SqeKind.KERNEL, stream_id=0, task_id=0, core=3, program=0, args=0)
    data = bytearray(chip.encode(SqeKind.KERNEL, stream_id=0, task_id=0, core=2, program=0, args=0))
    data[chip.layout(SqeKind.KERNEL).offset("core")] = 3
    with pytest.raises(SqeError, match="field core=3"):
        chip.decode(data)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, r"fields missing: \['notify_id'\]"),
        ({"notify_id": 1, "colour": 2}, r"unknown: \['colour'\]"),
        ({"notify_id": 1 << 16}, "field notify_id=65536 does not fit u2"),
        ({"notify_id": -1}, "field notify_id=-1 does not fit u2"),
        ({"notify_id": 1, "clear": 1}, r"unknown: \['clear'\]"),  # a v200 field
    ],
)
def test_encode_names_the_bad_field(fields: dict[str, int], message: str) -> None:
    with pytest.raises(SqeError, match=message):
        chips.get("v100").encode(SqeKind.NOTIFY_WAIT, stream_id=0, task_id=0, **fields)


def test_a_task_takes_at_least_one_slot_and_at_most_255() -> None:
    for slots in (0, 256):
        with pytest.raises(SqeError):
            chips.get().encode(SqeKind.NOP, stream_id=0, task_id=0, slots=slots)


def test_flags_are_the_bits_of_the_header() -> None:
    assert SqeFlag.WR_CQE | SqeFlag.ONE_SHOT == 3
    sqe = chips.get().decode(chips.get().encode(SqeKind.NOP, stream_id=0, task_id=0, flags=SqeFlag.ONE_SHOT))
    assert SqeFlag(sqe.flags) is SqeFlag.ONE_SHOT


@pytest.mark.parametrize("status", list(chips.Status))
@pytest.mark.parametrize("kind", list(chips.CqeKind))
def test_cqe_round_trip(kind: chips.CqeKind, status: chips.Status) -> None:
    cqe = chips.Cqe(kind, 5, -1, 65535, 1 << 40, status, -1, 12)
    back = chips.decode_cqe(chips.encode_cqe(cqe))
    assert back == cqe
    assert back.status is status
    assert kind.name in repr(back)


@pytest.mark.parametrize("data", [b"\0" * 64, b"\x01\x63".ljust(64, b"\0")])
def test_bytes_that_are_no_cqe_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="is no completion"):
        chips.decode_cqe(data)
