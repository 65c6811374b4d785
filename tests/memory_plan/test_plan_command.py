"""`distboost plan`."""

from __future__ import annotations

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import distboost
from distboost.cli import main
from distboost.io.text import megabytes


def output(*arguments):
    done = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["plan", *map(str, arguments)])
    return done.exit_code, done.output


def test_plan_as_a_table():
    code, text = output(
        "--algorithm", "gd-mcboost", "--rows", 4_200_000, "--features", 256, "--classes", 5,
        "--memory-limit", "1GB", "--threads", 2,
    )  # fmt: skip
    assert code == 0
    for word in (
        "libraries",
        "histograms",
        "32 nodes",
        "sums",
        "resident rows",
        "streamed rows",
        "in all",
        "1,000 MB",
    ):
        assert word in text
    assert "of 4,200,000 rows stay in memory, the others stream from disk." in text


def test_plan_of_arrays_reads_no_row(blobs, tmp_path):
    """Neither labels nor features: chunks that were never written do not matter."""
    zarr.create_array(str(tmp_path / "x"), shape=(10**9, 40), chunks=(10**5, 40), dtype="f4")
    code, text = output("--algorithm", "gamble", "--x", tmp_path / "x", "--classes", 3, "--workers", 4)
    assert code == 0
    assert "each worker" in text
    assert "the process that calls fit" in text
    assert "250,000,000 of 250,000,000 rows stay in memory." in text


def test_plan_of_a_store_knows_the_classes(blobs, tmp_path):
    store = distboost.bin(*blobs, str(tmp_path / "store"))
    code, text = output("--algorithm", "rebel", "--x", store)
    assert code == 0
    assert "240 of 240 rows stay in memory." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rows", 10, "--features", 2), "Missing option '--classes'"),
        *(
            ((*sizes, "--classes", 2), "Pass an array with --x, or its sizes with --rows and --features")
            for sizes in ((), ("--rows", 10), ("--features", 2))
        ),
        (("--rows", 10, "--features", 2, "--classes", 2, "--memory-limit", "1MB"), "Raise the limit"),
        (
            ("--rows", 10, "--features", 2, "--classes", 2, "--memory-limit", "much"),
            "is 'much'.\nSet a number of bytes",
        ),
    ],
)
def test_what_a_plan_needs(arguments, message):
    code, text = output("--algorithm", "gd-mcboost", *arguments)
    assert code != 0
    assert message in text


def test_sizes_are_written_as_limits_are_given():
    assert megabytes(10**9) == "1,000 MB"
    assert np.isclose(float(megabytes(123_456).split()[0]), 0.12)
