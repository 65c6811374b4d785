"""What an evaluation, a model and a plan look like on the terminal: every figure is in its place."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import distboost
from distboost import GDMCBoostClassifier
from distboost.cli import show
from distboost.evaluation.results import Confusion
from distboost.io.text import megabytes

# True classes by predicted ones; two rows have labels that the model does not know.
FOUND = Confusion(
    np.array(["ash", "elm", "oak"]), csr_array(np.array([[6, 2, 0], [0, 9, 1], [4, 0, 0], [0, 2, 0]]))
)
METRICS = [
    ["ash", "0.6000", "0.7500", "0.6667", "8"],
    ["elm", "0.6923", "0.9000", "0.7826", "10"],
    ["oak", "0.0000", "0.0000", "0.0000", "4"],
]


def of_classes(n: int, right: bool) -> Confusion:
    """A row of each class, predicted as that class or as the next."""
    counts = np.roll(np.eye(n + 1, n, dtype=int), 0 if right else 1, axis=1)
    counts[n] = 0
    return Confusion(np.arange(n), csr_array(counts))


@pytest.fixture
def printed(monkeypatch, capsys):
    """printed(function, ...): the words of each line that it prints."""
    monkeypatch.setenv("COLUMNS", "200")

    def lines(function, *arguments) -> list[list[str]]:
        function(*arguments)
        return [re.split(r"\s*[│┃]\s*", line.strip(" │┃")) for line in capsys.readouterr().out.splitlines()]

    return lines


# The terminal.


def test_an_evaluation_is_printed(printed):
    lines = printed(show.print_evaluation, FOUND)
    assert lines[0] == ["accuracy 0.6250 (24 rows, 3 classes)"]
    assert lines[1] == ["2 rows have labels that are not classes of the model; they count as mistakes."]
    assert [line for line in lines if line in METRICS] == METRICS
    matrix = [["ash", "6", "2", "0"], ["elm", "0", "9", "1"], ["oak", "4", "0", "0"]]
    assert [line for line in lines if line in matrix] == matrix


def test_of_many_classes_the_worst_mistakes_are_printed(printed):
    assert any(
        "confusion matrix" in line[0] for line in printed(show.print_evaluation, of_classes(12, right=False))
    )
    lines = printed(show.print_evaluation, of_classes(13, right=False))
    assert not any("confusion matrix" in line[0] for line in lines)
    [start] = [i for i, line in enumerate(lines) if line == ["true class", "predicted as", "rows"]]
    assert [line for line in lines[start + 1 :] if len(line) == 3] == [
        [f"{i}", f"{i + 1}", "1"] for i in range(10)
    ]
    assert not any(
        "mistakes" in line[0] for line in printed(show.print_evaluation, of_classes(13, right=True))
    )


def test_features_of_largest_gain():
    def told(gains):
        ensemble = SimpleNamespace(gains=lambda: (np.arange(3, 3 + len(gains)), np.array(gains, float)))
        return show._top_features(
            SimpleNamespace(n_features_in_=20, learned_=SimpleNamespace(ensemble=ensemble))
        )

    assert told([0, 1, 3, 0]) == "5 (75.0%), 4 (25.0%)"
    assert told([1] * 12) == ", ".join(f"{i} (8.3%)" for i in range(3, 13))
    assert told([0]) == told([]) == "none"


def test_a_plan_is_printed(printed):
    model = GDMCBoostClassifier(max_depth=6, memory_limit="650MB")
    plan = distboost.plan(model, n_rows=10**6, n_features=100, n_classes=10, n_threads=2)
    lines = printed(show.print_plan, plan)
    table = [[part.name, megabytes(part.n_bytes), part.what] for part in plan.parts]
    assert [line for line in lines if line in table] == table
    assert ["in all", megabytes(plan.n_bytes)] in lines
    told = [line[0] for line in lines[-2:]]
    assert told[0] == (
        f"memory_limit 650 MB: {plan.resident:,} of 1,000,000 rows stay in memory, the others stream from disk."
    )
    assert told[1].startswith("On disk: 112 MB of bins, unless they come from a binned store, and ")
