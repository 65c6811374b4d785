"""Histograms are the same however threads share features, rows and blocks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.data.blocks import BinnedRows
from distboost.rows import stored_bins
from distboost.rows.messages import Splits
from distboost.rows.stored_bins import StoredBins
from distboost.rows.sums import Scale
from distboost.runtime import gathered
from distboost.runtime import parts as parts_module
from distboost.runtime import tally as tally_module
from distboost.runtime.block import Block
from distboost.runtime.gathered import Waiting
from distboost.runtime.parts import Slots, Spare, StoredPart, feature_groups
from distboost.runtime.tally import Tally
from distboost.splits.tree_histograms import offsets_of
from distboost.threads import Threads
from distboost.weights.margin import MarginWeights, Residuals

N_CLASSES = 3
ROW_BYTES = 4 + 4 * 8  # bins and statistic
N_BINS = np.array([4, 1, 9, 30])
CONSTANT = {0: 7, 201: 30}  # of the blocks that begin with these rows: the bin of feature 3
NODES = np.array([1, 2])
USUAL = np.array([0, 1, 4, 7], np.uint8)
SCALE = Scale(np.log(N_CLASSES - 1), 18)


def block_of(first, n, rng, stored=False):
    """A block whose root is split in two, with the statistic of its rows. `stored`: with few of its bins."""
    bins = rng.integers(0, N_BINS + 1, (n, len(N_BINS))).astype(np.uint8)
    bins[:, 3] = CONSTANT.get(first, bins[:, 3])
    rows = BinnedRows(first, bins, rng.integers(0, N_CLASSES, n).astype(np.int32), np.ones(n))
    block = Block(rows, N_CLASSES, N_CLASSES, score_dtype="float64")
    block.scores[:] = rng.normal(scale=0.1, size=block.scores.shape)
    block.start_tree(None)
    Residuals(MarginWeights(0.5)).prepare(block, block.order, SCALE, 0.0)
    block.split(Splits.of([(0, 2, 4, False, 1, 2)]), N_BINS)
    if stored:
        block.store(USUAL)
        assert isinstance(block.held, StoredBins)
    return block


def expected_sums(blocks, offsets, features):
    sums = np.zeros((len(NODES), offsets[-1], 8), np.int64)
    for block in blocks:
        values = block.kept("statistics")
        for m, node in enumerate(NODES):
            rows = block.order[slice(*block.spans[node])]
            for d in features:
                np.add.at(sums[m], offsets[d] + block.bins[rows, d], values[rows])
    return sums


HOW = (
    "together",
    "by node",
    "streamed",
    "streamed and gathered",
    "only streamed",
    "only streamed and gathered",
)
WAYS = [*itertools.product(HOW, ((1, 2**26), (1, 0), (2, 2**26)))]


@pytest.mark.pairwise
@pytest.mark.parametrize("n_threads", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("features", [[0, 1, 2, 3], [2], [1, 3]])
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("stored", [(), (0, 1, 2), (0, 2), (1, 2)])
def test_any_threads_sum_the_same(n_threads, features, way, stored, monkeypatch):
    """Whichever blocks are `stored`: those with few rows, or with many, are added in tiles or not."""
    how, (n_parts, room) = way
    monkeypatch.setattr(stored_bins, "FEWEST_FEATURES", 1)
    monkeypatch.setattr(stored_bins, "MOST_STORED", 1.0)
    monkeypatch.setattr(tally_module, "ENTRIES_PER_THREAD", 1)
    monkeypatch.setattr(parts_module, "ENTRIES_PER_BIN", 0)
    if how == "by node":
        monkeypatch.setattr(tally_module, "NODES_PER_THREAD", 0)
    if how.endswith("gathered"):
        monkeypatch.setattr(tally_module, "CACHED_TILES", 0)
        monkeypatch.setattr(gathered, "room_bytes", lambda bins: ROW_BYTES * 130 * len(NODES))
    rng = np.random.default_rng(0)
    sizes = {0: 200, 200: 1, 201: 70}
    blocks = [block_of(*size, rng, number in stored) for number, size in enumerate(sizes.items())]
    features = np.array(features)
    offsets = offsets_of(N_BINS, np.arange(4))
    pool = rng.integers(-9, 9, (5, offsets[-1], 8))
    slots = np.array([3, 1])
    before = pool.copy()
    parts = [
        StoredPart(own, Slots(pool, slots, offsets)) for own in np.array_split(features, n_parts) if len(own)
    ]
    spare = Spare()
    spare.give_back(rng.integers(-9, 9, 5000))
    with Threads(n_threads) as threads:
        tally = Tally(
            threads,
            Residuals(MarginWeights(0.5)),
            SCALE,
            weight_factor=0.0,
            nodes=NODES,
            parts=parts,
            shared_bytes=room,
            spare=spare,
        )
        if how in ("together", "by node"):
            tally.add_all(blocks)
        else:
            n_resident = 0 if how.startswith("only") else 1
            tally.begin_stream(blocks[:n_resident])
            with Threads(n_threads) as stream:
                stream.map(tally.add_streamed, blocks[n_resident:])
            tally.finish_stream()
    expected = expected_sums(blocks, offsets, features)
    for d in range(4):
        bins = slice(offsets[d], offsets[d + 1])
        assert_array_equal(pool[slots, bins], expected[:, bins] if d in features else before[slots, bins])
    assert_array_equal(pool[[0, 2, 4]], before[[0, 2, 4]])
    assert tally.n_rows == 271


def test_sums_of_a_stream_without_rows_are_zero():
    rng = np.random.default_rng(0)
    offsets = offsets_of(N_BINS, np.arange(4))
    pool = rng.integers(-9, 9, (5, offsets[-1], 8))
    parts = [StoredPart(np.arange(4), Slots(pool, np.array([3, 1]), offsets))]
    with Threads(3) as threads:
        tally = Tally(
            threads,
            Residuals(MarginWeights(0.5)),
            SCALE,
            weight_factor=0.0,
            nodes=NODES,
            parts=parts,
            shared_bytes=2**26,
            spare=Spare(),
        )
        tally.begin_stream([])
        tally.finish_stream()
    assert not pool[[3, 1]].any()
    assert tally.n_rows == 0


def test_few_rows_of_a_node_wait_for_those_of_other_blocks(monkeypatch):
    """Each row is returned once, of a node with many rows at once. Features that do not vary are still known not to."""
    monkeypatch.setattr(gathered, "room_bytes", lambda bins: ROW_BYTES * 90 * len(NODES))
    rng = np.random.default_rng(2)
    blocks = [
        block_of(first, n, rng)
        for first, n in [(1000, 30), (2000, 90), (3000, 1), *((n, 35) for n in range(7))]
    ]
    for block in blocks:
        block.bins[:, 1] = 1
        block.varying = np.array([True, False, True, True])
    features, offsets = np.arange(4), offsets_of(N_BINS, np.arange(4))
    rows = [Residuals(MarginWeights(0.5)).summands(block, block.spans[NODES], SCALE, 0.0) for block in blocks]
    waiting = Waiting(rows[0])
    sums = np.zeros((len(NODES), offsets[-1], 8), np.int64)

    def add(*rows):
        for own in rows:
            for m, (start, stop) in enumerate(own.spans):
                for i in own.order[start:stop]:
                    for d in features:
                        sums[m, offsets[d] + own.bins[i, d]] += own.vectors[i]
        return [np.diff(own.spans)[:, 0].tolist() for own in rows]

    added = [add(*waiting.put(own)) for own in rows]
    assert [n for now, _ in added for n in now if n] == np.diff(blocks[1].spans[NODES])[:, 0].tolist()
    together = [n for _, later in added for n in later if n]
    assert together
    assert min(together) > 60
    (rest,) = waiting.take()
    assert rest.varying.tolist() == [True, False, True, True]
    add(rest)
    assert not waiting.take()[0].n_rows
    assert_array_equal(sums, expected_sums(blocks, offsets, features))


@pytest.mark.parametrize(
    ("n_rows", "n_entries_per_thread", "n_copies"), [(200, 200, 4), (200, 300, 2), (200, 500, 1), (50, 50, 1)]
)
def test_few_rows_have_few_copies_of_sums(n_rows, n_entries_per_thread, n_copies, monkeypatch):
    """Nor are there copies if each bin has few rows."""
    offsets = offsets_of(N_BINS, np.arange(4))
    n_bins = 2 * offsets[-1]
    monkeypatch.setattr(tally_module, "ENTRIES_PER_THREAD", n_entries_per_thread)
    monkeypatch.setattr(parts_module, "ENTRIES_PER_BIN", 500 / n_bins)
    taken = []
    monkeypatch.setattr(Spare, "take", lambda self, n: taken.append(n) or np.empty(n, np.int64))
    part = StoredPart(np.arange(4), Slots(np.zeros((2, offsets[-1], 8), np.int64), np.arange(2), offsets))
    with Threads(8) as threads:
        tally = Tally(
            threads,
            Residuals(MarginWeights(0.5)),
            SCALE,
            weight_factor=0.0,
            nodes=NODES,
            parts=[part],
            shared_bytes=2**26,
            spare=Spare(),
        )
        tally.add_all([block_of(0, n_rows, np.random.default_rng(0))])
    assert len(taken) == n_copies - 1


@pytest.mark.parametrize("n_threads", [1, 3])
def test_without_rows_all_sums_are_0(n_threads):
    offsets = offsets_of(N_BINS, np.arange(4))
    pool = np.ones((2, offsets[-1], 8), np.int64)
    with Threads(n_threads) as threads:
        part = StoredPart(np.arange(4), Slots(pool, np.arange(2), offsets))
        Tally(
            threads,
            Residuals(MarginWeights(0.5)),
            SCALE,
            weight_factor=0.0,
            nodes=NODES,
            parts=[part],
            shared_bytes=0,
            spare=Spare(),
        ).add_all([])
    assert not pool.any()


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_groups_have_about_as_many_bins(n):
    n_bins = np.random.default_rng(1).integers(1, 256, 784)
    offsets = offsets_of(n_bins, np.arange(784))
    groups = feature_groups(np.arange(784), offsets, n)
    assert np.concatenate(groups).tolist() == list(range(784))
    assert len(groups) == n
    sizes = [int((n_bins[group] + 1).sum()) for group in groups]
    assert max(sizes) < 1.2 * min(sizes)
