"""The parameters of `distboost.bin`: they are those of `fit`, and invalid ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import distboost
from distboost.cli import main
from distboost.errors import LimitError
from distboost.inputs.choose import dataset_of
from distboost.training import binning
from distboost.training.memory_plan import READING_BYTES


def test_the_limit_is_a_number_or_a_text(blobs, tmp_path, monkeypatch):
    """It includes the libraries, as that of `fit` does."""
    limits, write = [], binning.write_store

    def noted(*given, memory, **named):
        limits.append(memory)
        return write(*given, memory=memory, **named)

    monkeypatch.setattr(binning, "write_store", noted)
    for limit in ("1GB", 10**9, "1000 MB", np.int64(10**9)):
        distboost.bin(*blobs, str(tmp_path / "store"), memory_limit=limit)
    assert limits == [10**9 - READING_BYTES] * 4


def test_the_limit_is_that_of_fit(blobs, tmp_path):
    """The least that suffices for the one suffices for the other, as far as reading decides."""
    least = READING_BYTES + dataset_of(*blobs, None).least_ingest(255, _InProcess, False)
    distboost.bin(*blobs, str(tmp_path / "store"), memory_limit=least)
    with pytest.raises(
        LimitError, match=r"memory_limit is .* MB per process, .* takes \d+ MB, libraries included"
    ):
        distboost.bin(*blobs, str(tmp_path / "other"), memory_limit=least - 1)
    assert not (tmp_path / "other").exists()


class _InProcess:
    on_cluster = False


@pytest.mark.parametrize(
    "refused",
    [
        {"max_bins": 256}, {"max_bins": 1}, {"max_bins": 25.5}, {"random_state": -1}, {"random_state": "seven"},
        {"memory_limit": 0}, {"memory_limit": 1e9}, {"keep_values": "no"}, {"wait_for_workers": 0},
    ],
)  # fmt: skip
def test_an_invalid_value_is_refused(refused, blobs, tmp_path):
    [name] = refused
    with pytest.raises(ValueError, match=f"The '{name}' parameter of bin must be"):
        distboost.bin(*blobs, str(tmp_path / "store"), **refused)
    assert not (tmp_path / "store").exists()


def test_a_limit_that_is_not_a_number_of_bytes(blobs, tmp_path):
    with pytest.raises(LimitError, match=r"memory_limit is 'plenty'\. Set a number of bytes"):
        distboost.bin(*blobs, str(tmp_path / "store"), memory_limit="plenty")


def test_no_seed_is_zero(blobs, tmp_path):
    distboost.bin(*blobs, str(tmp_path / "store"), random_state=None)
    before = (tmp_path / "store/zarr.json").read_bytes()
    distboost.bin(*blobs, str(tmp_path / "store"), random_state=0)
    assert (tmp_path / "store/zarr.json").read_bytes() == before


def test_the_command_takes_the_same_limits(blobs, tmp_path):
    import zarr

    for name, values in zip("xy", blobs, strict=True):
        zarr.create_array(str(tmp_path / name), data=values)
    arguments = ["bin", "--x", f"{tmp_path}/x", "--y", f"{tmp_path}/y", "--out", f"{tmp_path}/store"]
    done = CliRunner().invoke(main, [*arguments, "--memory-limit", "1GB"])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, [*arguments, "--memory-limit", "much"])
    assert done.exit_code == 1
    assert "is 'much'.\nSet a number of bytes" in done.stderr
