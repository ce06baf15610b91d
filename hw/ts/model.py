"""Models as the TS knows them: which SQs belong to which model, and the one run a model can have.

Not the host's models: no tasks, no status, no build phase. A model is busy from MODEL_EXECUTE until the SQ that
executed it has passed its end-graph wait and every SQ that was started has stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from hw.chips import Status
from hw.signal import Signal
from hw.ts.sq import IDLE, PARKED, READY, RUNNING, ModelSq, RunQueue, Sq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hw.observe import Observers
    from hw.registers import Notify, NotifyFile
    from hw.ts.merged import Merged

__all__ = ["Model", "Models", "Run"]


@final
class Run:
    """One execution. `status` is what its end-graph wait will end with; `passed`: that wait is over; `told`: it ended
    with that status."""

    __slots__ = ("exe", "fault", "passed", "status", "told")

    def __init__(self, exe: Sq) -> None:
        self.exe = exe
        self.passed = False
        self.told = False
        self.status = Status.OK
        self.fault = -1


@final
class Model(Signal):
    """SQs that want to execute a busy model sleep on it.

    Invariants: `run`, `active` and the sleepers are those of a root and stay empty on a sub model; `active` counts
    the tree's SQs that are not IDLE; `sqs` maps each SQ id to whether MODEL_EXECUTE or COND starts it (head);
    `heads` are those bound, None when a binding changed since they were looked up.
    """

    __slots__ = (
        "active",
        "heads",
        "id",
        "last",
        "loaded",
        "merged",
        "notify",
        "root",
        "run",
        "sqs",
        "taken",
        "unclean",
        "unmergeable",
    )

    def __init__(self, id: int) -> None:
        super().__init__()
        self.id = id
        self.root: Model = self
        self.sqs: dict[int, bool] = {}
        self.heads: list[ModelSq] | None = None
        self.merged: Merged | None = None  # its SQs as one program; looked for again while there is no valid one
        self.unclean = False  # a run was cut short: its private events may be set
        self.unmergeable = False  # ... unless the SQEs as they are now have none
        self.notify: Notify | None = None
        self.taken: Callable[[], None] | None = None  # what `notify.on_taken` is while the register is this model's
        self.loaded = False
        self.run: Run | None = None
        self.last: Run | None = None  # the run before, while its executor's head may not have been told yet
        self.active = 0

    def __repr__(self) -> str:
        state = "busy" if self.run or self.active else "idle"
        return f"<Model {self.id} {state}, {len(self.sqs)} SQs, {self.active} active>"

    def rebound(self) -> None:
        """Its SQs, or what they are bound to, changed."""
        self.heads = self.merged = None
        self.unmergeable = False

    @property
    def busy(self) -> bool:
        return self.run is not None or self.active > 0


@final
class Models:
    """All models, and the SQs bound to images."""

    def __init__(self, queue: RunQueue, notifies: NotifyFile, observers: Observers) -> None:
        self._queue = queue
        self._notifies = notifies
        self._observers = observers
        self.models: dict[int, Model] = {}
        self.sqs: dict[int, ModelSq] = {}
        self.careful: Callable[[], bool] = bool  # whether tasks run one by one now; set by the machine
        self.drop_fault: Callable[[int], object] = bool  # forget a record of the error log; set by the machine
        self._owners: dict[int, Model] = {}  # by SQ id: the model it was added to, bound yet or not

    # -- maintenance (control SQEs) -------------------------------------------------------------------------------

    def add(self, model_id: int, root_id: int, sq_id: int, *, head: bool) -> None:
        model = self.models.setdefault(model_id, Model(model_id))
        model.root = self.models.setdefault(root_id, Model(root_id))
        model.sqs[sq_id] = head
        model.rebound()
        self._owners[sq_id] = model
        if sq_id in self.sqs:
            self.sqs[sq_id].root = model.root

    def remove(self, model_id: int, sq_id: int) -> bool:
        """False when the model has no such SQ, or runs."""
        model = self.models.get(model_id)
        if model is None or sq_id not in model.sqs or model.root.busy:
            return False
        del model.sqs[sq_id]
        model.rebound()
        self._owners.pop(sq_id, None)
        if sq_id in self.sqs:
            self.sqs[sq_id].root = None
        return True

    def load(self, model_id: int, notify: Notify) -> None:
        """Load complete: the model may be executed, `notify` is its end-graph notify."""
        model = self.models.setdefault(model_id, Model(model_id))
        if model.notify is not notify:
            self._forget_notify(model)
        model.notify = notify
        model.loaded = True
        if model.root is model:
            model.taken = notify.on_taken = lambda: self._passed(model)

    def _forget_notify(self, model: Model) -> None:
        """Let go of the end-graph notify, unless its register is another model's by now (the id was given out anew)."""
        if model.notify is not None and model.notify.on_taken is model.taken:
            model.notify.on_taken = None

    def destroy(self, model_id: int) -> bool:
        """False when there is no such model, or it runs."""
        model = self.models.get(model_id)
        if model is None or model.root.busy:
            return False
        self._forget_notify(model)
        for sq_id in model.sqs:
            self._owners.pop(sq_id, None)
            if sq_id in self.sqs:
                self.sqs[sq_id].root = None
        del self.models[model_id]
        return True

    def bind(self, sq: ModelSq) -> None:
        self.sqs[sq.id] = sq
        owner = self._owners.get(sq.id)
        sq.root = owner.root if owner is not None else None
        if owner is not None:
            owner.rebound()

    def unbind(self, sq_id: int) -> ModelSq:
        owner = self._owners.get(sq_id)
        if owner is not None:
            owner.rebound()
        return self.sqs.pop(sq_id)

    # -- runs -----------------------------------------------------------------------------------------------------

    def tree(self, root: Model) -> list[ModelSq]:
        """Every bound SQ of a root model and its sub models, by id."""
        return [sq for _, sq in sorted(self.sqs.items()) if sq.root is root]

    def ready(self, model: Model) -> bool:
        """Whether every SQ of the model is bound; then `model.heads` is up to date."""
        if model.heads is None and all(sq_id in self.sqs for sq_id in model.sqs):
            model.heads = [self.sqs[sq_id] for sq_id, head in model.sqs.items() if head]
        return model.heads is not None

    def start(self, model: Model, exe: Sq) -> None:
        """Begin a run: the end-graph notify starts clear, the head SQs at head 0. The model is `ready`, not busy."""
        model.run = Run(exe)
        if model.notify is not None:
            model.notify.set = False
            model.notify.error = None
        if model.unclean:
            model.unclean = False
            for sq in self.tree(model):
                sq.image.clear_private_events()
        if self._observers:
            self._observers.model_start(model.id, exe.id)
        merged = model.merged
        if merged is None or not merged.valid or self.careful():
            for sq in model.heads or ():
                self.activate(sq, 0)
        else:
            self.activate(merged.lead, 0)
            merged.lead.merged = merged

    def activate(self, sq: ModelSq, head: int) -> None:
        """Start an idle SQ. `head` is 0 but for a label of another SQ."""
        assert sq.state is IDLE
        sq.head = head
        sq.stale = True
        sq.serial += 1
        sq.starter, sq.branch, sq.merged = None, None, None
        if sq.turns:
            sq.turns.clear()
        if sq.root is not None:
            sq.root.active += 1
        sq.make_ready()

    def ended(self, sq: ModelSq) -> None:
        """An SQ's run is over: its coroutine got to the tail, or it was stopped."""
        sq.state = IDLE
        sq.stopping = False
        root = sq.root
        if root is not None:
            root.active -= 1
            if root.active == 0:
                self._settle(root)

    def fail(self, root: Model, status: Status, fault: int, failed: ModelSq | None) -> None:
        """End a run early: every SQ but the failing one stops at its task boundary, then the end-graph wait ends
        with `status`. The failing SQ ends itself."""
        run = root.run
        if run is None or run.status is not Status.OK:
            return
        run.status, run.fault = status, fault
        root.unclean = True
        self.stop(sq for sq in self.tree(root) if sq is not failed)
        if root.active == 0:
            self._settle(root)

    def stop(self, sqs: Iterable[ModelSq]) -> None:
        """Stop each SQ: at once if it is between tasks, else at the end of the task it is busy with."""
        for sq in list(sqs):
            if sq.busy or sq.state is RUNNING:
                sq.stopping = True
            elif sq.state is READY or sq.state is PARKED:
                if sq.state is READY:
                    self._queue.ready.remove(sq)
                sq.unpark()
                sq.stale = True
                sq.serial += 1
                self.ended(sq)

    def exe_gone(self, exe: Sq) -> None:
        """The SQ that executed was aborted or closed: nobody will pass the end-graph wait of its runs."""
        for model in list(self.models.values()):
            if model.run is not None and model.run.exe is exe:
                model.run.passed = True
                if model.active == 0:
                    self._settle(model)

    def _passed(self, model: Model) -> None:
        if model.run is not None:
            model.run.passed = True
            model.run.told = model.notify is not None and model.notify.error is not None
            if model.active == 0:
                self._settle(model)

    def _settle(self, root: Model) -> None:
        """No SQ of the tree is active. A failed run now releases its wait; a passed one is over."""
        run = root.run
        if run is None:
            root.fire()
            return
        if run.status is not Status.OK and not run.passed and root.notify is not None and not root.notify.error:
            self._notifies.fail(root.notify, run.status, run.fault)
        if run.passed:
            root.run, root.last = None, run
            if run.fault >= 0 and not run.told:
                self.drop_fault(run.fault)  # who waited was aborted, or did not wait so long
            if self._observers:
                self._observers.model_end(root.id, run.status)
            root.fire()
