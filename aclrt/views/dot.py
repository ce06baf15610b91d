"""The dot text of a model: streams as clusters, tasks as nodes, and an edge for whatever orders two tasks.

Not a layout and not a picture: any Graphviz tool draws the text (seed acl-graph 6: DebugDotPrint).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from aclrt.views.listing import EdgeKind, TaskRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aclrt.views.listing import BranchListing, EdgeListing, ModelListing, StreamListing, TaskListing

_EDGE_STYLE = {
    EdgeKind.ORDER: "weight=10",
    EdgeKind.EVENT: 'style=dashed, color="#1f6fb2"',
    EdgeKind.NOTIFY: 'style=dashed, color="#7a3fa0"',
    EdgeKind.ACTIVE: 'style=bold, color="#2e8540"',
    EdgeKind.COND: 'style=bold, color="#c05600"',
}


def dot_text(model: ModelListing) -> str:
    """`model` as one digraph, its sub-models as clusters inside it.

    A node is named "s<stream id>.<seq>". Kernels are boxes, waits and records ellipses, conditional tasks diamonds.
    Deterministic: the same listing gives the same text.
    """
    title = _title(model)
    lines = [
        f"digraph {_quoted(title)} {{",
        f"  graph [label={_label(title)}, labelloc=t, compound=true, fontname=Helvetica];",
        "  node [shape=box, fontname=Helvetica, fontsize=10];",
        "  edge [fontname=Helvetica, fontsize=9];",
        *_model_lines(model, "  ", _known(model)),
        "}",
        "",
    ]
    return "\n".join(lines)


def _title(model: ModelListing) -> str:
    name = f' "{model.name}"' if model.name else ""
    return f"model {model.model_id}{name} on device {model.device_id} ({model.chip})"


def _known(model: ModelListing) -> set[TaskRef]:
    known = {TaskRef(stream.stream_id, task.seq) for stream in model.streams for task in stream.tasks}
    for branch in model.branches:
        known |= _known(branch.model)
    return known


def _model_lines(model: ModelListing, pad: str, known: set[TaskRef]) -> Iterator[str]:
    groups = {
        stream.stream_id: [(g.group_id, a, z) for g in model.groups for sid, a, z in g.spans if sid == stream.stream_id]
        for stream in model.streams
    }
    order: set[tuple[TaskRef, TaskRef]] = set()
    for stream in model.streams:
        yield from _stream_lines(stream, groups[stream.stream_id], pad)
        seqs = [task.seq for task in stream.tasks]
        order.update((TaskRef(stream.stream_id, a), TaskRef(stream.stream_id, b)) for a, b in pairwise(seqs))
    for branch in model.branches:
        yield from _branch_lines(branch, pad, known)
    for edge in model.edges:
        if edge.kind is EdgeKind.ORDER and (edge.source, edge.target) in order:
            continue  # the stream's own lines have it
        yield from _edge_lines(edge, pad, known)


def _stream_lines(stream: StreamListing, groups: list[tuple[int, int, int]], pad: str) -> Iterator[str]:
    yield f'{pad}subgraph "cluster_s{stream.stream_id}" {{'
    label = f"stream {stream.stream_id}" + (f' "{stream.label}"' if stream.label else "")
    yield f"{pad}  label={_label(label, stream.origin)};"
    if not stream.tasks:
        yield f'{pad}  "s{stream.stream_id}" [label="no tasks", shape=plaintext];'
    before: TaskListing | None = None
    for task in stream.tasks:
        members = [gid for gid, first, last in groups if first <= task.seq <= last]
        yield f"{pad}  {_node(stream.stream_id, task.seq)} [{_task_look(task, members)}];"
        if before is not None:
            tail, head = _node(stream.stream_id, before.seq), _node(stream.stream_id, task.seq)
            yield f"{pad}  {tail} -> {head} [{_EDGE_STYLE[EdgeKind.ORDER]}];"
        before = task
    yield f"{pad}}}"


def _branch_lines(branch: BranchListing, pad: str, known: set[TaskRef]) -> Iterator[str]:
    """The sub-model's cluster, and the edge from the conditional task to where the branch starts."""
    model = branch.model
    cluster = f"cluster_m{model.model_id}"
    yield f'{pad}subgraph "{cluster}" {{'
    yield f"{pad}  label={_label(f'{branch.label}: {_title(model)}')}; style=rounded;"
    yield from _model_lines(model, pad + "  ", known)
    first = _first_node(model)
    if first is None:
        first = f'"m{model.model_id}"'
        yield f'{pad}  {first} [label="no streams", shape=plaintext];'
    yield f"{pad}}}"
    yield from _stranger_lines(branch.task, pad, known)
    look = f'label={_label(branch.label)}, lhead="{cluster}", {_EDGE_STYLE[EdgeKind.COND]}'
    yield f"{pad}{_node(branch.task.stream_id, branch.task.seq)} -> {first} [{look}];"


def _first_node(model: ModelListing) -> str | None:
    """Where a branch starts: the first task of the stream bound first, which is the last of the model's list."""
    for stream in reversed(model.streams):
        if stream.tasks:
            return _node(stream.stream_id, stream.tasks[0].seq)
    return f'"s{model.streams[-1].stream_id}"' if model.streams else None


def _edge_lines(edge: EdgeListing, pad: str, known: set[TaskRef]) -> Iterator[str]:
    yield from _stranger_lines(edge.source, pad, known)
    yield from _stranger_lines(edge.target, pad, known)
    look = f"label={_label(edge.label or edge.kind.value)}, {_EDGE_STYLE[edge.kind]}"
    tail, head = _node(edge.source.stream_id, edge.source.seq), _node(edge.target.stream_id, edge.target.seq)
    yield f"{pad}{tail} -> {head} [{look}];"


def _stranger_lines(ref: TaskRef, pad: str, known: set[TaskRef]) -> Iterator[str]:
    """A node for a task outside the listing (an external record on a user's stream), once."""
    if ref not in known:
        known.add(ref)
        label = _label(f"stream {ref.stream_id}, task {ref.seq}", "not in this model")
        yield f"{pad}{_node(ref.stream_id, ref.seq)} [label={label}, style=dotted];"


def _task_look(task: TaskListing, groups: list[int]) -> str:
    head = f"{task.seq}: {task.label or task.type_name}"
    facts = [task.type_name] if task.label else []
    for word, number in (("event", task.event_id), ("notify", task.notify_id), ("stream", task.active_stream_id)):
        if number is not None:
            facts.append(f"{word} {number}")
    if task.address is not None:
        facts.append(f"at {task.address:#x}")
    if task.numblocks is not None:
        facts.append(f"{task.numblocks} block{'' if task.numblocks == 1 else 's'}")
    facts += [f"group {gid}" for gid in groups]
    look = f"label={_label(head, ', '.join(facts), task.place)}"
    if task.type_name.startswith(("KERNEL", "FUSION")):
        look += ', style=filled, fillcolor="#dbe9ff"'
    elif task.type_name.startswith("CONDITION") or task.kind == "CAPTURE_CONDITION":
        look += ", shape=diamond"
    elif "RECORD" in task.type_name or "WAIT" in task.type_name or "RESET" in task.type_name:
        look += ", shape=ellipse"
    return look + (", penwidth=2" if groups else "")


def _node(stream_id: int, seq: int) -> str:
    return f'"s{stream_id}.{seq}"'


def _clean(text: str) -> str:
    # Graphviz stops at a NUL, and a lone surrogate has no UTF-8: unprintable characters become the replacement mark.
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _quoted(text: str) -> str:
    return '"' + _clean(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _label(*lines: str) -> str:
    """A label of the non-empty `lines`. Graphviz reads HTML entities in labels, so `&` is written as one."""
    return '"' + "\\n".join(_quoted(line.replace("&", "&amp;"))[1:-1] for line in lines if line) + '"'
