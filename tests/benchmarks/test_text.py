"""The benchmark of text: its tables, and a pipeline that learns from them."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from tests.benchmarks.text import TABLES, main, measured


@pytest.mark.parametrize("name", TABLES)
def test_tables_have_all_classes_in_both_parts(name):
    rows, y, encoder, n = TABLES[name](400)
    assert encoder.fit_transform(rows[:n]).shape[0] == n < len(y)
    assert set(np.unique(y[:n])) == set(np.unique(y[n:]))


def test_the_order_of_words_is_learned():
    accuracy, seconds = measured(TABLES["phrases"](800), "defaults")
    assert accuracy > 0.9
    assert seconds > 0


def test_a_line_of_the_table():
    found = CliRunner().invoke(main, ["--data", "5 topics", "--model", "defaults", "--rows", "300"])
    assert found.exit_code == 0
    assert found.output.splitlines()[-1].startswith("| 5 topics | ")
