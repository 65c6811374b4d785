"""What a round costs: questions and passes over the rows, in every runtime."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.testing import assert_allclose

from distboost import GDMCBoostClassifier, registry
from distboost.algorithms import mcboost, tables
from distboost.algorithms.solvers import linesearch
from distboost.kernels import gains
from distboost.model.create import new_ensemble
from distboost.runtime.local import LocalRuntime
from distboost.training.loop import Schedule, Start, train
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.weights import response
from distboost.weights.margin import ClassPairs, HitsAndMisses, Residuals
from distboost.weights.response import ClassWeights
from tests.runtime.conftest import ALONE, RUNTIMES
from tests.runtime.placed import DEPTH_2, DEPTH_3, STUMPS, WEIGHTING, place

K = 5
LIGHT = 1  # the third tree of one-vs-all that tells the last class from the others: it has 3 rows


@dataclass(frozen=True)
class Family:
    """An algorithm and what each of its rounds asks."""

    algorithm: str
    parameters: dict = field(default_factory=dict)
    limits: GrowthLimits = STUMPS
    trees: int = 1  # in each round
    histograms: int = (
        1  # in each round, at the most: questions, but for the first, which comes with the update before
    )
    exactly: bool = True  # so many histograms, no fewer
    leaf_sums: int = 1  # questions for each tree: none, where its step follows from the histograms
    more_sums: str = ""  # the note that counts sums beside those
    begun: bool = True  # the update of a round begins the next
    light: int = 0  # trees of three rounds with leaves too light for the histograms' grid


FAMILIES = {
    "stumps along a coordinate": Family("cd-mcboost"),
    "trees along a coordinate": Family("cd-mcboost", {"max_depth": 3}, DEPTH_3, 1, 3, False),
    "regression trees": Family("cd-mcboost", {"leaf": "mean", "max_depth": 3}, DEPTH_3, 1, 3, False),
    "level-wise": Family("gd-mcboost", {"max_depth": 4}, GrowthLimits(max_depth=4), 1, 4, False),
    "stumps": Family("gd-mcboost", {"leaf": "codeword", "max_depth": 1}),
    "best first": Family("gd-mcboost", {"max_leaf_nodes": 9}, GrowthLimits(max_leaf_nodes=9), 1, 8, False),
    "adaptive": Family("adaboost-mm", {"max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "fixed edges": Family("adaboost-mm", {"strategy": "fixed", "max_depth": 1}, leaf_sums=0),
    "votes": Family("adaboost-mm", {"strategy": "os-exponential", "max_depth": 1}, leaf_sums=0),
    "potentials": Family(
        "adaboost-mm", {"strategy": "os-zero-one", "max_depth": 1, "n_estimators": 3}, leaf_sums=0
    ),
    "stage-wise": Family("stagewise"),
    "stage-wise, logistic": Family("stagewise", {"loss": "logistic"}, more_sums="coefficient_passes"),
    "stage-wise trees": Family("stagewise", {"max_depth": 3}, DEPTH_3, 2, 1 + 3, False),
    "stage-wise trees, logistic": Family(
        "stagewise", {"loss": "logistic", "max_depth": 3}, DEPTH_3, 2, 1 + 3, False, 1, "coefficient_passes"
    ),
    "gamble": Family("gamble", {"max_leaf_nodes": 5}, GrowthLimits(max_leaf_nodes=5), 1, 4, False, 0),
    "rebel stumps": Family("rebel", leaf_sums=0),
    "rebel trees": Family("rebel", {"max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "one-vs-all stumps": Family("one-vs-all", {}, STUMPS, K, K, leaf_sums=0),
    "one-vs-all trees": Family("one-vs-all", {"max_depth": 2}, DEPTH_2, K, 2 * K, False, 0, light=LIGHT),
    "class votes": Family("adaboost-m1", {"max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "samme": Family("samme", {"max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "class probabilities": Family("samme-r", {"max_depth": 3}, DEPTH_3, 1, 3, False, 0, light=2),
    "votes for every class": Family("adaboost-mh", leaf_sums=0),
    "a vote for one class": Family("adaboost-mh", {"vote": "label", "max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "real votes": Family("adaboost-mh", {"vote": "real", "max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "plausible labels": Family("adaboost-m2", {"max_depth": 3}, DEPTH_3, 1, 3, False),
    "ranks": Family("adaboost-mr", {"max_depth": 3}, DEPTH_3, 1, 3, False),
    "responses": Family("logitboost", {}, STUMPS, K, K, leaf_sums=0),
    "pairs of classes": Family("aoso-logitboost", {}, STUMPS, leaf_sums=0),
    "colorings": Family("adaboost-ecc"),
    "every code": Family("adaboost-mo", {}, STUMPS, 2 ** (K - 1) - 1, 2 ** (K - 1) - 1, leaf_sums=0),
    "pairs": Family("all-pairs", {}, STUMPS, K * (K - 1) // 2, K * (K - 1) // 2, leaf_sums=0, light=5),
    "random code": Family("output-code", {}, STUMPS, 2 ** (K - 1) - 1, 2 ** (K - 1) - 1, leaf_sums=0),
    "gentle": Family("gentle-adaboost", {}, STUMPS, K, K, leaf_sums=0),
    "shared stumps": Family("jointboost", leaf_sums=0),
    "gradient": Family("gradboost"),
    "linear programs": Family("structboost", begun=False, leaf_sums=0, more_sums="coefficient_passes"),
    "totally corrective": Family("multiboost", {"nu": 0.01}, begun=False, more_sums="coefficient_passes"),
}


def trained(runtime, problem, family, n_rounds):
    """(rows, history) of a training run."""
    X, y, _ = problem
    algorithm = registry.algorithm(family.algorithm)(n_classes=K, **family.parameters)
    n_scores = algorithm.weighting.n_scores(K)
    rows, profile = place(runtime, X, y, n_scores=n_scores, values=algorithm.needs_values)
    assert rows.n_classes == K
    history = train(
        algorithm,
        rows,
        profile.edges,
        start=Start(new_ensemble(algorithm, 6)),
        schedule=Schedule(family.limits, n_rounds),
    )
    assert len(history.train_loss) == n_rounds
    return rows, history


# One with every runtime; those whose rounds differ in kind also on a cluster and with rows on disk.
EVERYWHERE = {"level-wise"}
ELSEWHERE = {
    "best first",
    "stage-wise trees, logistic",
    "one-vs-all trees",
    "gamble",
    "totally corrective",
    "potentials",
}


def is_extra(name, runtime):
    """The engine does the same for all: in the soak."""
    if runtime == ALONE:
        return True
    if name in EVERYWHERE or runtime == "2 threads":
        return False
    return name not in ELSEWHERE or runtime not in ("3 workers", "2 threads streaming")


PLACES = [
    pytest.param(runtime, family, id=f"{runtime}-{name}", marks=[pytest.mark.soak] * is_extra(name, runtime))
    for name, family in FAMILIES.items()
    for runtime in RUNTIMES
]


@pytest.mark.parametrize(("runtime", "family"), PLACES, indirect=["runtime"])
def test_round_trips_and_passes(runtime, n_streamed, problem, family):
    """A round takes a question for each level of its tree but the first (for each leaf but two, best first), one for the sums
    of its leaves where they do not follow from the histograms, and the update, which begins the next round's tree; of several
    trees, the first two for each, and those that its coefficients take. The first round asks for its root, too. (Leaves too
    light for the histograms' grid are summed up anew: see below.)

    Statistics, leaf sums and update visit every row once; histograms visit all rows once and then half of them, at the most,
    for each further level. Rows on disk are read once for each question.
    """
    n_rounds, n = 3, len(problem[1])
    rows, history = trained(runtime, problem, family, n_rounds)
    histograms = n_rounds * family.histograms - (n_rounds - 1) * family.begun
    assert rows.calls["histogram"] <= histograms
    assert rows.calls["histogram"] == histograms or not family.exactly
    sums = n_rounds * family.trees * family.leaf_sums + family.light
    if family.more_sums:
        counted = history.notes[family.more_sums]
        assert min(counted) >= 1
        sums += sum(counted)
    assert rows.calls == Counter(histogram=rows.calls["histogram"], sums=sums, update=n_rounds)
    if "passes" in history.notes:  # all but that of the first root
        assert sum(history.notes["passes"]) == rows.calls.total() - 1
    passes = rows.passes()
    assert passes["statistics"] == n_rounds * family.trees * n
    assert passes.get("sums", 0) == sums * n
    assert passes["update"] == n_rounds * n
    assert passes["histogram"] <= n_rounds * n * (family.trees + (family.histograms - family.trees) / 2)
    assert passes.get("streamed", 0) == n_streamed * (1 + rows.calls.total())  # once more to count the rows
    rows.close()


LIGHT_LEAVES = {
    "gamble": (1, 0),
    "adaboost-m1": (1, 0),
    "samme": (1, 0),
    "samme-r": (1, 2),
    "one-vs-all": (K, LIGHT),
    "adaboost-mo": (2 ** (K - 1) - 1, 0),
    "gentle-adaboost": (K, 0),
}


# One tree a round with every runtime, several also on a cluster.
@pytest.mark.parametrize(
    ("runtime", "name", "trees", "light"),
    [
        pytest.param(
            runtime,
            name,
            *counts,
            id=f"{runtime}-{name}",
            marks=[pytest.mark.soak]
            * (
                runtime == ALONE
                or (
                    name != "gamble"
                    and runtime != "2 threads"
                    and (name, runtime) != ("one-vs-all", "3 workers")
                )
            ),
        )
        for name, counts in LIGHT_LEAVES.items()
        for runtime in RUNTIMES
    ],
    indirect=["runtime"],
)
def test_light_leaves_take_one_more_question(runtime, problem, monkeypatch, name, trees, light):
    """Where the rows of a leaf are too light for the histograms' grid. Both ways give the same but for rounding."""
    losses = []
    for bits, sums in ((response.FINE_BITS, light), (62, 3 * trees)):
        monkeypatch.setattr(response, "FINE_BITS", bits)
        rows, history = trained(runtime, problem, Family(name, {"max_depth": 2}, DEPTH_2), 3)
        losses.append(history.train_loss)
        assert rows.calls["sums"] == sums
        rows.close()
    assert_allclose(*losses, rtol=1e-9)


@pytest.mark.parametrize("runtime", ["2 threads"], indirect=True)
def test_leaves_of_any_weight_have_their_digits(runtime):
    """One leaf's rows weigh ever less: its values, wherever its sums come from, are those of real numbers."""
    rng = np.random.default_rng(2)
    y, right = rng.integers(0, K, 900), rng.integers(0, 2, 900)
    right[y == 4] &= rng.integers(0, 2, 900)[y == 4]
    counts = np.array([np.bincount(y[right == side], minlength=K) for side in (0, 1)])
    gamble = registry.algorithm("gamble")(n_classes=K)
    anew = []
    for bits in range(0, 46, 3):
        rows, _ = place(runtime, right[:, None].astype(float), y)
        rows.begin(gamble.weighting)
        grow = TreeGrower(rows, STUMPS)
        F = np.outer([0.0, np.log(2)], (bits + 0.1 * np.arange(K)) * (K - 1))
        rows.update([grow(ClassWeights(gamble.weighting), gains.LEAST_SQUARES).step(F)])
        [learner], *_ = gamble.learn(rows, grow)
        C = counts * np.exp(-F / (K - 1))
        g = (K * C / C.sum(axis=1, keepdims=True) - 1) / (K - 1)
        r = K * (K - 1) * g / ((K - 2) * g + 1)
        f = r - r.mean(axis=1, keepdims=True)
        assert_allclose(learner.values, f, rtol=0, atol=1e-9 * K**2)
        anew.append(rows.calls["sums"])
        rows.close()
    assert anew == sorted(anew)
    assert set(anew) == {0, 1}


@pytest.mark.parametrize("similarity", ["one-point", "two-point"])
def test_round_trips_and_passes_of_similarities(runtime, problem, similarity):
    """Four questions, one for each two-point similarity tried, and the update, as noted. No histograms, no statistics."""
    parameters = {"weak_learner": "similarity", "similarity": similarity, "max_candidates": 6}
    rows, history = trained(runtime, problem, Family("rebel", parameters), 3)
    most = 5 if similarity == "one-point" else 5 + 6
    assert max(history.notes["passes"]) <= most
    assert rows.calls == {"sums": sum(history.notes["passes"]) - 3, "update": 3}
    passes = rows.passes()
    passes.pop("streamed", None)
    assert passes == {"sums": rows.calls["sums"] * 700, "update": 3 * 700}
    rows.close()


def test_line_search_over_rows_is_bounded(runtime, problem, monkeypatch):
    """Where a table of class pairs would be too large: 2 sums questions for the leaves, at most 2 + 12 for the step."""
    by_table, by_rows = [], []
    family = Family("gd-mcboost", {"max_depth": 3}, DEPTH_3)
    for kept, largest in ((by_table, 2**22), (by_rows, 0)):
        monkeypatch.setattr(mcboost, "LARGEST_TABLE", largest)
        rows, history = trained(runtime, problem, family, 2)
        kept += history.train_loss
        assert rows.calls["sums"] <= 2 * (1 + 2 + linesearch.NEWTON)
        assert (rows.calls["sums"] > 2) == (largest == 0)
        rows.close()
    np.testing.assert_allclose(by_rows, by_table, rtol=1e-9)


@pytest.mark.parametrize(
    ("runtime", "name"),
    [
        pytest.param(
            runtime,
            name,
            marks=[pytest.mark.soak]
            * (runtime == ALONE or (name != "cd-mcboost" and runtime != "2 threads")),
        )
        for name in ("cd-mcboost", "stagewise", "adaboost-ecc")
        for runtime in RUNTIMES
    ],
    indirect=["runtime"],
)
def test_sides_of_a_large_table_take_one_more_question(runtime, problem, monkeypatch, name):
    """Where a table for each leaf would be too large: the leaves' signs first, then a table for each of the two sides."""
    losses = []
    for largest, sums in ((2**22, 1), (0, 2)):
        monkeypatch.setattr(tables, "LARGEST_TABLE", largest)
        rows, history = trained(runtime, problem, Family(name), 3)
        losses.append(history.train_loss)
        assert rows.calls == {"histogram": 1, "sums": 3 * sums, "update": 3}
        rows.close()
    assert losses[0] == losses[1]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_sums_take_an_accumulator_per_thread(n_threads, problem, monkeypatch):
    """However many blocks there are: a table of sums may have megabytes."""
    X, y, weights = problem
    runtime = LocalRuntime(n_threads)
    rows, _ = place(runtime, X, y, weights)
    rows.begin(WEIGHTING)
    grow = TreeGrower(rows, STUMPS)
    tree = grow(Residuals(WEIGHTING), gains.CODEWORD)
    made, initial = [], ClassPairs.initial

    def counted(self, n_leaves, n_classes):
        made.append(initial(self, n_leaves, n_classes))
        return made[-1]

    monkeypatch.setattr(ClassPairs, "initial", counted)
    T = rows.sums(ClassPairs(WEIGHTING), tree.leaves)
    assert len(rows.shard.blocks) == 7
    assert 1 <= len(made) <= n_threads
    hits, misses = np.moveaxis(rows.sums(HitsAndMisses(WEIGHTING), tree.leaves), 1, 0)
    np.testing.assert_allclose(T.sum(axis=2), hits, rtol=1e-12)
    np.testing.assert_allclose(T.sum(axis=1), misses, rtol=1e-12)
    runtime.close()


def test_python_calls_of_a_round(problem):
    """Of few rows, a round takes as long as its Python, if one thread has them all in memory."""
    X, y, _ = problem
    taken = []
    for n_rounds in (4, 4, 12):  # the first compiles kernels or loads them
        model = GDMCBoostClassifier(n_estimators=n_rounds, max_depth=3, calibration=None, n_jobs=1)
        calls = Counter()
        sys.setprofile(lambda frame, event, argument, calls=calls: calls.update([event]))
        try:
            model.fit(X, y)
        finally:
            sys.setprofile(None)
        taken.append(calls["call"])
    assert taken[2] - taken[1] <= 8 * 190
