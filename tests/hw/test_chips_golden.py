"""Golden bytes of every SQE kind on both chips, written by hand from the field tables."""

from __future__ import annotations

import pytest

from hw import chips
from hw.chips import NO_STREAM, SqeKind

# Header, 8 bytes, little endian: type, flags, slots, zero; then v100: stream id u16, task id u16; v200: task id u32.
V100_IDS = "0201 0403"  # stream 0x0102, task 0x0304
V200_IDS = "04030500"  # task 0x00050304

# kind: (type byte, slots on v100, slots on v200, fields, body from byte 8 up to its last field)
GOLDEN: dict[SqeKind, tuple[str, int, int, dict[str, int], str]] = {
    SqeKind.NOP: ("20", 1, 1, {}, ""),
    SqeKind.PLACE_HOLDER: ("03", 1, 1, {}, ""),
    SqeKind.KERNEL: (
        "01",
        1,
        1,
        {"core": 1, "program": 0x11223344, "args": 0x55667788, "blocks": 24},
        "01000000 44332211 88776655 18000000",
    ),
    SqeKind.FUSION: ("02", 1, 1, {"args": 0x55667788, "blocks": 2}, "88776655 02000000"),
    SqeKind.EVENT_RECORD: ("04", 1, 1, {"event_id": 0x00010002}, "02000100"),
    SqeKind.EVENT_WAIT: (
        "05",
        1,
        1,
        {"event_id": 0x00010002, "timeout_ms": 1000},
        "02000100 00000000 e803000000000000",
    ),
    SqeKind.EVENT_RESET: ("21", 1, 1, {"event_id": 7}, "07000000"),
    SqeKind.WRITE_VALUE: (
        "08",
        1,
        1,
        {"address": 0x100040000008, "value": 0xFFFFFFFFFFFFFFFE, "width": 8},
        "0800004000100000 feffffffffffffff 08",
    ),
    SqeKind.WAIT_VALUE: (
        "22",
        4,
        3,
        {"address": 0x100040000008, "value": 5, "flag": 2, "width": 1},
        "0800004000100000 0500000000000000 02 01",
    ),
    SqeKind.MEMCPY: (
        "0b",
        1,
        1,
        {"dst": 0x100040000000, "src": 0x4000000000000010, "nbytes": 0x1234},
        "0000004000100000 1000000000000040 3412000000000000",
    ),
    SqeKind.MEMCPY2D: (
        "0c",
        1,
        1,
        {"dst": 0x1000, "dpitch": 64, "src": 0x2000, "spitch": 128, "width": 48, "height": 3},
        "0010000000000000 4000000000000000 0020000000000000 8000000000000000 3000000000000000 0300000000000000",
    ),
    SqeKind.MEMSET: (
        "0d",
        1,
        1,
        {"dst": 0x1000, "nbytes": 256, "value": 0xAB},
        "0010000000000000 0001000000000000 ab",
    ),
    SqeKind.HOSTFUNC: ("23", 1, 1, {"callback": 9}, "09000000"),
    SqeKind.MODEL_EXECUTE: ("24", 1, 1, {"model": 21844}, "54550000"),
    SqeKind.STREAM_ACTIVE: ("25", 1, 1, {"sq": 1023}, "ff030000"),
    SqeKind.STREAM_SWITCH: (
        "26",
        1,
        1,
        {"left": 0x1000, "right": 0x2008, "cond": 4, "dtype": 1, "true_sq": 6},
        "0010000000000000 0820000000000000 04 01 0000 06000000",
    ),
    SqeKind.LABEL_SET: ("27", 1, 1, {"label": 65534}, "feff0000"),
    SqeKind.LABEL_GOTO: ("28", 1, 1, {"address": 0x1008}, "0810000000000000"),
    SqeKind.LABEL_SWITCH: (
        "29",
        1,
        1,
        {"index": 0x1000, "list": 0x3000, "max": 4},
        "0010000000000000 0030000000000000 04000000",
    ),
    SqeKind.COND: (
        "14",
        1,
        1,
        {"cell": 0x1000, "table": 0x2000, "notify": 3, "size": 2, "ctype": 1},
        "0010000000000000 0020000000000000 03000000 02000000 01",
    ),
    SqeKind.JUMP_BACK: ("15", 1, 1, {"cell": 0x1000, "back": 2}, "0010000000000000 0200"),
    SqeKind.EXT_RECORD: ("2a", 1, 1, {"table": 0x1018}, "1810000000000000"),
    SqeKind.EXT_WAIT: ("2b", 3, 3, {"table": 0x1018}, "1810000000000000"),
    SqeKind.SQE_UPDATE: (
        "2c",
        1,
        1,
        {"source": 0x1000, "image": 5, "slot": 32000, "n": 4},
        "0010000000000000 05000000 007d0000 0400",
    ),
    SqeKind.MODEL_ADD: (
        "30",
        1,
        1,
        {"model": 2, "root": 1, "sq": 3, "head": 1},
        "02000000 01000000 03000000 01",
    ),
    SqeKind.MODEL_DEL: ("31", 1, 1, {"model": 2, "sq": 3}, "02000000 03000000"),
    SqeKind.MODEL_LOAD: ("32", 1, 1, {"model": 2, "notify": 8191}, "02000000 ff1f0000"),
    SqeKind.MODEL_DESTROY: ("33", 1, 1, {"model": 2}, "02000000"),
}

# The kinds that each chip lays out its own way.
GOLDEN_V100: dict[SqeKind, tuple[str, int, int, dict[str, int], str]] = {
    SqeKind.NOTIFY_RECORD: ("06", 1, 1, {"notify_id": 0x1234}, "3412"),
    SqeKind.NOTIFY_WAIT: (
        "07",
        1,
        1,
        {"notify_id": 0x1234, "timeout_ms": 2000},
        "3412 0000 00000000 d007000000000000",
    ),
}
GOLDEN_V200: dict[SqeKind, tuple[str, int, int, dict[str, int], str]] = {
    SqeKind.NOTIFY_RECORD: ("06", 1, 1, {"notify_id": 0x00011234, "count": 1}, "34120100 01"),
    SqeKind.NOTIFY_WAIT: (
        "07",
        1,
        1,
        {"notify_id": 0x00011234, "count": 1, "clear": 0, "timeout_ms": 2000},
        "34120100 01 00 0000 d007000000000000",
    ),
}


def slot(head: str, body: str) -> bytes:
    return bytes.fromhex(head + body).ljust(64, b"\0")


CASES = [
    (chip, kind, table)
    for chip, own in (("v100", GOLDEN_V100), ("v200", GOLDEN_V200))
    for kind, table in {**GOLDEN, **own}.items()
]


def test_every_kind_has_golden_bytes_on_both_chips() -> None:
    assert {(chip, kind) for chip, kind, _ in CASES} == {(chip, kind) for chip in ("v100", "v200") for kind in SqeKind}


@pytest.mark.parametrize(("name", "kind", "case"), CASES, ids=[f"{name}-{kind.name}" for name, kind, _ in CASES])
def test_golden(name: str, kind: SqeKind, case: tuple[str, int, int, dict[str, int], str]) -> None:
    type_byte, slots_v100, slots_v200, fields, body = case
    v100 = name == "v100"
    slots = slots_v100 if v100 else slots_v200
    ids = V100_IDS if v100 else V200_IDS
    wanted = slot(f"{type_byte} 03 {slots:02x} 00 {ids}", body)
    wanted += slot(f"03 00 01 00 {ids}", "") * (slots - 1)
    chip = chips.get(name)

    assert chip.encode(kind, stream_id=0x0102, task_id=0x00050304, flags=3, **fields).hex() == wanted.hex()

    sqe = chip.decode(wanted)
    assert (sqe.kind, sqe.flags, sqe.slots, sqe.fields) == (kind, 3, slots, fields)
    assert sqe.stream_id == (0x0102 if v100 else NO_STREAM)
    assert sqe.task_id == (0x0304 if v100 else 0x00050304)  # 16 bits wrap on v100


def test_golden_cqe() -> None:
    cqe = chips.Cqe(chips.CqeKind.ERROR, 3, 0x0102, 0x0304, 0x100000005, chips.Status.AIV_EXCEPTION, 7)
    wanted = bytes.fromhex("03 02 0000 03000000 02010000 04030000 0500000001000000 07000000 ffffffff").ljust(64, b"\0")
    assert chips.encode_cqe(cqe).hex() == wanted.hex()
    assert chips.decode_cqe(b"junk" + wanted, 4) == cqe
