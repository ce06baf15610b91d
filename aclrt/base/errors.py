"""The exceptions of the runtime: one class per failure a caller may want to name, found by its ACL number.

Not the table of numbers (`codes`), and nothing here raises: a caller builds an error and raises it itself.
"""

from __future__ import annotations

from typing import ClassVar, final

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.codes import name_of


class AclError(RuntimeError):
    """A non-zero aclError. `code` is the ACL number; the class says whose fault it is.

    The message is one line: what was asked, what state it met, what to do, and the code at its end in brackets.
    """

    code: int = Code.FAILURE
    _registry: ClassVar[dict[int, type[AclError]]] = {}

    def __init_subclass__(cls, *, code: int | None = None) -> None:
        super().__init_subclass__()
        if code is not None:
            assert code not in AclError._registry, f"{code} has a class already"
            AclError._registry[code] = cls
            cls.code = code

    @property
    def name(self) -> str:
        """The macro name without ACL_ERROR_, e.g. RT_STREAM_CAPTURED."""
        return name_of(self.code)

    @staticmethod
    def of(code: int, text: str, *, cause: BaseException | None = None) -> AclError:
        """The error of `code` in its own class, or in its family's; `cause` becomes its __cause__. Raises nothing."""
        cls = AclError._registry.get(code) or family(code)
        if "\n" in text:  # what a kernel or a host function raised may have several lines
            text = " ".join(text.split())
        error = cls(f"{text} [{int(code)}]")
        error.code = int(code)
        error.__cause__ = cause
        return error


class UsageError(AclError):
    """100xxx and 107xxx: the caller."""


class CaptureError(UsageError):
    """The caller, against the rules of a capture."""


class ResourceError(AclError):
    """2xxxxx and 300000: exhausted or unsupported."""


class ExecutionError(AclError):
    """5xxxxx: the device or the runtime, at run time."""


def family(code: int) -> type[AclError]:
    """The class of a number that has none of its own."""
    number = int(code)
    if number // 10_000 in (20, 30):
        return ResourceError
    if number // 100_000 == 5:
        return ExecutionError
    return UsageError if number // 100_000 == 1 else AclError


def of(code: int, text: str, *, cause: BaseException | None = None) -> AclError:
    """Short for `AclError.of`."""
    return AclError.of(code, text, cause=cause)


def fail(code: int, asked: str, met: str, todo: str, *, cause: BaseException | None = None) -> AclError:
    """The error with the house's one-line text: `asked: met; todo [code]`. Build and raise: `raise fail(...)`."""
    return AclError.of(code, f"{asked}: {met}; {todo}", cause=cause)


# --- the caller ----------------------------------------------------------------------------------------------------


@final
class InvalidHandleError(UsageError, code=Code.RT_INVALID_HANDLE):
    """A destroyed or wrong-kind handle."""


@final
class WaitTimeoutError(UsageError, TimeoutError, code=Code.RT_WAIT_TIMEOUT):
    """An abort or a wait did not finish in time."""


@final
class TaskTimeoutError(UsageError, TimeoutError, code=Code.RT_TASK_TIMEOUT):
    """A task did not finish in time."""


@final
class DeadlockError(UsageError):
    """Nothing can run and no deadline is left, so this wait can never end. Not a TimeoutError: no time passed."""

    code: int = int(Code.RT_TASK_TIMEOUT)

    @staticmethod
    def of_waits(text: str) -> DeadlockError:
        """The error with its code at the end of `text`."""
        return DeadlockError(f"{text} [{DeadlockError.code}]")


def deadlock(what: str, story: str) -> DeadlockError:
    """The DeadlockError of a wait: `what` waits, `story` is the who-waits-for-whom text."""
    return DeadlockError.of_waits(f"{what}: nothing can run and no deadline is left; mend who waits for whom: {story}")


@final
class ModelRunningError(UsageError, code=Code.RT_MODEL_RUNNING):
    """The model is still running after the wait of its destroy."""


@final
class ModelUpdateFailedError(UsageError, code=Code.RT_MODEL_UPDATE_FAILED):
    """The model's status or its running forbids the update."""


@final
class WaitCallbackTimeoutError(UsageError, TimeoutError, code=Code.WAIT_CALLBACK_TIMEOUT):
    """The wait for a callback timed out."""


# --- captures ------------------------------------------------------------------------------------------------------


@final
class CaptureDependencyError(CaptureError, code=Code.RT_CAPTURE_DEPENDENCY):
    """The capture would depend on something outside it."""


@final
class StreamUnjoinedError(CaptureError, code=Code.RT_STREAM_UNJOINED):
    """A forked stream was never joined back."""


@final
class ModelCapturedError(CaptureError, code=Code.RT_MODEL_CAPTURED):
    """The model is capturing, or was captured already."""


@final
class StreamCapturedError(CaptureError, code=Code.RT_STREAM_CAPTURED):
    """Illegal on a capturing stream."""


@final
class EventCapturedError(CaptureError, code=Code.RT_EVENT_CAPTURED):
    """A host-side wait or query of a captured event."""


@final
class StreamNotCapturedError(CaptureError, code=Code.RT_STREAM_NOT_CAPTURED):
    """The stream is not capturing."""


@final
class CaptureModeNotSupportedError(CaptureError, code=Code.RT_CAPTURE_MODE_NOT_SUPPORT):
    """An unsafe call, forbidden by the capture mode."""


@final
class CaptureImplicitError(CaptureError, code=Code.RT_STREAM_CAPTURE_IMPLICIT):
    """The default stream would be pulled into a capture."""


@final
class CaptureConflictError(CaptureError, code=Code.STREAM_CAPTURE_CONFLICT):
    """An event of one capture used by another."""


@final
class TaskGroupStatusError(CaptureError, code=Code.STREAM_TASK_GROUP_STATUS):
    """An illegal move of the task-group state."""


@final
class TaskGroupInterruptedError(CaptureError, code=Code.STREAM_TASK_GROUP_INTR):
    """Another stream launched while a task group was open."""


@final
class CaptureUnmatchedError(CaptureError, code=Code.RT_STREAM_CAPTURE_UNMATCHED):
    """End of a capture on a stream that joined it, not on its origin."""


@final
class CaptureWrongThreadError(CaptureError, code=Code.RT_STREAM_CAPTURE_WRONG_THREAD):
    """End of a capture on another host thread than its begin."""


@final
class CaptureModeBlockAsyncError(CaptureError, code=Code.RT_CAPTURE_MODE_BLOCK_ASYNC):
    """An async copy would have to become synchronous, which the capture mode forbids."""


@final
class SubGraphCapturingError(CaptureError, code=Code.RT_SUB_ACLGRAPH_IS_CAPTURING):
    """A branch of the parent graph is not captured yet."""


@final
class CaptureInvalidatedError(CaptureError, code=Code.RT_STREAM_CAPTURE_INVALIDATED):
    """The capture was invalidated by an earlier call."""


# --- resources -----------------------------------------------------------------------------------------------------


@final
class OutOfMemoryError(ResourceError, MemoryError, code=Code.RT_MEMORY_ALLOCATION):
    """Memory allocation failed."""


@final
class DeviceOutOfMemoryError(ResourceError, MemoryError, code=Code.RT_DEVICE_OOM):
    """The device is out of memory."""


@final
class BadAllocError(ResourceError, MemoryError, code=Code.BAD_ALLOC):
    """Host memory allocation failed in the acl layer."""


@final
class SqCqExhaustedError(ResourceError, code=Code.RT_RESOURCE_ALLOC_FAIL):
    """No SQ/CQ left."""


@final
class NoEventResourceError(ResourceError, code=Code.RT_NO_EVENT_RESOURCE):
    """No event id left."""


@final
class NoStreamResourceError(ResourceError, code=Code.RT_NO_STREAM_RESOURCE):
    """No stream id left."""


@final
class NoNotifyResourceError(ResourceError, code=Code.RT_NO_NOTIFY_RESOURCE):
    """No notify id left."""


@final
class NoModelResourceError(ResourceError, code=Code.RT_NO_MODEL_RESOURCE):
    """No model id left."""


@final
class DriverTimeoutError(ResourceError, TimeoutError, code=Code.RT_TIMEOUT):
    """The driver timed out."""


# --- the device ----------------------------------------------------------------------------------------------------


@final
class InternalError(ExecutionError, code=Code.RT_INTERNAL_ERROR):
    """Every failure without a more exact code, a failing host function among them."""


@final
class ModelExecuteError(ExecutionError, code=Code.RT_MODEL_EXECUTE):
    """The execution of a model failed, or its status does not allow one; a core exception is the cause."""


@final
class ModelAbortedError(ExecutionError, code=Code.RT_MODEL_ABORT_NORMAL):
    """The execution was aborted."""


@final
class ReportTimeoutError(ExecutionError, TimeoutError, code=Code.RT_REPORT_TIMEOUT):
    """No report for aclrtProcessReport in time."""


@final
class StreamSyncTimeoutError(ExecutionError, TimeoutError, code=Code.RT_STREAM_SYNC_TIMEOUT):
    """The stream did not finish in time."""


@final
class EventSyncTimeoutError(ExecutionError, TimeoutError, code=Code.RT_EVENT_SYNC_TIMEOUT):
    """The event did not complete in time."""


@final
class AicoreTimeoutError(ExecutionError, TimeoutError, code=Code.RT_AICORE_TIMEOUT):
    """A kernel on an AI core ran over the execution limit."""


@final
class AicpuTimeoutError(ExecutionError, TimeoutError, code=Code.RT_AICPU_TIMEOUT):
    """A kernel on an AICPU ran over the execution limit."""


@final
class VectorCoreTimeoutError(ExecutionError, TimeoutError, code=Code.RT_VECTOR_CORE_TIMEOUT):
    """A kernel on a vector core ran over the execution limit."""


@final
class AicoreExceptionError(ExecutionError, code=Code.RT_AICORE_EXCEPTION):
    """A kernel on an AI core raised; its exception is the cause."""


@final
class AicpuExceptionError(ExecutionError, code=Code.RT_AICPU_EXCEPTION):
    """A kernel on an AICPU raised; its exception is the cause."""


@final
class VectorCoreExceptionError(ExecutionError, code=Code.RT_VECTOR_CORE_EXCEPTION):
    """A kernel on a vector core raised; its exception is the cause."""


class UnobservedErrorWarning(RuntimeWarning):
    """A device failure that nobody awaited or synchronised on, reported when the device closes."""
