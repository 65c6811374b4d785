"""What an evaluation, a model and a plan look like, on the terminal and as a page: every figure is in its place."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import distboost
from distboost import GDMCBoostClassifier
from distboost.cli import report, show
from distboost.evaluation.confusion import Confusion
from distboost.io.units import megabytes

# True classes by predicted ones; two rows have labels that the model does not know.
FOUND = Confusion(
    np.array(["ash", "elm", "oak"]), csr_array(np.array([[6, 2, 0], [0, 9, 1], [4, 0, 0], [0, 2, 0]]))
)
METRICS = [
    ["ash", "0.6000", "0.7500", "0.6667", "8"],
    ["elm", "0.6923", "0.9000", "0.7826", "10"],
    ["oak", "0.0000", "0.0000", "0.0000", "4"],
]
MISTAKES = [["oak", "ash", "4"], ["ash", "elm", "2"], ["elm", "oak", "1"]]


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


# The page.


def curves(**histories):
    nothing = {f"{part}_{name}_": None for part in ("train", "eval") for name in ("loss", "error")}
    return SimpleNamespace(**{**nothing, **histories}, algorithm_name="gamble", best_iteration_=3)


def cells(page: str) -> list[list[str]]:
    """The texts of each row of all tables."""
    return [re.findall(r"<t[hd][^>]*>([^<]*)<", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]


def points(page: str, part: str) -> list[tuple[float, float]]:
    colour = {"train": "#1f77b4", "eval": "#d62728"}[part]
    [found] = re.findall(rf'<polyline points="([^"]*)" fill="none" stroke="{colour}"', page)
    return [tuple(map(float, pair.split(","))) for pair in found.split()]


def test_a_report(tmp_path):
    report.write_report(str(tmp_path / "r.html"), curves(train_loss_=[2.0, 1.0]), FOUND, "of <trees>")
    page = (tmp_path / "r.html").read_text()
    assert "<h1>of &lt;trees&gt;</h1>" in page
    assert (
        "<p>gamble, 3 rounds, 3 classes. <strong>Accuracy 0.6250</strong> on 24 rows. 2 rows have labels"
        in page
    )
    found = cells(page)
    assert [row for row in found if row in METRICS] == METRICS
    assert [row for row in found if row in MISTAKES] == MISTAKES
    matrix = [["ash", "6", "2", ""], ["elm", "", "9", "1"], ["oak", "4", "", ""]]
    assert [row for row in found if row in matrix] == matrix
    assert '<td style="background:rgba(31,119,180,0.73)" title="75.00%">6</td>' in page
    assert '<td style="background:rgba(214,39,40,0.47)" title="25.00%">2</td>' in page
    assert page.count("<svg") == 1
    assert page.count("No round was trained.") == 1


def test_a_report_without_mistakes(tmp_path):
    for n in (60, 61):
        report.write_report(str(tmp_path / f"{n}"), curves(), of_classes(n, right=True), "t")
        page = (tmp_path / f"{n}").read_text()
        assert ("Not drawn: 61 classes." in page) == (n == 61)
        assert ('<table class="heat">' in page) == (n == 60)
        assert "<h2>Most frequent mistakes</h2><p>None.</p>" in page


def test_a_curve_fills_its_axes():
    page = report._curves(curves(train_loss_=[9.0, 5.0, 1.0], eval_loss_=[7.0]), "loss")
    assert points(page, "train") == [(50, 30), (320, 120), (590, 210)]
    assert points(page, "eval") == [(50, 75)]
    for text in (">9</text>", ">1</text>", ">3 rounds</text>", ">train</text>", ">eval</text>"):
        assert text in page
    assert "Logarithmic" not in page


def test_a_loss_that_falls_by_magnitudes_is_drawn_by_its_logarithm():
    page = report._curves(curves(train_loss_=[0.1, 0.01, 0.001]), "loss")
    assert points(page, "train") == [(50, 30), (320, 120), (590, 210)]
    assert "<p>Logarithmic scale.</p>" in page
    for values in ([20.0, 1.0], [1.0, 0.0]):
        assert "Logarithmic" not in report._curves(curves(train_error_=values), "error")
    assert points(report._curves(curves(train_error_=[0.5, 0.5]), "error"), "train") == [
        (50, 210),
        (590, 210),
    ]
