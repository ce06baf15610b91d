"""The dot text: one golden text, and that any listing gives text which the DOT grammar takes."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from aclrt.views.dot import dot_text
from aclrt.views.listing import BranchListing, EdgeKind, EdgeListing, ModelListing, TaskRef
from tests.views.listings import fork_and_join, kernel, loop, stream, task

GOLDEN = r"""digraph "model 3 \"decode\" on device 0 (v100)" {
  graph [label="model 3 \"decode\" on device 0 (v100)", labelloc=t, compound=true, fontname=Helvetica];
  node [shape=box, fontname=Helvetica, fontsize=10];
  edge [fontname=Helvetica, fontsize=9];
  subgraph "cluster_s8" {
    label="stream 8\njoined through event 5 recorded at m.py:11";
    "s8.0" [label="0: EVENT_WAIT\nevent 5\nm.py:13", shape=ellipse];
    "s8.1" [label="1: EVENT_RECORD\nevent 6\nm.py:14", shape=ellipse];
    "s8.0" -> "s8.1" [weight=10];
  }
  subgraph "cluster_s7" {
    label="stream 7 \"main\"\ncaptured at m.py:9";
    "s7.0" [label="0: axpy\nKERNEL_AIVEC, 8 blocks\nm.py:10", style=filled, fillcolor="#dbe9ff"];
    "s7.1" [label="1: EVENT_RECORD\nevent 5\nm.py:11", shape=ellipse];
    "s7.0" -> "s7.1" [weight=10];
    "s7.2" [label="2: mul\nKERNEL_AIVEC, 8 blocks, group 0\nm.py:12", style=filled, fillcolor="#dbe9ff", penwidth=2];
    "s7.1" -> "s7.2" [weight=10];
    "s7.3" [label="3: EVENT_WAIT\nevent 6\nm.py:15", shape=ellipse];
    "s7.2" -> "s7.3" [weight=10];
  }
  "s7.1" -> "s8.0" [label="event 5", style=dashed, color="#1f6fb2"];
  "s8.1" -> "s7.3" [label="event 6", style=dashed, color="#1f6fb2"];
}
"""

TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|->|[A-Za-z_][A-Za-z0-9_]*|-?[0-9]+|[{}\[\];,=]', re.DOTALL)


class Grammar:
    """A reader of the part of DOT that the view writes; it raises on anything else and collects nodes and edges."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at = 0
        while at < len(text):
            found = TOKEN.match(text, at)
            assert found, f"no DOT token at {text[at : at + 30]!r}"
            if not found[0].isspace():
                self.tokens.append(found[0])
            at = found.end()
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self.clusters: list[str] = []
        self.take("digraph")
        self.name()
        self.block()
        assert not self.tokens

    def take(self, wanted: str) -> None:
        got = self.tokens.pop(0)
        assert got == wanted, f"{wanted!r} wanted, {got!r} met"

    def name(self) -> str:
        got = self.tokens.pop(0)
        assert re.match(r'["A-Za-z0-9_-]', got), f"an id wanted, {got!r} met"
        return got.strip('"')

    def block(self) -> None:
        self.take("{")
        while self.tokens[0] != "}":
            self.statement()
        self.take("}")

    def statement(self) -> None:
        if self.tokens[0] == "subgraph":
            self.take("subgraph")
            self.clusters.append(self.name())
            return self.block()
        name = self.name()
        if self.tokens[0] == "=":
            self.take("=")
            self.name()
        elif self.tokens[0] == "->":
            self.take("->")
            self.edges.append((name, self.name(), self.attributes()))
        elif name not in {"graph", "node", "edge"}:
            assert name not in self.nodes, f"node {name} twice"
            self.nodes[name] = self.attributes()
        else:
            self.attributes()
        return self.take(";")

    def attributes(self) -> dict[str, str]:
        got: dict[str, str] = {}
        self.take("[")
        while self.tokens[0] != "]":
            key = self.name()
            self.take("=")
            got[key] = self.name()
            if self.tokens[0] == ",":
                self.take(",")
        self.take("]")
        return got


def test_golden() -> None:
    assert dot_text(fork_and_join()) == GOLDEN


def test_golden_is_dot() -> None:
    dot = Grammar(GOLDEN)
    assert dot.clusters == ["cluster_s8", "cluster_s7"]
    assert len(dot.nodes) == 6
    assert {(tail, head) for tail, head, look in dot.edges if look.get("label") == "event 5"} == {("s7.1", "s8.0")}


def test_a_sub_model_is_a_cluster_under_its_conditional_task() -> None:
    dot = Grammar(dot_text(loop()))
    assert dot.clusters == ["cluster_s7", "cluster_m4", "cluster_s9"]
    assert dot.nodes["s7.0"]["shape"] == "diamond"
    ((tail, head, look),) = dot.edges
    assert (tail, head, look["label"], look["lhead"]) == ("s7.0", "s9.0", "while", "cluster_m4")


def test_an_empty_branch_and_an_empty_stream_have_something_to_point_at() -> None:
    bare = ModelListing(model_id=5, streams=())
    empty = ModelListing(model_id=6, streams=(stream(9),))
    dot = Grammar(
        dot_text(
            ModelListing(
                model_id=3,
                streams=(stream(7, task(0, "CONDITION_OP")),),
                branches=(BranchListing(TaskRef(7, 0), "if", bare), BranchListing(TaskRef(7, 0), "else", empty)),
            )
        )
    )
    assert [(tail, head) for tail, head, _ in dot.edges] == [("s7.0", "m5"), ("s7.0", "s9")]
    assert {"m5", "s9"} <= set(dot.nodes)


def test_every_kind_of_edge() -> None:
    edges = [EdgeListing(TaskRef(1, 0), TaskRef(2, 0), kind) for kind in EdgeKind]
    model = ModelListing(model_id=3, streams=(stream(1, task(0, "NOP")), stream(2, task(0, "NOP"))), edges=edges)
    assert [look["label"] for _, _, look in Grammar(dot_text(model)).edges] == [kind.value for kind in EdgeKind]


def test_a_task_outside_the_model_gets_one_node() -> None:
    edges = [EdgeListing(TaskRef(40, 2), TaskRef(1, seq), EdgeKind.EVENT, "external event 4") for seq in (0, 1)]
    model = ModelListing(model_id=3, streams=(stream(1, task(0, "NOP"), task(1, "NOP")),), edges=edges)
    assert "not in this model" in Grammar(dot_text(model)).nodes["s40.2"]["label"]


names = st.text(st.characters(), max_size=12) | st.sampled_from(
    ['"', "\\", 'a\\"', "\\n", "&quot;", "\0", "\ud800", "]};"]
)


@given(name=names, label=names, place=names)
def test_any_text_is_quoted(name: str, label: str, place: str) -> None:
    listed = stream(1, kernel(0, label, place=place), label=name, origin=place)
    edge = EdgeListing(TaskRef(1, 0), TaskRef(1, 0), EdgeKind.NOTIFY, label)
    text = dot_text(ModelListing(model_id=3, name=name, streams=(listed,), edges=(edge,)))
    assert "\0" not in text
    text.encode()
    dot = Grammar(text)
    assert list(dot.nodes) == ["s1.0"]
    assert len(dot.edges) == 1
