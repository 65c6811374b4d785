"""Values in messages: as one string of bytes if they are small, else left to Dask."""

from __future__ import annotations

import numpy as np
import pytest
from distributed.protocol import Serialize
from numpy.testing import assert_array_equal

from distboost.rows.messages import BestSplits, Expanded
from distboost.runtime.cluster.relay import SMALL, packed, unpacked


def test_a_small_value_is_one_string_and_comes_back():
    sent = Expanded(np.arange(3), BestSplits.none(4, 2))
    message = packed(sent)
    assert isinstance(message, bytes)
    found = unpacked(message)
    assert_array_equal(found.sums, sent.sums)
    for ours, theirs in zip(found.best, sent.best, strict=True):
        assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("writeable", [True, False])
def test_arrays_stay_writeable_or_not(writeable):
    array = np.zeros(5)
    array.flags.writeable = writeable
    assert unpacked(packed([array]))[0].flags.writeable == writeable


@pytest.mark.parametrize("large", [np.zeros(SMALL + 1, np.uint8), "x" * (SMALL + 1)])
def test_a_large_value_is_left_to_dask(large):
    """It sends arrays without copying them, and strings in parts."""
    message = packed((1, large))
    assert isinstance(message, Serialize)
    assert message.data[1] is large
    assert unpacked(message.data) is message.data


def test_many_small_arrays_make_a_large_value():
    assert isinstance(packed([np.zeros(SMALL // 16, np.uint8)] * 17), bytes)  # the same array
    assert isinstance(packed([np.zeros(SMALL // 16, np.uint8) for _ in range(17)]), Serialize)


def test_what_pickle_cannot_send_is_sent_by_cloudpickle():
    """A metric of a notebook is a function that no module has."""
    assert unpacked(packed((lambda x: x + 1,)))[0](2) == 3
