"""Learning curves, as numbers and as a picture."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.active import LearningCurve, learning_curves, plot_curves
from distboost.active.curve import Point
from distboost.errors import ArgumentError, MissingPackageError
from tests.active.sessions import committee, learner


def made(*points, strategy="margin") -> LearningCurve:
    return LearningCurve(strategy, [Point(n, error, 0.5) for n, error in points])


def test_columns():
    found = made((10, 0.5), (20, None), (35, 0.0))
    assert found.n_labelled.tolist() == [10, 20, 35]
    assert_array_equal(found.error, [0.5, np.nan, 0.0])
    assert found.seconds.tolist() == [0.5, 0.5, 0.5]


def test_labels_to():
    found = made((10, 0.5), (20, 0.3), (30, 0.4), (40, 0.1), (50, 0.3))
    assert found.labels_to(0.5) == 10
    assert found.labels_to(0.3) == 20
    assert found.labels_to(0.2) == 40
    assert found.labels_to(0.05) is None
    assert made((10, None), (20, 0.3)).labels_to(0.9) == 20
    assert made().labels_to(1.0) is None


def test_error_at():
    """That of the last committee with no more labels."""
    found = made((10, 0.5), (20, 0.3), (30, 0.4))
    n = np.array([9, 10, 11, 19, 20, 30, 31, 0])
    assert_array_equal(found.error_at(n), [np.nan, 0.5, 0.5, 0.5, 0.3, 0.4, np.nan, np.nan])
    assert_array_equal(made().error_at(n), np.full(8, np.nan))


def test_learning_curves(problem):
    """Each is what a learner of that seed has."""
    X, y = problem
    rows = {"n_initial": 15, "batch_size": 20}
    pool, oracle, evaluation = X[:200], y[:200], (X[200:], y[200:])
    curves = learning_curves(
        committee(), pool, oracle, evaluation, strategies=("entropy", "random"), n_repeats=3, max_labels=60,
        random_state=5, **rows,
    )  # fmt: skip
    assert list(curves) == ["entropy", "random"]
    for strategy, repeats in curves.items():
        assert len(repeats) == 3
        for repeat, found in enumerate(repeats):
            one = learner(pool, strategy=strategy, random_state=5 + repeat, **rows)
            expected = one.run(oracle, eval_set=evaluation, max_labels=60)
            assert found.strategy == strategy
            assert found.n_labelled.tolist() == expected.n_labelled.tolist() == [15, 35, 55, 60]
            assert found.error.tolist() == expected.error.tolist()
            assert found.outcome == "label budget"
    first = [[repeat.error[0] for repeat in repeats] for repeats in curves.values()]
    assert first[0] == first[1]  # the same initial rows


def test_curves_end_at_the_target(problem):
    X, y = problem
    curves = learning_curves(
        committee(6), X, y, (X, y), strategies=("margin",), n_repeats=2, target_error=0.5, n_initial=10
    )
    for found in curves["margin"]:
        assert found.outcome == "target error"
        assert found.labels_to(0.5) == found.n_labelled[-1]


def test_progress_bar(problem, capsys):
    X, y = problem
    learning_curves(committee(), X, y, (X, y), n_repeats=2, max_labels=20, n_initial=20, verbose=1)
    assert "4/4" in capsys.readouterr().out


CURVES = {
    "margin": [made((10, 0.4), (20, 0.2), (30, 0.1)), made((10, 0.6), (20, 0.4), (40, 0.1))],
    "random": [made((10, 0.5), (30, 0.3), strategy="random")],
    "empty": [made(strategy="empty")],
}


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_picture(kind, tmp_path):
    pytest.importorskip("matplotlib")
    plot_curves(CURVES, tmp_path / f"curves.{kind}", target_error=0.15, title="Letters")
    begin = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[kind]
    assert (tmp_path / f"curves.{kind}").read_bytes().startswith(begin)


def test_what_is_drawn():
    """The mean of the repeats in percent, where all of them are known."""
    pytest.importorskip("matplotlib")
    ax = plot_curves(CURVES, target_error=0.15, title="Letters")
    margin, random, target = ax.get_lines()
    n, error = margin.get_data()
    assert (n[0], n[-1]) == (10, 30)
    assert dict(zip(n.tolist(), error.tolist(), strict=True)) == pytest.approx(
        {row: 50 if row < 20 else 30 if row < 30 else 25 for row in n.tolist()}
    )
    assert random.get_ydata()[-1] == pytest.approx(30)
    assert target.get_ydata() == pytest.approx([15, 15])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["margin (2)", "random", "target"]
    assert len(ax.collections) == 1  # the spread between the repeats of one strategy
    assert ax.get_title() == "Letters"


@pytest.mark.parametrize("ax", [3, "here", np.zeros(2)])
def test_other_objects_than_axes_are_refused(ax):
    pytest.importorskip("matplotlib")
    with pytest.raises(ArgumentError, match=r"^ax is .*, expected axes of matplotlib, such as "):
        plot_curves(CURVES, ax=ax)


def test_what_is_drawn_on_axes(monkeypatch):
    """Whether matplotlib is installed or not: the axes note what is drawn on them."""
    monkeypatch.setitem(sys.modules, "matplotlib", ModuleType("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", SimpleNamespace(Figure=None))
    ax = MagicMock()
    ax.plot.return_value = [MagicMock()]
    assert plot_curves(CURVES, "curves.png", target_error=0.15, title="Letters", ax=ax) is ax
    (margin, random), [(n, low, high)] = (
        ax.plot.call_args_list,
        [call.args for call in ax.fill_between.call_args_list],
    )
    assert n.tolist() == margin.args[0].tolist() == [10, 20, 30]
    assert margin.args[1] == pytest.approx([50, 30, 25])
    assert (margin.kwargs, random.kwargs) == ({"label": "margin (2)"}, {"label": "random"})
    assert low == pytest.approx([40, 20, 10])
    assert high == pytest.approx([60, 40, 40])
    assert random.args[0].tolist() == [10, 30]
    assert random.args[1] == pytest.approx([50, 30])
    assert ax.axhline.call_args.args == (15,)
    assert ax.set.call_args.kwargs["title"] == "Letters"
    ax.set_ylim.assert_called_once_with(bottom=0)
    ax.figure.savefig.assert_called_once_with("curves.png", dpi=150)
    ax.reset_mock()
    plot_curves(CURVES, ax=ax)
    assert not ax.axhline.called
    assert not ax.figure.savefig.called


def test_drawn_beside_another():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    left, right = figure.subplots(1, 2)
    assert plot_curves({"random": CURVES["random"]}, ax=right) is right
    assert len(left.get_lines()) == 0
    assert len(right.get_lines()) == 1


def test_without_matplotlib(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("matplotlib"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPackageError, match=r"needs matplotlib.*pip install 'distboost\[plots\]'"):
        plot_curves(CURVES)
