"""Every example runs and prints what its committed `.out` says; `#` in an `.out` stands for any number or word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(path.name for path in EXAMPLES.glob("*.py"))


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python on the tree's own packages, with its output captured and so not on a terminal."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=60, check=False)


def matches(pattern: str, text: str) -> bool:
    """Is `text` the `.out` text `pattern`, with something in place of each `#`?"""
    return re.fullmatch(re.escape(pattern).replace(re.escape("#"), r"[\w.,]+"), text) is not None


@pytest.mark.parametrize("name", PROGRAMS)
def test_example_prints_its_out_file(name: str, tmp_path: Path) -> None:
    arguments = [str(tmp_path / "weights.npz")] if name == "train_digits.py" else []
    done = run(str(EXAMPLES / name), *arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    expected = (EXAMPLES / name).with_suffix(".out").read_text(encoding="utf-8")
    assert matches(expected, done.stdout), done.stdout


def test_training_writes_the_same_bytes_every_time(tmp_path: Path) -> None:
    files = [tmp_path / "first.npz", tmp_path / "second.npz"]
    for file in files:
        assert run(str(EXAMPLES / "train_digits.py"), str(file), cwd=tmp_path).returncode == 0
    assert files[0].read_bytes() == files[1].read_bytes()


TAMPERED = """
import asyncio, sys
import numpy as np
sys.path.insert(0, {examples!r})
import digits_service as service

@service.aclrt.kernel
def relu(y: service.InOut[np.float32]) -> None:
    np.maximum(y, 0, out=y)
    y[-1, -1] = np.nextafter(y[-1, -1], np.float32(1))  # one bit of one row

service.relu = relu
sys.exit(asyncio.run(service.main()))
"""


def test_service_fails_when_one_bit_differs(tmp_path: Path) -> None:
    done = run("-c", TAMPERED.format(examples=str(EXAMPLES)), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert re.match(r"wrong: [\d,]+ answers", done.stderr)


def test_out_pattern_tells_numbers_from_text() -> None:
    assert matches("# of 64\n", "29 of 64\n")
    assert matches("# us (x)\n", "1,234.5 us (x)\n")
    assert not matches("# of 64\n", "29 of 63\n")
    assert not matches("# us\n", " us\n")
