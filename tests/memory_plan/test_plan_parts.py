"""What a plan consists of, and how many rows it keeps in memory."""

from __future__ import annotations

import pytest

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.errors import LimitError
from distboost.io.text import megabytes
from tests.memory_plan.plans import HISTOGRAM, LARGE, LIBRARIES, gd, named, planned


def test_parts_add_up_to_no_more_than_the_limit():
    for limit in ("700MB", "1GB", "1.5GB"):
        found = distboost.plan(gd(memory_limit=limit), **LARGE, n_threads=2)
        assert found.n_bytes == sum(part.n_bytes for part in found.parts) <= found.limit
        assert found.resident + found.streamed == LARGE["n_rows"]
        assert found.window >= 2


def test_a_plan_in_full():
    rows, parts, leader = planned(n_threads=4, max_depth=6)
    assert rows == (10**6, 0, 10**6, 0, 0, 0)
    assert parts == [
        (410_000_000, LIBRARIES),
        (32 * HISTOGRAM, "32 nodes of 2.5 MB"),
        ((4 + 2) * 8 * 64 * 10**2, "0.051 MB for each of 4 threads, 2 more for the result"),
        (10**6 * 252, "1000000 rows of 252 B: bins 100, scores 80, statistic 64, label, weight and place 8"),
        (0, "0 rows, 0 blocks of 30.4 MB at a time"),
    ]
    assert leader == []


def test_rows_drawn_by_weight_take_memory():
    _, parts, _ = planned(n_threads=4, max_depth=6, subsample=0.1, sampling="weight")
    drawn = 8 + 4 + 28  # a tenth of the rows: 0.1 (100 + 80 + 64 + 4 + 8 + 8 + 8)
    assert parts[3] == (
        10**6 * (252 + drawn),
        "1000000 rows of 292 B: bins 100, scores 80, statistic 64, drawn rows 40, label, weight and place 8",
    )


def test_a_plan_of_rows_that_stream():
    block = 2**16 * (264 + 2 * 100 + 12)
    fixed = 410_000_000 + 32 * HISTOGRAM + 4 * 8 * 64 * 10**2
    resident = (650_000_000 - fixed - 2 * block - 4 * 10**6) // 260
    streamed = 10**6 - resident
    limited = {"n_threads": 2, "weighted": True, "max_depth": 6, "memory_limit": "650MB"}
    rows, parts, leader = planned(**limited)
    assert rows == (resident, streamed, resident, 2, 10**6 * 112, streamed * 156)
    assert parts[2:] == [
        (4 * 8 * 64 * 10**2, "0.051 MB for each of 2 threads, 2 more for the result"),
        (
            resident * 264,
            f"{resident} rows of 264 B: bins 100, scores 80, statistic 64, label, weight and place 20",
        ),
        (
            2 * block + 4 * streamed,
            f"{streamed} rows, 2 blocks of 31.2 MB at a time, and the places of {streamed} rows in the tree",
        ),
    ]
    assert leader == []
    # From a URL, more blocks are read at a time.
    rows, _, _ = planned(**limited, scratch="s3://bucket/scratch")
    assert rows[3] == 4
    assert rows[0] == resident - -(-2 * block // 260)
    given = GDMCBoostClassifier(max_depth=6, memory_limit="650MB"), 10**6, 100, 10
    assert [distboost.plan(*given, n_threads=2, remote=remote).window for remote in (None, False, True)] == [
        2,
        2,
        4,
    ]
    # All rows may stay from the limit on at which they fit, and no earlier.
    enough = fixed + 10**6 * 264
    stay, stream = (
        planned(n_threads=2, weighted=True, max_depth=6, memory_limit=n)[0][:2] for n in (enough, enough - 1)
    )
    assert stay == (10**6, 0)
    assert stream[1] > 0


def test_small_blocks_are_read_in_pairs():
    """If there is room for two at a time in each thread, and each thread has many."""
    narrow = {"n_rows": 4_000_000, "n_features": 16, "n_classes": 10}

    def found(limit="550MB", n_threads=2, remote=False, **sizes):
        plan = distboost.plan(gd(memory_limit=limit), **(narrow | sizes), n_threads=n_threads, remote=remote)
        assert plan.n_bytes <= plan.limit
        return plan

    pairs = found()
    assert (pairs.at_once, pairs.window) == (2, 2)
    pair = 2 * 2**16 * (168 + 2 * 16 + 12 + 80 + 64)  # scores and statistic may be there twice
    streamed = f"{pairs.streamed} rows, 2 pairs of blocks of {megabytes(pair)} at a time, and the places of"
    assert pairs.parts[-1].what.startswith(streamed)
    assert pairs.parts[-1].n_bytes == 2 * pair + 4 * pairs.streamed
    for other in (
        found("520MB"),
        found(n_threads=4),
        found(remote=True),
        found("900MB", n_classes=40),
        found(n_rows=2_000_000),
        found("1GB"),  # more than half of the rows stay in memory
    ):
        assert other.at_once == 1
        assert other.streamed > 0


def test_a_plan_of_workers():
    rows, parts, leader = planned(n_workers=2, max_depth=2)
    assert rows == (500_000, 0, 500_000, 0, 0, 0)
    assert parts[:4] == [
        (260_000_000, LIBRARIES),
        (
            # 1 node of its own rows; half of 2 nodes; up to 4 pieces of half a node sent, and 2 received, at a time
            HISTOGRAM + HISTOGRAM + (4 + 2) * HISTOGRAM // 2,
            "1 node of 2.5 MB, 2.5 MB of all workers' for the features it owns, 7.4 MB under way",
        ),
        (5 * 8 * 4 * 10**2, "0.0032 MB for each of 1 thread, 4 more for the result"),
        (
            500_000 * 252,
            "500000 rows of 252 B: bins 100, scores 80, statistic 64, label, weight and place 8",
        ),
    ]
    assert leader == [
        (410_000_000, LIBRARIES),
        ((3 + 2 * 2) * 2**20, "small ones, up to 1 MB an answer; else workers own them"),
        (3 * 8 * 4 * 10**2, "0.0032 MB for each of 1 answer, 2 more for the result"),
    ]


def test_a_plan_of_workers_with_small_histograms():
    """They are sent to the process that leads."""
    task = {"n_rows": 10**6, "n_features": 4, "n_classes": 2}
    found = distboost.plan(distboost.GDMCBoostClassifier(max_depth=3), **task, n_workers=2)
    node = 8 * 4 * 4 * 256
    assert found.parts[1][1:] == (2 * node, f"2 nodes of {megabytes(node)}")
    assert [tuple(part)[1:] for part in found.leader[1:3]] == [
        (4 * node, f"4 nodes of {megabytes(node)}"),
        (2 * 2 * 2 * node, "histograms of 2 nodes in 2 answers, as they arrive"),
    ]


def test_without_a_limit_all_rows_stay_in_memory():
    found = distboost.plan(gd(), **LARGE)
    assert (found.limit, found.streamed, found.window) == (None, 0, 0)
    assert (found.store_bytes, found.scratch_bytes) == (0, 0)
    assert found.allotment(None) is None


def test_more_memory_keeps_more_rows():
    resident = [
        distboost.plan(gd(memory_limit=limit), **LARGE, n_threads=2).resident
        for limit in (7 * 10**8, 10**9, 15 * 10**8, 4 * 10**9)
    ]
    assert resident == sorted(resident)
    assert resident[-1] == LARGE["n_rows"] > resident[0]


def test_workers_share_the_rows_and_the_caller_has_a_plan_of_its_own():
    one = distboost.plan(gd(), **LARGE)
    two = distboost.plan(gd(), **LARGE, n_workers=2)
    assert (one.leader, one.resident) == ((), LARGE["n_rows"])
    assert two.resident == LARGE["n_rows"] // 2
    assert two.leader_bytes > 0


def test_weights_take_memory():
    plain, weighted = (distboost.plan(gd(), **LARGE, weighted=w).n_bytes for w in (False, True))
    balanced = distboost.plan(gd(class_weight="balanced"), **LARGE).n_bytes
    assert plain < weighted == balanced


@pytest.mark.parametrize(
    ("parameters", "nodes"),
    [
        ({"max_depth": 1}, 1),
        ({"max_depth": 6}, 32),
        ({"max_depth": None, "max_leaf_nodes": 15}, 14),
        ({"max_depth": 3, "max_leaf_nodes": 15}, 4),
        ({"max_depth": None, "min_samples_leaf": 210_000}, 13),
    ],
)
def test_histograms_kept_at_a_time(parameters, nodes):
    found = distboost.plan(GDMCBoostClassifier(**parameters), **LARGE)
    assert found.parts[1].n_bytes == nodes * 256 * 256 * 8 * 8


def test_a_sum_per_class_costs_what_it_takes():
    """GAMBLE's rows add one number to a histogram, GD-MCBoost's one for each class: 8 bytes of a row, not 8 K."""
    gamble, residuals = (
        distboost.plan(model, n_rows=10**6, n_features=16, n_classes=26).parts[3]
        for model in (GAMBLEClassifier(), GDMCBoostClassifier())
    )
    assert gamble.n_bytes < residuals.n_bytes


def test_few_rows_have_few_bins_and_few_nodes():
    few = distboost.plan(gd(), n_rows=30, n_features=1000, n_classes=5)
    assert few.parts[1].n_bytes == 20 * 1000 * 31 * 8 * 8
    assert few.n_bytes < distboost.plan(gd(), n_rows=60, n_features=1000, n_classes=5).n_bytes


WIDE = {"n_rows": 50_000, "n_features": 1000, "n_classes": 100}


@pytest.mark.parametrize("where", [{}, {"n_workers": 4}, {"n_workers": 16}, {"n_workers": 1}], ids=str)
def test_histograms_that_do_not_fit_are_summed_a_few_features_at_a_time(where):
    """All nodes of a level would take 6.8 GB. Half of the memory that they and the rows may take is theirs at least."""
    found = distboost.plan(gd(memory_limit="800MB"), **WIDE, n_threads=1, **where)
    histograms = found.parts[1]
    assert "features at a time, in " in histograms.what
    assert found.window_bytes <= histograms.n_bytes <= 540 * 10**6
    assert found.n_bytes <= found.limit
    if where.get("n_workers", 1) > 1:
        assert found.leader_bytes < 600 * 10**6
    enough = distboost.plan(gd(memory_limit="24GB"), **WIDE, n_threads=1, **where)
    assert enough.window_bytes is None
    assert enough.streamed == 0


def test_rows_stay_in_memory_before_windows_grow():
    """As long as the windows have half of what is left."""
    plans = [distboost.plan(gd(memory_limit=limit), **WIDE) for limit in ("560MB", "800MB", "1GB")]
    assert [found.streamed > 0 for found in plans] == [True, False, False]
    assert plans[0].window_bytes < plans[1].window_bytes < plans[2].window_bytes


def test_the_process_that_leads_keeps_to_the_limit_too():
    """Though workers need less."""
    small = {"n_rows": 10_000, "n_features": 4, "n_classes": 2, "n_workers": 2}
    with pytest.raises(LimitError, match=r"the process that calls fit takes ([\d,]+) MB") as refused:
        distboost.plan(gd(memory_limit="350MB"), **small)
    found = distboost.plan(gd(memory_limit=named(refused)), **small)
    assert found.leader_bytes <= found.limit
