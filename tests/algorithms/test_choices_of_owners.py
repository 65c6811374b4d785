"""Whoever adds and searches the histograms, and however many workers there are: the model is that of one process.

The whole matrix belongs to the soak: ``python -m pytest tests/algorithms/test_choices_of_owners.py -m "soak or not soak"``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from distboost.data import ingest
from distboost.runtime.cluster import exchange
from tests.algorithms.subjects import SUBJECTS, Subject, sampled
from tests.faults.stages import QUESTIONS
from tests.faults.stages import exchange as exchange_histograms

N, D, K, BLOCK = 480, 10, 4, 40  # twelve blocks in all: with 5 workers, some have two and some have three
ROUNDS = 3
ONE_BY_ONE, PIECE_BYTES = 1, exchange.PIECE_BYTES  # of a message


class Choice(NamedTuple):
    """How histograms are added.

    Attributes
    ----------
    pays : bool
        By the workers, or by the coordinator.
    group_size : callable
        Of a number of workers.
    piece_bytes : int
        Of the sums in one message.
    fan_out : int or None
        The workers that the coordinator and each relay ask; None: all are asked by the coordinator.
    """

    pays: bool
    group_size: Callable[[int], int] = lambda n: 1
    piece_bytes: int = PIECE_BYTES
    fan_out: int | None = None


def root(n: int) -> int:
    return max(2, round(n**0.5))


CHOICES = {
    "the coordinator, relays": Choice(False, fan_out=2),
    "workers": Choice(True),
    "workers, node by node": Choice(True, piece_bytes=ONE_BY_ONE),
    "groups": Choice(True, root),
    "groups, relays, node by node": Choice(True, root, ONE_BY_ONE, 2),
    "one group": Choice(True, lambda n: n),
}

# What is trained: all rows alike, or rows of different weights of which each round sees some.
DRAWS: dict[str, Callable[[Subject], dict[str, Any]]] = {
    "all rows": lambda subject: {},
    "some weighted rows": lambda subject: {
        **sampled(subject),
        "min_weight_fraction_leaf": 0.03,
        "class_weight": {0: 1.5, 1: 1, 2: 1, 3: 0.5},
    },
}

# Without relays, the coordinator's way is tested in test_contract.py.
WAYS = [
    ("the coordinator, relays", "some weighted rows"),
    ("workers", "all rows"),
    ("workers, node by node", "some weighted rows"),
    ("groups", "some weighted rows"),
    ("groups, relays, node by node", "all rows"),
    ("one group", "some weighted rows"),
]

# In which each way to grow trees, and each kind of sums, is seen once.
BY_DEFAULT = {
    "gd-mcboost best first, 5, groups, some weighted rows",
    "gd-mcboost, 5, the coordinator, relays, some weighted rows",
    "cd-mcboost, 5, workers, node by node, some weighted rows",
    "rebel depth 2, 5, groups, some weighted rows",
    "rebel similarity, 5, one group, some weighted rows",
    "adaboost-mo, 5, groups, relays, node by node, all rows",
    "multiboost, 5, groups, some weighted rows",
}
CASES = {
    f"{subject}, {n}, {choice}, {draw}": (subject, n, choice, draw)
    for n in (1, 2, 3, 5)
    for choice, draw in WAYS
    for subject in SUBJECTS
    if n > 2 or choice.startswith("workers") or (n == 2 and choice == "one group")
}


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "BLOCK_ROWS", BLOCK)
        yield


@pytest.fixture(scope="module")
def data():
    """X, y, weights, sorted by class: no worker has rows of all classes. Some values are missing, some rows count nothing."""
    rng = np.random.default_rng(4)
    y = np.sort(rng.integers(0, K, N))
    X = np.round(2 * np.eye(K, D)[y] + rng.normal(size=(N, D)), 2)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.where(rng.random(N) < 0.1, rng.integers(0, K, N), y), rng.integers(0, 4, N).astype(float)


@pytest.fixture(scope="module")
def train(data, tmp_path_factory):
    """train(subject, draw, client): the model's file."""
    X, y, weights = data
    folder = tmp_path_factory.mktemp("models")

    def file_of(subject: Subject, draw: str, client: Any) -> bytes:
        model = subject.make(calibration=None, n_estimators=ROUNDS, **DRAWS[draw](subject))
        model.client = client
        model.fit(X, y, weights if draw != "all rows" else None, eval_set=(X[::5], y[::5]))
        model.save(folder / "model")
        return Path(folder / "model").read_bytes()

    return file_of


@pytest.fixture(scope="module")
def expected(train):
    """expected(subject, draw): the file of the model trained in this process by one thread."""
    return cache(lambda subject, draw: train(subject, draw, None))


@pytest.fixture
def exchanges(monkeypatch):
    """The questions that workers exchange histograms for."""
    place, name, expand = QUESTIONS["question"].found()
    found = []

    def noted(*arguments, **options):
        found.append(1)
        return expand(*arguments, **options)

    monkeypatch.setattr(place, name, noted)
    return found


def set_piece_bytes(number: int) -> None:
    exchange.PIECE_BYTES = number


@pytest.mark.parametrize(
    ("subject", "n_workers", "choice", "draw"),
    [
        pytest.param(*case, id=name, marks=[] if name in BY_DEFAULT else pytest.mark.soak)
        for name, case in CASES.items()
    ],
)
def test_the_model_is_that_of_one_process(
    subject, n_workers, choice, draw, train, expected, exchanges, clients, monkeypatch
):
    chosen = CHOICES[choice]
    exchange_histograms(monkeypatch, chosen.pays, chosen.group_size, chosen.fan_out)
    clients[n_workers].run(set_piece_bytes, chosen.piece_bytes)
    try:
        assert train(subject, draw, clients[n_workers]) == expected(subject, draw)
    finally:
        clients[n_workers].run(set_piece_bytes, PIECE_BYTES)
    has_trees = "similarity" not in subject.variant
    assert bool(exchanges) == (chosen.pays and has_trees)


def test_the_default_names_cases():
    assert CASES.keys() >= BY_DEFAULT
