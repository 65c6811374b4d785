from __future__ import annotations

from tests.benchmarks.choose_setting import GRID, LEAVES, MISSED, choose


def test_leaves_are_chosen_for_each_data_set_and_all_else_for_all():
    directions, newton = ([MISSED] * len(GRID) for _ in LEAVES)
    scores = {"one": [*directions, *newton], "other": [*directions, *newton]}
    scores["one"][3] = scores["other"][len(GRID) + 3] = 0.2  # geometric mean 0.2
    scores["one"][5], scores["other"][5] = 0.01, MISSED - 0.1  # 0.197
    scores["one"][7] = scores["other"][7] = 0.3
    ranked, chosen = choose(scores)
    assert chosen == {"one": GRID[5], "other": GRID[5]}
    scores["other"][5] = MISSED
    scores["one"][3] = 0.19
    ranked, chosen = choose(scores)
    assert chosen == {"one": GRID[3], "other": {**GRID[3], **LEAVES[1]}}
    assert "0.20 (Newton)" in ranked.splitlines()[2]
