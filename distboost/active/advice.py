"""What the labels so far tell: the error of the final model, labels that may be wrong, and what to do next.

Most of it follows from predictions for labelled rows by models that have not learned from them (cross-validation).

* **The error** is that of the *audit rows*, which queries have drawn at random from the pool: they stand for it. Rows that were
  asked for because they are hard do not. The interval is that of Clopper and Pearson (1934).
* **Agreement** is that of people who have labelled the same rows (`Agreement`).
  Each model learns from all other labels but a fifth of the audit rows.
* **Doubted labels** follow confident learning (Northcutt, Jiang & Chuang 2021): a class is *confident* in a row if its
  probability is at least the mean of that class's probabilities in the rows labelled so. A label is doubted if another class is
  confident, and eight times as probable: hard rows were asked for, so without this bar, most doubts would be of right labels.
  The probabilities are those of the committee. Boosted trees are too sure of few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta
from sklearn.metrics import cohen_kappa_score

from distboost.active.committee import CommitteeTrainer
from distboost.active.ledger import Ledger
from distboost.kernels.random import FOLDS, key, uniforms


class Agreement(NamedTuple):
    """How far two people agree, beyond chance: J. Cohen, *A coefficient of agreement*, 1960.

    Attributes
    ----------
    people : tuple of str
    n_rows : int
        That both have labelled.
    kappa : float
        Cohen's: 1 if they always agree, 0 if no more often than by chance.
    """

    people: tuple[str, str]
    n_rows: int
    kappa: float


def agreements_of(opinions: Mapping[int, Mapping[str | None, Any]]) -> list[Agreement]:
    """Return the agreement of all pairs of people that have labelled the same rows.

    >>> agreements_of({1: {"ann": "a", "bob": "a"}, 2: {"ann": "b", "bob": "b"}, 3: {"ann": "b"}})
    [Agreement(people=('ann', 'bob'), n_rows=2, kappa=1.0)]
    """
    common: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for told in opinions.values():
        named = sorted(person for person in told if person is not None)
        for first, second in combinations(named, 2):
            common.setdefault((first, second), []).append((told[first], told[second]))
    return [
        Agreement(people, len(pairs), kappa(*np.array(pairs).T)) for people, pairs in sorted(common.items())
    ]


def kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Return Cohen's kappa of labels (n,); 1 if they are equal, also where all are of one class and it is undefined."""
    return 1.0 if np.array_equal(first, second) else float(cohen_kappa_score(first, second))


N_FOLDS = 5
LAST = 50  # labels whose gain is measured
FEWEST_AUDITED = 20  # with fewer audit rows, the interval is too wide to tell when to stop
FEWEST_OF_CLASS = 5  # labels of a class, to judge by
ODDS = 8  # of another class against the label
SMALL_KAPPA = 0.6  # of people who understand classes in different ways
COVERAGE = 0.95
SMALL_GAIN = 0.05  # of the error: labels that lower it by less are not worth their price


class ErrorEstimate(NamedTuple):
    """An estimate of the final model's error on the pool.

    Attributes
    ----------
    error : float
        A fraction.
    low, high : float
        The interval: it has the true error in 95 of 100 cases.
    n_rows : int
        Audit rows that it follows from.
    """

    error: float
    low: float
    high: float
    n_rows: int


class Doubt(NamedTuple):
    """A label that other labels speak against.

    Attributes
    ----------
    row : int
    label, rather : Any
        The label, and the class that a committee without this row finds most probable among the confident ones.
    probability : float
        That of the label itself.
    """

    row: int
    label: Any
    rather: Any
    probability: float


class Advice(NamedTuple):
    """What the labels so far tell.

    Attributes
    ----------
    error : ErrorEstimate or None
        None: there are no audit rows.
    gain : float or None
        By how much the last labels, up to 50, have lowered this estimate.
    doubts : list of Doubt
        Labels to look at again, the least probable first.
    agreement : list of Agreement
        Of people who have labelled the same rows.
    conflicts : list of int
        Rows on which they differ, and that nobody has corrected.
    next_steps : list of str
        What to do next, in sentences.
    """

    error: ErrorEstimate | None
    gain: float | None
    doubts: list[Doubt]
    agreement: list[Agreement]
    conflicts: list[int]
    next_steps: list[str]


def interval(n_wrong: int, n: int) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson for a share of which `n_wrong` of n were seen.

    >>> [round(end, 3) for end in interval(5, 100)]
    [0.016, 0.113]
    """
    outside = (1 - COVERAGE) / 2
    low = 0.0 if n_wrong == 0 else float(beta.ppf(outside, n_wrong, n - n_wrong + 1))
    high = 1.0 if n_wrong == n else float(beta.ppf(1 - outside, n_wrong + 1, n - n_wrong))
    return low, high


def folds_of(rows: np.ndarray, labels: np.ndarray, seed: int) -> np.ndarray:
    """Return the fold of each row, (n,) int64, by random numbers of their own. The rows of a class are spread over the folds."""
    draw = key(seed, FOLDS)
    u = np.array([uniforms(draw, int(row), 1)[0] for row in rows])
    folds = np.empty(len(rows), np.int64)
    first = 0
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        folds[own[np.argsort(u[own], kind="stable")]] = (first + np.arange(len(own))) % N_FOLDS
        first += len(own)
    return folds


def doubts_of(rows: np.ndarray, codes: np.ndarray, P: np.ndarray, classes: Sequence[Any]) -> list[Doubt]:
    """Return the doubted labels, the least probable first.

    Parameters
    ----------
    rows : ndarray of shape (n,), int64
    codes : ndarray of shape (n,), int64
        The labels, as positions in `classes`.
    P : ndarray of shape (n, n_classes), float64
        Probabilities by models that have not learned from these rows.
    classes : sequence
    """
    threshold = np.full(len(classes), np.inf)
    for k in np.unique(codes):
        threshold[k] = P[codes == k, k].mean()
    confident = np.where(threshold <= P, P, -1.0)
    best, own = confident.argmax(axis=1), P[np.arange(len(codes)), codes]
    is_known = np.bincount(codes, minlength=len(classes))[codes] >= FEWEST_OF_CLASS
    doubted = np.flatnonzero((best != codes) & (confident.max(axis=1) >= ODDS * own) & is_known)
    return [
        Doubt(int(rows[i]), classes[codes[i]], classes[best[i]], float(own[i]))
        for i in doubted[np.argsort(own[doubted], kind="stable")]
    ]


class Evidence(NamedTuple):
    """Predictions for labelled rows by models that have not learned from them.

    Attributes
    ----------
    rows : ndarray of shape (n,), int64
    codes : ndarray of shape (n,), int64
        The labels, as positions in `classes`.
    classes : ndarray of shape (n_classes,)
    is_audited : ndarray of shape (n,), bool
    P : ndarray of shape (n, n_classes), float64
        By committees that have not learned from a fifth of the labels.
    wrong : int
        Audit rows that final models predict wrongly that have not learned from a fifth of the audit rows.
    wrong_before : int or None
        By models that have not learned from the last labels, either.
    """

    rows: np.ndarray
    codes: np.ndarray
    classes: np.ndarray
    is_audited: np.ndarray
    P: np.ndarray
    wrong: int
    wrong_before: int | None

    @classmethod
    def of(cls, final: CommitteeTrainer, committee: CommitteeTrainer, ledger: Ledger, seed: int) -> Evidence:
        """Fit the models."""
        rows, labels = np.array(ledger.rows, np.int64), np.array(ledger.labels)
        P, classes = committee.held_out(folds_of(rows, labels, seed), len(rows))
        codes = np.searchsorted(classes, labels)
        is_audited = np.isin(rows, list(ledger.audited))
        folds = np.full(len(rows), -1)
        folds[is_audited] = folds_of(rows[is_audited], labels[is_audited], seed)

        def wrong(n: int) -> int:
            predicted = final.held_out(folds, n)[0].argmax(axis=1)
            return int(np.count_nonzero((predicted != codes)[is_audited]))

        before = wrong(len(rows) - LAST) if len(rows) > 2 * LAST and is_audited.any() else None
        return cls(rows, codes, classes, is_audited, P, wrong(len(rows)), before)


def advised(found: Evidence, ledger: Ledger) -> Advice:
    """Return the advice that follows."""
    n, error, gain = int(found.is_audited.sum()), None, None
    if n:
        error = ErrorEstimate(found.wrong / n, *interval(found.wrong, n), n)
        gain = None if found.wrong_before is None else (found.wrong_before - found.wrong) / n
    doubts = doubts_of(found.rows, found.codes, found.P, found.classes.tolist())
    agreement, conflicts = agreements_of(ledger.opinions), ledger.conflicts
    steps = [
        *_steps_of_people(agreement, conflicts),
        *_next_steps(found, error, gain, doubts, ledger.settings["audit"]),
    ]
    return Advice(error, gain, doubts, agreement, conflicts, steps)


def _steps_of_people(agreement: list[Agreement], conflicts: list[int]) -> Iterator[str]:
    if conflicts:
        named = ", ".join(map(str, conflicts[:5]))
        yield f"Settle {len(conflicts)} rows on which people differ, first {named}: ask for them, and correct them."
    for (first, second), n, kappa in agreement:
        if n >= FEWEST_AUDITED and kappa < SMALL_KAPPA:
            yield f"{first} and {second} agree little. Let them settle what the classes mean."


def _next_steps(
    found: Evidence, error: ErrorEstimate | None, gain: float | None, doubts: list[Doubt], audit: float
) -> Iterator[str]:
    if doubts:
        named = ", ".join(str(doubt.row) for doubt in doubts[:5])
        yield f"Look again at {len(doubts)} labels that others speak against, first at those of rows {named}."
    counts = np.bincount(found.codes, minlength=len(found.classes))
    rare = found.classes[counts < FEWEST_OF_CLASS].tolist()
    if rare:
        yield f"Label more rows of {', '.join(map(str, rare))}: fewer than {FEWEST_OF_CLASS} are known of each."
    if error is None or error.n_rows < FEWEST_AUDITED:
        known = "no row was" if error is None else f"only {error.n_rows} rows were"
        remedy = "Go on labelling." if audit else "Set audit=0.1."
        yield f"{known.capitalize()} drawn at random, so the error is not known well. {remedy}"
    elif gain is not None and gain <= SMALL_GAIN * error.error:
        yield f"The last {LAST} labels have hardly lowered the error. If it is low enough, stop."
    else:
        yield "Go on: the error is still falling."
