"""Dask declares the types of what it has not computed. Where it declares a wrong one, models are those of the computed rows."""

import re

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import distboost
from distboost import GDMCBoostClassifier
from distboost.errors import DataError

N = 400
RNG = np.random.default_rng(0)
KEYS = np.arange(N) % 40
VALUES = RNG.normal(size=N)
LEFT = pd.DataFrame({"k": KEYS, "v": VALUES, "y": np.where(KEYS % 2, VALUES > 0, KEYS < 20).astype(int)})
RIGHT = pd.DataFrame(
    {"k": np.arange(0, 40, 2), "z": RNG.integers(0, 9, 20), "small": np.arange(20, dtype="u1")}
)


def model(client=None, **parameters):
    made = GDMCBoostClassifier(**{"calibration": None, "n_estimators": 4, "max_depth": 3, **parameters})
    made.client = client
    return made


def left(frame=LEFT):
    return dd.from_pandas(frame, npartitions=4)


def right():
    return dd.from_pandas(RIGHT, npartitions=1)


def declared(frame, function, **types):
    """The frame of a function of partitions, whose columns are declared to be of these types."""
    meta = function(frame._meta).astype(types)
    return frame.map_partitions(function, meta=meta, enforce_metadata=False)


def merged():
    return left().merge(right(), on="k", how="left")


def where():
    return declared(left(), lambda rows: rows.assign(k=rows["k"].where(rows["v"] > 0)), k="int64")


def integers_with_nulls(tmp_path):
    for part, rows in enumerate(np.split(np.arange(N), 4)):
        some = LEFT.iloc[rows].astype({"k": "Int64"})
        some.loc[some.index[:5], "k"] = pd.NA if part == 2 else 3
        some.to_parquet(tmp_path / f"{part}.parquet")
    # Read as a program without Dask's own reader does: the nulls of one file make floats of its integers.
    files = [tmp_path / f"{part}.parquet" for part in range(4)]
    return dd.from_map(lambda file: pd.read_parquet(file), files, meta=LEFT.iloc[:0], enforce_metadata=False)


def some_partitions_are_wider():
    def widened(rows):
        return rows.assign(k=rows["k"] + 0.5 if rows.index.min() else rows["k"].astype("u1"))

    return declared(left(), widened, k="uint8")


def joined_frames():
    return dd.concat([left(LEFT[["k", "v", "y"]]), left(LEFT[["v", "y"]])])


def shifted():
    return declared(left(), lambda rows: rows.assign(k=rows["k"].shift(1)), k="int64")


def divided():
    return declared(left(), lambda rows: rows.assign(k=rows["k"] / 7), k="int8")


def doubles_for_floats():
    return declared(left(), lambda rows: rows, v="float32")


def flags_with_gaps():
    return declared(
        left(), lambda rows: rows.assign(k=(rows["v"] > 0).astype(object).where(rows["k"] > 9)), k="bool"
    )


def labels_after_dropped_gaps():
    frame = merged().drop(columns="y").rename(columns={"z": "y"})
    return frame[frame["y"].notnull()][["k", "v", "y"]]


def reordered_columns(tmp_path):
    for part, rows in enumerate(np.split(np.arange(N), 4)):
        names = ["k", "v", "y"] if part % 2 else ["y", "v", "k"]
        LEFT.iloc[rows][names].to_csv(tmp_path / f"{part}.csv", index=False)
    return dd.read_csv(str(tmp_path / "*.csv"))


def categories_as_text():
    frame = left(LEFT.assign(k=pd.Categorical(np.array(list("abcd"))[KEYS % 4])))
    meta = frame._meta
    return frame.map_partitions(lambda rows: rows.astype({"k": str}), meta=meta, enforce_metadata=False)


FRAMES = [
    merged, where, integers_with_nulls, some_partitions_are_wider, joined_frames, shifted, divided, doubles_for_floats,
    flags_with_gaps, labels_after_dropped_gaps, reordered_columns, categories_as_text,
]  # fmt: skip


# On workers too: types that differ from one partition to the next, in features and in labels.
ON_WORKERS = [integers_with_nulls, some_partitions_are_wider, labels_after_dropped_gaps]


@pytest.mark.parametrize(
    ("operation", "on_workers"),
    [
        *((operation, False) for operation in FRAMES),
        *(
            pytest.param(operation, True, marks=[] if operation in ON_WORKERS else pytest.mark.soak)
            for operation in FRAMES
        ),
    ],
)
def test_frames(operation, on_workers, clients, tmp_path):
    frame = operation(tmp_path) if operation.__code__.co_argcount else operation()
    [rows] = dask.compute(frame, scheduler="synchronous")
    features = [name for name in rows.columns if name != "y"]
    rows = rows.astype({n: "category" for n in features if rows[n].dtype == "str"})
    rows = rows.astype({n: "float64" for n in features if rows[n].dtype == object})
    known = model().fit(rows[features], rows["y"])
    found = model(clients[2] if on_workers else None)
    assert found.fit(frame[features], frame["y"]).digest() == known.digest()
    assert_array_equal(found.predict_proba(frame[features]), known.predict_proba(rows[features]))
    assert found.classes_.dtype == known.classes_.dtype
    assert found.score(rows[features], rows["y"]) == known.score(rows[features], rows["y"])


@pytest.mark.parametrize("operation", [merged, reordered_columns])
def test_everything_that_reads_rows(operation, tmp_path):
    frame = operation(tmp_path) if operation is reordered_columns else operation()
    [rows] = dask.compute(frame, scheduler="synchronous")
    X, y, x = frame.drop(columns="y"), frame["y"], rows.drop(columns="y")
    known = model().fit(x, rows["y"])
    distboost.bin(X, y, str(tmp_path / "binned"))
    assert model().fit(str(tmp_path / "binned")).digest() == known.digest()
    assert distboost.evaluate(known, X, y)["log_loss"] == distboost.evaluate(known, x, rows["y"])["log_loss"]
    assert_array_equal(distboost.shap_values(known, X), distboost.shap_values(known, x))
    weights = frame["v"].abs()
    assert (
        model().fit(X, y, sample_weight=weights).digest()
        == model().fit(x, rows["y"], sample_weight=rows["v"].abs()).digest()
    )


def blocks_of(values, chunks, dtype):
    """A dask array of these values that declares another type."""
    array = da.from_array(values, chunks=chunks)
    return array.map_blocks(lambda block: block, dtype=dtype, meta=np.empty((0,) * values.ndim, dtype))


def mixed(chunks):
    """Blocks of bytes first, then of float64 with more values than bytes have."""
    many = np.column_stack([np.repeat([[1.0], [2.0]], N // 2, axis=0)[:, 0], VALUES * 1000])
    many[:100] = KEYS[:100, np.newaxis]
    array = da.from_array(many, chunks=chunks)

    def narrowed(block, block_info=None):
        return block.astype("u1") if block_info[0]["chunk-location"][0] == 0 else block

    return array.map_blocks(narrowed, dtype="u1", meta=np.empty((0, 0), "u1")), many


@pytest.mark.parametrize(
    ("dtype", "chunks"),
    [*((dtype, (37, 2)) for dtype in ["u1", "i2", "?", "f4", "i8"]), ("u1", (100, 3)), ("u1", (100, 1))],
)
def test_arrays(dtype, chunks):
    X = np.column_stack([VALUES, np.arange(N) * 1.5, np.where(KEYS > 3, KEYS, np.nan)])
    y = LEFT["y"].to_numpy()
    known, wrong = model().fit(X, y), blocks_of(X, chunks, dtype)
    assert model().fit(wrong, da.from_array(y, chunks=100)).digest() == known.digest()
    assert_array_equal(known.predict_proba(wrong), known.predict_proba(X))
    assert_array_equal(distboost.shap_values(known, wrong), distboost.shap_values(known, X))


@pytest.mark.parametrize("chunks", [(100, 2), (100, 1), (50, 1)])
@pytest.mark.parametrize("max_bins", [20, 255])
def test_blocks_of_several_types(chunks, max_bins):
    wrong, X = mixed(chunks)
    y = (X[:, 1] > 0).astype(int) + (X[:, 0] == 2)
    known = model(max_bins=max_bins).fit(X, y)
    assert model(max_bins=max_bins).fit(wrong, y).digest() == known.digest()
    assert_array_equal(known.predict(wrong), known.predict(X))


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (np.array(["a", "bbb"])[KEYS % 2].astype(object), "U1"),
        (np.array([1.0, 2.0])[KEYS % 2], "i8"),
        (np.array([1, 300])[KEYS % 2], "u1"),
        (np.array(["2020-01-01", "2021-01-01"], "M8[s]")[KEYS % 2], "M8[ns]"),
    ],
)
def test_labels_of_another_type(labels, dtype):
    X = VALUES[:, np.newaxis]
    known = model().fit(X, labels)
    found = model().fit(X, blocks_of(labels, 100, dtype))
    assert_array_equal(found.classes_, known.classes_)
    assert_array_equal(found.predict(X), known.predict(X))


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (np.array([True, False])[KEYS % 2], "i8"),
        (np.array(["1", "2"])[KEYS % 2], "i8"),
        (np.arange(N) % 3 + 1, "M8[D]"),
        (np.arange(N).astype("M8[s]"), "M8[D]"),
    ],
)
def test_labels_of_another_kind_are_an_error_that_names_both_types(labels, dtype):
    with pytest.raises(
        DataError, match=rf"chunk .* of y .*{re.escape(str(labels.dtype))}.*{re.escape(str(np.dtype(dtype)))}"
    ):
        model().fit(VALUES[:, np.newaxis], blocks_of(labels, 100, dtype))


def test_a_partition_with_other_columns_is_named():
    def renamed(rows, partition_info=None):
        return rows.rename(columns={"v": "w"}) if partition_info["number"] == 2 else rows

    frame = left()
    wrong = frame.map_partitions(renamed, meta=frame._meta, enforce_metadata=False)
    with pytest.raises(DataError, match=r"partition 2 of X .*'w'.*'v'"):
        model().fit(wrong, frame["y"])


@pytest.mark.parametrize("kind", [str, "M8[ns]", complex])
def test_a_column_without_numbers_is_named_with_its_partition(kind):
    frame = left(LEFT[["k", "v"]])
    frame = frame.map_partitions(
        lambda rows: rows.astype({"k": kind}), meta=frame._meta, enforce_metadata=False
    )
    with pytest.raises(DataError, match=r"column 'k' of partition \d of X"):
        model().fit(frame, left()["y"])


def test_a_category_that_is_not_declared_is_named():
    frame = left(LEFT.assign(k=pd.Categorical(np.array(list("abcd"))[KEYS % 4])))
    meta = frame._meta.assign(k=frame._meta["k"].cat.set_categories(list("abc")))
    wrong = frame.map_partitions(lambda rows: rows, meta=meta, enforce_metadata=False)
    with pytest.raises(DataError, match=r"'k' of partition \d of X has the category 'd'"):
        model().fit(wrong[["k", "v"]], frame["y"])


@pytest.mark.parametrize("weights", [np.ones(N), np.arange(N) % 3 + 0.5])
def test_weights_of_another_type(weights):
    X, y = VALUES[:, np.newaxis], LEFT["y"].to_numpy()
    found = model().fit(da.from_array(X, chunks=100), y, sample_weight=blocks_of(weights, 100, "i4"))
    assert found.digest() == model().fit(X, y, sample_weight=weights).digest()
