"""The table of ACL result codes: number, macro name without its ACL_ERROR_ prefix, and what it means.

Not exceptions; `errors` makes those. Source: acl_semantics 2.1 to 2.6.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self, final


@final
class AclErrorCode(IntEnum):
    """Every non-zero aclError. A member is the number; `.meaning` says in a few words what it stands for."""

    meaning: str

    def __new__(cls, number: int, meaning: str = "") -> Self:
        member = int.__new__(cls, number)
        member._value_ = number
        member.meaning = meaning
        return member

    # acl layer: the caller
    INVALID_PARAM = 100000, "a null pointer or a bad enum value, found by the acl layer"
    UNINITIALIZE = 100001, "used before aclInit"
    REPEAT_INITIALIZE = 100002, "aclInit called again (it counts, and works)"
    INVALID_FILE = 100003, "bad configuration file"
    REPEAT_SUBSCRIBE = 100033, "the stream is subscribed already"
    STREAM_NOT_SUBSCRIBE = 100034, "callback launched on a stream without subscription"
    THREAD_NOT_SUBSCRIBE = 100035, "the thread has no subscription"
    WAIT_CALLBACK_TIMEOUT = 100036, "the wait for a callback timed out"
    REPEAT_FINALIZE = 100037, "finalized already"
    COMPILING_STUB_MODE = 100039, "linked against the stub library"

    # runtime: the caller
    RT_PARAM_INVALID = 107000, "bad argument or illegal combination"
    RT_INVALID_DEVICEID = 107001, "no such device id"
    RT_CONTEXT_NULL = 107002, "no usable current context"
    RT_STREAM_CONTEXT = 107003, "the stream belongs to another context"
    RT_MODEL_CONTEXT = 107004, "the model belongs to another context"
    RT_STREAM_MODEL = 107005, "stream and model binding do not match"
    RT_EVENT_TIMESTAMP_INVALID = 107006, "the event has no time stamp"
    RT_EVENT_TIMESTAMP_REVERSAL = 107007, "the end event was recorded before the start event"
    RT_ADDR_UNALIGNED = 107008, "the address is not aligned"
    RT_FILE_OPEN = 107009, "cannot open the file"
    RT_FILE_WRITE = 107010, "cannot write the file"
    RT_STREAM_SUBSCRIBE = 107011, "the stream's subscription has another owner"
    RT_THREAD_SUBSCRIBE = 107012, "the thread is not subscribed"
    RT_GROUP_NOT_SET = 107013, "no group is set"
    RT_GROUP_NOT_CREATE = 107014, "no group was created"
    RT_STREAM_NO_CB_REG = 107015, "no thread is registered for the stream's callbacks"
    RT_INVALID_MEMORY_TYPE = 107016, "bad memory type"
    RT_INVALID_HANDLE = 107017, "destroyed or wrong-kind handle"
    RT_INVALID_MALLOC_TYPE = 107018, "bad allocation type"
    RT_WAIT_TIMEOUT = 107019, "the wait did not finish in time"
    RT_TASK_TIMEOUT = 107020, "a task did not finish in time"
    RT_SYSPARAMOPT_NOT_SET = 107021, "the system parameter is not set"
    RT_DEVICE_TASK_ABORT = 107022, "a device task abort is active"
    RT_STREAM_ABORT = 107023, "the stream is being aborted"
    RT_CAPTURE_DEPENDENCY = 107024, "the capture would depend on something outside it"
    RT_STREAM_UNJOINED = 107025, "a forked stream was never joined back"
    RT_MODEL_CAPTURED = 107026, "the model is capturing, or was captured already"
    RT_STREAM_CAPTURED = 107027, "illegal on a capturing stream"
    RT_EVENT_CAPTURED = 107028, "host-side wait or query of a captured event"
    RT_STREAM_NOT_CAPTURED = 107029, "the stream is not capturing"
    RT_CAPTURE_MODE_NOT_SUPPORT = 107030, "unsafe call, forbidden by the capture mode"
    RT_STREAM_CAPTURE_IMPLICIT = 107031, "the default stream would be pulled into a capture"
    STREAM_CAPTURE_CONFLICT = 107032, "an event of one capture used by another"
    STREAM_TASK_GROUP_STATUS = 107033, "illegal move of the task-group state"
    STREAM_TASK_GROUP_INTR = 107034, "another stream launched while a task group was open"
    RT_TASK_ABORT_STOP = 107035, "the task was stopped by an abort"
    RT_STREAM_CAPTURE_UNMATCHED = 107036, "end of a capture on a stream that joined it, not on its origin"
    RT_MODEL_RUNNING = 107037, "the model is still running"
    RT_STREAM_CAPTURE_WRONG_THREAD = 107038, "end of a capture on another thread than its begin"
    RT_INSUFFICIENT_INPUT_ARRAY = 107039, "the array is too small"
    RT_MODEL_UPDATE_FAILED = 107040, "the model's status forbids an update"
    RT_CAPTURE_MODE_BLOCK_ASYNC = 107041, "an async copy turned synchronous, which the capture mode forbids"
    RT_SYMBOL_NOT_FOUND = 107042, "symbol not found"
    RT_INVALID_SYMBOL = 107043, "bad symbol"
    RT_INVALID_DEVICE_FUNCTION = 107044, "bad device function"
    RT_SUB_ACLGRAPH_IS_CAPTURING = 107045, "a branch of the parent graph is not captured yet"

    # acl layer: resources
    BAD_ALLOC = 200000, "host memory allocation failed"
    API_NOT_SUPPORT = 200001, "this API is not available"
    INVALID_DEVICE = 200002, "no such device"
    FEATURE_UNSUPPORTED = 200006, "the feature is not supported"
    STORAGE_OVER_LIMIT = 300000, "storage over its limit"

    # runtime: resources and features
    RT_FEATURE_NOT_SUPPORT = 207000, "feature not supported here"
    RT_MEMORY_ALLOCATION = 207001, "memory allocation failed"
    RT_MEMORY_FREE = 207002, "memory free failed"
    RT_AICORE_OVER_FLOW = 207003, "AI core overflow"
    RT_NO_DEVICE = 207004, "no device"
    RT_RESOURCE_ALLOC_FAIL = 207005, "no SQ/CQ resource"
    RT_NO_PERMISSION = 207006, "no permission"
    RT_NO_EVENT_RESOURCE = 207007, "no event resource"
    RT_NO_STREAM_RESOURCE = 207008, "no stream resource"
    RT_NO_NOTIFY_RESOURCE = 207009, "no notify resource"
    RT_NO_MODEL_RESOURCE = 207010, "no model resource"
    RT_NO_CDQ_RESOURCE = 207011, "no CDQ resource"
    RT_OVER_LIMIT = 207012, "over a limit"
    RT_QUEUE_EMPTY = 207013, "the queue is empty"
    RT_QUEUE_FULL = 207014, "the queue is full"
    RT_REPEATED_INIT = 207015, "initialised already"
    RT_AIVEC_OVER_FLOW = 207016, "AI vector core overflow"
    RT_OVER_FLOW = 207017, "AICPU or SDMA overflow"
    RT_DEVICE_OOM = 207018, "device out of memory"
    RT_FEATURE_NOT_SUPPORT_UPDATE_OP = 207019, "the driver does not support updating this operation"
    RT_TIMEOUT = 207020, "the driver timed out"
    RT_LINK_TYPE_NOT_SUPPORTED = 207021, "the link type is not supported"

    # acl layer: internal
    INTERNAL_ERROR = 500000, "internal error of the acl layer"
    FAILURE = 500001, "failure without a more exact code"
    RT_FAILURE = 500003, "the runtime layer failed"
    DRV_FAILURE = 500004, "the driver failed"

    # runtime: device and internal
    RT_INTERNAL_ERROR = 507000, "internal error without a more exact code"
    RT_TS_ERROR = 507001, "task scheduler error"
    RT_STREAM_TASK_FULL = 507002, "the stream's persistent SQ is full"
    RT_STREAM_TASK_EMPTY = 507003, "the stream has no task"
    RT_STREAM_NOT_COMPLETE = 507004, "the stream is not complete"
    RT_END_OF_SEQUENCE = 507005, "end of sequence"
    RT_EVENT_NOT_COMPLETE = 507006, "the event is not complete"
    RT_CONTEXT_RELEASE_ERROR = 507007, "the context is being destroyed"
    RT_SOC_VERSION = 507008, "bad SoC version"
    RT_TASK_TYPE_NOT_SUPPORT = 507009, "this task type is not allowed here"
    RT_LOST_HEARTBEAT = 507010, "lost the device's heartbeat"
    RT_MODEL_EXECUTE = 507011, "the execution of the model failed"
    RT_REPORT_TIMEOUT = 507012, "no report in time"
    RT_SYS_DMA = 507013, "SDMA error"
    RT_AICORE_TIMEOUT = 507014, "AI core timeout"
    RT_AICORE_EXCEPTION = 507015, "AI core exception"
    RT_AICORE_TRAP_EXCEPTION = 507016, "AI core trap"
    RT_AICPU_TIMEOUT = 507017, "AICPU timeout"
    RT_AICPU_EXCEPTION = 507018, "AICPU exception"
    RT_AICPU_DATADUMP_RSP_ERR = 507019, "AICPU data-dump response error"
    RT_AICPU_MODEL_RSP_ERR = 507020, "AICPU model response error"
    RT_PROFILING_ERROR = 507021, "profiling error"
    RT_IPC_ERROR = 507022, "inter-process communication error"
    RT_MODEL_ABORT_NORMAL = 507023, "the execution was aborted"
    RT_KERNEL_UNREGISTERING = 507024, "the kernel is being unregistered"
    RT_RINGBUFFER_NOT_INIT = 507025, "the ring buffer is not initialised"
    RT_RINGBUFFER_NO_DATA = 507026, "the ring buffer has no data"
    RT_KERNEL_LOOKUP = 507027, "kernel not found"
    RT_KERNEL_DUPLICATE = 507028, "kernel registered twice"
    RT_DEBUG_REGISTER_FAIL = 507029, "debug registration failed"
    RT_DEBUG_UNREGISTER_FAIL = 507030, "debug deregistration failed"
    RT_LABEL_CONTEXT = 507031, "the label belongs to another context"
    RT_PROGRAM_USE_OUT = 507032, "no program left"
    RT_DEV_SETUP_ERROR = 507033, "device set-up failed"
    RT_VECTOR_CORE_TIMEOUT = 507034, "vector core timeout"
    RT_VECTOR_CORE_EXCEPTION = 507035, "vector core exception"
    RT_VECTOR_CORE_TRAP_EXCEPTION = 507036, "vector core trap"
    RT_CDQ_BATCH_ABNORMAL = 507037, "CDQ batch error"
    RT_DIE_MODE_CHANGE_ERROR = 507038, "cannot change the die mode"
    RT_DIE_SET_ERROR = 507039, "cannot set the die"
    RT_INVALID_DIEID = 507040, "bad die id"
    RT_DIE_MODE_NOT_SET = 507041, "the die mode is not set"
    RT_AICORE_TRAP_READ_OVERFLOW = 507042, "AI core trap: read overflow"
    RT_AICORE_TRAP_WRITE_OVERFLOW = 507043, "AI core trap: write overflow"
    RT_VECTOR_CORE_TRAP_READ_OVERFLOW = 507044, "vector core trap: read overflow"
    RT_VECTOR_CORE_TRAP_WRITE_OVERFLOW = 507045, "vector core trap: write overflow"
    RT_STREAM_SYNC_TIMEOUT = 507046, "the stream did not finish in time"
    RT_EVENT_SYNC_TIMEOUT = 507047, "the event did not complete in time"
    RT_FFTS_PLUS_TIMEOUT = 507048, "FFTS+ timeout"
    RT_FFTS_PLUS_EXCEPTION = 507049, "FFTS+ exception"
    RT_FFTS_PLUS_TRAP_EXCEPTION = 507050, "FFTS+ trap"
    RT_SEND_MSG = 507051, "cannot send the message"
    RT_COPY_DATA = 507052, "cannot copy user data"
    RT_DEVICE_MEM_ERROR = 507053, "device memory error"
    RT_HBM_MULTI_BIT_ECC_ERROR = 507054, "HBM multi-bit ECC error"
    RT_SUSPECT_DEVICE_MEM_ERROR = 507055, "suspected device memory error"
    RT_LINK_ERROR = 507056, "link error"
    RT_SUSPECT_REMOTE_ERROR = 507057, "suspected remote error"
    RT_DRV_INTERNAL_ERROR = 507899, "driver internal error"
    RT_AICPU_INTERNAL_ERROR = 507900, "AICPU internal error"
    RT_SOCKET_CLOSE = 507901, "the socket was closed"
    RT_AICPU_INFO_LOAD_RSP_ERR = 507902, "AICPU load response error"
    RT_STREAM_CAPTURE_INVALIDATED = 507903, "the capture was invalidated"
    RT_COMM_OP_RETRY_FAIL = 507904, "retry of a collective operation failed"
    SNAPSHOT_LOCK_TIMEOUT = 507905, "snapshot: lock timed out"
    SNAPSHOT_LOCK_FAILED = 507906, "snapshot: lock failed"
    SNAPSHOT_UNLOCK_FAILED = 507907, "snapshot: unlock failed"
    SNAPSHOT_BACKUP_FAILED = 507908, "snapshot: backup failed"
    SNAPSHOT_RESTORE_FAILED = 507909, "snapshot: restore failed"
    HOST_MEMORY_ALREADY_REGISTERED = 507910, "the host memory is registered already"
    HOST_MEMORY_NOT_REGISTERED = 507911, "the host memory is not registered"
    SNAPSHOT_CALLBACK_FAILED = 507912, "snapshot: callback failed"
    SNAPSHOT_REGISTER_CALLBACK_FAILED = 507913, "snapshot: cannot register the callback"
    RT_L3_PORT_ERROR = 507914, "L3 port error"
    RT_CCU_TIMEOUT = 507915, "CCU timeout"
    RT_CCU_EXCEPTION = 507916, "CCU exception"


def name_of(code: int) -> str:
    """The macro name of `code` without ACL_ERROR_; UNKNOWN for a number the table lacks."""
    try:
        return AclErrorCode(code).name
    except ValueError:
        return "UNKNOWN"


def meaning(code: int) -> str:
    """What `code` stands for, in a few words; empty for a number the table lacks."""
    try:
        return AclErrorCode(code).meaning
    except ValueError:
        return ""
