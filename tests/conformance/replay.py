"""`python -m tests.conformance.replay [files or globs]`: replays recordings and groups the differences.

python -m tests.conformance.replay                     # all of them
python -m tests.conformance.replay 'enum-fork*' cascade --limit 200
python -m tests.conformance.replay random --chip v100 --jobs 2
python -m tests.conformance.replay --show mut-A07-000463   # one sequence as a timeline
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import sys
import time
import warnings
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from . import compare
from .deviations import DEVIATIONS

if TYPE_CHECKING:
    from pathlib import Path

    from .compare import Recording


class Count(msgspec.Struct):
    """What one file gave: sequences, agreeing ones, deviating ones by rule, and faults by what they are."""

    name: str
    total: int = 0
    agreeing: int = 0
    seconds: float = 0.0
    by_rule: dict[str, int] = {}
    groups: dict[str, list[str]] = {}


def _runner() -> asyncio.Runner:
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def count_file(path: Path, limit: int | None, chip: str | None) -> Count:
    """Replay one file. `limit` takes an evenly spread sample, not the first ones."""
    warnings.simplefilter("ignore")  # leaving a device with failures that a recording never looked at
    chosen = [s for s in compare.sequences(path) if (chip is None or s.chip == chip)]
    if limit is not None:
        chosen = compare.sample(chosen, limit)
    count = Count(path.name.removesuffix(".jsonl.gz"), len(chosen), by_rule={}, groups={})
    started = time.perf_counter()
    with _runner() as runner:
        for sequence in chosen:
            difference = runner.run(compare.replay(sequence))
            if difference is None:
                count.agreeing += 1
            elif (rule := difference.rule) is not None:
                count.by_rule[rule] = count.by_rule.get(rule, 0) + 1
            else:
                count.groups.setdefault(difference.what(), []).append(f"{sequence.id}#{difference.index}")
    count.seconds = time.perf_counter() - started
    return count


def report(counts: list[Count], examples: int) -> int:
    """Print one line a file, then the groups over all files, largest first. Returns the number of faulty sequences."""
    for count in counts:
        faults = sum(map(len, count.groups.values()))
        rules = "".join(f", {rule} {n}" for rule, n in sorted(count.by_rule.items()))
        rate = f"{count.total / count.seconds:.0f}/s" if count.seconds else ""
        print(f"{count.name:22} {count.total:6} sequences {count.agreeing:6} agree {faults:6} differ{rules}   {rate}")
    groups: dict[str, list[str]] = defaultdict(list)
    where: dict[str, set[str]] = defaultdict(set)
    for count in counts:
        for what, ids in count.groups.items():
            groups[what] += ids
            where[what].add(count.name)
    for what, ids in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(ids):6} x {what}")
        print(f"         {', '.join(sorted(where[what]))}: {', '.join(sorted(ids, key=_length)[:examples])}")
    total, agreeing = sum(c.total for c in counts), sum(c.agreeing for c in counts)
    deviating = sum(n for c in counts for n in c.by_rule.values())
    print(f"\n{total} sequences, {agreeing} agree, {deviating} deviate by rule, {total - agreeing - deviating} differ")
    return total - agreeing - deviating


def table_is_right(counts: list[Count]) -> bool:
    """After a replay of everything: whether each rule covers as many sequences as its entry says."""
    right = True
    for rule, deviation in DEVIATIONS.items():
        found = sum(count.by_rule.get(rule, 0) for count in counts)
        if found != deviation.sequences:
            print(f"deviation {rule}: {found} sequences, the table says {deviation.sequences}")
            right = False
    return right


def _length(label: str) -> tuple[int, str]:
    """Differences that come early are the easiest to read."""
    return int(label.rpartition("#")[2]), label


async def show(sequence: Recording) -> None:
    """One sequence as a timeline: what was recorded, and from the first difference on what came out here."""
    difference = await compare.replay(sequence)
    print(f"{sequence.id} on {sequence.chip}")
    for index, step in enumerate(sequence.ops):
        args = " ".join(f"{key}={value}" for key, value in step.args.items())
        line = f"{index:4} t{step.t} {step.op:22} {args:34} -> {step.code} {step.out or ''} {step.st or ''}"
        print(line + (" (freed objects from here)" if step.ub else ""))
        if step.ub:
            break
        if difference is not None and index == difference.index:
            print(f"     HERE{'':51}-> {difference.code} {difference.out or ''} {difference.statuses or ''}")
            if difference.rule:
                print(f"     deviation {difference.rule}: {DEVIATIONS[difference.rule].reason}")
            break


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.replay", description=__doc__)
    parser.add_argument("files", nargs="*", help="group names, globs or files; all recordings when absent")
    parser.add_argument("--limit", type=int, help="sequences for each file, evenly spread")
    parser.add_argument("--chip", choices=("v100", "v200"))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--examples", type=int, default=4, help="example ids for each group")
    parser.add_argument("--show", metavar="ID", help="print one sequence as a timeline")
    options = parser.parse_args()
    paths = compare.files(*options.files)
    if not paths:
        print(f"no recordings in {compare.folder()} match; set ACLRT_RECORDINGS", file=sys.stderr)
        return 2
    if options.show:
        wanted = options.show.partition("#")[0]
        found = (
            s for path in paths for s in compare.sequences(path) if s.id == wanted and options.chip in (None, s.chip)
        )
        for sequence in found:
            asyncio.run(show(sequence))
        return 0
    jobs = [(path, options.limit, options.chip) for path in paths]
    if options.jobs > 1:
        with multiprocessing.Pool(options.jobs) as pool:
            counts = pool.starmap(count_file, jobs, chunksize=1)
    else:
        counts = [count_file(*job) for job in jobs]
    faults = report([count for count in counts if count.total], options.examples)
    whole = not options.files and options.limit is None and options.chip is None
    return 1 if faults or (whole and not table_is_right(counts)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
