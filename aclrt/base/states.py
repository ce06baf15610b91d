"""A state machine as data: the legal moves of one noun in one table. Holds no state itself; the noun does."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar, final

from aclrt.base.codes import AclErrorCode
from aclrt.base.errors import fail

if TYPE_CHECKING:
    from collections.abc import Mapping

S = TypeVar("S", bound=Enum)


@final
class Table(Generic[S]):
    """The legal moves of `noun`: (state, verb) -> next state.

    A move that is not in the table raises the AclError of `codes[state, verb]`, else of `code`; its text names the
    noun, the state it is in, the verb, and what could be done from there.
    """

    __slots__ = ("_code", "_codes", "_moves", "noun")

    def __init__(
        self,
        noun: str,
        moves: Mapping[tuple[S, str], S],
        *,
        code: int = AclErrorCode.RT_INTERNAL_ERROR,
        codes: Mapping[tuple[S, str], int] | None = None,
    ) -> None:
        self.noun = noun
        self._moves = dict(moves)
        self._code = code
        self._codes: Mapping[tuple[S, str], int] = dict(codes or {})
        clash = self._moves.keys() & self._codes.keys()
        assert not clash, f"{noun}: legal moves with an error code: {clash}"

    def allows(self, state: S, verb: str) -> bool:
        """Whether `verb` is a legal move from `state`."""
        return (state, verb) in self._moves

    def verbs(self, state: S) -> tuple[str, ...]:
        """What can be done from `state`, in the table's order."""
        return tuple(verb for origin, verb in self._moves if origin is state)

    def next(self, state: S, verb: str, who: object = "") -> S:
        """The state after `verb`. `who` names the thing in the error text, the noun alone without it."""
        try:
            return self._moves[state, verb]
        except KeyError:
            pass
        legal = self.verbs(state)
        todo = f"from there: {', '.join(legal)}" if legal else "nothing leads on from there"
        code = self._codes.get((state, verb), self._code)
        raise fail(code, f"{verb} {who or self.noun}", f"it is {state.name}", todo)

    def __repr__(self) -> str:
        states = {state for state, _ in self._moves} | set(self._moves.values())
        return f"<Table {self.noun}, {len(states)} states, {len(self._moves)} moves>"
