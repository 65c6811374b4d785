"""Several evaluation sets, each with a name and weights, and their metrics."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.baselines import AdaBoostMOClassifier
from distboost.data import ingest
from distboost.data.dataset import RawDataset
from distboost.data.store import recoding
from distboost.errors import DataError
from distboost.io.files import read_file
from distboost.rows.row_metrics import LARGEST, digit_sums, mean
from distboost.training import memory_plan, training
from tests.watching.sets import brier, make, own_loss


@pytest.mark.parametrize(
    ("form", "names"),
    [
        (lambda a, b: a, ["eval"]),
        (lambda a, b: [a], ["eval"]),
        (lambda a, b: [a, b], ["eval_0", "eval_1"]),
        (lambda a, b: {"one": a, "two": b}, ["one", "two"]),
        (lambda a, b: {"one": list(a)}, ["one"]),
    ],
    ids=["pair", "list of one", "list", "mapping", "mapping of a list"],
)
def test_forms_of_sets(form, names, parts, tmp_path):
    train, a, b = parts
    model = make(n_estimators=3).fit(*train, eval_set=form(a, b))
    alone = make(n_estimators=3).fit(*train, eval_set=a)
    assert list(model.eval_history_) == names
    assert list(model.eval_history_[names[0]]) == ["loss", "error"]
    for found in (model.eval_loss_, model.eval_history_[names[0]]["loss"]):
        assert_array_equal(found, alone.eval_loss_)
    assert_array_equal(model.eval_history_[names[0]]["error"], alone.eval_error_)
    assert_array_equal(model.eval_error_, alone.eval_error_)
    model.save(tmp_path / "model")
    again = distboost.load(tmp_path / "model")
    assert list(again.eval_history_) == names
    assert_array_equal(again.eval_history_[names[-1]]["error"], model.eval_history_[names[-1]]["error"])


def test_a_set_without_a_name_leaves_the_file_as_it_was(parts, saved, tmp_path):
    model = make().fit(*parts[0], eval_set=parts[1])
    saved(model)
    header, arrays = read_file(str(tmp_path / "saved.model"))
    assert "evaluation" not in header
    assert {"eval_loss", "eval_error"} == {name for name in arrays if name.startswith("eval")}


@pytest.mark.parametrize(
    ("eval_set", "message"),
    [
        ({}, r"eval_set is empty"),
        ([], r"eval_set is empty"),
        ({3: "a"}, r"a set of the name 3\. Name each set by a text"),
        ({"": "a"}, r"a set of the name ''"),
        ({"a": "three"}, r"eval_set 'a' has 4 items\. Pass \(X, y\) or \(X, y, sample_weight\)"),
        ({"a": "one"}, r"eval_set 'a' has 1 items"),
        ({"a": "array"}, r"eval_set 'a' has the type ndarray"),
        ("short weights", r"sample_weight\.shape == \(3,\)|has 200 rows but .*sample_weight has 3"),
        (
            "weights of 0",
            r"every row has weight 0 in eval_set 'a' sample_weight.*Set a weight above 0 for some rows",
        ),
        ("negative", r"[Nn]egative values|is -1\.0 in row 0"),
    ],
)
def test_sets_that_make_no_sense(eval_set, message, parts):
    train, (X, y), _ = parts
    weights = {"short weights": np.ones(3), "weights of 0": np.zeros(200), "negative": np.full(200, -1.0)}
    weights["weights of 0"] = da.zeros(200)
    entries = {"three": (X, y, y, y), "one": (X,), "array": X, "a": (X, y)}
    if isinstance(eval_set, str):
        eval_set = {"a": (X, y, weights[eval_set])}
    elif isinstance(eval_set, dict):
        eval_set = {name: entries[entry] for name, entry in eval_set.items()}
    with pytest.raises(ValueError, match=message):
        make().fit(*train, eval_set=eval_set)


@pytest.mark.parametrize("metric", ["log_loss", brier], ids=["log_loss", "callable"])
def test_weights_are_repeats(metric, parts):
    train, _, (X, y, w) = parts
    repeated = np.repeat(np.arange(len(y)), w.astype(int))
    name = metric if isinstance(metric, str) else "brier"
    model = make(eval_metric=metric)
    model.fit(*train, eval_set={"weights": (X, y, w), "repeats": (X[repeated], y[repeated])})
    weighted, repeats = model.eval_history_.values()
    assert list(weighted) == ["loss", "error", name]
    for metric in weighted:
        assert_array_equal(weighted[metric], repeats[metric], err_msg=metric)


def test_weights_of_any_size(parts):
    train, _, (X, y, w) = parts
    rng = np.random.default_rng(1)
    w = rng.exponential(size=len(y)) * 1e90
    model = make(eval_metric="log_loss").fit(*train, eval_set=(X, y, w))
    for t, F in enumerate(model.staged_scores(X)):
        P = np.exp(F) / np.exp(F).sum(axis=1, keepdims=True)
        wrong = F.argmax(axis=1) != y
        found = {name: values[t] for name, values in model.eval_history_["eval"].items()}
        assert found["log_loss"] == pytest.approx(np.average(own_loss(y, P), weights=w), rel=1e-4)
        assert found["error"] == pytest.approx(np.average(wrong, weights=w), rel=1e-4)


@pytest.mark.parametrize("cls", [GDMCBoostClassifier, GAMBLEClassifier, AdaBoostMOClassifier])
def test_log_losses_are_those_of_evaluate(cls, parts):
    (X, y), (Xt, yt), _ = parts
    model = cls(calibration=None, n_estimators=4, eval_metric="log_loss", n_jobs=1).fit(
        X, y % 4, eval_set=(Xt, yt % 4)
    )
    history = model.eval_history_["eval"]["log_loss"]
    found = distboost.evaluate(model, Xt, yt % 4)
    assert history[-1] == pytest.approx(found["log_loss"], rel=1e-14)
    assert len(set(history)) == 4


def test_sums_of_digits_are_exact():
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(size=50), [0.0, 2.0**-62, -(2.0**-31), LARGEST - 1, 1 - LARGEST]])
    units = rng.integers(0, 2**30, len(values))
    halves = slice(0, 20), slice(20, None)
    sums = sum(digit_sums(values[part], units[part]) for part in halves)
    assert_array_equal(sums, digit_sums(values, units))
    exact = sum(int(np.floor(v * 2.0**40)) * 2**22 * int(u) for v, u in zip(values, units, strict=True))
    assert mean(sums, int(units.sum())) == pytest.approx(exact / (int(units.sum()) << 62), rel=1e-11)


def test_the_same_bytes_anywhere(parts, clients, saved, tmp_path, monkeypatch):
    """Histories of two sets by a function: of any blocks, threads and workers, and of rows that stream."""
    train, a, b = parts
    evaluation = {"a": a, "b": b}

    def trained(n_jobs=1, client=None, **more):
        model = make(n_estimators=4, eval_metric=lambda labels, P: brier(labels, P), n_jobs=n_jobs, **more)
        model.client = client
        return model.fit(*train, eval_set=evaluation)

    alone = trained()
    expected = saved(alone)
    assert saved(trained(n_jobs=2)) == expected
    assert saved(trained(client=clients[3])) == expected
    # Little memory: none is reckoned for the libraries, nor to read the raw rows.
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 60)
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(memory_plan.MemoryPlan, "for_ingest", None)
    monkeypatch.setattr(RawDataset, "least_ingest", lambda *arguments: 0)
    limit = int(0.9 * sum(part.n_bytes for part in alone.memory_plan_.parts[1:]))
    streamed = trained(memory_limit=limit, scratch=tmp_path / "scratch")
    assert streamed.memory_plan_.streamed > 0
    assert saved(streamed) == expected


def test_metrics_cost_no_round_trip_and_no_pass(parts, monkeypatch):
    asked = []
    train = training.train

    def counted(algorithm, rows, *rest, **named):
        found = train(algorithm, rows, *rest, **named)
        asked.append((dict(rows.calls), rows.passes()))
        return found

    monkeypatch.setattr(training, "train", counted)
    for metric in ("error", "log_loss", brier):
        make(eval_metric=metric).fit(*parts[0], eval_set=parts[1])
    assert asked[0] == asked[1] == asked[2]


# Binned stores.


def test_binned_stores_are_sets(parts, saved, clients, tmp_path):
    """A store with raw values, in other bins than the training rows'; one with the same edges; and the one trained on."""
    (X, y), _, (Xv, yv, wv) = parts
    rows = np.arange(150, 400)  # other values, and not all classes
    rows = rows[yv[rows] != 3]
    X, Xv = X + 0.001 * np.arange(len(X))[:, None], Xv[rows]
    yv, wv = yv[rows], wv[rows]
    distboost.bin(X, y, f"{tmp_path}/train", max_bins=30)
    distboost.bin(Xv, yv, f"{tmp_path}/values", sample_weight=wv, keep_values=True)
    raw = {"v": (Xv, yv, wv), "t": (X, y)}
    stores = {"v": f"{tmp_path}/values", "t": (f"{tmp_path}/train", None)}
    expected = saved(make(max_bins=30, eval_metric="log_loss").fit(X, y, eval_set=raw))
    for client in (None, clients[2]):
        model = make(max_bins=30, eval_metric="log_loss")
        model.client = client
        assert saved(model.fit(X, y, eval_set=stores)) == expected
        assert saved(model.fit(f"{tmp_path}/train", eval_set=stores)) == expected


def test_a_store_of_finer_bins_and_one_of_others(parts, tmp_path):
    (X, y), _, _ = parts
    distboost.bin(X, y, f"{tmp_path}/fine")
    coarse = X[:, :20] // 8 * 8  # of few values, whose edges are not all among those of the fine ones
    with pytest.raises(
        DataError, match=r"fine' was binned by other edges.*divide feature \d+ at .*keep_values=True"
    ):
        make().fit(np.hstack([coarse + 0.3, X[:, 20:]]), y, eval_set=f"{tmp_path}/fine")
    known = np.where(y < 5, y, 9)
    with pytest.raises(DataError, match=r"has the label .*5.*none of the 6 classes"):
        make().fit(X, known, eval_set=f"{tmp_path}/fine")
    with pytest.raises(DataError, match="has its own weights"):
        make().fit(X, y, eval_set=(f"{tmp_path}/fine", None, np.ones(900)))


@pytest.mark.parametrize("seed", range(5))
def test_bins_of_finer_bins(seed):
    rng = np.random.default_rng(seed)
    fine = np.unique(rng.normal(size=40))
    coarse = np.sort(rng.choice(fine, 7, replace=False))
    values = np.concatenate([rng.normal(size=200), fine, [np.nan]])

    def bins_of(edges):
        return np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, side="left"))

    table = recoding._table(0, fine, coarse, "store")
    assert_array_equal(table[bins_of(fine)], bins_of(coarse))
