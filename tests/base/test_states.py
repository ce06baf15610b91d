"""A table of legal moves: what it allows, and how it refuses."""

from __future__ import annotations

from enum import Enum

import pytest

from aclrt.base.errors import AclError, TaskGroupStatusError
from aclrt.base.states import Table


class Door(Enum):
    OPEN = "open"
    SHUT = "shut"
    LOCKED = "locked"
    GONE = "gone"


MOVES = {
    (Door.OPEN, "shut"): Door.SHUT,
    (Door.SHUT, "open"): Door.OPEN,
    (Door.SHUT, "lock"): Door.LOCKED,
    (Door.LOCKED, "unlock"): Door.SHUT,
    (Door.SHUT, "remove"): Door.GONE,
}


def test_every_pair_is_legal_or_refused() -> None:
    table = Table("door", MOVES, code=107033)
    for state in Door:
        for verb in ("open", "shut", "lock", "unlock", "remove"):
            assert table.allows(state, verb) is ((state, verb) in MOVES)
            if (state, verb) in MOVES:
                assert table.next(state, verb) is MOVES[state, verb]
            else:
                with pytest.raises(TaskGroupStatusError):
                    table.next(state, verb)


def test_refusal_names_the_noun_the_state_and_the_way_out() -> None:
    table = Table("door", MOVES, code=107033)
    with pytest.raises(AclError) as caught:
        table.next(Door.OPEN, "lock", "<Door 7>")
    assert str(caught.value) == "lock <Door 7>: it is OPEN; from there: shut [107033]"
    with pytest.raises(AclError) as caught:
        table.next(Door.GONE, "open")
    assert str(caught.value) == "open door: it is GONE; nothing leads on from there [107033]"
    assert caught.value.__context__ is None


def test_code_of_one_move() -> None:
    table = Table("door", MOVES, codes={(Door.OPEN, "lock"): 107026})
    with pytest.raises(AclError) as one:
        table.next(Door.OPEN, "lock")
    with pytest.raises(AclError) as other:
        table.next(Door.OPEN, "unlock")
    assert (one.value.code, other.value.code) == (107026, 507000)


def test_a_legal_move_has_no_code() -> None:
    with pytest.raises(AssertionError):
        Table("door", MOVES, codes={(Door.OPEN, "shut"): 107026})


def test_verbs_in_the_tables_order() -> None:
    assert Table("door", MOVES).verbs(Door.SHUT) == ("open", "lock", "remove")
    assert repr(Table("door", MOVES)) == "<Table door, 4 states, 5 moves>"
