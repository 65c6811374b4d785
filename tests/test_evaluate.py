"""`distboost.evaluate` and `score`: scikit-learn's figures, to the last bits, on any source and runtime."""

from __future__ import annotations

import json
import warnings
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn import metrics as sk

import distboost
from distboost import GDMCBoostClassifier
from distboost.data.stored import ZarrPart
from distboost.estimators import evaluating
from distboost.evaluation.metrics import METRICS, Evaluation, Totals, chosen
from distboost.evaluation.sums import Judge, Places, bins_of, histogram, judge_part, margin_sums, merged
from distboost.rows.exact import exact_sums, real_numbers


@pytest.fixture(scope="module")
def model(blobs):
    return GDMCBoostClassifier(n_estimators=3).fit(*blobs)


@pytest.fixture(scope="module")
def weights(blobs):
    w = np.random.default_rng(1).random(len(blobs[1])) * 10.0 ** np.arange(-60, 60, 0.5)
    w[::7] = 0
    return w


few = settings(max_examples=25)  # each of which has many rows


def same(a: Evaluation, b: Evaluation) -> None:
    assert a.to_json() == b.to_json()  # JSON holds all digits


# The figures are those of scikit-learn


@st.composite
def tables(draw):
    """Probabilities with ties, labels of which some classes may be absent, and weights of many magnitudes."""
    k, n = draw(st.integers(2, 6)), draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    F = rng.normal(size=(n, k)) * draw(st.sampled_from([0.1, 3.0, 60.0]))
    if draw(st.booleans()):
        F = np.round(F)
    P = np.exp(F - F.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    codes = rng.choice(rng.permutation(k)[: draw(st.integers(1, k))], n)
    w = rng.random(n) * 10.0 ** rng.integers(-draw(st.sampled_from([0, 6])), 1, n)
    w = draw(st.sampled_from([w, np.ones(n), np.ceil(4 * w)]))
    w[rng.random(n) < draw(st.sampled_from([0.0, 0.3]))] = 0
    w[0] = max(w[0], 0.1)
    return P, codes, w


def judged(P, codes, w, n_parts: int) -> Evaluation:
    """The evaluation of a model with these probabilities, in parts of a few rows."""
    groups = frozenset(METRICS)
    classes = np.arange(P.shape[1])
    judge = Judge(lambda X: X, lambda F: F, classes, groups, True, Places("X", "y", "w"))
    total = {}
    parts = [rows for rows in np.array_split(np.arange(len(P)), n_parts) if len(rows)]
    for number in np.random.default_rng(0).permutation(len(parts)):
        rows = parts[number]
        total = merged(total, judge_part(judge, P[rows], codes[rows], w[rows], int(rows[0])))
    return Evaluation.of(Totals(total, classes, True), chosen(None))


@few
@given(tables())
def test_the_metrics_of_scikit_learn(table):
    P, codes, w = table
    found = judged(*table, 1)
    same(found, judged(*table, 5))
    used = w > 0  # rows of weight 0 are not there
    P, codes, w = P[used], codes[used], w[used]
    k, predicted = P.shape[1], P.argmax(axis=1)
    labels, by_weight = np.arange(k), {"sample_weight": w}
    expected = {
        "n_rows": len(w),
        "weight": w.sum(),
        "accuracy": sk.accuracy_score(codes, predicted, **by_weight),
        "confusion": sk.confusion_matrix(codes, predicted, labels=labels, **by_weight),
        "log_loss": sk.log_loss(codes, P, labels=labels, **by_weight),
        "brier": sk.brier_score_loss(
            codes,
            P if k > 2 else P[:, 1],
            labels=labels,
            **({} if k > 2 else {"pos_label": 1}),
            **by_weight,
        ),
        "majority_baseline": np.bincount(codes, w).max() / w.sum(),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # predictions of classes that do not occur
        expected["balanced_accuracy"] = sk.balanced_accuracy_score(codes, predicted, **by_weight)
    for average in ("macro", "weighted"):
        values = sk.precision_recall_fscore_support(
            codes, predicted, average=average, zero_division=0, **by_weight
        )
        expected |= {
            f"{name}_{average}": v for name, v in zip(("precision", "recall", "f1"), values, strict=False)
        }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12, err_msg=name)
    per_class = sk.precision_recall_fscore_support(
        codes, predicted, labels=labels, zero_division=0, **by_weight
    )
    np.testing.assert_allclose(list(found["per_class"].values()), per_class, rtol=1e-12, atol=1e-12)
    if k > 2:
        for n, value in found["top_k_accuracy"].items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # k of k classes
                top = sk.top_k_accuracy_score(codes, P, k=n, labels=labels, **by_weight)
            np.testing.assert_allclose(value, top, rtol=1e-12)
    for c in range(k):
        if 0 < np.count_nonzero(codes == c) < len(codes):
            exact = sk.roc_auc_score(codes == c, P[:, c], **by_weight)
            assert abs(found["auc_per_class"][c] - exact) <= found["auc_per_class_error"][c] + 1e-12
        else:
            assert np.isnan(found["auc_per_class"][c])


@few
@given(tables())
def test_calibration_error_by_hand(table):
    P, codes, w = table
    confidence, right = P.max(axis=1), P.argmax(axis=1) == codes
    error = 0.0
    for low in range(15):
        inside = (confidence > low / 15) & (confidence <= (low + 1) / 15)
        error += abs((w * (right - confidence.astype(float)))[inside].sum())
    assert judged(*table, 2)["ece"] == pytest.approx(error / w.sum(), rel=1e-12, abs=1e-12)


def test_many_probabilities_in_a_bin_have_a_stated_error():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    P, codes = np.column_stack([p, 1 - p]), (rng.random(20_000) > p).astype(int)
    found = judged(P, codes, np.ones(20_000), 1)
    exact = sk.roc_auc_score(codes, P[:, 1])
    assert 0 < abs(found["auc_ovr"] - exact) <= found["auc_ovr_error"] < 1e-3


def test_bins_follow_the_order():
    p = np.sort(np.concatenate([[0, 1e-300, 0.5, 1 - 2**-53, 1], np.random.default_rng(0).random(2000)]))
    for bits in (0, 4, 10):
        bins = bins_of(p, bits)
        assert (np.diff(bins) >= 0).all()
        assert (bins[0], bins[-1]) == (0, (128 << bits) - 1)
    assert len(np.unique(bins_of(p, 10))) > 900


@few
@given(tables(), st.integers(0, 25))
def test_the_worst_rows_are_those_of_a_full_sort(table, n_ties):
    P, codes, w = table
    P[: n_ties % len(P)] = P[0]
    worst = judged(P, codes, w, 3)["worst_rows"]
    used = np.flatnonzero(w > 0)
    own = P[used, codes[used]]
    order = used[np.lexsort((used, own))][:20]
    np.testing.assert_array_equal(worst["row"], order)
    np.testing.assert_array_equal(worst["probability"], P[order, codes[order]])
    np.testing.assert_array_equal(worst["true"], codes[order])
    np.testing.assert_array_equal(worst["predicted"], P[order].argmax(axis=1))
    np.testing.assert_array_equal(worst["confidence"], P[order].max(axis=1))


@given(tables(), st.sampled_from([1e-300, 1e-9, 1.0, 1e200]))
def test_margins_are_those_of_all_rows(table, unit):
    P, codes, w = (values[table[2] > 0] for values in table)
    w = np.ceil(w)
    F = unit * P
    rows = np.arange(len(F))
    margins = np.array([F[i, codes[i]] - np.delete(F[i], codes[i]).max() for i in rows])
    found = histogram(margin_sums(F, codes, w))
    edges, weight = found["edges"], found["weight"]
    assert len(weight) <= 64
    assert np.all(np.diff(edges) > 0)
    # A bin below 0 has its right edge outside, one above 0 its left edge inside.
    index = np.where(
        margins < 0, -1 - np.floor(-margins / np.diff(edges)[0]), np.floor(margins / np.diff(edges)[0])
    )
    first = round(edges[0] / np.diff(edges)[0])
    np.testing.assert_array_equal(np.bincount(index.astype(int) - first, w, len(weight)), weight)


def test_intervals(model, blobs):
    X, y = blobs
    found = distboost.evaluate(model, X, y)
    right = int((model.predict(X) == y).sum())
    wilson = binomtest(right, len(y)).proportion_ci(method="wilson")
    np.testing.assert_allclose(found["accuracy_interval"], wilson, rtol=1e-9)
    losses = -np.log(model.predict_proba(X)[np.arange(len(y)), y])
    error = 1.959963984540054 * losses.std() / np.sqrt(len(y))
    np.testing.assert_allclose(
        found["log_loss_interval"], (losses.mean() - error, losses.mean() + error), rtol=1e-9
    )


def test_intervals_do_not_depend_on_the_unit_of_weights(model, blobs):
    X, y = blobs
    once, thrice = (distboost.evaluate(model, X, y, w * np.ones(len(y))) for w in (1, 3))
    for name in ("accuracy_interval", "log_loss_interval", "brier_interval"):
        np.testing.assert_allclose(once[name], thrice[name], rtol=1e-12)
    assert thrice["weight"] == 3 * once["weight"]


# Sums are exact


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=30), st.randoms())
def test_sums_do_not_depend_on_the_order(values, random):
    shuffled = random.sample(values, len(values))
    cells = np.zeros(len(values), np.int64)
    a, b = (exact_sums(cells, np.array(v), 1) for v in (values, shuffled))
    assert (a != b).nnz == 0
    assert real_numbers(a)[0] == pytest.approx(sum(values), rel=1e-12, abs=0)


def test_sums_of_many_cells(monkeypatch):
    cells, values = np.array([[7, 1], [3, 7]]), np.array([0.1, 3.0])
    dense = exact_sums(cells, values, 9)
    monkeypatch.setattr("distboost.rows.exact.MOST_DENSE", 1)
    sparse = exact_sums(cells, values, 9)
    assert (dense != sparse).nnz == 0
    np.testing.assert_array_equal(real_numbers(sparse)[[1, 3, 7]], [0.1, 3.0, 3.1])


# One result on any source and runtime


def stored(folder, X, y, w, rows):
    for name, values in (("x", X), ("y", y), ("w", w)):
        zarr.create_array(str(folder / name), data=values, chunks=(rows, *values.shape[1:]), fill_value=9)
    return [str(folder / name) for name in "xyw"]


@pytest.mark.parametrize("rows", [1, 7])
def test_one_result_whatever_the_source(rows, model, blobs, weights, tmp_path, monkeypatch):
    X, y, weights = blobs[0][:60], blobs[1][:60], weights[:60]
    expected = distboost.evaluate(model, X, y, weights)
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 300)
    monkeypatch.setattr("distboost.evaluation.sums.PIECE_ROWS", 5)
    same(distboost.evaluate(model, *stored(tmp_path, X, y, weights, rows)), expected)
    arrays = [zarr.open_array(str(tmp_path / name), mode="r") for name in "xyw"]
    same(distboost.evaluate(model, *arrays), expected)
    same(
        distboost.evaluate(model, *(da.from_array(a, chunks=(rows, *a.shape[1:])) for a in arrays)), expected
    )
    same(distboost.evaluate(model, pd.DataFrame(X), pd.Series(y), list(weights)), expected)
    same(distboost.evaluate(model, X, arrays[1], weights), expected)


def test_on_a_cluster(model, blobs, weights, clients, tmp_path, monkeypatch):
    expected = distboost.evaluate(model, *blobs, weights)
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 1000)
    urls = stored(tmp_path, *blobs, weights, 50)
    model.client = clients[2]
    try:
        same(distboost.evaluate(model, *urls), expected)
        arrays = [da.from_array(np.array(a), chunks=60) for a in (*blobs, weights)]
        same(distboost.evaluate(model, *arrays), expected)
        assert model.score(*urls) == expected["accuracy"]
    finally:
        del model.client


def test_each_row_is_read_once(model, blobs, weights, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 1000)
    urls = stored(tmp_path, *blobs, weights, 50)
    read_chunk = ZarrPart._read

    def counted(part, array, piece):
        read.append((array.name, array.store_path.path, *piece[0]))
        return read_chunk(part, array, piece)

    monkeypatch.setattr(ZarrPart, "_read", counted)
    seen = []
    sums = Judge.sums
    monkeypatch.setattr(Judge, "sums", lambda self, F, *rest: seen.append(len(F)) or sums(self, F, *rest))
    distboost.evaluate(model, *urls)
    assert sum(stop - start for *_, start, stop in read) == 3 * len(weights)
    assert sum(seen) == len(weights)


def test_score_takes_what_fit_takes(model, blobs, weights, tmp_path):
    X, y = blobs
    urls = stored(tmp_path, X, y, weights, 50)
    expected = model.score(X, y, weights)
    assert model.score(*urls) == pytest.approx(expected, rel=1e-12)
    assert model.score(urls[0], y, weights) == pytest.approx(expected, rel=1e-12)
    assert model.score(da.from_array(np.array(X), chunks=(50, 4)), y) == model.score(X, y)
    strange = y.copy()
    strange[:9] = 77
    assert model.score(urls[0], strange) == model.score(X, strange)


def test_labels_of_text(blobs):
    X, y = blobs
    names = np.array(["red", "green", "blue"])[y]
    model = GDMCBoostClassifier(n_estimators=2).fit(X, names)
    found = distboost.evaluate(model, X, names.astype(object))
    assert found["accuracy"] == model.score(X, names)
    assert json.loads(found.to_json())["classes"] == ["blue", "green", "red"]


# What is asked for and how it is shown


def test_only_what_is_asked_for(model, blobs, monkeypatch):
    monkeypatch.setattr(evaluating, "probabilities_of", lambda model: None)  # not needed
    found = distboost.evaluate(model, *blobs, metrics=["f1_macro", "accuracy"])
    assert list(found) == ["f1_macro", "accuracy"]
    with pytest.raises(ValueError, match="metrics has 'F1', expected some of 'n_rows', "):
        distboost.evaluate(model, *blobs, metrics=["F1"])


def test_as_text_and_json(model, blobs):
    found = distboost.evaluate(model, *blobs)
    lines = str(found).splitlines()
    assert lines[0].split() == ["n_rows", "240"]
    assert f"accuracy            {found['accuracy']:.6g}" in lines
    assert "auc_ovr_error" in str(found)
    back = json.loads(found.to_json())
    assert back["accuracy"] == found["accuracy"]
    assert back["confusion"] == found["confusion"].tolist()
    assert back["classes"] == [0, 1, 2]
    assert found["confusion"].dtype == np.int64


def test_no_warning_about_feature_names(blobs):
    X, y = blobs
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = GDMCBoostClassifier(n_estimators=2).fit(frame, y)
    assert distboost.evaluate(model, frame, y)["n_rows"] == 240


# Bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": lambda y: np.where(np.arange(len(y)) == 5, 77, y)}, "77.* in row 5, which is none of the 3"),
        ({"y": lambda y: y[:-1]}, "240 rows but y has 239"),
        ({"y": lambda y: y.astype(str)}, "text labels, but the classes of the model are numbers"),
        ({"y": lambda y: np.where(y == 0, np.nan, y)}, "missing label"),
        ({"w": lambda w: np.where(np.arange(len(w)) == 5, np.nan, w)}, "sample_weight is nan in row 5"),
        ({"w": lambda w: -w}, "finite weights of at least 0"),
        ({"w": lambda w: w[:-1]}, "240 rows but sample_weight has 239"),
        ({"w": lambda w: w * 1e200}, "sample_weight is .*scale all of them"),
        ({"w": lambda w: 0 * w}, "every row has weight 0"),
        ({"X": lambda X: X[:, :3]}, "features"),
        ({"X": lambda X: np.where(np.arange(len(X))[:, None] == 5, np.inf, X)}, "infinite value .* in row 5"),
    ],
)
def test_bad_input(change, message, model, blobs):
    X, y = blobs
    given = SimpleNamespace(X=X, y=y, w=np.ones(len(y)))
    for name, of in change.items():
        setattr(given, name, of(getattr(given, name)))
    with pytest.raises(ValueError, match=message):
        distboost.evaluate(model, given.X, given.y, given.w)


def test_a_label_of_weight_0_may_be_unknown(model, blobs):
    X, y = blobs
    w = np.ones(len(y))
    w[:3] = 0
    expected = distboost.evaluate(model, X, y, w)
    strange = y.copy()
    strange[:3] = 77
    same(distboost.evaluate(model, X, strange, w), expected)


def test_not_a_fitted_model(blobs):
    with pytest.raises(ValueError, match="not fitted"):
        distboost.evaluate(GDMCBoostClassifier(), *blobs)
    with pytest.raises(TypeError, match="model is of type dict"):
        distboost.evaluate({}, *blobs)
