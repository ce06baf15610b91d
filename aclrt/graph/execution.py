"""What an execute of a captured graph does around its run: SQs, added streams, condition defaults, external events."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from aclrt.graph import external, software_sq

if TYPE_CHECKING:
    from aclrt.graph.capture_model import CaptureModel
    from aclrt.stream.stream import Stream


@final
class GraphExecution:
    """The `model.execution` of every root graph; holds no state. Order of the steps: acl_semantics 7.5."""

    def prepare(self, model: CaptureModel, stream: Stream) -> None:
        for added in model.added:
            added.check_paired()
        software_sq.build(model)

    def before_run(self, model: CaptureModel, stream: Stream) -> None:
        if model.plain:
            return
        for added in model.added:
            added.before(stream)
        for part in model.everything():
            for handle in part.cond_handles:
                handle.write_default()
        model.external_run = external.prepare(model, stream)

    def after_run(self, model: CaptureModel, stream: Stream) -> None:
        if model.plain:
            return
        if model.external_run is not None:
            stream.when(stream.submitted, model.external_run.retire)  # the end-graph wait was submitted last
            model.external_run = None
        for added in model.added:
            added.after(stream)


GRAPH = GraphExecution()
