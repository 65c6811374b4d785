"""The types that lazy answers declare are those of their blocks, and zarr and Parquet store them."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import zarr
from numpy.testing import assert_array_equal

from distboost import GDMCBoostClassifier

X = np.random.default_rng(0).normal(size=(60, 2))
SIDE = (X[:, 0] > 0).astype(int)
LABELS = {
    "text": pd.Series(np.array(["no", "yes"])[SIDE]),
    "objects": np.array(["no", "yes"], object)[SIDE],
    "long": np.array(["no", "y" * 100], object)[SIDE],
    "nul": np.array(["no", "yes\0"], object)[SIDE],
    "nullable": pd.Series(SIDE).astype("Int64"),
    "flags": np.array([False, True], object)[SIDE],
    "days": np.array(["2020-01-01", "2020-01-02"], "M8[D]")[SIDE],
    "timestamps": pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"])[SIDE]),
    "hours": np.array([1, 2], "m8[h]")[SIDE],
    "big endian": SIDE.astype(">i4"),
}


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", LABELS)
def test_lazy_answers_are_stored(kind, tmp_path):
    labels = LABELS[kind]
    model = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(X, labels)
    answers = model.predict(da.from_array(X, chunks=(25, 2)))
    expected = model.predict(X)
    assert_array_equal(answers, expected)
    assert all(block.compute().dtype == answers.dtype for block in answers.blocks)
    answers.to_zarr(str(tmp_path / "zarr"))
    assert_array_equal(zarr.open_array(str(tmp_path / "zarr"), mode="r")[:], expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # pandas's, of what Dask calls
        dd.from_dask_array(answers, columns="p").to_frame().to_parquet(tmp_path / "parquet")
        found = pd.read_parquet(tmp_path / "parquet")["p"]
    assert_array_equal(found.to_numpy().astype(expected.dtype), expected)


@pytest.mark.parametrize("order", "<>")
def test_the_byte_order_of_labels_does_not_matter(order):
    model = GDMCBoostClassifier(calibration=None, n_estimators=2)
    same = model.fit(X, SIDE.astype("i4")).digest()
    assert model.fit(X, SIDE.astype(f"{order}i4")).digest() == same
    predicted = pd.DataFrame({"p": model.predict(X), "x": X[:, 0]})
    assert len(predicted.groupby("p").mean()) == 2
