"""Sparse rows, in memory, in blocks of Dask and as AnnData stores them: the model is that of the dense rows, byte for byte."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import zarr
from click.testing import CliRunner

import distboost
from distboost import GDMCBoostClassifier
from distboost.active import QueryByCommittee
from distboost.cli import main
from distboost.data import ingest, ingest_plan, sparse
from distboost.data.dataset import RawDataset
from distboost.data.source import fingerprint, load
from distboost.errors import DataError, StoreError
from distboost.estimators.factory import estimator
from distboost.inputs import zarr_array
from distboost.inputs.choose import adapter_of
from distboost.rows import stored_bins
from distboost.runtime import tally, whole_trees
from distboost.runtime.block import Block
from distboost.training import memory_plan
from tests.data.tables import in_anndata, in_parts

N = 240


def table(seed):
    """Rows as CSR, some of whose columns are empty, full, of few values, missing or negative; with labels and weights."""
    rng = np.random.default_rng(seed)
    n_columns, density = int(rng.integers(2, 30)), rng.choice([0.01, 0.1, 0.6])
    X = rng.normal(size=(N, n_columns)) * 10 * (rng.random((N, n_columns)) < density)
    X[:, 0] = rng.normal(size=N)
    X[:, 1] = 0
    X[:, 2::3] = np.rint(X[:, 2::3])
    X[rng.integers(0, N, 9), rng.integers(0, n_columns, 9)] = np.nan
    X[rng.integers(0, N, 20)] = 0
    dtype = rng.choice(["f4", "f8"])
    y = rng.integers(0, rng.integers(2, 7), N)
    y[:5] = [0, 1, 0, 1, 0]
    names = [f"g{d}" for d in range(n_columns)]
    return scipy.sparse.csr_array(X.astype(dtype)), y, rng.integers(0, 3, N), names


def in_dask(matrix, form=scipy.sparse.csr_array):
    return da.from_array(matrix.toarray(), chunks=(70, matrix.shape[1])).map_blocks(form, dtype=matrix.dtype)


FORMS = {
    "CSR": lambda X, names, folder: X,
    "CSC": lambda X, names, folder: scipy.sparse.csc_matrix(X),
    "dask": lambda X, names, folder: in_dask(X),
    "dask of matrices": lambda X, names, folder: in_dask(X, scipy.sparse.csc_matrix),
    "AnnData": lambda X, names, folder: in_anndata(X, names, folder / "a") and str(folder / "a/X"),
    "AnnData of format 2": lambda X, names, folder: (
        in_anndata(X, names, folder / "b", zarr_format=2) and str(folder / "b")
    ),
    "CSC of AnnData": lambda X, names, folder: (
        in_anndata(X, names, folder / "c", kind="csc", zarr_format=2) and str(folder / "c/X")
    ),
    "layer": lambda X, names, folder: (
        in_anndata(X, names, folder / "d") and zarr.open(folder / "d")["layers/counts"]
    ),
}


def model(**parameters):
    return GDMCBoostClassifier(
        **{"n_estimators": 3, "max_bins": 9, "calibration": None, "n_jobs": 2, **parameters}
    )


def trees(fitted):
    """What was learned, without names, as not all containers have some."""
    return {name: array.tobytes() for name, array in fitted.learned_.ensemble.arrays().items()}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore:.*feature names")
def test_the_model_is_that_of_dense_rows(form, seed, tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 50)
    monkeypatch.setattr(sparse, "PIECE_ENTRIES", 100)
    X, y, w, names = table(seed)
    given, dense = FORMS[form](X, names, tmp_path), X.toarray()
    expected = model().fit(dense, y, w, eval_set=(dense, y))
    found = model().fit(given, y, w, eval_set=(given, y))
    assert trees(found) == trees(expected)
    np.testing.assert_array_equal(found.train_loss_, expected.train_loss_)
    np.testing.assert_array_equal(np.asarray(found.predict_proba(given)), expected.predict_proba(dense))
    np.testing.assert_array_equal(np.asarray(found.scores(given)), expected.scores(dense))
    assert (
        distboost.evaluate(found, given, y)["log_loss"] == distboost.evaluate(expected, dense, y)["log_loss"]
    )
    if form in ("CSR", "AnnData"):
        store = distboost.bin(given, y, str(tmp_path / "store"), max_bins=9, sample_weight=w)
        assert trees(model().fit(store)) == trees(expected)
        assert found.calibrate(given, y).calibration_ == expected.calibrate(dense, y).calibration_


@pytest.mark.parametrize("form", FORMS)
def test_categories_and_sampled_edges(form, tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "sample_fraction", lambda *shape: 0.5)
    X, y, w, names = table(7)
    given, parameters = FORMS[form](X, names, tmp_path), {"categorical_features": [2], "max_bins": 20}
    found = model(**parameters).fit(given, y, w)
    assert trees(found) == trees(model(**parameters).fit(X.toarray(), y, w))


@pytest.mark.parametrize("form", FORMS)
def test_on_workers_and_streamed(form, clients, tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 50)
    X, y, _, names = table(3)
    given, expected = FORMS[form](X, names, tmp_path), trees(model().fit(X.toarray(), y))
    on_workers = model()
    on_workers.client = clients[2]
    assert trees(on_workers.fit(given, y)) == expected
    count_rows_only(monkeypatch)
    streamed = model(memory_limit=model().fit(X, y).memory_plan_.n_bytes - 1).fit(given, y)
    assert streamed.memory_plan_.streamed
    assert trees(streamed) == expected


def count_rows_only(monkeypatch):
    """Let no memory be planned for libraries and reading."""
    for name in ("PROCESS_BYTES", "WORKER_BYTES"):
        monkeypatch.setattr(memory_plan, name, 0)
    monkeypatch.setattr(memory_plan.MemoryPlan, "for_ingest", None)
    monkeypatch.setattr(RawDataset, "least_ingest", lambda *arguments: 0)


@pytest.mark.parametrize("dtype", ["u1", "i2", "i8", "?", "f4"])
def test_types_unsorted_and_repeated_entries(dtype):
    rng = np.random.default_rng(0)
    at, rows = rng.integers(0, 6, 800), np.sort(rng.integers(0, N, 800))
    values = (rng.integers(0, 90, 800) / (4 if dtype == "f4" else 1)).astype(dtype)
    indptr = np.searchsorted(rows, np.arange(N + 1))
    X, y = scipy.sparse.csr_array((values, at, indptr), shape=(N, 6)), rng.integers(0, 3, N)
    before = X.data.copy(), X.indices.copy()
    for max_bins in (9, 200):
        found, expected = (model(max_bins=max_bins).fit(rows, y) for rows in (X, X.toarray()))
        assert found.digest() == expected.digest()
        np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X.toarray()))
    np.testing.assert_array_equal(X.data, before[0])
    np.testing.assert_array_equal(X.indices, before[1])


def test_any_rows_and_columns(tmp_path):
    X, _, _, names = table(5)
    for form in ("AnnData", "CSC of AnnData", "layer", "dask", "CSR"):
        source = adapter_of(FORMS[form](X, names, tmp_path), "X").features()
        for start, stop in [(0, N), (69, 71), (N - 1, N)]:
            for columns in (None, (1, 3), (0, 1)):
                expected = X.toarray()[start:stop, slice(*columns or (None,))]
                np.testing.assert_array_equal(load(source.part(start, stop, columns)), expected)


def test_rows_are_never_dense_together(monkeypatch):
    """They are scanned and binned by their entries, and dense for prediction a few at a time."""
    monkeypatch.setattr(sparse, "DENSE_BYTES", 2**14)
    largest, dense = [], sparse.SparseRows.__getitem__
    monkeypatch.setattr(
        sparse.SparseRows, "__getitem__", lambda *both: largest.append(len(found := dense(*both))) or found
    )
    X = scipy.sparse.random(3000, 40, density=0.05, format="csr", random_state=0)
    y = np.arange(3000) % 3
    monkeypatch.setattr(ingest, "sample_fraction", lambda *shape: 0.1)
    found = model(max_bins=50).fit(X, y)
    found.predict(X)
    distboost.evaluate(found, X, y)
    next(found.staged_scores(X))
    assert 0 < max(largest) <= 64


def test_obs_and_var(tmp_path):
    X, y, _, names = table(1)
    labels = np.array(["B", "NK", "T cell", "x", "y", "z"])[y]
    path = tmp_path / "cells.zarr"
    store = in_anndata(X, names, path, labels=labels)
    expected = model().fit(X.toarray(), labels)
    for y_given in (f"{path}/obs/cell_type", f"{path}/obs/plain", store["obs/cell_type"]):
        found = model().fit(f"{path}/X", y_given)
        assert trees(found) == trees(expected)
        assert found.feature_names_in_.tolist() == names
        assert found.classes_.tolist() == expected.classes_.tolist()
    assert found.score(f"{path}/layers/counts", labels) == expected.score(X.toarray(), labels)
    store["obs/cell_type/codes"][3] = -1
    with pytest.raises(DataError, match=r"missing label.*row 3"):
        model().fit(f"{path}/X", f"{path}/obs/cell_type")
    store["obs/cell_type/codes"][3] = 99
    with pytest.raises(StoreError, match="code 99"):
        model().fit(f"{path}/X", f"{path}/obs/cell_type")


def test_values_that_may_be_missing(tmp_path):
    X, y, _, names = table(1)
    store = in_anndata(X, names, tmp_path / "a", labels=y.astype(str))
    column = store["obs"].create_group("batch", attributes={"encoding-type": "nullable-integer"})
    in_parts(column, 50, values=y, mask=np.zeros(N, bool))
    assert trees(model().fit(X, str(tmp_path / "a/obs/batch"))) == trees(model().fit(X, y))
    column["mask"][8] = True
    with pytest.raises(DataError, match=r"missing label.*row 8"):
        model().fit(X, str(tmp_path / "a/obs/batch"))


@pytest.mark.parametrize(
    ("kind", "arrays", "said"),
    [
        ("nullable-integer", lambda y: {"values": y, "mask": np.zeros(N, "u1")}, None),
        ("nullable-integer", lambda y: {"values": y, "mask": np.zeros(N - 60, bool)}, "its mask has 180"),
        ("categorical", lambda y: {"codes": y.astype("u1"), "categories": np.arange(9)}, None),
        (
            "categorical",
            lambda y: {"codes": y.astype("f4"), "categories": np.arange(9)},
            "codes are integers",
        ),
    ],
)
def test_columns_that_other_libraries_write(kind, arrays, said, tmp_path):
    X, y, _, _ = table(1)
    path = str(tmp_path / "a")
    in_parts(zarr.open_group(path, mode="w", attributes={"encoding-type": kind}), 50, **arrays(y))
    if said is None:
        assert trees(model().fit(X, path)) == trees(model().fit(X, y))
    else:
        with pytest.raises(StoreError, match=said):
            model().fit(X, path)


def test_the_command_line(tmp_path):
    X, y, _, names = table(1)
    path = tmp_path / "cells.zarr"
    in_anndata(X, names, path, labels=y.astype(str))
    run = CliRunner().invoke
    done = run(main, [
        "train", "--x", f"{path}/X", "--y", f"{path}/obs/cell_type", "--model", str(tmp_path / "m"), "--set", "n_estimators=3",
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    done = run(
        main, ["predict", "--model", str(tmp_path / "m"), "--x", f"{path}/X", "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    expected = distboost.load(str(tmp_path / "m")).predict(f"{path}/X").compute()
    np.testing.assert_array_equal(zarr.open(tmp_path / "out")[:], expected)


def as_type(group, name, dtype):
    values = group[name][:].astype(dtype)
    group.create_array(name, shape=values.shape, dtype=dtype, overwrite=True)[:] = values


DAMAGES = {
    "indptr falls": lambda X: X["indptr"].__setitem__(3, 10**6),
    "indptr begins": lambda X: X["indptr"].__setitem__(0, 1),
    "row 2 has an entry of the column 77": lambda X: X["indices"].__setitem__(int(X["indptr"][2]), 77),
    "row 2 has an entry of the column -1": lambda X: X["indices"].__setitem__(int(X["indptr"][2]), -1),
    "shape": lambda X: X.attrs.update({"shape": [1]}),
    "indptr has the shape": lambda X: X.attrs.update({"shape": [7, 40]}),
    "indices has the type float64": lambda X: as_type(X, "indices", "f8"),
    "data has the type datetime64": lambda X: as_type(X, "data", "M8[s]"),
    "no array 'indices'": lambda X: X.__delitem__("indices"),
    "chunk": lambda X: X.store.root.joinpath("X/data/c/1").write_bytes(b"damaged"),
    "not in the store": lambda X: X.store.root.joinpath("X/data/c/1").unlink(),
}


@pytest.mark.parametrize("said", DAMAGES)
def test_damage_is_said_where_it_is(said, tmp_path):
    X, y, _, names = table(0)
    DAMAGES[said](in_anndata(X, names, tmp_path / "a")["X"])
    with pytest.raises((StoreError, DataError), match=said):
        model(missing_chunks="error").fit(str(tmp_path / "a/X"), y)


def test_a_matrix_that_is_written_again(tmp_path):
    X, _, _, names = table(0)
    store = in_anndata(X, names, tmp_path / "a")
    source = adapter_of(str(tmp_path / "a/X"), "X").features()
    before = fingerprint([source])
    assert before == fingerprint([adapter_of(str(tmp_path / "a/X"), "X").features()])
    store["X/indices"][0] = 1
    assert not source.is_unchanged()
    assert fingerprint([adapter_of(str(tmp_path / "a/X"), "X").features()]) != before


def test_blocks_of_booleans_and_of_numbers():
    X = np.arange(N)[:, None] % [2, 3, 5]
    X[:80] = X[:80] > 0
    blocks = da.from_array(X, chunks=(80, 3)).map_blocks(
        lambda block: scipy.sparse.csr_array(block.astype(bool) if block.max() == 1 else block), dtype=int
    )
    y = np.arange(N) % 4
    assert model().fit(blocks, y).digest() == model().fit(X, y).digest()


def test_only_features_are_sparse(tmp_path):
    X, y, _, names = table(0)
    in_anndata(X, names, tmp_path / "a", labels=y.astype(str))
    for rows, labels, said in (
        (X, X[:, [0]], "Only features may be sparse"),
        (X, str(tmp_path / "a/X"), "not one value per row"),
        (str(tmp_path / "a/obs/cell_type"), y, "has labels"),
    ):
        with pytest.raises(DataError, match=said):
            model().fit(rows, labels)


def test_infinite_values_and_shapes():
    X, y, _, _ = table(0)
    X.data[5] = -np.inf
    row = int(np.searchsorted(X.indptr, 5, side="right")) - 1
    for call in (
        lambda: model().fit(X, y),
        lambda: model().fit(np.nan_to_num(X.toarray(), neginf=0), y).predict(X),
    ):
        with pytest.raises(DataError, match=rf"infinite.*row {row}, column {X.indices[5]}: -inf"):
            call()
    X.data[5], X.indices[7] = 1, 99
    fitted = model().fit(np.zeros(X.shape), y)
    for call in (
        lambda: model().fit(X, y),
        lambda: fitted.predict(X),
        lambda: fitted.predict(scipy.sparse.csc_array((X.data, X.indices, X.indptr), shape=X.shape[::-1])),
        lambda: model().fit(damaged_blocks(X), y),
        lambda: fitted.predict(damaged_blocks(X)).compute(),
    ):
        with pytest.raises(DataError, match="no valid sparse matrix"):
            call()


def damaged_blocks(X):
    return da.zeros(X.shape, chunks=X.shape).map_blocks(lambda block: X.copy(), dtype=X.dtype, meta=X[:0])


def test_folds_and_committees(tmp_path):
    X, y, _, names = table(2)
    in_anndata(X, names, tmp_path / "a")
    judged, asked = [], []
    for rows in (X.toarray(), X, zarr.open(tmp_path / "a")["X"]):
        judged.append(distboost.cross_validate(model(), rows, y, folds=3)["test_log_loss"].tolist())
        learner = QueryByCommittee(model(), rows, random_state=0)
        for _ in range(3):
            batch = learner.query(8)
            learner.teach(batch, y[batch])
            asked.append(list(batch))
    assert judged[0] == judged[1] == judged[2]
    assert asked[:3] == asked[3:6] == asked[6:]


class AnnData:
    """As anndata has it, of which only these are used."""

    def __init__(self, X, names):
        self.X, self.var_names = X, pd.Index(names)


class CSRDataset:
    """A matrix in an HDF5 file: some of its rows are read when they are taken."""

    group = "a group of h5py"

    def __init__(self, matrix):
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    def __getitem__(self, rows):
        assert rows.stop - rows.start <= 100
        a, b = self.matrix.indptr[[rows.start, rows.stop]]
        indptr = self.matrix.indptr[rows.start : rows.stop + 1] - a
        shape = (rows.stop - rows.start, self.shape[1])
        return scipy.sparse.csr_array((self.matrix.data[a:b], self.matrix.indices[a:b], indptr), shape=shape)


@pytest.mark.parametrize("held", ["memory", "dense", "dask", "zarr", "HDF5"])
def test_anndata_objects(held, tmp_path, monkeypatch):
    module, classes = ModuleType("anndata"), ModuleType("anndata.abc")
    module.AnnData, classes.CSRDataset = AnnData, CSRDataset
    monkeypatch.setitem(sys.modules, "anndata", module)
    monkeypatch.setitem(sys.modules, "anndata.abc", classes)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 50)
    monkeypatch.setattr(ingest_plan, "CALL_BYTES", 2**12)
    X, y, _, names = table(4)
    monkeypatch.setattr(zarr_array, "BLOCK_BYTES", 100 * 8 * X.shape[1])
    expected = model().fit(named(X, names), y)
    matrix = {
        "memory": lambda: X,
        "dense": X.toarray,
        "dask": lambda: in_dask(X),
        "zarr": lambda: zarr_matrix(in_anndata(X, names, tmp_path / "a")["X"]),
        "HDF5": lambda: CSRDataset(X),
    }[held]()
    cells = AnnData(matrix, names)
    found = model().fit(cells, y)
    assert found.digest() == expected.digest()
    np.testing.assert_array_equal(
        np.asarray(found.predict_proba(cells)), expected.predict_proba(named(X, names))
    )
    if held in ("zarr", "HDF5"):
        assert trees(model().fit(cells.X, y)) == trees(expected)
    if held == "HDF5":
        assert found.predict(cells).chunks == ((100, 100, 40),)
        X.indices[3] = X.shape[1]
        with pytest.raises(DataError, match="no valid sparse matrix"):
            model().fit(cells, y)


def named(X, names):
    return pd.DataFrame(X.toarray(), columns=names)


def zarr_matrix(group):
    found = CSRDataset(np.zeros((0, 0)))
    found.group = group
    return found


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_only_the_chunks_of_a_part_are_read(kind, tmp_path):
    X, _, _, names = table(4)
    store = in_anndata(X, names, tmp_path / "a", kind=kind)
    source = adapter_of(store["X"], "X").features()
    axis = source.axes[kind == "csc"]
    first, last = axis.cuts[1], axis.cuts[-2]
    parts = (
        [(0, first), (last, axis.length)]
        if kind == "csr"
        else [(0, N, (0, first)), (0, N, (last, axis.length))]
    )
    begun = [source.part(*part) for part in parts]
    n_needed, n_chunks = (-(-int(n) // 64) for n in store["X/indptr"][[first, -1]])
    assert 0 < n_needed < n_chunks
    for name in ("data", "indices"):
        for chunk in range(n_needed, n_chunks):
            (tmp_path / "a/X" / name / "c" / str(chunk)).unlink()
    assert load(begun[0]).shape == begun[0].shape
    with pytest.raises(StoreError, match="was in the store when it was listed"):
        load(begun[1])


def wide_table(n_columns=300):
    """Rows of which 4 % are stored, so few that blocks hold only these bins."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, N)
    X = scipy.sparse.random_array((N, n_columns), density=0.04, rng=rng, format="csr")
    X.data = np.where(rng.random(X.nnz) < 0.05, np.nan, np.rint(9 * X.data) + 3 * y[X.nonzero()[0]] - 4)
    return X, y, rng.integers(0, 3, N)


@pytest.mark.parametrize(
    ("algorithm", "parameters", "gathers"),
    [
        ("gd-mcboost", {}, None),
        ("gd-mcboost", {}, False),
        ("gd-mcboost", {}, True),
        ("gd-mcboost", {"subsample": 0.7, "max_features": 0.5}, None),
        ("gd-mcboost", {"subsample": 0.7, "max_features": 0.5}, True),
        ("gd-mcboost", {"sketch": 2, "statistic_bits": 3}, None),
        ("adaboost-mm", {"max_depth": 3}, None),  # sums by class
        ("adaboost-mm", {"max_depth": 3}, False),
        ("one-vs-all", {}, None),  # several trees from the same scores
        ("rebel", {"weak_learner": "tree", "max_depth": 3}, None),
        ("rebel", {"weak_learner": "tree", "max_depth": 3}, True),  # wide sums
        ("rebel", {"weak_learner": "similarity"}, None),  # reads the values
        ("multiboost", {}, None),  # reads all bins
        ("multiboost", {}, False),
    ],
    ids=str,
)
def test_blocks_hold_few_bins(algorithm, parameters, gathers, monkeypatch):
    """In memory, or streamed, with blocks that wait to be added together or not."""
    X, y, w = wide_table()
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 100 if gathers is None else 20)
    streams = gathers is not None
    count_rows_only(monkeypatch)
    monkeypatch.setattr(whole_trees, "MOST_RESTORED", 0)
    if gathers:
        monkeypatch.setattr(tally, "CACHED_TILES", 0)

    def fitted(**limited):
        made = estimator(algorithm)(n_estimators=3, n_jobs=2, **parameters, **limited)
        return made.fit(X, y, w, eval_set=(X, y))

    limit = {"memory_limit": fitted().memory_plan_.n_bytes - 1} if streams else {}

    def digest():
        found = fitted(**limit)
        assert (found.memory_plan_.streamed > 0) == streams
        return found.digest(), found.eval_loss_.tolist()

    held = []
    of = stored_bins.StoredBins.of
    monkeypatch.setattr(stored_bins.StoredBins, "of", lambda *rows: held.append(of(*rows)) or held[-1])
    again, unpacked = [], stored_bins.StoredBins.unpacked
    monkeypatch.setattr(
        stored_bins.StoredBins, "unpacked", lambda *packed: again.append(packed) or unpacked(*packed)
    )
    found = digest()
    assert held
    assert None not in held
    assert bool(again) == streams
    monkeypatch.setattr(stored_bins.StoredBins, "of", lambda *rows: None)
    assert found == digest()


def test_small_blocks_hold_all_bins_again(monkeypatch):
    """One kernel grows the tree then."""
    X, y, _ = wide_table()
    calls, hold_all = [], Block.hold_all
    monkeypatch.setattr(Block, "hold_all", lambda block: calls.append(type(block.held)) or hold_all(block))
    found = trees(model(n_jobs=1).fit(X, y))
    assert calls[0] is stored_bins.StoredBins
    assert calls[-1] is np.ndarray
    monkeypatch.setattr(whole_trees, "MOST_RESTORED", 0)
    calls.clear()
    assert trees(model(n_jobs=1).fit(X, y)) == found
    assert not calls


def test_the_plan_counts_the_bins_that_blocks_hold(monkeypatch, tmp_path):
    """Those of the fullest block, in case not all rows stay in memory."""
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 40)
    X, y, _ = wide_table()

    def bins_of_a_row(rows, labels):
        plan = model(n_estimators=1, memory_limit="4GB").fit(rows, labels).memory_plan_
        [described] = [part.what for part in plan.parts if part.name == "resident rows"]
        return int(re.search(r"bins (\d+)", described)[1])

    entries = max(X[first : first + 40].nnz for first in range(0, N, 40)) / 40
    assert bins_of_a_row(X, y) == 4 + 3 * np.ceil(entries)
    in_anndata(X, [f"g{d}" for d in range(X.shape[1])], tmp_path / "a")
    assert bins_of_a_row(str(tmp_path / "a/X"), y) == 4 + 3 * np.ceil(entries)
    store = distboost.bin(X, y, str(tmp_path / "store"), max_bins=9)
    assert bins_of_a_row(store, None) == 4 + 3 * np.ceil(entries)
    full = scipy.sparse.vstack([X, scipy.sparse.csr_array(np.ones((40, X.shape[1])))])
    assert bins_of_a_row(full, [*y, *y[:40]]) == X.shape[1]


def test_a_store_of_sparse_rows_is_small(tmp_path, monkeypatch):
    """It is as good as the rows, in memory and streamed. Full rows are not compressed."""
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 10)
    X, y, w = wide_table()
    places = {name: str(tmp_path / name) for name in ("sparse", "dense")}
    for place, rows in zip(places.values(), (X, X.toarray()), strict=True):
        distboost.bin(rows, y, place, max_bins=9, sample_weight=w)
    sizes = {
        name: sum(file.stat().st_size for file in tmp_path.glob(f"{name}/bins/c/*/*")) for name in places
    }
    assert sizes["sparse"] < 0.4 * sizes["dense"]
    found = model().fit(places["sparse"])
    assert trees(found) == trees(model().fit(places["dense"])) == trees(model().fit(X, y, w))
    count_rows_only(monkeypatch)
    streamed = model(memory_limit=model().fit(places["sparse"]).memory_plan_.n_bytes - 1)
    assert trees(streamed.fit(places["sparse"])) == trees(found)
    assert streamed.memory_plan_.streamed


def test_the_fullest_rows_decide_the_memory_of_reading(tmp_path):
    X = np.zeros((1000, 50), np.float32)
    X[500 : 500 + sparse.LEAST_ROWS] = 1
    in_anndata(scipy.sparse.csr_array(X), [f"g{d}" for d in range(50)], tmp_path / "a")
    found = adapter_of(str(tmp_path / "a/X"), "X").features()
    assert found.copies == (4 + 4 + 16) / 4  # an entry in kernels, over a dense value


@pytest.mark.parametrize("streams", [False, True])
def test_workers_hold_few_bins(streams, clients, tmp_path, monkeypatch):
    X, y, w = wide_table()
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 4)
    count_rows_only(monkeypatch)

    def fitted(**limited):
        on_workers = model(scratch=str(tmp_path / "scratch"), **limited)
        on_workers.client = clients[2]
        return on_workers.fit(X, y, w)

    found = fitted()
    if streams:
        found = fitted(memory_limit=found.memory_plan_.n_bytes - 1)
        assert found.memory_plan_.streamed
        assert found.memory_plan_.scratch_bytes > found.memory_plan_.streamed * 3 * 0.04 * X.shape[1]
    monkeypatch.setattr(stored_bins.StoredBins, "of", lambda *rows: None)
    assert trees(found) == trees(model().fit(X, y, w))
