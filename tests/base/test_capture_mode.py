"""The rule for unsafe calls: the whole table, and the counts it reads."""

from __future__ import annotations

from itertools import product

import pytest

from aclrt.base.capture_mode import ModeCounts, unsafe_allowed
from aclrt.base.enums import CaptureMode

G, T, R = CaptureMode
NONE = None
# Refused combinations (context, thread) per exchange mode, written out from acl_semantics 4.5.
REFUSED = {
    G: {(G, NONE), (G, G), (G, T), (G, R), (T, T), (R, T)},
    T: {(G, G), (T, G), (R, G), (G, T), (T, T), (R, T)},
    R: set(),
}


@pytest.mark.parametrize(("context", "thread", "exchange"), list(product((NONE, G, T, R), (NONE, G, T, R), (G, T, R))))
def test_whole_table(context: CaptureMode | None, thread: CaptureMode | None, exchange: CaptureMode) -> None:
    assert unsafe_allowed(context, thread, exchange) is ((context, thread) not in REFUSED[exchange])


def test_documented_rows() -> None:
    assert unsafe_allowed(NONE, NONE, G)  # nothing is captured
    assert not unsafe_allowed(G, NONE, G)  # a GLOBAL capture anywhere in the context
    assert not unsafe_allowed(T, T, G)  # a THREAD_LOCAL one begun here
    assert unsafe_allowed(T, NONE, G)  # ... begun on another thread
    assert unsafe_allowed(R, R, G)  # only RELAXED ones
    assert unsafe_allowed(G, G, R)  # the caller exchanged its mode


def test_counts_know_the_strictest() -> None:
    counts = ModeCounts()
    assert counts.strictest is None
    for mode in (R, T, G, G):
        counts.enter(mode)
        assert counts.strictest is mode
    counts.exit(G)
    assert counts.strictest is G  # another one is still open
    counts.exit(G)
    assert counts.strictest is T
    counts.exit(R)
    counts.exit(T)
    assert counts.strictest is None
    assert repr(counts) == "<ModeCounts none>"


def test_exit_without_enter_changes_nothing() -> None:
    counts = ModeCounts()
    counts.exit(G)
    counts.enter(G)
    assert (counts.strictest, counts.count(G)) == (G, 1)
    assert repr(counts) == "<ModeCounts GLOBAL 1>"
