"""The README tells the truth: its programs run as printed, its commands are the ones `.ci/run` runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.test_examples import EXAMPLES, ROOT, matches, run

if TYPE_CHECKING:
    from pathlib import Path

README = (ROOT / "README.md").read_text(encoding="utf-8")


class Block(NamedTuple):
    """A fenced block: its language and its text, and its line in the README."""

    language: str
    text: str
    line: int


def blocks() -> list[Block]:
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [Block(match[1], match[2], README.count("\n", 0, match.start()) + 1) for match in found]


def programs() -> list[tuple[Block, Block]]:
    """Each Python block, with the text block after it: what it prints."""
    everything = blocks()
    return [(block, everything[i + 1]) for i, block in enumerate(everything) if block.language == "python"]


def commands() -> list[str]:
    return [line for block in blocks() if block.language == "sh" for line in block.text.splitlines()]


def test_there_are_programs_and_commands() -> None:
    assert len(programs()) >= 2
    assert len(commands()) >= 2


@pytest.mark.parametrize(("program", "output"), [pytest.param(*pair, id=f"line {pair[0].line}") for pair in programs()])
def test_program_prints_what_the_readme_says(program: Block, output: Block, tmp_path: Path) -> None:
    assert output.language == "text"
    file = tmp_path / "program.py"
    file.write_text(program.text, encoding="utf-8")
    done = run(str(file), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (done.stdout, done.stderr) == (output.text, "")


def test_first_program_is_hello_and_has_fifteen_lines_of_code() -> None:
    program = programs()[0][0].text
    assert program == (EXAMPLES / "hello.py").read_text(encoding="utf-8")
    assert sum(1 for line in program.splitlines() if line.strip()) == 15


def test_service_output_shown_is_the_service_output() -> None:
    shown = next(block.text for block in blocks() if block.language == "text")
    assert matches((EXAMPLES / "digits_service.out").read_text(encoding="utf-8"), shown)


def test_ci_runs_the_two_commands_of_the_readme() -> None:
    """`.ci/run` finds them in the README with grep: each of its patterns must find one line, and that a command."""
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    patterns = re.findall(r"grep -m1 (['\"])(.+?)\1 README\.md", ci)
    assert len(patterns) == 2
    for _, pattern in patterns:
        found = [line for line in README.splitlines() if re.search(pattern, line)]
        assert len(found) == 1
        assert found[0] in commands()


def test_files_the_readme_names_exist() -> None:
    named = re.findall(r"`?((?:aclrt|hw|examples|benchmarks)/[\w/.]*[\w/])", README)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
