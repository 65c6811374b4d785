"""`python -m tests.mutants`: does a test catch each fault?"""

from __future__ import annotations

import argparse
import difflib
import math
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.mutants.faults import ROOT, Fault, listed
from tests.mutants.run import CAUGHT, SURVIVED, Mutants, Verdict
from tests.mutants.seeded import drawn, in_functions

_STYLES = {CAUGHT: "green", SURVIVED: "bold red"}


def main() -> int:
    """Runs what the command line asks for; 1 if any fault was not caught."""
    given = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended, too
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    files = None if given.since is None else changed_since(given.since)
    functions = [one for one in listed() if files is None or one.file in files]
    faults = [*in_functions(ROOT, given.seed, functions), *drawn(ROOT, given.seed, given.drawn, files)]
    faults = [fault for fault in faults if not given.names or any(name in fault.name for name in given.names)]
    if given.list:
        for fault in faults:
            console.print(Text(f"{fault.name}  [{fault.promise or 'drawn'}]"), soft_wrap=True)
        return 0
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        mutants = Mutants(ROOT, Path(folder), given.limit)
        for verdict in mutants.judged(faults, given.jobs, 60 * given.minutes):
            verdicts.append(verdict)
            console.print(_line(len(verdicts), len(faults), verdict), soft_wrap=True)
            if verdict.state != CAUGHT:
                console.print(Text(difference(verdict.fault)), soft_wrap=True)
    _print_summary(verdicts, console)
    if len(verdicts) < len(faults):
        console.print(
            f"{len(faults) - len(verdicts)} faults were not begun within {given.minutes:g} minutes."
        )
    return int(any(verdict.state != CAUGHT for verdict in verdicts))


def changed_since(revision: str) -> list[str]:
    """The modules of the package that have changed since a revision of git."""
    found = subprocess.run(
        ["git", "diff", "--name-only", revision, "--", "distboost/*.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    return [file for file in found if (ROOT / file).exists()]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="faults whose file contains one of these; all if none is given"
    )
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    parser.add_argument(
        "--drawn", type=int, default=0, metavar="N", help="draw N faults more, anywhere (default: 0)"
    )
    parser.add_argument("--since", metavar="REVISION", help="only in what has changed since then")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the draw (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, metavar="J", help="faults at a time (default: 2)")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, metavar="M", help="begin no fault after M minutes"
    )
    parser.add_argument(
        "--limit", type=float, default=60, metavar="SECONDS", help="for the tests of a fault (default: 60)"
    )
    return parser


def _line(number: int, n: int, verdict: Verdict) -> Text:
    text = Text(f"{number:4}/{n}  ")
    text.append(f"{verdict.state:<13}", _STYLES.get(verdict.state, "yellow"))
    return text.append(f" {verdict.seconds:5.0f} s  {verdict.fault.name}")


def _print_summary(verdicts: list[Verdict], console: Console) -> None:
    """How many faults of each promise and package were caught; every fault that was not."""
    table = Table(title="Faults")
    table.add_column("promise or package")
    table.add_column("caught", justify="right")
    table.add_column("of", justify="right")
    names = {verdict.fault: verdict.fault.promise or _package(verdict.fault) for verdict in verdicts}
    total = Counter(names.values())
    caught = Counter(names[verdict.fault] for verdict in verdicts if verdict.state == CAUGHT)
    promised = {verdict.fault.promise for verdict in verdicts}
    for name in sorted(total, key=lambda name: (name not in promised, name)):
        style = None if caught[name] == total[name] else "red"
        table.add_row(name, str(caught[name]), str(total[name]), style=style)
    table.add_section()
    table.add_row("all", str(caught.total()), str(total.total()))
    console.print(table)
    for verdict in verdicts:
        if verdict.state != CAUGHT:
            console.print(
                Text(f"{verdict.state}: {verdict.fault.name} ({verdict.fault.file}); {verdict.by}"),
                soft_wrap=True,
            )


def _package(fault: Fault) -> str:
    parts = Path(fault.file).parts
    return "/".join(parts[:2]) if len(parts) > 2 else "distboost/*.py"


def difference(fault: Fault) -> str:
    """The fault as a diff."""
    lines = (text.splitlines(keepends=True) for text in (fault.old, fault.new))
    return "".join(difflib.unified_diff(*lines, fault.file, fault.file, n=2))


if __name__ == "__main__":
    sys.exit(main())
