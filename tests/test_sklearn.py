"""scikit-learn's own checks, none of them expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from distboost.estimators.factory import estimator
from distboost.registry import ALGORITHMS


@parametrize_with_checks([estimator(name)(n_estimators=10) for name in ALGORITHMS])
def test_estimator(estimator, check):
    check(estimator)
