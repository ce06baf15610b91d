"""The house keeps its floors: every import points down the list in pyproject.toml, TYPE_CHECKING imports included."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["aclrt"]["layers"]
FLOORS: list[list[str]] = [[room.strip() for room in floor.split("|")] for floor in LAYERS["floors"]]
PACKAGES = ("aclrt", "hw")


class Import(NamedTuple):
    """Module `source` names module `target` at `line`; `typing` marks one under `if TYPE_CHECKING`."""

    source: str
    target: str
    line: int
    typing: bool


def modules(root: Path = ROOT) -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(module: str, path: Path, known: set[str], source: str | None = None) -> list[Import]:
    found = []
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(source if source is not None else path.read_text(), str(path))
    typing = {inner for node in ast.walk(tree) if is_typing_block(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [Import(module, alias.name, node.lineno, node in typing) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                deeper = f"{base}.{alias.name}"
                found.append(Import(module, deeper if deeper in known else base, node.lineno, node in typing))
    return found


def is_typing_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def floor_of(module: str) -> int:
    """The index of the longest entry that covers `module`; a package's own name covers its __init__ alone."""
    best, length = -1, -1
    for index, rooms in enumerate(FLOORS):
        for room in rooms:
            covers = module == room or (room not in PACKAGES and module.startswith(room + "."))
            if covers and len(room) > length:
                best, length = index, len(room)
    return best


MODULES = modules()
KNOWN = set(MODULES)
IMPORTS = [found for module, path in MODULES.items() for found in imports_of(module, path, KNOWN)]
INSIDE = [found for found in IMPORTS if found.target.partition(".")[0] in PACKAGES]


def upward(imports: list[Import]) -> list[str]:
    return [f"{i.source}:{i.line} looks up to {i.target}" for i in imports if floor_of(i.target) < floor_of(i.source)]


def strangers(imports: list[Import]) -> list[str]:
    """What hw imports that silicon would not know."""
    never = set(LAYERS["never_in_hw"])
    return [
        f"{i.source}:{i.line} imports {i.target}"
        for i in imports
        if i.source.partition(".")[0] == "hw" and i.target.partition(".")[0] in never
    ]


def side_doors(imports: list[Import]) -> list[str]:
    """Where aclrt enters hw other than by its doors."""
    return [
        f"{i.source}:{i.line} enters {i.target}"
        for i in imports
        if i.source.startswith("aclrt") and i.target.partition(".")[0] == "hw" and i.target not in LAYERS["doors"]
    ]


@pytest.mark.parametrize("module", sorted(KNOWN))
def test_every_module_has_a_floor(module: str) -> None:
    assert floor_of(module) >= 0, f"{module} is on no floor of pyproject.toml"


def test_every_import_points_down() -> None:
    assert upward(INSIDE) == []


def test_hw_knows_no_host() -> None:
    assert strangers(IMPORTS) == []


def test_aclrt_enters_hw_by_its_doors() -> None:
    assert side_doors(INSIDE) == []


def test_uvloop_is_the_callers_choice() -> None:
    """The library runs on the loop it is called from; only the test harness may name one."""
    named = {i.source for i in IMPORTS if i.target.partition(".")[0] == "uvloop"}
    assert all(source.startswith("aclrt.testing") for source in named), named


def test_no_cycle_among_the_rooms_of_one_floor() -> None:
    graph: dict[str, set[str]] = {module: set() for module in KNOWN}
    for found in INSIDE:
        # A package's __init__ gathers its rooms; being imported with any of them it would close every circle.
        # Two rooms of one floor may name each other's types, not need each other to be loaded.
        if not found.typing and MODULES[found.source].name != "__init__.py":
            graph[found.source].add(found.target)
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for target in sorted(graph.get(module, ())):
                walk(target, (*path, module))
            done.add(module)

    for module in sorted(graph):
        walk(module, ())


@pytest.mark.parametrize(
    ("module", "source", "rule"),
    [
        ("hw.memory", "from aclrt.base import codes", strangers),
        ("hw.clock", "import anyio.abc", strangers),
        ("aclrt.base.codes", "from aclrt.task.kernel import Kernel", upward),
        ("aclrt.base.codes", "if TYPE_CHECKING:\n    from ..task import kernel", upward),
        ("hw.chips.spec", "import hw.driver", upward),
        ("aclrt.task.kernel", "from hw.memory import Memory", side_doors),
        ("aclrt.task.kernel", "from hw.ts.scheduler import Scheduler", side_doors),
    ],
)
def test_a_planted_import_is_caught(module: str, source: str, rule: object) -> None:
    planted = imports_of(module, Path(module.replace(".", "/") + ".py"), KNOWN, source)
    assert callable(rule)
    assert len(rule(planted)) == 1
