"""The vocabulary of the submission queue: kinds of SQE, their fields and a decoded SQE.

Not a chip: headers and the exceptions to these field tables are in ``v100`` and ``v200``. The layouts are this
emulator's own; only the numbers of the wire types that acl_semantics 11.1 names are the hardware's.
"""

from __future__ import annotations

import enum

import msgspec

from hw.chips.layout import Field


class SqeKind(enum.IntEnum):
    """What a slot asks for; the value is the ``type`` byte on the wire. 0 is no kind: a zeroed slot is bad bytes."""

    KERNEL = 1
    FUSION = 2
    PLACE_HOLDER = 3
    EVENT_RECORD = 4
    EVENT_WAIT = 5
    NOTIFY_RECORD = 6
    NOTIFY_WAIT = 7
    WRITE_VALUE = 8
    MEMCPY = 11
    MEMCPY2D = 12
    MEMSET = 13
    COND = 20
    JUMP_BACK = 21
    NOP = 32
    EVENT_RESET = 33
    WAIT_VALUE = 34
    HOSTFUNC = 35
    MODEL_EXECUTE = 36
    STREAM_ACTIVE = 37
    STREAM_SWITCH = 38
    LABEL_SET = 39
    LABEL_GOTO = 40
    LABEL_SWITCH = 41
    EXT_RECORD = 42
    EXT_WAIT = 43
    SQE_UPDATE = 44
    MODEL_ADD = 48
    MODEL_DEL = 49
    MODEL_LOAD = 50
    MODEL_DESTROY = 51


class SqeFlag(enum.IntFlag):
    """The ``flags`` byte of every header."""

    WR_CQE = 1  # post a TASK CQE when this task succeeds
    ONE_SHOT = 2  # the TS drops the args handle after the task ran


class Core(enum.IntEnum):
    """Which engine runs a kernel."""

    AIC = 0
    AIV = 1
    AICPU = 2


class WaitFlag(enum.IntEnum):
    """How WAIT_VALUE compares the cell with the wanted value (acl_semantics 1.9)."""

    GEQ = 0  # signed 64-bit compare
    EQ = 1
    AND = 2  # (cell & value) != 0
    NOR = 3  # (cell | value) is not all ones


class Compare(enum.IntEnum):
    """Condition of STREAM_SWITCH: left OP right, signed."""

    EQ = 0
    NE = 1
    GT = 2
    GE = 3
    LT = 4
    LE = 5


class SwitchType(enum.IntEnum):
    """Width of the two operands of STREAM_SWITCH."""

    INT32 = 0
    INT64 = 1


class CondType(enum.IntEnum):
    """What a COND SQE is (acl_semantics 1.1)."""

    IF = 0
    WHILE = 1
    SWITCH = 2


class SqeError(ValueError):
    """64 bytes that are no SQE of this chip, or fields that make none."""


NO_STREAM = -1
"""`Sqe.stream_id` where the header has none (v200): the SQ that holds the slot knows its stream."""


class Sqe(msgspec.Struct, frozen=True, gc=False):
    """One decoded SQE: the header, and the fields of its kind by name.

    ``slots`` is how many slots the task takes; those after the first hold PLACE_HOLDERs.
    """

    kind: SqeKind
    flags: int
    slots: int
    stream_id: int
    task_id: int
    fields: dict[str, int]

    def __getitem__(self, name: str) -> int:
        return self.fields[name]

    def __repr__(self) -> str:
        rest = "".join(f" {name}={value}" for name, value in self.fields.items())
        return f"<Sqe {self.kind.name} stream {self.stream_id} task {self.task_id} x{self.slots}{rest}>"


_MODEL = Field("model", "u4")
_EVENT = Field("event_id", "u4")
_TIMEOUT_MS = Field("timeout_ms", "u8", 0)  # 0: for ever
_WIDTH = Field("width", "u1", 8, (1, 8))

BODIES: dict[SqeKind, tuple[Field, ...]] = {
    SqeKind.NOP: (),
    SqeKind.PLACE_HOLDER: (),
    # The TS batch path reads core, program and args at fixed offsets (chip.KERNEL_SCAN).
    SqeKind.KERNEL: (
        Field("core", "u4", None, range(3)),
        Field("program", "u4"),
        Field("args", "u4"),
        Field("blocks", "u4", 1),
    ),
    SqeKind.FUSION: (Field("args", "u4"), Field("blocks", "u4", 1)),
    SqeKind.EVENT_RECORD: (_EVENT,),
    SqeKind.EVENT_WAIT: (_EVENT, Field("", "u4"), _TIMEOUT_MS),
    SqeKind.EVENT_RESET: (_EVENT,),
    SqeKind.WRITE_VALUE: (Field("address", "u8"), Field("value", "u8"), _WIDTH),
    SqeKind.WAIT_VALUE: (Field("address", "u8"), Field("value", "u8"), Field("flag", "u1", None, range(4)), _WIDTH),
    SqeKind.MEMCPY: (Field("dst", "u8"), Field("src", "u8"), Field("nbytes", "u8")),
    SqeKind.MEMCPY2D: (
        Field("dst", "u8"),
        Field("dpitch", "u8"),
        Field("src", "u8"),
        Field("spitch", "u8"),
        Field("width", "u8"),
        Field("height", "u8"),
    ),
    SqeKind.MEMSET: (Field("dst", "u8"), Field("nbytes", "u8"), Field("value", "u1")),
    SqeKind.HOSTFUNC: (Field("callback", "u4"),),
    SqeKind.MODEL_EXECUTE: (_MODEL,),
    SqeKind.STREAM_ACTIVE: (Field("sq", "u4"),),
    SqeKind.STREAM_SWITCH: (
        Field("left", "u8"),
        Field("right", "u8"),
        Field("cond", "u1", None, range(6)),
        Field("dtype", "u1", None, range(2)),
        Field("", "u2"),
        Field("true_sq", "u4"),
    ),
    SqeKind.LABEL_SET: (Field("label", "u4"),),
    SqeKind.LABEL_GOTO: (Field("address", "u8"),),
    SqeKind.LABEL_SWITCH: (Field("index", "u8"), Field("list", "u8"), Field("max", "u4")),
    SqeKind.COND: (
        Field("cell", "u8"),
        Field("table", "u8"),
        Field("notify", "u4"),
        Field("size", "u4"),
        Field("ctype", "u1", None, range(3)),
    ),
    SqeKind.JUMP_BACK: (Field("cell", "u8"), Field("back", "u2")),
    SqeKind.EXT_RECORD: (Field("table", "u8"),),
    SqeKind.EXT_WAIT: (Field("table", "u8"),),
    SqeKind.SQE_UPDATE: (Field("source", "u8"), Field("image", "u4"), Field("slot", "u4"), Field("n", "u2")),
    SqeKind.MODEL_ADD: (_MODEL, Field("root", "u4"), Field("sq", "u4"), Field("head", "u1", None, range(2))),
    SqeKind.MODEL_DEL: (_MODEL, Field("sq", "u4")),
    SqeKind.MODEL_LOAD: (_MODEL, Field("notify", "u4")),
    SqeKind.MODEL_DESTROY: (_MODEL,),
}
"""Fields after the 8-byte header, for the kinds that both chips lay out alike. Notifies are the chip's own."""
