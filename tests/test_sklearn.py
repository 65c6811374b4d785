"""scikit-learn's own checks, none of them expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from distboost import GAMBLEClassifier, GDMCBoostClassifier


@parametrize_with_checks([GDMCBoostClassifier(n_estimators=5), GAMBLEClassifier(n_estimators=5)])
def test_estimator(estimator, check):
    check(estimator)
