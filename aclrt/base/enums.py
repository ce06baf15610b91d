"""The enumerations and flags of the API, each with the numbers of the C header.

Not their C spellings; `acl.constants` has those. Source: acl_semantics 1.1, 3. Plain ints are accepted wherever one of
these is expected.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import final

# --- captures and models -------------------------------------------------------------------------------------------


@final
class CaptureMode(IntEnum):
    """aclmdlRICaptureMode: how strictly unsafe calls are refused while a capture is open; the smaller the stricter."""

    GLOBAL = 0
    THREAD_LOCAL = 1
    RELAXED = 2


@final
class CaptureStatus(IntEnum):
    """aclmdlRICaptureStatus of a stream. INVALIDATED still counts as capturing."""

    NONE = 0
    ACTIVE = 1
    INVALIDATED = 2


@final
class ModelStatus(IntEnum):
    """RtCaptureModelStatus: where a capture model stands (acl_semantics 3.2)."""

    NONE = 0
    CAPTURE_ACTIVE = 1
    CAPTURE_INVALIDATED = 2
    READY = 3
    UPDATING = 4
    FAULT = 5


@final
class TaskGroupStatus(IntEnum):
    """A stream's task-group state (acl_semantics 3.3)."""

    NONE = 0
    SAMPLE = 1
    UPDATE = 2


@final
class TaskType(IntEnum):
    """aclmdlRITaskType."""

    DEFAULT = 0
    KERNEL = 1
    EVENT_RECORD = 2
    EVENT_WAIT = 3
    EVENT_RESET = 4
    VALUE_WRITE = 5
    VALUE_WAIT = 6


@final
class CondHandleFlag(IntFlag):
    """aclmdlRICondHandleFlag: ASSIGN_DEFAULT sets the cell to its default at the start of each execution."""

    NONE = 0
    ASSIGN_DEFAULT = 1


@final
class CondType(IntEnum):
    """aclmdlRICondTaskType."""

    IF = 0
    WHILE = 1
    SWITCH = 2


@final
class BindFlag(IntEnum):
    """How a stream is bound to a model: HEAD starts with the execution, DEFAULT when it is activated."""

    HEAD = 0
    DEFAULT = 0x7FFFFFFF


# --- streams -------------------------------------------------------------------------------------------------------


@final
class StreamFlag(IntFlag):
    """Flags of aclrtCreateStreamWithConfig."""

    FAST_LAUNCH = 0x01
    FAST_SYNC = 0x02
    PERSISTENT = 0x04
    HUGE = 0x08
    CPU_SCHEDULE = 0x10
    DEVICE_USE_ONLY = 0x20


@final
class StreamStatus(IntEnum):
    """aclrtStreamStatus."""

    COMPLETE = 0
    NOT_READY = 1
    RESERVED = 0xFFFF


@final
class FailureMode(IntEnum):
    """What a stream does after a task of it failed."""

    CONTINUE = 0
    STOP = 1


@final
class StreamAttr(IntEnum):
    """aclrtStreamAttr."""

    FAILURE_MODE = 1
    FLOAT_OVERFLOW_CHECK = 2
    USER_CUSTOM_TAG = 3
    CACHE_OP_INFO = 4
    PRIORITY = 5


@final
class CompareOp(IntEnum):
    """aclrtCondition: how aclrtSwitchStream compares."""

    EQUAL = 0
    NOT_EQUAL = 1
    GREATER = 2
    GREATER_OR_EQUAL = 3
    LESS = 4
    LESS_OR_EQUAL = 5


@final
class SwitchDataType(IntEnum):
    """aclrtCompareDataType: what aclrtSwitchStream compares."""

    INT32 = 0
    INT64 = 1


@final
class CallbackBlockType(IntEnum):
    """aclrtCallbackBlockType: whether the stream waits for the callback."""

    NO_BLOCK = 0
    BLOCK = 1


# --- events, notifies, values --------------------------------------------------------------------------------------


@final
class EventFlag(IntFlag):
    """Flags of the event constructors. DDSYNC has no acl name, but the range checks know its bit."""

    SYNC = 0x01
    CAPTURE_STREAM_PROGRESS = 0x02
    DDSYNC = 0x04
    TIME_LINE = 0x08
    DEVICE_USE_ONLY = 0x10
    EXTERNAL = 0x20
    IPC = 0x40


@final
class RecordFlag(IntEnum):
    """Flag of aclrtRecordEventWithFlag."""

    DEFAULT = 0
    EXTERNAL = 1


@final
class WaitFlag(IntEnum):
    """Flag of aclrtStreamWaitEventWithFlag."""

    DEFAULT = 0
    EXTERNAL = 1


@final
class EventStatus(IntEnum):
    """aclrtEventStatus."""

    COMPLETE = 0
    NOT_READY = 1
    RESERVED = 2


@final
class EventRecordedStatus(IntEnum):
    """aclrtEventRecordedStatus; its numbers are the other way round than its neighbours'."""

    NOT_READY = 0
    COMPLETE = 1


@final
class EventWaitStatus(IntEnum):
    """aclrtEventWaitStatus."""

    COMPLETE = 0
    NOT_READY = 1
    RESERVED = 0xFFFF


@final
class NotifyFlag(IntFlag):
    """Flags of aclrtCreateNotify."""

    DEFAULT = 0
    DEVICE_USE_ONLY = 1


@final
class CntNotifyRecordMode(IntEnum):
    """aclrtCntNotifyRecordMode: how a record changes a count notify."""

    SET_VALUE = 0
    ADD = 1
    BIT_OR = 2
    BIT_AND = 4


@final
class CntNotifyWaitMode(IntEnum):
    """aclrtCntNotifyWaitMode: when a count notify lets a wait pass."""

    LESS = 0
    EQUAL = 1
    BIGGER = 2
    BIGGER_OR_EQUAL = 3
    EQUAL_WITH_BITMASK = 4


@final
class ValueWaitFlag(IntEnum):
    """When aclrtValueWait passes: signed `>=`, `==`, any common bit, or some bit clear in both."""

    GEQ = 0
    EQ = 1
    AND = 2
    NOR = 3


# --- memory --------------------------------------------------------------------------------------------------------


@final
class MemcpyKind(IntEnum):
    """aclrtMemcpyKind."""

    HOST_TO_HOST = 0
    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    DEVICE_TO_DEVICE = 3
    DEFAULT = 4
    HOST_TO_BUF_TO_DEVICE = 5
    INNER_DEVICE_TO_DEVICE = 6
    INTER_DEVICE_TO_DEVICE = 7


@final
class MallocPolicy(IntEnum):
    """aclrtMemMallocPolicy: a page policy; its last three are bits that may be or-ed to one."""

    HUGE_FIRST = 0
    HUGE_ONLY = 1
    NORMAL_ONLY = 2
    HUGE_FIRST_P2P = 3
    HUGE_ONLY_P2P = 4
    NORMAL_ONLY_P2P = 5
    HUGE1G_ONLY = 6
    HUGE1G_ONLY_P2P = 7
    TYPE_LOW_BAND_WIDTH = 0x0100
    TYPE_HIGH_BAND_WIDTH = 0x1000
    ACCESS_USER_SPACE_READONLY = 0x100000


@final
class MemAttr(IntEnum):
    """aclrtMemAttr: which memory aclrtGetMemInfo asks about."""

    DDR = 0
    HBM = 1
    DDR_HUGE = 2
    DDR_NORMAL = 3
    HBM_HUGE = 4
    HBM_NORMAL = 5
    DDR_P2P_HUGE = 6
    DDR_P2P_NORMAL = 7
    HBM_P2P_HUGE = 8
    HBM_P2P_NORMAL = 9
    HBM_HUGE1G = 10
    HBM_P2P_HUGE1G = 11


@final
class MemLocationType(IntEnum):
    """aclrtMemLocationType: where a pointer points."""

    HOST = 0
    DEVICE = 1
    UNREGISTERED = 2


@final
class HostRegisterType(IntEnum):
    """aclrtHostRegisterType."""

    MAPPED = 0


# --- devices and kernels -------------------------------------------------------------------------------------------


@final
class RunMode(IntEnum):
    """aclrtRunMode: where the program runs."""

    DEVICE = 0
    HOST = 1


@final
class KernelAttr(IntEnum):
    """aclrtLaunchKernelAttrId."""

    SCHEM_MODE = 1
    LOCAL_MEMORY_SIZE = 2
    ENGINE_TYPE = 3
    NUMBLOCKS_OFFSET = 4
    BLOCK_TASK_PREFETCH = 5
    DATA_DUMP = 6
    TIMEOUT = 7
    TIMEOUT_US = 8
