"""A run resumes on the rows that it began with, wherever they lie by now, and on no others."""

from __future__ import annotations

import itertools

import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import distboost
from distboost import GDMCBoostClassifier, REBELClassifier, load
from distboost.errors import DataError
from distboost.kernels.digest import digest_of

OTHERS = "the rows are not those that the model was trained on"


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4))
    return X, rng.integers(0, 3, 300), rng.integers(1, 4, 300).astype(float)


def model(n_estimators: int = 3, **parameters) -> GDMCBoostClassifier:
    return GDMCBoostClassifier(calibration=None, n_estimators=n_estimators, max_depth=2, **parameters)


def scaled(X, y, w):
    return 3 * X, y, w


def one_value(X, y, w):
    X = X.copy()
    X[17, 2] += 0.5
    return X, y, w


def one_label(X, y, w):
    y = y.copy()
    y[17] = (y[17] + 1) % 3
    return X, y, w


def one_weight(X, y, w):
    w = w.copy()
    w[17] += 1
    return X, y, w


def fractions(X, y, w):
    return X, y, w + 0.5


CHANGES = [scaled, one_value, one_label, one_weight, fractions]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("kept", ["model", "checkpoint"])
def test_other_rows_are_refused(change, kept, rows, tmp_path):
    X, y, w = rows
    first = model(checkpoint=tmp_path / "checkpoint")
    first.fit(X, y, sample_weight=w)
    n_before = (tmp_path / "checkpoint" / "checkpoint.json").read_bytes()
    again = first if kept == "model" else model(checkpoint=tmp_path / "checkpoint")
    again.set_params(n_estimators=5)
    x, labels, weights = change(*rows)
    with pytest.raises(DataError, match=OTHERS):
        again.fit(x, labels, sample_weight=weights, resume=True)
    assert (tmp_path / "checkpoint" / "checkpoint.json").read_bytes() == n_before
    assert again.fit(X, y, sample_weight=w, resume=True).n_iter_ == 5


def test_the_order_of_rows_counts_where_they_are_drawn_by_number(rows):
    X, y, _ = rows
    for subsample in (1.0, 0.5):
        found = model(subsample=subsample).fit(X, y).set_params(n_estimators=5)
        if subsample == 1:
            assert found.fit(X[::-1], y[::-1], resume=True).n_iter_ == 5
        else:
            with pytest.raises(DataError, match=OTHERS):
                found.fit(X[::-1], y[::-1], resume=True)


def test_the_values_count_where_the_algorithm_needs_them(rows):
    X, y, _ = rows
    found = (
        REBELClassifier(calibration=None, n_estimators=1, weak_learner="similarity")
        .fit(X, y)
        .set_params(n_estimators=2)
    )
    with pytest.raises(DataError, match=OTHERS):
        found.fit(X + 1e-9 * (X > 0), y, resume=True)
    assert found.fit(X, y, resume=True).n_iter_ == 2


def test_the_same_rows_elsewhere(rows, clients, tmp_path, saved):
    X, y, w = rows
    expected = saved(model(5).fit(X, y, sample_weight=w))
    for name, values in zip("xyw", rows, strict=True):
        zarr.create_array(str(tmp_path / name), data=values, chunks=(37, *values.shape[1:]))
    store = distboost.bin(X, y, str(tmp_path / "store"), sample_weight=w)
    forms = {
        "zarr": (str(tmp_path / "x"), str(tmp_path / "y"), str(tmp_path / "w")),
        "dask": tuple(da.from_array(values, chunks=(53, *values.shape[1:])) for values in rows),
        "store": (store, None, None),
    }
    for kind, (a, b, c) in forms.items():
        for client in (None, clients[2]):
            found = model().fit(X, y, sample_weight=w).set_params(n_estimators=5)
            found.client = client
            assert saved(found.fit(a, b, sample_weight=c, resume=True)) == expected, kind


def test_a_row_of_weight_2_is_the_row_twice_here_too(rows, saved):
    X, y, w = rows
    copies = np.repeat(np.arange(len(X)), w.astype(int))
    assert saved(model().fit(X, y, sample_weight=w)) == saved(model().fit(X[copies], y[copies]))


def test_a_model_of_an_earlier_version_has_no_digest(rows, tmp_path, monkeypatch):
    """It is resumed as before."""
    X, y, _ = rows
    monkeypatch.setattr("distboost.training.training.data_digest", lambda *arguments, **options: None)
    model().fit(X, y).save(tmp_path / "model")
    monkeypatch.undo()
    found = load(tmp_path / "model").set_params(n_estimators=5)
    assert found.fit(X, y, resume=True).n_iter_ == 5


@given(
    st.integers(0, 2**32),
    st.lists(st.integers(0, 60), max_size=4),
    st.sampled_from([None, 1.0, 0.25]),
    st.integers(1, 9),
)
def test_digests_of_parts_add_up(seed, cuts, weight, n_features):
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 256, (60, n_features), dtype=np.uint8)
    labels = rng.integers(0, 5, 60).astype(np.int32)
    weights = rng.integers(0, 5, 60) * (1.0 if weight is None else weight)
    values = rng.normal(size=bins.shape) if seed % 2 else None
    ends = sorted({0, *cuts, 60})
    found = [
        digest_of(bins[a:b], None if values is None else values[a:b], labels[a:b], weights[a:b], 1000 + a)
        for a, b in itertools.pairwise(ends)
    ]
    whole = digest_of(bins, values, labels, weights, 1000)
    assert tuple(sum(lane) % 2**64 for lane in zip(*found, strict=True)) == whole
    row = int(rng.integers(60))
    changed = bins.copy()
    changed[row, 0] += 1
    assert (digest_of(changed, values, labels, weights, 1000) == whole) == (weights[row] == 0)


def test_digest_against_plain_python():
    """The kernel's arithmetic, in whole numbers of any size."""

    def mixed(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    rng = np.random.default_rng(0)
    bins, labels = rng.integers(0, 256, (20, 3), dtype=np.uint8), rng.integers(0, 9, 20).astype(np.int32)
    values = rng.normal(size=bins.shape)
    values[0] = np.nan, 0.0, -0.0
    weights = rng.choice([0.0, 1.0, 2.0, 2.75], 20)
    factors = []
    for feature in range(6):
        z = (feature + 1) * 0x9E3779B97F4A7C15 % 2**64
        factors.append((z ^ (z >> 29)) * 0xBF58476D1CE4E5B9 % 2**64 | 1)
    content = exact = 0
    for i in np.flatnonzero(weights):
        h = int(labels[i]) + 1 + sum(f * (int(b) + 1) for f, b in zip(factors[:3], bins[i], strict=True))
        for f, x in zip(factors[3:], values[i], strict=True):
            bits = 0x7FF8000000000000 if np.isnan(x) else 0 if x == 0 else int(np.float64(x).view(np.uint64))
            h += f * mixed(bits)
        h = mixed(h % 2**64)
        whole, part = int(weights[i]), int((weights[i] % 1) * 2**53)
        content += whole * h + (mixed((h + part) % 2**64) if part else 0)
        exact += mixed((h + mixed(100 + int(i) + 1) + part + mixed(whole)) % 2**64)
    assert digest_of(bins, values, labels, weights, 100) == (content % 2**64, exact % 2**64)
