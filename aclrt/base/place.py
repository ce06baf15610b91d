"""A Place: the line of user code that a task came from. Costs little to take; becomes text only when asked."""

from __future__ import annotations

import contextlib
import os
import sys
from types import CodeType  # noqa: TC003 - msgspec reads the annotation
from typing import final

import msgspec

# Everything of this package is inside; contextlib stands between a user's `async with` and our exit code.
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_inside: dict[str, bool] = {contextlib.__file__: True}


@final
class Place(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Where in a code object a frame stood. `str(place)` is "file:line"."""

    code: CodeType
    offset: int  # of the instruction, in bytes

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def line(self) -> int:
        """1-based; the line of the call, worked out from the code object now."""
        line = self.code.co_firstlineno
        for start, end, number in self.code.co_lines():
            if start <= self.offset < end:
                return number if number is not None else line
            if number is not None:
                line = number
        return line

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def __repr__(self) -> str:
        return f"<Place {self}>"


# The place of the last call: a loop that launches from one line gets one object for all its tasks. A cache of one
# entry, because a code object's hash costs more than a Place.
_last = Place((lambda: None).__code__, 0)


def here() -> Place:
    """The place of the first frame outside this package (or of the outermost frame, if all are inside)."""
    global _last
    frame = sys._getframe(1)
    while True:
        code = frame.f_code
        name = code.co_filename
        inside = _inside.get(name)
        if inside is None:
            inside = _inside[name] = name.startswith(_PACKAGE)
        if not inside:
            break
        back = frame.f_back
        if back is None:
            break
        frame = back
    last = _last
    offset = frame.f_lasti
    if last.code is code and last.offset == offset:
        return last
    _last = place = Place(code, offset)
    return place
