from __future__ import annotations

import pytest

from tests.algorithms.subjects import OF_EACH_KIND

# What the engine does alike for all is tested with each algorithm as it is, without variants.
OF_THE_ENGINE = {"test_workers_change_nothing", "test_streaming_changes_nothing"}
# All of it with categories as well, but only of these: an algorithm of each kind of statistic.
WITH_CATEGORIES = {"gd-mcboost", "adaboost-mm", "stagewise", "gamble", "rebel", "one-vs-all"}
# This, too, but also with a variant of each kind of learner and of parameters: growth, an element for each round, raw values.
OF_THE_LEARNER = {
    "test_float32_scores",
    "test_class_weights_are_weights_of_the_rows",
    "test_labels_of_text",
    "test_early_stopping_keeps_the_best_round",
    "test_a_run_on_some_rows_resumes_from_a_checkpoint",
    "test_pickle_and_clone",
    "test_chunks_and_threads_change_nothing",
    "test_draws_do_not_depend_on_chunks",
    "test_rounds_begun_by_the_update_before_are_the_same",
    "test_command_line",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of what the engine does alike, some variants are tested, and the others in the soak."""
    for item in items:
        name = getattr(item, "originalname", "")
        subject = item.callspec.params.get("subject") if hasattr(item, "callspec") else None
        if subject is None:  # others have tests of that name, too
            continue
        has_categories = (
            item.path.stem == "test_contract_of_categories" and name != "test_categories_are_split"
        )
        if name not in OF_THE_ENGINE | OF_THE_LEARNER:
            is_tested = not has_categories or subject.variant or subject.algorithm in WITH_CATEGORIES
        elif subject.variant:
            is_tested = name in OF_THE_LEARNER and str(subject) in OF_EACH_KIND
        else:
            is_tested = not has_categories or subject.algorithm in WITH_CATEGORIES
        if not is_tested:
            item.add_marker(pytest.mark.soak)
