"""Active GAMBLE's tables: the quick part, trials that are continued, and a page that says what was measured."""

import json

import numpy as np
import pytest

from examples import active_pendigits as example
from examples import active_report as report
from examples.papers.common import load
from tests.scripts import run_example


def test_quick(tmp_path):
    file = tmp_path / "figures.json"
    done = run_example("active_pendigits", "--quick", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(file.read_text()).values()
    assert list(found["ways"]) == [report.ACTIVE, report.RANDOM]
    for way in found["ways"].values():
        assert list(way["trials"]) == ["0", "1"]
        assert all(len(trial["wrong"]) == len(way["labels"]) for trial in way["trials"].values())
    active, random = (way["trials"]["0"]["wrong"] for way in found["ways"].values())
    assert active[0] == random[0]  # the same rows to begin with
    assert active[1:] != random[1:]
    assert 0 < found["Batch"]["lowest"] < min(active)
    for way in (report.ACTIVE, report.RANDOM):
        assert sum(line.startswith(f"| glass | 113 | {way} |") for line in done.stdout.splitlines()) == 1


def test_only_whole_trials_are_kept():
    done = run_example("active_pendigits", "--write", "--quick")
    assert done.returncode == 2
    assert "--write keeps whole trials" in done.stderr


def test_only_what_is_not_there_is_measured():
    first, second = example.jobs(["glass"], [report.RANDOM], 2, quick=True), {}
    done, *todo = [job for job in first if job.way == report.RANDOM]
    example.keep(second, done, {"wrong": [3], "seconds": [0.1]})
    assert example.is_kept(second, done)
    assert [job.seed for job in todo if not example.is_kept(second, job)] == [1]
    with pytest.raises(SystemExit, match="has trials of 10 rounds"):
        example.is_kept(second, done._replace(n_rounds=20))


@pytest.mark.parametrize("dataset", report.DATASETS)
def test_numbers_of_labels_increase_up_to_the_rows_there_are(dataset):
    n_rows = load(dataset)[2]
    for way in example.WAYS:
        counts = example.label_counts(dataset, way)
        assert min(np.diff(counts)) > 0
        assert counts[-1] <= n_rows


def test_a_trial_that_does_not_reach_the_target_is_told():
    def curves(*wrong):
        trials = {str(seed): {"wrong": each, "seconds": [1, 3]} for seed, each in enumerate(wrong)}
        found = {"ways": {"Random": {"labels": [10, 20], "trials": trials}}, "Batch": {"test rows": 10}}
        return report.curves(found, "Random")

    assert report.labels_to(curves([5, 1], [1, 0]), 0.1) == "15 (7)"
    assert report.labels_to(curves([5, 1], [5, 4]), 0.1) == "≥ 20, 1 of 2 within 20"
    assert report.labels_to(curves([1, 1], [5, 4]), 0.1) == "≥ 15, 1 of 2 within 20"
    assert report.labels_to(curves([5, 2], [5, 4]), 0.1) == "not within 20 (0 of 2)"
    assert report.seconds_to(curves([5, 4], [1, 0]), 0.1) == ([3, 1], 1)


def test_picture_shows_the_measured_points(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(report, "IMAGES", tmp_path)
    report.draw("pendigits", report.kept("pendigits"))
    assert (tmp_path / "active_pendigits.png").read_bytes().startswith(b"\x89PNG")


def test_page_is_made_of_the_committed_figures():
    assert report.PAGE.read_text() == report.page(example.__doc__)
    for dataset in report.DRAWN:
        assert (report.IMAGES / f"active_{dataset}.png").exists()
