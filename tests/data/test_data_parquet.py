"""Parquet files as rows and labels: read by row groups, where they are needed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from distboost import GDMCBoostClassifier
from distboost.data.source import fingerprint, load, pieces
from distboost.errors import DataError
from distboost.inputs.choose import adapter_of
from tests.data.tables import NAMES, arrow, frame


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).round(1)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, (np.nan_to_num(X[:, 0]) > 0).astype(int)


@pytest.fixture(params=["file", "folder"])
def path(request, rows, tmp_path):
    table, place = arrow(rows[0]), tmp_path / "x.parquet"
    if request.param == "file":
        pq.write_table(table, place, row_group_size=70)
    else:
        place.mkdir()
        for part in range(3):
            pq.write_table(table.slice(100 * part, 100), place / f"{part}.parquet", row_group_size=70)
    return str(place)


@pytest.mark.parametrize("n_workers", [0, 2])
def test_the_model_is_that_of_the_frame(path, n_workers, rows, clients, tmp_path):
    X, y = rows
    labels = tmp_path / "y.pq"
    pq.write_table(pa.table({"y": y}), labels)
    model = GDMCBoostClassifier(n_estimators=3)
    model.client = clients[n_workers] if n_workers else None
    model.fit(path, labels)
    expected = GDMCBoostClassifier(n_estimators=3).fit(frame(X), y)
    assert model.digest() == expected.digest()
    np.testing.assert_array_equal(np.asarray(model.predict(path)), expected.predict(frame(X)))


def test_any_rows_and_columns(path, rows):
    source = adapter_of(path, "X").features()
    assert source.shape == (300, 4)
    for start, stop in [(0, 300), (69, 71), (70, 140), (100, 100), (299, 300), (0, 1)]:
        for columns in (None, (1, 3), (3, 4)):
            expected = rows[0][start:stop, slice(*columns or (None,))]
            np.testing.assert_array_equal(load(source.part(start, stop, columns)), expected)
    assert max(len(values) for _, values in pieces(source.part(0, 300))) <= 70


def test_files_that_are_written_again(path, rows):
    source = adapter_of(path, "X").features()
    before = fingerprint([source])
    assert before == fingerprint([adapter_of(path, "X").features()])
    file = source._dataset.files[0]
    pq.write_table(arrow(rows[0][:50]), file)
    assert not source.is_unchanged()
    assert fingerprint([source]) != before


def test_no_parquet(tmp_path):
    with pytest.raises(DataError, match=r"pool \('.*none.parquet'\): there is no such file"):
        adapter_of(tmp_path / "none.parquet", "pool")
    (tmp_path / "text.parquet").write_text("row,label")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        adapter_of(tmp_path / "text.parquet", "pool")
    pq.write_table(pa.table({"x": [1.0], "kind": ["cat"]}), tmp_path / "kinds.parquet")
    with pytest.raises(DataError, match="'kind'"):
        adapter_of(tmp_path / "kinds.parquet", "pool").features()


def test_names(path):
    assert adapter_of(path, "X").names.tolist() == NAMES
