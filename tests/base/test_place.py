"""Where a call came from: the first line outside the package, cheaply."""

from __future__ import annotations

import contextlib
import inspect
import subprocess
import sys
import timeit
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aclrt.base.place as place_module
from aclrt.base.place import Place, here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def inside(source: str) -> dict[str, Any]:
    """Run `source` as a module of the package would be."""
    names: dict[str, Any] = {}
    exec(compile(source, str(Path(place_module.__file__).parent.parent / "made_up.py"), "exec"), names)
    return names


def test_this_very_line() -> None:
    place, at = here(), line()
    assert (place.file, place.line) == (__file__, at)
    assert str(place) == f"{__file__}:{at}"
    assert repr(place) == f"<Place {place}>"


def test_frames_of_the_package_are_passed_over() -> None:
    names = inside("from aclrt.base.place import here\ndef f(): return here()\ndef g(): return f()\n")
    place, at = names["g"](), line()
    assert str(place) == f"{__file__}:{at}"


async def test_async_context_manager_exit_names_the_user() -> None:
    names = inside("from aclrt.base.place import here\ndef note(list): list.append(here())\n")
    places: list[Place] = []

    @contextlib.asynccontextmanager
    async def made_elsewhere() -> AsyncIterator[None]:
        yield

    async with made_elsewhere():
        names["note"](places)
        at = line() - 1
    assert places[0].line == at


def test_call_over_several_lines_gives_a_line_of_the_call() -> None:
    first = line() + 1
    place = here(
        # a call may span lines
    )
    assert first <= place.line <= first + 2


def test_one_line_gives_one_object() -> None:
    places = [here() for _ in range(3)]
    assert places[0] is places[1] is places[2]
    other = here()
    assert other.line != places[0].line


def test_outermost_frame_when_all_are_inside() -> None:
    code = (
        "import aclrt.base.place as p, os\n"
        "p._inside['<string>'] = True\n"
        "place = p.here()\n"
        "print(place.file, place.line)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert done.stdout.split() == ["<string>", "3"]


def cost_ns(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, number=20_000, repeat=7)) / 20_000 * 1e9


def test_it_costs_less_than_a_few_calls() -> None:
    """The aim is 300 ns; held here against an empty call, so that a slow machine does not fail it."""
    names = inside("from aclrt.base.place import here\ndef f(): return here()\ndef empty(): pass\n")
    assert cost_ns(names["f"]) < 40 * cost_ns(names["empty"])
