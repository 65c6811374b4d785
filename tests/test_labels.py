"""Labels of every kind: kept and read back as they were, wherever they are kept, or refused before anything is learned."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import distboost
from distboost import GAMBLEClassifier
from distboost.cli import main
from distboost.data.labels import made, plain, restored
from distboost.errors import DataError, ModelFormatError
from distboost.io.files import read_file, write_file

UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s"]
TEXT = np.dtypes.StringDType

KEPT = {
    **{t: np.array([0, 100, 7], t) for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")},
    "the other byte order": np.array([7, 300, 2], np.dtype("i4").newbyteorder()),
    "extreme": np.array([-(2**63), 2**63 - 1, 2**53 + 1]),
    "extreme, unsigned": np.array([0, 2**64 - 1, 2**53 + 1], np.uint64),
    "flags": np.array([True, False, True]),
    **{t: np.array([2.0, -1.0, 0.0], t) for t in ("f2", "f4", "f8")},
    "-0.0": np.array([-0.0, 1.0, 2.0]),
    "text": np.array(["ä", "a much longer name", ""]),
    "text, more room than needed": np.array(["a", "b", "c"], "U50"),
    "text with controls": np.array(["a\nb", "\x1b[31m", "\0a"]),
    "text of any length": np.array(["ä", "a much longer name", "🙂"], TEXT()),
    "objects of text": np.array(["ä", "a", "a\0"], object),
    "objects of flags": np.array([True, False, True], object),
    "objects of numbers": np.array([2**70, 2**70 + 1, -(2**53) - 1], object),
    "objects of floats": np.array([3.0, -0.0, 1e300], object),
    "objects of NumPy's": np.array([np.int64(3), np.int64(-1), 5], object),
    "bytes": np.array([b"a", b"\xff\x00\x80", b""]),
    "bytes, more room than needed": np.array([b"a", b"b", b"c"], "S9"),
    **{f"dates of {u}": np.array([0, -5, 2**40], np.int64).view(f"M8[{u}]") for u in UNITS},
    **{f"durations of {u}": np.array([0, -5, 2**40], np.int64).view(f"m8[{u}]") for u in UNITS},
    "dates of the other byte order": np.array(["2020-01-01", "1700-01-01", "2021-01-01"], ">M8[D]"),
    "dates of pandas": pd.to_datetime(["2020-01-01", "1999-12-31", "2021-01-01"]).to_numpy(),
}  # fmt: skip
# They are told from one another by their type alone: in model files all are tried, elsewhere two.
OTHER_UNITS = {f"{kind} of {u}" for kind in ("dates", "durations") for u in UNITS if u not in ("M", "25s")}


@pytest.fixture
def rows():
    """X and class numbers: 60 rows of 3 classes."""
    y = np.arange(60) % 3
    return np.random.default_rng(0).normal(size=(60, 3)) + 2 * np.eye(3)[y], y


def make(**parameters):
    return GAMBLEClassifier(**{"calibration": None, "n_estimators": 2, "n_jobs": 1, **parameters})


def same(a, b):
    """Equal, of the same type."""
    assert a.dtype == b.dtype
    assert a.tolist() == b.tolist()
    assert list(map(type, a.tolist())) == list(map(type, b.tolist()))


@pytest.mark.parametrize("kind", KEPT)
def test_kept(kind, rows, tmp_path):
    """In a model file."""
    X, numbers = rows
    labels = KEPT[kind]
    y = labels[numbers]
    model = make().fit(X, y)
    expected = sorted(set(labels)) if labels.dtype.kind == "O" else np.unique(labels).tolist()
    assert model.classes_.tolist() == expected
    if labels.dtype.kind != "T":
        assert model.classes_.dtype.kind == labels.dtype.kind
    assert (model.predict(X) == y).mean() > 0.5
    model.save(tmp_path / "model")
    again = distboost.load(tmp_path / "model")
    same(again.classes_, model.classes_)
    same(again.predict(X), model.predict(X))
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("kind", [kind for kind in KEPT if kind not in OTHER_UNITS])
def test_kept_elsewhere(kind, rows, tmp_path):
    """In a checkpoint and a binned store."""
    X, numbers = rows
    y = KEPT[kind][numbers]
    kept = make(checkpoint=tmp_path / "checkpoint", checkpoint_every=1).fit(X, y)
    same(distboost.load(tmp_path / "checkpoint").classes_, kept.classes_)
    more = make(checkpoint=tmp_path / "checkpoint", n_estimators=4).fit(X, y, resume=True)
    same(more.predict(X), make(n_estimators=4).fit(X, y).predict(X))
    assert more.n_iter_ >= kept.n_iter_

    store = distboost.bin(X, y, tmp_path / "store")
    same(make().fit(str(store)).classes_, kept.classes_)


def in_objects(*labels):
    found = np.empty(len(labels), object)
    found[:] = labels
    return found


NAN = TEXT(na_object=np.nan)
REFUSED = {
    "dates of Python": (in_objects(*map(datetime.date.fromordinal, (1, 2))), r"label datetime.date\(1, 1, 1\) of type date"),
    "decimals": (in_objects(*map(decimal.Decimal, "123")), r"label Decimal\('1'\) of type Decimal,.*Pass"),
    "no decimal": (in_objects(*map(decimal.Decimal, ("1", "sNaN", "2"))), r"label Decimal\('1'\) of type Decimal"),
    "tuples": (in_objects((1,), (2,), (3,)), r"label \(1,\) of type tuple"),
    "arrays": (in_objects(np.array([1, 2]), 2, 3), r"label array\(\[1, 2\]\) of type ndarray"),
    "bytes among objects": (in_objects(b"a", b"b", b"c"), r"label b'a' of type bytes"),
    "NumPy's dates among objects": (in_objects(*np.array([1, 2, 3], "M8[D]")), r"label np.datetime64.* of type datetime64"),
    "structures": (np.array([(1, 2), (2, 3), (3, 4)], "i4,i4"), r"labels of type \[\('f0', '<i4'\).*which a model file cannot"),
    "complex": (np.array([1j, 2, 3]), r"Complex data not supported|labels of type complex128"),
    "long floats": (np.array([1, 2, 3], np.longdouble), r"labels of type \w+, which a model file"),
    "text and numbers": (in_objects(1, "a", 2), r"mixes .*types: 1 is of type int, 'a' of type str. Use one type"),
    "numbers of two types": (in_objects(1, 2.0, 3), r"mixes .*types: 1 is of type int, 2.0 of type float"),
    "flags and numbers": (in_objects(True, 2, 3), r"mixes .*types: True is of type bool, 2 of type int"),
    "no date": (np.array(["2020", "NaT", "2021"], "M8[Y]"), r"missing label \(NaN\) in row 1"),
    "no duration": (np.array([1, "NaT", 2], "m8[s]"), r"missing label \(NaN\) in row 1"),
    "no date of pandas": (in_objects("a", pd.NaT, "b"), r"missing label \(NaN\) in row 1"),
    "no text": (np.array(["a", np.nan, "b"], NAN), r"missing label \(NaN\) in row 1"),
    "an infinite object": (in_objects(1.0, float("inf"), 2.0), r"the label inf, which is not finite"),
    "half a character": (np.array(["a", "\ud800", "b"]), r"the label '\\ud800', which is not Unicode text"),
    "two halves of one": (in_objects("a", "\ud83d" + "\ude00", "b"), r"which is not Unicode text: it has surrogates"),
    "a NUL at the end": (np.array(["a", "a\0", "b"], TEXT()), r"the label 'a\\x00' in row 1, which ends with a NUL"),
    "a vast number": (in_objects(1, 2**5000, 3), r"label of 5001 bits, above the limit of 2048"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_before_the_first_round(kind, rows, tmp_path):
    X, numbers = rows
    labels, message = REFUSED[kind]
    numbers = numbers % len(labels)
    rounds = []
    model = make(callbacks=[rounds.append], checkpoint=tmp_path / "checkpoint")
    with pytest.raises(ValueError, match=message):
        model.fit(X, labels[numbers])
    assert rounds == []
    with pytest.raises(DataError, match=message):
        distboost.bin(X, labels[numbers], tmp_path / "store")
    assert not hasattr(model, "classes_")


def test_types_that_differ_from_chunk_to_chunk(rows):
    """1 and 1.0 are equal: which of them was the class would be a matter of which chunk came first."""
    X, numbers = rows
    y = numbers.astype(object)
    y[30:] = y[30:].astype(float)
    for order in (slice(None), slice(None, None, -1)):
        with pytest.raises(
            DataError, match=r"mixes labels of .*types: .* of type (int|float), .* of type (int|float)"
        ):
            make().fit(da.from_array(X[order], chunks=(30, 3)), da.from_array(y[order], chunks=30))


def test_names_much_longer_than_most_are_refused_before_the_first_round():
    y, rounds = np.array([f"{i:05}" for i in range(20_000)] + ["z" * 1000]), []
    with pytest.raises(
        DataError,
        match=r"20001 classes of text, the longest of 1000 characters.*convert the labels to objects",
    ):
        make(callbacks=[rounds.append]).fit(np.zeros((20_001, 1)), y)
    assert rounds == []


@pytest.mark.parametrize("weights", [{b"a": 2.0}, {np.datetime64("2020"): 1.0}], ids=str)
def test_parameters_that_cannot_be_kept(weights, rows):
    """Told before a row is read."""
    rounds = []
    with pytest.raises(DataError, match=r"the parameter class_weight=.* cannot be stored in a model file"):
        make(class_weight=weights, callbacks=[rounds.append]).fit(*rows)
    assert rounds == []


def test_names_that_cannot_be_kept(rows):
    names = pd.Index(
        ["a", "\ud83d" + "\ude00", "b"], dtype=object
    )  # pandas would not make text of Arrow of it, either
    frame, called = pd.DataFrame(rows[0], columns=names), []
    with pytest.raises(
        DataError, match=r"a feature has the name '\\ud83d\\ude00', which is not Unicode text.*Rename it"
    ):
        make(callbacks=[called.append]).fit(frame, rows[1])
    assert called == []


# Any labels at all.

ANY = {
    "U": st.text(st.characters(codec="utf-8")).filter(lambda text: not text.endswith("\0")),
    "S": st.binary().filter(lambda text: not text.endswith(b"\0")),
    "O": st.text(st.characters(codec="utf-8")),
    "<M8[ns]": st.integers(-(2**63) + 1, 2**63 - 1),
    "<m8[W]": st.integers(-(2**63) + 1, 2**63 - 1),
    "<f8": st.floats(allow_nan=False, allow_infinity=False),
    "<i8": st.integers(-(2**63), 2**63 - 1),
}


@given(st.data(), st.sampled_from(sorted(ANY)))
def test_any_labels_come_back_from_json(data, dtype):
    values = data.draw(st.lists(ANY[dtype], min_size=1, max_size=5))
    labels = in_objects(*values) if dtype == "O" else np.array(values, dtype[0] if dtype in "US" else dtype)
    kept = json.loads(json.dumps(plain(labels)))
    again = restored(kept, labels.dtype.str, ModelFormatError)
    same(again, labels + 0.0 if dtype == "<f8" else labels)
    for (a, x), (b, y) in itertools.pairwise(zip(labels, kept, strict=True)):
        assert (bool(a < b), bool(a == b)) == (x < y, x == y)
    same(made(kept, labels.dtype), again)


STRANGE = {
    "dates that are text": (["2020", "2021", "2022"], "<M8[Y]"),
    "dates of no unit": ([1, 2, 3], "<M8"),
    "dates past their range": ([1, 2, 2**63], "<M8[s]"),
    "bytes past a byte": (["a", "b", "\u0100"], "|S1"),
    "bytes of more room": (["a", "b", "c"], "|S1000000"),
    "flags that are numbers": ([0, 1, 2], "|b1"),
    "numbers that are flags": ([False, True], "<i8"),
    "whole numbers that are not": ([0.5, 1.5, 2.5], "<i8"),
    "numbers past their type": ([0, 1, 300], "|u1"),
    "numbers that a type has not": ([0.1, 0.2, 0.3], "<f4"),
    "long floats": ([0.0, 1.0, 2.0], "<f16"),
    "infinity": ([0.0, 1.0, float("inf")], "<f8"),
    "half a character": (["a", "b", "\ud800"], "<U1"),
    "a NUL at the end": (["a", "b", "b\0"], "<U2"),
    "a type of numbers": ([1, 2, 3], 8),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_altered_classes(kind, rows, tmp_path):
    make().fit(*rows).save(tmp_path / "model")
    header, arrays = read_file(str(tmp_path / "model"))
    classes, dtype = STRANGE[kind]
    write_file(str(tmp_path / "model"), {**header, "classes": classes, "class_dtype": dtype}, arrays)
    with pytest.raises(ModelFormatError, match=r"model: .*(classes|label)"):
        distboost.load(tmp_path / "model")


# The command line.


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize("kind", ["dates of D", "dates of ns", "durations of s", "bytes", "text"])
def test_the_command_line(kind, rows, tmp_path):
    X, numbers = rows
    labels = KEPT[kind]
    for name, values in (("x", X), ("y", labels[numbers])):
        zarr.create_array(str(tmp_path / name), data=values, chunks=(20, *values.shape[1:]))
    at = {name: str(tmp_path / name) for name in ("x", "y", "model", "out")}

    def run(*arguments):
        done = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    run(
        "train",
        "--algorithm",
        "gamble",
        "--x",
        at["x"],
        "--y",
        at["y"],
        "--model",
        at["model"],
        "--set",
        "n_estimators=2",
    )
    run("inspect", at["model"])
    run(
        "evaluate",
        "--model",
        at["model"],
        "--x",
        at["x"],
        "--y",
        at["y"],
        "--report",
        str(tmp_path / "report.html"),
    )
    run("predict", "--model", at["model"], "--x", at["x"], "--out", at["out"])
    predicted = zarr.open_array(at["out"], mode="r")
    assert predicted[:].tolist() == distboost.load(at["model"]).predict(X).tolist()
    assert predicted.attrs["distboost"]["classes"] == plain(np.unique(labels))


def test_whole_numbers_as_objects_are_scored(blobs):
    X, y = blobs[0], blobs[1].astype(object)
    model = GAMBLEClassifier(n_estimators=2, calibration=None).fit(X, y)
    assert model.score(X, y) == (model.predict(X) == y).mean()


@pytest.mark.parametrize("form", [pd.Series, pd.array, lambda y, dtype: pd.DataFrame({"y": y}, dtype=dtype)])
@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]"])
def test_whole_numbers_of_nullable_columns_stay_whole(form, dtype):
    X, y = np.repeat(np.eye(3), 3, axis=0), 2**60 + np.repeat(np.arange(3), 3)
    labels = form(y, dtype=dtype)
    model = GAMBLEClassifier(n_estimators=2, calibration=None).fit(X, labels)
    assert model.classes_.dtype == np.int64
    assert model.predict(X).tolist() == y.tolist()
    # As floating-point numbers, all three would be equal.
    wrong = form(np.roll(y, 3), dtype=dtype)
    assert model.score(X, labels) == distboost.evaluate(model, X, labels)["accuracy"] == 1
    assert model.score(X, wrong) == distboost.evaluate(model, X, wrong)["accuracy"] == 0


def test_flags_of_nullable_columns_stay_flags(blobs):
    X, y = blobs[0], blobs[1] > 0
    model = GAMBLEClassifier(n_estimators=2, calibration=None).fit(X, pd.Series(y, dtype="boolean"))
    assert model.predict(X).dtype == bool


@pytest.mark.parametrize("dtype", [TEXT(), "S1"], ids=["text of any length", "bytes"])
def test_text_of_any_type_is_scored(dtype, blobs):
    X, y = blobs[0], blobs[1].astype(str).astype(dtype)
    model = GAMBLEClassifier(n_estimators=2, calibration=None).fit(X, y)
    assert model.score(X, y) == 1 - model.train_error_[-1]
