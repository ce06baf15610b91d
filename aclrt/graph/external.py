"""External records and waits of a graph: what each execute gives them anew (acl_semantics 5.7).

Not their capture (`graph.joining`). The device finds the cell of a task through the task's entry in the refresh table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from aclrt.stream.register import Cell, Mark
from aclrt.task.task import CopyOp, ExternalRecordOp, ExternalWaitOp

if TYPE_CHECKING:
    from aclrt.graph.capture_model import CaptureModel
    from aclrt.stream.event import Event
    from aclrt.stream.stream import Stream

ENTRY_BYTES = 8


@final
class ExternalRun:
    """The cells one run of a graph uses, held until the run has ended."""

    __slots__ = ("cells",)

    def __init__(self, cells: list[Cell]) -> None:
        self.cells = cells

    def retire(self) -> None:
        """The run's end-graph wait has passed."""
        cells, self.cells = self.cells, []
        for cell in cells:
            cell.drop()

    def __repr__(self) -> str:
        return f"<ExternalRun with {len(self.cells)} cells>"


def assign(model: CaptureModel) -> None:
    """Give each external task its entry of the refresh table, once; needed before its SQEs are made."""
    if model.external_table is not None or not model.externals:
        return
    model.external_table = model.npu.malloc(ENTRY_BYTES * len(model.externals), f"execute {model.title()}")
    for index, task in enumerate(model.externals.values()):
        task.op.table = model.external_table + ENTRY_BYTES * index


def prepare(model: CaptureModel, stream: Stream) -> ExternalRun | None:
    """Before the execute task of a run on `stream`: fresh cells, the table's copy, then the records become visible.

    A record gets a new cell; a wait gets the cell of the record that was latest until now, or none, which lets it
    pass. The table is copied by a task of `stream`, so a run queued behind another on one stream does not disturb it;
    on two streams the later execute re-targets waits of the earlier. A destroyed event counts for nothing: its record
    writes nowhere, its wait passes. Errors: 207001.
    """
    if not model.externals:
        return None
    assign(model)
    cells: list[Cell] = []
    published: list[tuple[Event, Cell]] = []
    entries = bytearray()
    try:
        for event, task in model.externals.items():
            cell = _fresh(model, event, task.op, published)
            if cell is not None:
                cells.append(cell.hold())
            entries += (cell.address if cell is not None else 0).to_bytes(ENTRY_BYTES, "little")
        _send(model, stream, entries)
    except BaseException:
        for cell in [*cells, *(cell for _, cell in published)]:
            cell.drop()
        raise
    for event, cell in published:
        event.marked(Mark(cell, None, 0))
    return ExternalRun(cells)


def _fresh(
    model: CaptureModel, event: Event, op: ExternalRecordOp | ExternalWaitOp, published: list[tuple[Event, Cell]]
) -> Cell | None:
    if not event.alive:
        return None
    if isinstance(op, ExternalRecordOp):
        cell = Cell(model.npu, f"execute {model.title()}")
        published.append((event, cell))
        return cell
    if event.latest is None or event.was_reset:
        return None
    at = event.latest.at
    assert isinstance(at, Cell)
    return at


def _send(model: CaptureModel, stream: Stream, entries: bytearray) -> None:
    """The refresh copy: a task of the execute stream, from host memory that stays registered until it ran."""
    driver = model.npu.driver
    assert model.external_table is not None
    source = driver.host_register(entries)
    try:
        stream.submit(CopyOp(dst=model.external_table, src=source, nbytes=len(entries), keep=(entries,)))
    except BaseException:
        driver.host_unregister(source)
        raise
    stream.when(stream.submitted, lambda: driver.host_unregister(source))
