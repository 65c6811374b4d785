"""What the papers prove, held against trainings: equal algorithms, bounds, losses that fall, and how trainings end."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import distboost
from distboost import (
    AdaBoostMMClassifier,
    CDMCBoostClassifier,
    GAMBLEClassifier,
    GDMCBoostClassifier,
    REBELClassifier,
    StagewiseBoostClassifier,
    registry,
)
from distboost.algorithms.adaboost_mm import AdaBoostMM, best_step, kappa
from distboost.algorithms.base import Learner, Round
from distboost.algorithms.classic import class_votes, multiboost
from distboost.baselines import (
    AdaBoostECCClassifier,
    AdaBoostM1Classifier,
    AdaBoostMHClassifier,
    AdaBoostMOClassifier,
    GentleAdaBoostClassifier,
    GradBoostClassifier,
    MultiBoostClassifier,
    OneVsAllAdaBoostClassifier,
    SAMMEClassifier,
)
from distboost.estimators.factory import classifier
from distboost.kernels import gains
from distboost.weights.margin import HitsAndMisses, Residuals

DATA = Path(__file__).parents[2] / "examples" / "data"
ROUNDING = 1 + 1e-7  # of the total weight, where weights are not whole


@cache
def published(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, X_test, y_test) with the published split."""
    with np.load(DATA / f"{name}.npz") as file:
        X, y, n = file["X"].astype(np.float64), file["y"], int(file["n_train"])
    return X[:n], y[:n], X[n:], y[n:]


@cache
def drawn(n_classes: int, separation: float) -> tuple[np.ndarray, np.ndarray]:
    """Rounded, so that there are ties and every value has a bin; classes of unequal size."""
    rng = np.random.default_rng(n_classes)
    y = np.minimum(rng.geometric(1.5 / n_classes, 300) - 1, n_classes - 1)
    return np.round(separation * np.eye(n_classes, 6)[y] + rng.normal(size=(300, 6)), 1), y


PROBLEMS = {
    "two classes": lambda: drawn(2, 1.0),
    "overlap": lambda: drawn(5, 1.0),
    "noise": lambda: drawn(4, 0.0),
    "apart": lambda: drawn(3, 8.0),
    "glass": lambda: published("glass")[:2],
    "vehicle": lambda: published("vehicle")[:2],
    "vowel": lambda: published("vowel")[:2],
    "segment": lambda: published("segment")[:2],
    "soybean, values missing": lambda: published("soybean")[:2],
}


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]()


def settings_and_problems(names):
    """Each setting with a third of the problems, each problem with a third of the settings; the others in the soak."""
    return pytest.mark.parametrize(
        ("name", "problem"),
        [
            pytest.param(name, problem, marks=[pytest.mark.soak] * bool((i + j) % 3))
            for i, name in enumerate(names)
            for j, problem in enumerate(PROBLEMS)
        ],
        indirect=["problem"],
    )


# The textbook, on all stumps there are


def stumps(X: np.ndarray) -> np.ndarray:
    """-1 left and +1 right of every threshold: (stumps, rows)."""
    return np.concatenate([np.where(x <= np.unique(x)[:-1, None], -1.0, 1.0) for x in X.T])


def adaboost(X: np.ndarray, labels: np.ndarray, n_rounds: int) -> list[np.ndarray]:
    """The scores after each round; labels are -1 and +1."""
    F, H, stages = np.zeros(len(X)), stumps(X), []
    for _ in range(n_rounds):
        w = np.exp(-labels * F)
        edges = H @ (w * labels) / w.sum()
        best = np.argmax(np.abs(edges))
        F = F + np.arctanh(edges[best]) * H[best]  # arctanh(1 - 2 ε) = 1/2 ln((1 - ε) / ε)
        stages.append(F)
    return stages


def gentle_adaboost(X: np.ndarray, labels: np.ndarray, n_rounds: int) -> list[np.ndarray]:
    """The scores after each round of least-squares stumps."""
    F, right, stages = np.zeros(len(X)), (stumps(X) + 1) / 2, []
    for _ in range(n_rounds):
        w = np.exp(-labels * F)
        w /= w.sum()
        W = right @ w
        means = np.stack([(1 - right) @ (w * labels) / (1 - W), right @ (w * labels) / W])
        best = np.argmax((1 - W) * means[0] ** 2 + W * means[1] ** 2)
        F = F + np.where(right[best] > 0, means[1, best], means[0, best])
        stages.append(F)
    return stages


def two_classes() -> tuple[np.ndarray, np.ndarray]:
    """No stump is worse than the constant: leaves that choose their class freely choose different ones."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 4)), 1)
    return X, (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=300) > 0.5).astype(int)


# Two classes

# F_1 - F_0 is so many times AdaBoost's score.
ADABOOSTS = {
    "cd-mcboost": (CDMCBoostClassifier(calibration=None), 2),
    "gd-mcboost, codeword": (GDMCBoostClassifier(calibration=None, leaf="codeword", max_depth=1), 2),
    "gd-mcboost, direction": (GDMCBoostClassifier(calibration=None, max_depth=1), 2),
    "adaboost-mm": (AdaBoostMMClassifier(calibration=None, max_depth=1), 1),
    "stagewise": (StagewiseBoostClassifier(calibration=None, nu=0.0, learning_rate=1.0), 1),
    "rebel": (REBELClassifier(calibration=None), 2),
    "one-vs-all": (OneVsAllAdaBoostClassifier(calibration=None), 2),
    "adaboost-m1": (AdaBoostM1Classifier(calibration=None, max_depth=1), 2),
    "samme": (SAMMEClassifier(calibration=None, max_depth=1), 2),
    "adaboost-mh": (AdaBoostMHClassifier(calibration=None), 2),
    "adaboost-ecc": (AdaBoostECCClassifier(calibration=None), 2),
    "adaboost-mo": (AdaBoostMOClassifier(calibration=None), 2),
}


@pytest.mark.parametrize("name", ADABOOSTS)
def test_with_two_classes_it_is_adaboost(name):
    X, y = two_classes()
    model, factor = ADABOOSTS[name]
    model.set_params(n_estimators=15).fit(X, y)
    for F, expected in zip(model.staged_scores(X), adaboost(X, 2 * y - 1, 15), strict=True):
        assert_allclose(F[:, 1] - F[:, 0], factor * expected, rtol=1e-9, atol=1e-12)


def test_stagewise_coefficients_of_two_classes_are_adaboosts():
    """w_1 - w_0 = 1/2 ln((1 - ε) / ε) of the stump that says +1 for class 1."""
    X, y = two_classes()
    model = StagewiseBoostClassifier(calibration=None, n_estimators=1, nu=0.0, learning_rate=1.0).fit(X, y)
    values = model.learned_.ensemble.arrays()["values"]
    ε = (model.predict(X) != y).mean()
    assert_allclose(np.abs(values[:, 1] - values[:, 0]), np.log((1 - ε) / ε) / 2, rtol=1e-12)
    assert_array_equal(values.min(axis=0), -values.max(axis=0))


def test_gamble_at_half_the_rate_is_gentle_adaboost():
    X, y = two_classes()
    expected = gentle_adaboost(X, 2 * y - 1, 15)
    gamble = GAMBLEClassifier(calibration=None, n_estimators=15, max_leaf_nodes=2, learning_rate=0.5).fit(
        X, y
    )
    gentle = GentleAdaBoostClassifier(calibration=None, n_estimators=15).fit(X, y)
    for ours, theirs, F in zip(gamble.staged_scores(X), gentle.staged_scores(X), expected, strict=True):
        assert_allclose(ours, np.column_stack([-F, F]), rtol=1e-9, atol=1e-12)
        assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12)


def test_gambles_first_step_is_twice_gentle_adaboosts():
    X, y = two_classes()
    for size in (2, 5, 15):
        gamble = GAMBLEClassifier(calibration=None, n_estimators=1, max_leaf_nodes=size).fit(X, y)
        gentle = GentleAdaBoostClassifier(
            calibration=None, n_estimators=1, max_depth=None, max_leaf_nodes=size
        ).fit(X, y)
        assert_allclose(gamble.scores(X), 2 * gentle.scores(X), rtol=1e-9)


# Many classes


class ExactMM(AdaBoostMM):
    """AdaBoost.MM with the exact line search along its weak learners."""

    name = "adaboost-mm-exact"
    notes = ()

    def learn(self, rows, grow):
        tree = grow(Residuals(self.margins, wide=True), gains.CODEWORD)
        hits, misses = np.moveaxis(rows.sums(HitsAndMisses(self.margins), tree.leaves), 1, 0)
        c, leaf = np.argmax(hits - misses, axis=1), np.arange(tree.n_leaves)
        A, B = hits[leaf, c].sum(), misses[leaf, c].sum()
        return Round([Learner(tree, np.log(A / B) / 2 * np.eye(self.n_classes)[c])])

    def restore_notes(self, notes):
        pass


ExactMMClassifier = classifier(ExactMM)


@pytest.mark.parametrize("name", ["two classes", "overlap", "glass", "vehicle", "vowel"])
def test_gd_mcboost_with_codewords_is_adaboost_mm_with_the_exact_step(name):
    """F_MM is F_GD / 2 but for a shift of each row."""
    X, y = PROBLEMS[name]()
    gd = GDMCBoostClassifier(calibration=None, n_estimators=12, leaf="codeword", max_depth=2).fit(X, y)
    mm = ExactMMClassifier(calibration=None, n_estimators=12, max_depth=2).fit(X, y)
    for ours, theirs in zip(gd.staged_scores(X), mm.staged_scores(X), strict=True):
        assert_allclose(theirs - theirs.mean(axis=1, keepdims=True), ours / 2, rtol=1e-9, atol=1e-9)
    assert_allclose(mm.train_loss_, gd.train_loss_ - 1, rtol=1e-9)


def test_adaboost_mm_takes_the_step_of_its_edge():
    """Both begin with the same tree; 1/2 ln((1 + δ) / (1 - δ)) does not go beyond the minimum of the loss."""
    X, y = PROBLEMS["vehicle"]()
    mm, exact = (
        Estimator(n_estimators=1, max_depth=3).fit(X, y)
        for Estimator in (AdaBoostMMClassifier, ExactMMClassifier)
    )
    ours, theirs = mm.learned_.ensemble.arrays(), exact.learned_.ensemble.arrays()
    for name in ("feature", "threshold", "missing_left"):
        assert_array_equal(ours[name], theirs[name])
    assert_allclose(ours["values"].max(), np.arctanh(mm.edge_[0]), rtol=1e-12)
    assert ours["values"].max() < theirs["values"].max()
    assert exact.train_loss_[0] < mm.train_loss_[0] <= mm.loss_bound_[0]


def test_one_vs_all_is_an_adaboost_for_each_class():
    X, y = PROBLEMS["overlap"]()
    model = OneVsAllAdaBoostClassifier(calibration=None, n_estimators=10).fit(X, y)
    expected = [adaboost(X, np.where(y == c, 1, -1), 10) for c in range(5)]
    for t, F in enumerate(model.staged_scores(X)):
        assert_allclose(F, np.column_stack([stages[t] for stages in expected]), rtol=1e-9, atol=1e-12)


def test_adaboost_mh_votes_with_the_best_stump_of_all_classes():
    """A stump and a vote for each class, opposite on its sides, though a rare class may be outvoted on both."""
    X, y = PROBLEMS["overlap"]()
    H, Y = stumps(X), np.where(y[:, None] == np.arange(5), 1.0, -1.0)
    F = np.zeros(Y.shape)
    model = AdaBoostMHClassifier(calibration=None, n_estimators=10).fit(X, y)
    for found in model.staged_scores(X):
        W = np.exp(-Y * F)
        edges = H @ (W * Y) / W.sum()
        best = np.argmax(np.abs(edges).sum(axis=1))
        F = F + np.arctanh(np.abs(edges[best]).sum()) * np.outer(H[best], np.sign(edges[best]))
        assert_allclose(found, F, rtol=1e-9, atol=1e-12)


def test_gentle_adaboost_is_one_for_each_class():
    X, y = PROBLEMS["overlap"]()
    model = GentleAdaBoostClassifier(calibration=None, n_estimators=10).fit(X, y)
    expected = [gentle_adaboost(X, np.where(y == c, 1, -1), 10) for c in range(5)]
    for t, F in enumerate(model.staged_scores(X)):
        assert_allclose(F, np.column_stack([stages[t] for stages in expected]), rtol=1e-9, atol=1e-12)


def test_adaboost_mo_moves_all_columns_of_its_code_by_one_step():
    X, y = PROBLEMS["noise"]()
    K, n_rounds, H = 4, 8, stumps(X)
    code = np.array([[1 if (b + 1) >> k & 1 else -1 for b in range(2 ** (K - 1) - 1)] for k in range(K - 1)])
    code = np.concatenate([np.full((1, code.shape[1]), -1), code])
    model = AdaBoostMOClassifier(calibration=None, n_estimators=n_rounds).fit(X, y)
    G = np.zeros((len(X), code.shape[1]))
    for t, F in enumerate(model.staged_scores(X)):
        w = np.exp(-code[y] * G)
        edges = H @ (w * code[y])
        best = np.argmax(np.abs(edges), axis=0)
        h = np.sign(edges[best, np.arange(len(best))]) * H[best].T
        G += np.arctanh((w * code[y] * h).sum() / w.sum()) * h
        assert_allclose(F, G @ code.T, rtol=1e-9, atol=1e-9)
        assert model.train_loss_[t] == pytest.approx(np.exp(-code[y] * G).mean(), rel=1e-9)


# Bounds

MM_SETTINGS = {
    "stumps": {"max_depth": 1},
    "depth 3": {"max_depth": 3},
    "depth 6": {},
    "6 leaves": {"max_depth": None, "max_leaf_nodes": 6},
    "weighted": {"max_depth": 3, "class_weight": "balanced"},
    "half the rate": {"max_depth": 3, "learning_rate": 0.5},
    "twice the rate": {"max_depth": 3, "learning_rate": 2.0},
}


@settings_and_problems(MM_SETTINGS)
def test_adaboost_mm_keeps_its_bound(name, problem):
    X, y = problem
    model = AdaBoostMMClassifier(calibration=None, n_estimators=15, **MM_SETTINGS[name]).fit(X, y)
    assert (model.train_loss_ <= model.loss_bound_ * ROUNDING).all()
    assert (model.train_error_ <= model.loss_bound_ * ROUNDING).all()
    if model.learning_rate == 1:
        expected = (model.n_classes_ - 1) * np.cumprod(np.sqrt(1 - model.edge_**2))
        assert_allclose(model.loss_bound_, expected, rtol=1e-9)


FIXED = {
    f"{strategy}, depth {depth}, edge {edge}": (strategy, depth, edge)
    for strategy in ("fixed", "os-exponential")
    for depth, edge in ((1, 0.02), (1, 0.1), (3, 0.1), (3, 0.3), (6, 0.3))
}


@settings_and_problems(FIXED)
def test_fixed_votes_keep_their_bound_while_the_edges_are_met(name, problem):
    """loss <= (K - 1) prod kappa."""
    X, y = problem
    strategy, depth, edge = FIXED[name]
    model = AdaBoostMMClassifier(
        calibration=None, n_estimators=10, strategy=strategy, edge=edge, max_depth=depth
    ).fit(X, y)
    K = model.n_classes_
    step = model.eta if strategy == "os-exponential" else best_step(edge, K)
    assert_allclose(model.loss_bound_, (K - 1) * kappa(edge, step, K) ** np.arange(1, model.n_iter_ + 1))
    met = np.logical_and.accumulate(model.edge_ >= edge)
    assert (model.train_loss_[met] <= model.loss_bound_[met] * ROUNDING).all()


def test_a_step_for_each_round_keeps_its_bound():
    X, y = PROBLEMS["vehicle"]()
    edges, alphas = np.linspace(0.3, 0.05, 12), np.linspace(0.5, 0.1, 12)
    model = AdaBoostMMClassifier(
        calibration=None, n_estimators=12, strategy="fixed", edge=edges, alphas=alphas, max_depth=4
    ).fit(X, y)
    factors = [kappa(γ, α, 4) for γ, α in zip(edges, alphas, strict=True)]
    assert_allclose(model.loss_bound_, 3 * np.cumprod(factors))
    met = np.logical_and.accumulate(model.edge_ >= edges)
    assert met[0]
    assert (model.train_loss_[met] <= model.loss_bound_[met] * ROUNDING).all()


def test_the_game_ends_with_the_last_round():
    game = AdaBoostMM(n_classes=3, strategy="os-zero-one", n_estimators=7, edge=0.2)
    assert [game.statistic(round).rounds_left for round in range(1, 8)] == [7, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("name", "depth", "edge"),
    [("vehicle", 6, 0.3), ("segment", 4, 0.3), ("apart", 3, 0.5), ("overlap", 4, 0.1)],
)
def test_the_game_for_the_0_1_loss_is_won_while_the_edges_are_met(name, depth, edge):
    X, y = PROBLEMS[name]()
    model = AdaBoostMMClassifier(
        calibration=None, n_estimators=8, strategy="os-zero-one", edge=edge, max_depth=depth
    ).fit(X, y)
    assert (model.edge_ >= edge).all()
    assert (model.loss_bound_ == model.loss_bound_[0]).all()
    assert model.train_error_[-1] <= model.train_loss_[-1] * ROUNDING <= model.loss_bound_[-1]


# Losses that fall in every round

FALLING = {
    "cd-mcboost": CDMCBoostClassifier(calibration=None),
    "cd-mcboost, depth 3": CDMCBoostClassifier(calibration=None, max_depth=3),
    "gd-mcboost, direction": GDMCBoostClassifier(calibration=None, max_depth=2),
    "gd-mcboost, codeword": GDMCBoostClassifier(calibration=None, leaf="codeword", max_depth=2),
    "gd-mcboost, half the rate": GDMCBoostClassifier(calibration=None, max_depth=2, learning_rate=0.5),
    "adaboost-mm": AdaBoostMMClassifier(calibration=None, max_depth=2),
    "stagewise, exponential": StagewiseBoostClassifier(calibration=None),
    "stagewise, logistic": StagewiseBoostClassifier(calibration=None, loss="logistic"),
    "stagewise, whole steps": StagewiseBoostClassifier(calibration=None, learning_rate=1.0),
    "stagewise, bounded steps": StagewiseBoostClassifier(calibration=None, learning_rate=1.0, max_step=0.1),
    "stagewise, depth 2": StagewiseBoostClassifier(calibration=None, max_depth=2),
    "rebel": REBELClassifier(calibration=None),
    "rebel, depth 3": REBELClassifier(calibration=None, max_depth=3),
    "one-vs-all": OneVsAllAdaBoostClassifier(calibration=None),
    "adaboost-mh": AdaBoostMHClassifier(calibration=None),
    "adaboost-mh, depth 2": AdaBoostMHClassifier(calibration=None, max_depth=2),
    "adaboost-mh, real": AdaBoostMHClassifier(calibration=None, vote="real"),
    "adaboost-ecc": AdaBoostECCClassifier(calibration=None),
    "gentle-adaboost": GentleAdaBoostClassifier(calibration=None, max_depth=2),
    "gradboost, no penalty": GradBoostClassifier(calibration=None, penalty=0.0),
}


@settings_and_problems(FALLING)
def test_the_loss_falls(name, problem):
    """By an exact step, or by one that does not go beyond it. Not so with GAMBLE; with the votes of M1 and SAMME it says nothing.

    A loss is counted in units for the largest that a step could have left: 1e-8 of it may be rounding.
    """
    X, y = problem
    model = FALLING[name].set_params(n_estimators=12).fit(X, y)
    assert model.n_iter_ > 0
    assert (np.diff(model.train_loss_) <= 1e-8 * model.train_loss_[:-1]).all()


def test_bounded_steps_are_bounded():
    values = StagewiseBoostClassifier(calibration=None, n_estimators=5, learning_rate=1.0, max_step=0.1).fit(
        *PROBLEMS["overlap"]()
    )
    assert np.abs(values.learned_.ensemble.arrays()["values"]).max() == 0.1


@pytest.mark.parametrize("name", ["overlap", "noise", "apart", "glass"])
def test_adaboost_mos_loss_falls(name):
    X, y = PROBLEMS[name]()
    model = AdaBoostMOClassifier(calibration=None, n_estimators=10).fit(X, y)
    assert (np.diff(model.train_loss_) <= 1e-12 * model.train_loss_[:-1]).all()


@pytest.mark.parametrize("penalty", [1e-3, 0.01, 0.1])
def test_gradboosts_loss_and_penalty_fall_together(penalty, problem):
    X, y = problem
    model = GradBoostClassifier(calibration=None, n_estimators=15, penalty=penalty).fit(X, y)
    a = model.learned_.ensemble.arrays()
    w: dict[tuple, np.ndarray] = {}
    objective = []
    for t, loss in enumerate(model.train_loss_):
        stump = a["feature"][t], a["threshold"][t], a["missing_left"][t]
        w[stump] = w.get(stump, 0.0) + a["values"][2 * t + 1]
        objective.append(loss + penalty * sum(np.linalg.norm(row) for row in w.values()))
    assert (np.diff(objective) < 0).all()


@pytest.mark.parametrize("nu", [1e-4, 1e-2])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_multiboosts_loss_and_norm_fall_together(loss, nu):
    X, y = PROBLEMS["vehicle"]()
    objective = []
    for n in range(1, 6):
        model = MultiBoostClassifier(calibration=None, n_estimators=n, loss=loss, nu=nu).fit(X, y)
        W = model.learned_.ensemble.arrays()["values"][1::2]
        objective.append(model.train_loss_[-1] + nu * np.abs(W).sum())
    assert (np.diff(objective) < 0).all()


# How trainings end

LADDER = np.repeat(np.arange(4.0), 10)[:, None], np.repeat(np.arange(4), 10)  # a class on each step
ALIKE = np.zeros((40, 2)), np.arange(40) % 4


def test_adaboost_m1_gives_up_where_samme_goes_on():
    """A stump knows 2 of 4 classes: half of the weight is lost."""
    X, y = LADDER
    m1 = AdaBoostM1Classifier(calibration=None, max_depth=1).fit(X, y)
    assert (m1.outcome_, m1.n_iter_) == ("no better than chance", 0)
    assert_array_equal(m1.predict(X), 0)
    assert_allclose(m1.predict_proba(X), 1 / 4)
    samme = SAMMEClassifier(calibration=None, max_depth=1, n_estimators=10).fit(X, y)
    assert (samme.outcome_, samme.n_iter_) == ("rounds", 10)
    assert samme.train_error_[0] == 1 / 2


def test_adaboost_m1_gives_up_in_the_middle():
    X, y = PROBLEMS["vehicle"]()
    model = AdaBoostM1Classifier(calibration=None, max_depth=3, n_estimators=50).fit(X, y)
    assert model.outcome_ == "no better than chance"
    assert 0 < model.n_iter_ == model.best_iteration_ < 50


def test_samme_gives_up_where_there_is_nothing_to_know(tmp_path):
    X, y = ALIKE
    model = SAMMEClassifier(calibration=None).fit(X, y)
    assert (model.outcome_, model.n_iter_) == ("no better than chance", 0)
    model.save(tmp_path / "model")
    again = distboost.load(tmp_path / "model")
    assert (again.outcome_, again.n_iter_) == ("no better than chance", 0)
    assert_array_equal(again.scores(X), 0)


@pytest.mark.parametrize("estimator", [CDMCBoostClassifier, GDMCBoostClassifier, AdaBoostMMClassifier, GAMBLEClassifier,
                                       StagewiseBoostClassifier, OneVsAllAdaBoostClassifier, GradBoostClassifier,
                                       MultiBoostClassifier])  # fmt: skip
def test_rows_that_are_alike_have_no_split(estimator):
    X, y = ALIKE[0], ALIKE[1] % 2
    model = estimator().fit(X, y)
    assert (model.outcome_, model.n_iter_) == ("no split", 0)


@pytest.mark.parametrize(
    "model",
    [
        CDMCBoostClassifier(calibration=None),
        AdaBoostECCClassifier(calibration=None, colorings=[[1, -1, -1], [-1, 1, -1]] * 3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_what_has_no_split_gives_way_to_what_has(model):
    """The feature tells class 1 from class 2, but says nothing of class 0, which the first coordinate or coloring is about."""
    X = np.concatenate([np.tile([0.0, 1.0], 10), np.zeros(20), np.ones(20)])[:, None]
    y = np.repeat([0, 1, 2], 20)
    model.set_params(n_estimators=6).fit(X, y)
    assert (model.outcome_, model.n_iter_) == ("rounds", 6)
    assert model.train_error_[-1] == 1 / 3


@pytest.mark.parametrize(
    "model",
    [
        CDMCBoostClassifier(calibration=None),
        GDMCBoostClassifier(calibration=None, max_depth=1),
        AdaBoostECCClassifier(calibration=None),
        REBELClassifier(calibration=None),
        StagewiseBoostClassifier(calibration=None),
        StagewiseBoostClassifier(calibration=None, loss="logistic", nu=0.0),
        MultiBoostClassifier(calibration=None),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_stump_without_an_error_of_its_own_does_not_end_training(model):
    """It tells two of the classes from the other two; these are still to be told apart."""
    X, y = LADDER
    model.set_params(n_estimators=60).fit(X, y)
    assert model.n_iter_ > 2
    assert model.score(X, y) == 1.0


CONVERGING = {
    "stagewise": StagewiseBoostClassifier(calibration=None, nu=0.1, learning_rate=1.0),
    "stagewise, logistic": StagewiseBoostClassifier(
        calibration=None, loss="logistic", nu=30.0, learning_rate=1.0
    ),
    "gradboost": GradBoostClassifier(calibration=None, penalty=0.1),
    "multiboost": MultiBoostClassifier(calibration=None, nu=0.1),
    "multiboost, logistic": MultiBoostClassifier(calibration=None, loss="logistic", nu=30.0),
}


@pytest.mark.parametrize("name", CONVERGING)
def test_a_norm_that_costs_more_than_it_gains_ends_training(name):
    X, y = PROBLEMS["overlap"]()
    model = CONVERGING[name].set_params(n_estimators=300).fit(X, y)
    assert model.outcome_ == "converged"
    assert 0 < model.n_iter_ < 300


def test_a_slope_that_points_out_of_the_domain_is_none():
    """Of coefficients at 0, only those that lower the loss by growing count."""
    gradient, W = np.array([[2.0, -1.0], [3.0, -4.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    assert_array_equal(multiboost._inward(gradient, W), [[0, -1], [3, -4]])


@pytest.mark.parametrize(
    ("leaves", "wrong", "times"), [([1, 1], 1, 0), ([1, 0], 1, 1), ([0, 0], 1, 1), ([1, 1], 0, 1)], ids=str
)
def test_votes_are_counted_again_if_the_weights_of_a_leaf_or_of_the_mistakes_have_few_digits(
    leaves, wrong, times, monkeypatch
):
    counted, add_windows = [], class_votes.add_windows
    monkeypatch.setattr(class_votes, "add_windows", lambda sums: counted.append(1) or add_windows(sums))
    monkeypatch.setattr(
        class_votes, "is_precise", lambda sums, mass: np.array(leaves if np.ndim(sums) else wrong) > 0
    )
    SAMMEClassifier(n_estimators=1, max_depth=1, calibration=None).fit(*PROBLEMS["overlap"]())
    assert len(counted) == times


# What is measured


@pytest.mark.parametrize(("name", "accuracy"), [("optdigits", 0.925), ("pendigits", 0.895)])
def test_cd_mcboost_with_stumps_reaches_the_accuracy_measured(name, accuracy):
    X, y, X_test, y_test = published(name)
    model = CDMCBoostClassifier(calibration=None, n_estimators=20 * 9).fit(X, y)
    assert model.score(X_test, y_test) >= accuracy


# Probabilities


def lead(F: np.ndarray, y: int) -> np.ndarray:
    """By how much the scores of the other classes exceed that of class y."""
    return np.delete(F, y, axis=-1) - F[..., y : y + 1]


# What scores that sum to 0 cost a row of class y.
EXPECTED = {
    "cd-mcboost": ({}, lambda F, y: np.exp(lead(F, y) / 2).sum()),
    "gd-mcboost": ({}, lambda F, y: np.exp(lead(F, y) / 2).sum()),
    "adaboost-mm": ({}, lambda F, y: np.exp(lead(F, y)).sum()),
    "stagewise": ({"loss": "exponential"}, lambda F, y: np.exp(lead(F, y)).sum()),
    "stagewise, logistic": ({"loss": "logistic"}, lambda F, y: np.log1p(np.exp(lead(F, y))).sum()),
    "multiboost": ({"loss": "logistic"}, lambda F, y: np.log1p(np.exp(lead(F, y))).sum()),
    "gamble": ({}, lambda F, y: np.exp(-F[y] / (len(F) - 1))),
    "adaboost-ecc": ({}, lambda F, y: np.exp(lead(F, y) / 2).sum()),
    "samme": ({}, lambda F, y: np.exp(-F[y])),
    "gradboost": ({}, lambda F, y: np.log1p(np.exp(lead(F, y)).sum())),
}
SCORES = np.array([1.5, -0.7, 0.4, 0.1, -1.3])


@pytest.mark.parametrize("name", EXPECTED)
def test_scores_minimise_the_loss_that_their_probabilities_expect(name):
    parameters, loss = EXPECTED[name]
    algorithm = registry.algorithm(name.partition(",")[0])(n_classes=5, **parameters)
    [P] = algorithm.probabilities(SCORES[np.newaxis])
    centred = np.eye(5) - 1 / 5
    step = 1e-5
    slopes = [
        sum(p * (loss(SCORES + step * to, y) - loss(SCORES - step * to, y)) for y, p in enumerate(P))
        / (2 * step)
        for to in centred
    ]
    assert_allclose(slopes, 0, atol=1e-8)


@pytest.mark.parametrize("name", ["one-vs-all", "adaboost-mh", "gentle-adaboost", "rebel"])
def test_probabilities_of_a_binary_problem_for_each_class(name):
    """A score of F has the odds e^(2 F) that the exponential loss gives it; the classes' probabilities are made to sum to 1."""
    [P] = registry.algorithm(name)(n_classes=5).probabilities(SCORES[np.newaxis])
    alone = 1 / (1 + np.exp(-2 * SCORES))
    assert_allclose(P, alone / alone.sum())


def test_probabilities_of_a_code():
    """Of K classes, two have different bits in 2^(K-2) columns: each moves their scores apart by 2 committees' scores."""
    [P] = registry.algorithm("adaboost-mo")(n_classes=5).probabilities(8 * SCORES[np.newaxis])
    assert_allclose(P, np.exp(SCORES) / np.exp(SCORES).sum())


def test_probabilities_of_votes():
    P = AdaBoostMM(n_classes=5, n_estimators=4, strategy="os-exponential").probabilities(
        np.array([[3.0, 1, 0, 0, 0], [0] * 5])
    )
    assert_allclose(P, [[3 / 4, 1 / 4, 0, 0, 0], [1 / 5] * 5])
