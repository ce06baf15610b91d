"""Conditional tasks: a CondHandle is a condition cell in device memory and the branches it chooses between.

Not the choice itself: the device reads the cell when the task runs (seed acl-graph 5.6, acl_semantics 9).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import msgspec

from aclrt.base.codes import AclErrorCode as Code
from aclrt.base.enums import CondHandleFlag, CondType
from aclrt.base.errors import fail
from aclrt.base.host_thread import require_task
from aclrt.base.place import here
from aclrt.graph.capture_model import CaptureModel
from aclrt.model.model import NotifyId, require_same
from aclrt.model.model import check_handle as check_model
from aclrt.stream import checks as streams
from aclrt.stream import context as contexts
from aclrt.task.task import CondOp
from hw.chips import SqeKind
from hw.driver import IdKind, pack_cond_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aclrt.model.model import Model
    from aclrt.stream.context import Context
    from aclrt.stream.stream import Stream

CELL_BYTES = 8
SQES = {CondType.IF: 2, CondType.WHILE: 3, CondType.SWITCH: 2}
"""SQEs of a conditional task: condition, notify wait, and for WHILE the jump back (seed acl-graph 4.2)."""

JUMP_BACK_SLOTS = 2
"""From the jump back of a WHILE to its condition."""


class CondTaskParams(msgspec.Struct):
    """aclmdlRICondTaskParams, with the C names. `modelRIArray` is written by the call: the branches, in order."""

    handle: CondHandle | None = None
    type: int = CondType.IF
    size: int = 0
    modelRIArray: list[CaptureModel] = []  # noqa: N815 - the C name


@final
class CondHandle:
    """A condition of one capturing model: 8 zeroed bytes of device memory, and once used, the branches it drives.

    Invariants: `ctype is None` exactly while no task uses the handle, and then `models` is empty; `notify` is the
    end-graph notify all its branches share, held while the root is built; `table` is 0 until the first build.
    """

    __slots__ = ("alive", "cell", "ctype", "default", "flag", "model", "models", "notify", "place", "table")

    def __init__(self, model: CaptureModel, default: int, flag: CondHandleFlag) -> None:
        npu = model.npu
        self.model = model
        self.default = default  # written to the cell at each execute of the root, if `flag` says so
        self.flag = flag
        self.ctype: CondType | None = None
        self.models: list[CaptureModel] = []
        self.notify = NotifyId()
        self.place = here()  # of the handle's creation, later of its conditional task
        self.table = 0
        self.cell = npu.malloc(CELL_BYTES, "aclmdlRICondHandleCreate")
        self.alive = True
        npu.driver.write(self.cell, bytes(CELL_BYTES))
        model.cond_handles.append(self)

    # --- names -----------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of branches."""
        return len(self.models)

    @property
    def sqes(self) -> int:
        """SQEs of the conditional task."""
        assert self.ctype is not None, "a handle without a task has no SQEs"
        return SQES[self.ctype]

    def branch_name(self, index: int) -> str:
        """Short: if, else, while or case 2."""
        if self.ctype is CondType.SWITCH:
            return f"case {index}"
        return ("if", "else")[index] if self.ctype is CondType.IF else "while"

    def describe(self, branch: CaptureModel) -> str:
        """The branch in words: branch 1 (else) of the IF at f.py:3."""
        assert self.ctype is not None
        if self.ctype is CondType.WHILE:
            return f"the body of the WHILE at {self.place}"
        index = self.models.index(branch)
        return f"branch {index} ({self.branch_name(index)}) of the {self.ctype.name} at {self.place}"

    def where(self, path: Sequence[tuple[int, int]]) -> str:
        """Where a task of one of the branches ran, innermost first: in iteration 3 of the WHILE at f.py:7.

        `path` is the device's: (branch, iteration), outermost first, iterations counted from 0.
        """
        words: list[str] = []
        handle: CondHandle | None = self
        for index, iteration in reversed(path):
            if handle is None or handle.ctype is None:
                return ""
            if handle.ctype is CondType.WHILE:
                words.append(f"in iteration {iteration} of the WHILE at {handle.place}")
            else:
                words.append(f"in {handle.describe(handle.models[index])}")
            handle = handle.model.parent_handle
        return ", ".join(words)

    # --- build (seed acl-graph 4.2 "BuildSqCq") --------------------------------------------------------------------

    def alloc_notify(self) -> None:
        """Phase 1: the notify that the branches share, and room for the branch table; their heads are final now."""
        npu = self.model.npu
        if self.notify.id is None:
            self.notify.id = npu.alloc(IdKind.NOTIFY, f"conditional task of {self.model.title()}")
        if not self.table:
            room = pack_cond_table([[0] * len(branch.heads) for branch in self.models])
            self.table = npu.malloc(len(room), f"branch table of {self.model.title()}")

    def free_notify(self) -> None:
        """Give the notify id back; the next build takes another and the SQEs that name it are written again."""
        if self.notify.id is not None:
            self.model.npu.driver.free(IdKind.NOTIFY, self.notify.id)
            self.notify.id = None

    def lower(self) -> list[tuple[SqeKind, dict[str, int]]]:
        """The task's SQEs: condition, wait for the branch, and for WHILE the jump back that reads the cell again."""
        assert self.ctype is not None
        assert self.notify.id is not None, "phase 1 comes before SQEs are written"
        fields = {
            "ctype": self.ctype,
            "size": self.size,
            "cell": self.cell,
            "table": self.table,
            "notify": self.notify.id,
        }
        sqes: list[tuple[SqeKind, dict[str, int]]] = [
            (SqeKind.COND, fields),
            (SqeKind.NOTIFY_WAIT, {"notify_id": self.notify.id, "timeout_ms": 0}),
        ]
        if self.ctype is CondType.WHILE:
            sqes.append((SqeKind.JUMP_BACK, {"cell": self.cell, "back": JUMP_BACK_SLOTS}))
        return sqes

    def refresh(self) -> None:
        """Phase 5: tell the device, in its memory, the head SQs of each branch as they are bound now."""
        heads = [[queue.sq for queue in branch.heads if queue.sq is not None] for branch in self.models]
        self.model.npu.driver.write(self.table, pack_cond_table(heads))

    def write_default(self) -> None:
        """At each execute of the root: set the cell, now and for a handle with a task only (acl_semantics 9.4)."""
        if self.flag & CondHandleFlag.ASSIGN_DEFAULT and self.ctype is not None:
            self.model.npu.driver.write(self.cell, self.default.to_bytes(CELL_BYTES, "little"))

    # --- branches --------------------------------------------------------------------------------------------------

    def make_branches(self, ctype: CondType, size: int) -> None:
        """Create the sub-models, status NONE. Errors: 207010; none is left then."""
        self.ctype = ctype
        try:
            for _ in range(size):
                self.models.append(self.model.npu.new_graph(self.model.context, sub_of=self))
        except BaseException:
            self.drop_branches()
            raise

    def drop_branches(self) -> None:
        """Destroy the branches, theirs first; the handle is unused again."""
        for branch in reversed(self.models):
            branch.discard()
        self.models = []
        self.ctype = None

    def renew(self, branch: CaptureModel) -> CaptureModel:
        """Put an uncaptured model in the place of a branch whose capture was given up."""
        index = self.models.index(branch)
        branch.discard()  # first, so that its id is free for the new one
        fresh: CaptureModel = self.model.npu.new_graph(self.model.context, sub_of=self)
        self.models[index] = fresh
        return fresh

    def move_to(self, model: CaptureModel) -> None:
        """Make an unused handle one of `model`, another model of the same tree; cell and address stay."""
        assert self.ctype is None
        assert model.root is self.model.root
        self.model.cond_handles.remove(self)
        self.model = model
        model.cond_handles.append(self)

    def discard(self) -> None:
        """Free all of it: notify, branches, table, cell (acl_semantics 9.6). Called when the model goes."""
        if not self.alive:
            return
        self.alive = False
        self.free_notify()
        self.drop_branches()
        driver = self.model.npu.driver
        for address in (self.table, self.cell):
            if address and driver.extent(address) is not None:  # a user may have freed the cell, against the rules
                driver.free(address)

    def __repr__(self) -> str:
        use = f"{self.ctype.name} of {self.size} at {self.place}" if self.ctype is not None else "unused"
        state = use if self.alive else "destroyed"
        return f"<CondHandle of {self.model.title()} {state}, cell {self.cell:#x}>"


def create(ctx: Context | None, model: Model, default: int, flag: int) -> CondHandle:
    """aclmdlRICondHandleCreate: a condition of a capturing model, branches included. Check order: acl_semantics 9.1.

    `default` is a uint32, kept in its low 32 bits. Errors: 107017, 107000 (flag above 1; the model is not capturing or
    its capture is invalidated), 207000 (a model of the build API), 107002, 107004, 207001.
    """
    asked = "aclmdlRICondHandleCreate"
    check_model(model, asked)
    if not 0 <= flag <= 1:
        raise fail(Code.RT_PARAM_INVALID, asked, f"flag is {flag}", "use 0, or ASSIGN_DEFAULT 1")
    if not isinstance(model, CaptureModel):
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT, asked, f"{model.title()} is not a captured graph", "use a capturing graph"
        )
    if not model.active:
        raise fail(
            Code.RT_PARAM_INVALID,
            asked,
            f"{model.title()} is {model.status.name}",
            "create it while the graph is capturing",
        )
    require_same(ctx, model, asked)
    return CondHandle(model, default & 0xFFFF_FFFF, CondHandleFlag(flag))


def check_handle(handle: CondHandle, asked: str) -> None:
    """107017 for a handle that went with its model. RuntimeError outside a task."""
    require_task()
    if not handle.alive:
        raise fail(Code.RT_INVALID_HANDLE, asked, f"{handle!r}", "create it in a live model")


def get_ptr(handle: CondHandle) -> int:
    """aclmdlRICondHandleGetCondPtr: the device address of the cell, 8 bytes. Errors: 107017."""
    check_handle(handle, "aclmdlRICondHandleGetCondPtr")
    return handle.cell


def add_task(ctx: Context | None, params: CondTaskParams, stream: Stream, flags: int = 0) -> list[CaptureModel]:
    """aclmdlRIAddCondTask: create the branches and append the conditional task. Check order: acl_semantics 9.2.

    Returns the branches, also in `params.modelRIArray`; that is emptied on failure. Errors: 107017, 107000 (type,
    flags, no handle, handle used before or of another model, size), 107002, 107003, 107029, 207000 (a stream that
    rtStreamAddToModel added), 207010, and what appending a task gives: 507009, 107034, 207008.
    """
    params.modelRIArray = []
    handle = _check_params(params, stream, flags)
    capture = _check_stream(ctx, handle, stream)
    ctype = CondType(params.type)
    _check_size(ctype, params.size)
    handle.make_branches(ctype, params.size)
    try:
        task = stream.submit(CondOp(handle=handle))
    except BaseException:
        handle.drop_branches()
        raise
    assert task is not None, f"{capture!r} keeps its tasks"
    handle.place = task.place or handle.place
    params.modelRIArray = list(handle.models)
    return params.modelRIArray


ASKED = "aclmdlRIAddCondTask"


def _invalid(met: str, todo: str) -> Exception:
    return fail(Code.RT_PARAM_INVALID, ASKED, met, todo)


def _check_params(params: CondTaskParams, stream: Stream, flags: int) -> CondHandle:
    """Steps 1 to 5: what the arguments say by themselves."""
    handle = params.handle
    if handle is not None:
        check_handle(handle, ASKED)
    streams.check_handle(stream, ASKED)
    if not 0 <= params.type <= 2:
        raise _invalid(f"type is {params.type}", "use IF 0, WHILE 1 or SWITCH 2")
    if flags:
        raise _invalid(f"flags is {flags}", "it is reserved, use 0")
    if handle is None:
        raise _invalid("params.handle is NULL", "give a handle of aclmdlRICondHandleCreate")
    if handle.ctype is not None:
        raise _invalid(f"{handle!r} has its task", "one handle drives one conditional task; create another")
    return handle


def _check_stream(ctx: Context | None, handle: CondHandle, stream: Stream) -> Any:
    """Steps 6 to 9: where the task would go. Returns the hidden stream."""
    contexts.require_same(ctx, stream, ASKED)
    capture: Any = stream.capture
    if capture is None:
        raise fail(Code.RT_STREAM_NOT_CAPTURED, ASKED, f"stream {stream.id} is not capturing", "begin a capture first")
    if capture.model is not handle.model:
        raise _invalid(
            f"the handle is of {handle.model.title()}, stream {stream.id} captures {capture.model.title()}",
            "create the handle on the model its task goes to",
        )
    if capture.added:
        raise fail(
            Code.RT_FEATURE_NOT_SUPPORT,
            ASKED,
            f"stream {stream.id} was {capture.joined_how()}",
            "use the stream that began, or a joined one",
        )
    return capture


def _check_size(ctype: CondType, size: int) -> None:
    """Step 10: IF 1 or 2, WHILE 1, SWITCH 1 or more."""
    least, most = {CondType.IF: (1, 2), CondType.WHILE: (1, 1), CondType.SWITCH: (1, 0xFFFF_FFFF)}[ctype]
    if not least <= size <= most:
        raise _invalid(f"{ctype.name} of {size} branches", "IF has 1 or 2, WHILE has 1, SWITCH has 1 or more")
