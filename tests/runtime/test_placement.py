"""Who gets which blocks: every block has one place, and the places their shares."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from distboost.rows.messages import RowCounts
from distboost.runtime.block import Key
from distboost.runtime.cluster.placement import distribute, excess, total

KEYS = st.builds(Key, st.integers(0, 1), st.integers(0, 40))
SIZES = st.dictionaries(KEYS, st.integers(1, 1000), max_size=40)
PLACES = st.dictionaries(st.sampled_from("abcdefg"), st.tuples(st.integers(0, 5000), st.integers(1, 8)))


@given(SIZES, PLACES)
def test_every_block_is_handed_to_one_place(sizes, places):
    held = {place: rows for place, (rows, _) in places.items()}
    found = distribute(sizes, held, {place: threads for place, (_, threads) in places.items()})
    given_out = [key for keys in found.values() for key in keys]
    assert sorted(given_out) == (sorted(sizes) if places else [])
    assert all(found.values())
    assert found.keys() <= places.keys()


@given(SIZES.filter(bool), PLACES.filter(bool))
def test_blocks_go_where_rows_are_missing(sizes, places):
    """To each place, of each set, within one block the part that it has too few of its share by threads; to a full one, none."""
    total = sum(sizes.values()) + sum(rows for rows, _ in places.values())
    all_threads = sum(threads for _, threads in places.values())
    room = {
        place: max(total * threads / all_threads - rows, 0.0) for place, (rows, threads) in places.items()
    }
    held = {place: rows for place, (rows, _) in places.items()}
    found = distribute(sizes, held, {place: threads for place, (_, threads) in places.items()})
    for number in (0, 1):
        n = sum(key.number == number for key in sizes)
        for place in places:
            here = sum(key.number == number for key in found.get(place, ()))
            fair = n * room[place] / sum(room.values())
            assert abs(here - fair) <= 1 + 1e-9
            assert here == 0 or room[place] > 0


@given(SIZES, st.floats(0, 20_000))
def test_what_is_kept_is_a_fair_share(sizes, fair):
    """Within half a block; the first blocks are kept."""
    moved = excess(sizes, fair)
    kept = sorted(sizes.keys() - set(moved))
    assert kept + moved == sorted(sizes)
    n = sum(sizes[key] for key in kept)
    if kept:
        assert n < fair + sizes[kept[-1]] / 2
    if moved:
        assert n >= fair - sizes[moved[0]] / 2


def test_counts_add_up():
    """Rows are weighted if those of any block are."""
    half = 2**63
    counts = [
        RowCounts(3, 30, False, (half, 1)),
        RowCounts(2, 7, True, (half + 5, 2)),
        RowCounts(0, 0, False),
    ]
    assert total(counts) == (5, 37, True, (5, 3))
    assert total(counts[::2]) == (3, 30, False, (half, 1))
