"""scikit-learn's own checks, none of them expected to fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from distboost.estimators.factory import estimator
from distboost.registry import ALGORITHMS

# Of these estimators, all checks are run. All classes are made by one function and share what reads arguments and data.
WHOLE = {"gd-mcboost", "gamble"}
# Of the others, these are left to the soak, and those that repeat a check with memory maps or in single precision:
# they train, and ask nothing about what is learned.
TRAINING = {
    "check_array_api_input",
    "check_class_weight_classifiers",
    "check_classifier_data_not_an_array",
    "check_classifiers_classes",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_score_takes_y",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
    "check_supervised_y_2d",
}


# Settings that change what is learned as much as another algorithm does.
VARIANTS = {"newton": ("gd-mcboost", {"loss": "softmax", "leaf": "newton"})}


def checks() -> Iterator:
    subjects = [(name, "", name in WHOLE, {}) for name in ALGORITHMS]
    subjects += [(name, f"-{variant}", False, given) for variant, (name, given) in VARIANTS.items()]
    for algorithm, variant, whole, given in subjects:
        given = {"n_estimators": 3, **({} if whole else {"calibration": None}), **given}
        for model, check in estimator_checks_generator(estimator(algorithm)(**given)):
            name, options = check.func.__name__, check.keywords
            soak = not whole and (name in TRAINING or options)
            listed = ",".join(f"{key}={value}" for key, value in options.items())
            yield pytest.param(
                model,
                check,
                marks=[pytest.mark.soak] * bool(soak),
                id=f"{type(model).__name__}{variant}-{name}({listed})",
            )


@pytest.mark.parametrize(("model", "check"), [*checks()])
def test_estimator(model, check):
    check(model)
