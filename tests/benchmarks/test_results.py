from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.results import (
    OWN,
    DataSet,
    Run,
    accuracy_table,
    first_round,
    memory_table,
    race_table,
    ratio_table,
    read,
    round_table,
    write,
)


def run(step, *accuracies):
    fits = [{"seconds": [step * k * slower for k in range(1, len(accuracies) + 1)], "before": 100e6, "peak": 300e6,
             "accuracies": list(accuracies)} for slower in (2, 1, 1.5)]  # fmt: skip
    return Run.of_repeats(fits)


@pytest.fixture
def sets():
    runs = {
        OWN: run(1.0, *np.linspace(0.1, 0.9, 100)),
        "fast": run(0.1, *np.linspace(0.1, 0.5, 100)),
        "accurate": run(2.0, *np.linspace(0.1, 0.8, 100)),
    }
    times = {
        "distboost, 1 thread": 40.0,
        "distboost, 2 threads": 20.0,
        "LightGBM, 1 thread": 90.0,
        "LightGBM, 2 threads": 50.0,
    }
    return {
        "one": DataSet("some rows", runs, times),
        "two": DataSet("others", {**runs, "fast": run(1.0, *[0.95] * 100)}, {}),
    }


def test_repeats_count_with_the_fastest_time():
    found = run(1.0, 0.5, 0.6)
    np.testing.assert_array_equal(found.seconds, [1, 2])
    assert (found.spread, found.before, found.peak) == (1.5, 100e6, 300e6)


def test_the_most_accurate_rival_comes_first(sets):
    best, other = sets["one"].races()
    assert (best.rival, best.accuracy, best.rival_seconds) == ("accurate", 0.8, 200)
    assert best.n_rounds == first_round(sets["one"].runs[OWN].accuracies, 0.8) == 88
    assert best.ratio == 88 / 200
    assert other.ratio == 51 / 10
    never = sets["two"].races()[0]
    assert (never.rival, never.n_rounds, never.ratio) == ("fast", None, np.inf)


def test_tables(sets):
    lines = race_table(sets).splitlines()
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells == ["one", "accurate", "80.00 %", "200.00 s", "88.00 s", "88", "0.44", "5.10 (fast)"]
    assert "never" in lines[3]
    assert lines[4].split()[:2] == ["|", "median"]
    assert ratio_table(sets).splitlines()[3].split()[:4] == ["|", "two", "|", "–"]
    assert "90.00 %, 100.00 s" in accuracy_table(sets["one"])
    assert "200 (300)" in memory_table(sets)
    assert round_table(sets).splitlines()[2].split()[-4:] == ["2.00", "|", "0.40", "|"]


def test_results_are_kept(sets, tmp_path):
    write(tmp_path / "found.json", "versions", sets)
    about, found = read(tmp_path / "found.json")
    assert about == "versions"
    for table in (race_table, ratio_table, memory_table, round_table):
        assert table(found) == table(sets)
