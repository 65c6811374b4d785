"""Large data, made small."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import zarr

from examples.make_large import BLOCK_ROWS, Letters, Spheres, write
from tests.scripts import run_example

MAKERS = (Spheres(40, seed=3, n_classes=4), Letters(20, seed=3))


def loaded(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    group = zarr.open_group(folder, mode="r")
    return group["x"][:], group["y"][:]


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: type(maker).__name__)
def test_rows_depend_on_seed_and_number_alone(maker, tmp_path):
    n = 2 * BLOCK_ROWS + 100
    x, y = maker.rows(0, n)
    for start, stop in ((0, 1), (BLOCK_ROWS - 1, BLOCK_ROWS + 1), (50, n), (n - 1, n)):
        part_x, part_y = maker.rows(start, stop)
        np.testing.assert_array_equal(part_x, x[start:stop])
        np.testing.assert_array_equal(part_y, y[start:stop])
    layouts = (
        {"chunk_rows": 1000, "n_threads": 1},
        {"chunk_rows": n, "chunk_columns": 1},
        {"chunk_rows": 5000, "chunk_columns": 7, "compress": True, "n_threads": 3},
        {"dtype": "float64"},
    )
    for number, layout in enumerate(layouts):
        written_x, written_y = loaded(write(maker, tmp_path / f"{number}.zarr", n, **layout))
        np.testing.assert_array_equal(written_x, x)
        np.testing.assert_array_equal(written_y, y)
        assert written_x.dtype == layout.get("dtype", "float32")
    assert not list(tmp_path.glob("*.partial"))


def test_features_do_not_depend_on_how_many_there_are():
    few, labels = Spheres(30).rows(0, 10)
    many, same = Spheres(31).rows(0, 10)
    np.testing.assert_array_equal(many[:, :30], few)
    np.testing.assert_array_equal(same, labels)


def test_other_seeds_other_rows():
    x, _ = Spheres(12, seed=0).rows(0, BLOCK_ROWS)
    other, _ = Spheres(12, seed=1).rows(0, BLOCK_ROWS)
    assert not np.any(np.all(x == other, axis=1))
    assert len(np.unique(Spheres(12).rows(0, 3 * BLOCK_ROWS)[0], axis=0)) == 3 * BLOCK_ROWS


@pytest.mark.parametrize("n_classes", [2, 5, 10])
def test_spheres_have_even_classes_cut_by_radius(n_classes):
    x, y = Spheres(12, n_classes=n_classes).rows(0, 40_000)
    counts = np.bincount(y, minlength=n_classes)
    assert len(counts) == n_classes
    expected = 40_000 / n_classes
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))  # five standard deviations
    radii = np.square(x[:, :10], dtype=np.float64).sum(axis=1)
    shells = [(radii[y == k].min(), radii[y == k].max()) for k in range(n_classes)]
    assert all(low <= high for (_, low), (high, _) in pairwise(shells))


def test_noise_says_nothing_of_the_class():
    x, y = Spheres(30, n_classes=2).rows(0, 40_000)
    assert np.all(np.abs(np.corrcoef(x.T)[np.triu_indices(30, 1)]) < 0.03)
    assert np.all(np.abs(x[y == 0, 10:].std(axis=0) - x[y == 1, 10:].std(axis=0)) < 0.05)


def test_letters_are_near_letters():
    x, y = Letters(16, jitter=0.0).rows(0, 5000)
    with np.load(Path(__file__).parents[1] / "examples" / "data" / "letter.npz") as file:
        known = {(*row, label) for row, label in zip(file["X"].tolist(), file["y"].tolist(), strict=True)}
    assert {(*row, label) for row, label in zip(x.tolist(), y.tolist(), strict=True)} <= known
    moved, same = Letters(16, jitter=0.25).rows(0, 5000)
    np.testing.assert_array_equal(same, y)
    assert abs(np.std(moved - x) - 0.25) < 0.01


def test_too_few_features():
    with pytest.raises(ValueError, match="n_features is 9, but Spheres has 10"):
        Spheres(9)


def test_existing_data_stays(tmp_path):
    write(Spheres(10), tmp_path / "x.zarr", 10)
    with pytest.raises(FileExistsError, match=r"x\.zarr exists"):
        write(Spheres(10), tmp_path / "x.zarr", 10)


def test_command(tmp_path):
    out = tmp_path / "s.zarr"
    command = ("spheres", "--rows", "1e4", "--features", "12", "--classes", "3", "--out", str(out))
    done = run_example("make_large", *command, "--chunk-rows", "1_000", "--chunk-columns", "4", "--seed", "5")
    assert done.returncode == 0, done.stderr
    assert "10000 rows of 12 features" in done.stdout
    x, y = loaded(out)
    np.testing.assert_array_equal(x, Spheres(12, 5, 3).rows(0, 10_000)[0])
    assert set(y) == {0, 1, 2}
    assert zarr.open_group(out, mode="r")["x"].chunks == (1000, 4)

    assert "--overwrite" in run_example("make_large", *command).stderr
    assert run_example("make_large", *command, "--overwrite").returncode == 0
    (tmp_path / "mine").mkdir()
    refused = run_example("make_large", *command[:-1], str(tmp_path / "mine"), "--overwrite")
    assert refused.returncode == 2
    assert "not a zarr group" in refused.stderr
    few = run_example("make_large", "spheres", "--rows", "9", "--features", "9", "--out", str(tmp_path / "n"))
    assert "n_features is 9" in few.stderr
    letters = run_example(
        "make_large", "letters", "--rows", "500", "--dtype", "float64", "--out", str(tmp_path / "l.zarr")
    )
    assert letters.returncode == 0, letters.stderr
