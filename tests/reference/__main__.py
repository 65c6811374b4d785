"""`python -m tests.reference --system NAME --data NAME`: test errors of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NamedTuple

import click
import numpy as np

from examples.papers.common import Split, official, random_splits
from tests.reference import appel_perona, huang, paisitkriangkrai
from tests.reference import saberian_vasconcelos as mcboost
from tests.reference.trees import Table


class System(NamedTuple):
    """A system as a table of docs/results measures it."""

    scores: Callable[[Table, np.ndarray, int], Iterator[np.ndarray]]
    rounds: Callable[[int], int]  # of the number of classes
    splits: Callable[[str], Iterator[Split]] = official


def halves(data: str) -> Iterator[Split]:
    """Those of Appel & Perona's figure 8."""
    return random_splits(data, 5, train=0.5, test=0.25)


def quarters(data: str) -> Iterator[Split]:
    """Those of Paisitkriangkrai's table V."""
    return random_splits(data, 5, per_class={"pendigits": 100, "letter": 50}.get(data))


SPLITS = {"official": official, "halves": halves, "quarters": quarters}
SYSTEMS = {
    "one-vs-all": System(mcboost.one_vs_all, lambda K: 20),
    "adaboost-mh": System(mcboost.adaboost_mh, lambda K: 20 * K),
    "cd-mcboost": System(mcboost.cd_mcboost, lambda K: 20 * K),
    "adaboost-m1": System(partial(mcboost.samme, extra=0.0, depth=2), lambda K: 50),
    "samme": System(partial(mcboost.samme, depth=2), lambda K: 50),
    "adaboost-mm": System(partial(mcboost.adaboost_mm, edge=None), lambda K: 50),
    "adaboost-mm-edge": System(partial(mcboost.adaboost_mm, edge=0.1), lambda K: 50),
    "gd-mcboost-codeword": System(partial(mcboost.gd_mcboost, leaf="codeword"), lambda K: 50),
    "gd-mcboost-direction": System(partial(mcboost.gd_mcboost, leaf="direction"), lambda K: 50),
    "gamble": System(huang.gamble, lambda K: 200),
    "rebel": System(appel_perona.rebel, lambda K: 200, halves),
    "stagewise": System(paisitkriangkrai.stagewise, lambda K: 1000, quarters),
    "samme-stumps": System(partial(mcboost.samme, depth=1), lambda K: 1000, quarters),
}


def curve(system: System, split: Split, rounds: int | None) -> list[float]:
    """The test error in % after each round, if there is any; missing values become medians of the training rows."""
    missing = np.isnan(split.X).any(axis=0)
    medians = np.where(missing, np.nanmedian(split.X, axis=0), 0)
    X, X_test = (np.where(np.isnan(part), medians, part) for part in (split.X, split.X_test))
    K = int(split.y.max()) + 1
    stages = system.scores(Table(X, X_test), split.y, K)
    errors = [
        100 * float(np.mean(F[len(X) :].argmax(axis=1) != split.y_test))
        for F in islice(stages, rounds or system.rounds(K))
    ]
    return errors or [100 * float(np.mean(split.y_test != 0))]  # no round: all scores are 0


@click.command()
@click.option("--system", required=True, type=click.Choice(list(SYSTEMS)))
@click.option("--data", required=True, help="a data set of examples/data, or iris or wine")
@click.option("--splits", type=click.Choice(list(SPLITS)), help="in place of those of the table")
@click.option("--rounds", type=click.IntRange(1), help="in place of those of the table")
def main(system: str, data: str, splits: str | None, rounds: int | None) -> None:
    """Test error in % after the last round, and the lowest of all rounds: mean (standard deviation) of the splits."""
    chosen = SPLITS[splits] if splits else SYSTEMS[system].splits
    curves = [curve(SYSTEMS[system], split, rounds) for split in chosen(data)]
    for name, errors in (("last", [c[-1] for c in curves]), ("lowest", [min(c) for c in curves])):
        spread = f" ({np.std(errors, ddof=1):.2f})" if len(errors) > 1 else ""
        click.echo(
            f"{system}, {data}, {max(map(len, curves))} rounds, {name}: {np.mean(errors):.2f}{spread} %"
        )


if __name__ == "__main__":
    main()
