"""`python -m tests.mutants`: does a test catch each fault?"""

from __future__ import annotations

import argparse
import difflib
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.mutants.faults import ROOT, Fault, chosen, listed
from tests.mutants.run import CAUGHT, NOT_JUDGED, PASSED, SURVIVED, Mutants, Verdict, grouped, split
from tests.mutants.seeded import drawn

_STYLES = {CAUGHT: "green", SURVIVED: "bold red"}


def main() -> int:
    """Runs what the command line asks for; 1 if any fault was not caught."""
    given = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs is ended, too
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    faults = chosen([*drawn(ROOT, given.seed, given.seeded)] if given.seeded else listed(), given.names)
    if given.list:
        for fault in faults:
            console.print(Text(f"{fault.name}  [{fault.promise or fault.file}]"), soft_wrap=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        mutants = Mutants(ROOT, Path(folder), given.limit, confirm=bool(given.seeded))
        fit, verdicts = (faults, []) if given.seeded else _fit(mutants, faults, given.jobs, console)
        for verdict in mutants.judged(fit, given.jobs):
            verdicts.append(verdict)
            console.print(_line(len(verdicts), len(faults), verdict), soft_wrap=True)
            if given.seeded and verdict.state != CAUGHT:
                console.print(Text(difference(verdict.fault)), soft_wrap=True)
    _print_summary(verdicts, console)
    if given.results is not None:
        Path(given.results).write_text("".join(map(_record, sorted(verdicts, key=_place(faults)))))
    return int(any(verdict.state != CAUGHT for verdict in verdicts))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="faults whose name or file contains one of these; all if none is given"
    )
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    parser.add_argument(
        "--seeded", type=int, default=0, metavar="N", help="draw N faults instead of the fixed list"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the draw (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, metavar="J", help="faults at a time (default: 2)")
    parser.add_argument(
        "--limit", type=float, default=600, metavar="SECONDS", help="for the tests of a fault (default: 600)"
    )
    parser.add_argument(
        "--results", metavar="FILE", help="write state, seconds, name and the test that failed, by tabs"
    )
    return parser


def _fit(
    mutants: Mutants, faults: list[Fault], jobs: int, console: Console
) -> tuple[list[Fault], list[Verdict]]:
    """The faults whose tests pass without the fault, and verdicts on the others."""
    console.print(f"{len(faults)} faults; the tests of {len(grouped(faults))} files without any:")
    failing = {}
    for place, done in mutants.unfaulty(faults, jobs):
        console.print(
            f"  {done.seconds:5.0f} s  {place}  {'' if done.code == PASSED else done.failed}", soft_wrap=True
        )
        if done.code != PASSED:
            failing[place] = done.failed
    fit, unfit = [], []
    for fault in faults:
        found = [place for place in split(fault.tests)[0] if place in failing]
        if found:
            unfit.append(Verdict(fault, NOT_JUDGED, by=f"fails without the fault: {failing[found[0]]}"))
        else:
            fit.append(fault)
    return fit, unfit


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


def _place(faults: list[Fault]):
    places = {fault: number for number, fault in enumerate(faults)}
    return lambda verdict: places[verdict.fault]


def _record(verdict: Verdict) -> str:
    return f"{verdict.state}\t{verdict.seconds:.0f}\t{verdict.fault.name}\t{verdict.by}\n"


def difference(fault: Fault) -> str:
    """The fault as a diff."""
    lines = (text.splitlines(keepends=True) for text in (fault.old, fault.new))
    return "".join(difflib.unified_diff(*lines, fault.file, fault.file, n=2))


if __name__ == "__main__":
    sys.exit(main())
