"""Saberian & Vasconcelos: results of MCBoost.

M. Saberian and N. Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011.

Test accuracy in % on UCI data sets with their official splits. The paper's "landsat" is satimage; its sixth data set, isolet, is
not available here. The reference is an independent NumPy implementation of the same formulas, with exact thresholds, in
`tests/reference`: `python -m tests.reference --system cd-mcboost --data satimage` prints its test error, `--help` the systems.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from scipy.stats import multivariate_normal

import distboost
from distboost import baselines
from examples.papers.common import (
    QUICK_ROUNDS,
    Method,
    Picture,
    Split,
    Table,
    accuracy,
    after,
    error_curve,
    main,
    official,
)

DATASETS = ("satimage", "letter", "pendigits", "optdigits", "shuttle")

STUMPS = {
    "one-vs-all": Method(
        lambda K: baselines.OneVsAllAdaBoostClassifier(calibration=None, n_estimators=20, n_jobs=1),
        paper=(84.80, 50.92, 86.56, 89.93, 87.11),
        reference=(84.75, 70.38, 88.36, 89.43, 99.93),
    ),
    "AdaBoost.MH": Method(
        lambda K: baselines.AdaBoostMHClassifier(calibration=None, n_estimators=20 * K, n_jobs=1),
        paper=(47.70, 15.73, 24.41, 73.62, 79.16),
        reference=(86.05, 78.72, 91.28, 92.43, 99.93),
    ),
    "CD-MCBoost, 20 (K - 1)": Method(
        lambda K: distboost.CDMCBoostClassifier(calibration=None, n_estimators=20 * (K - 1), n_jobs=1),
        paper=(85.70, 49.60, 89.51, 92.82, 88.01),
    ),
    "CD-MCBoost, 20 K": Method(
        lambda K: distboost.CDMCBoostClassifier(calibration=None, n_estimators=20 * K, n_jobs=1),
        paper=(85.70, 49.60, 89.51, 92.82, 88.01),
        reference=(84.65, 71.88, 91.17, 92.60, 99.99),
    ),
}

TREES = {
    "AdaBoost.M1": Method(
        lambda K: baselines.AdaBoostM1Classifier(calibration=None, n_estimators=50, max_depth=2, n_jobs=1),
        paper=(72.85, None, None, None, 96.45),
        reference=(62.15, 3.90, 10.38, 9.91, 99.59),
    ),
    "SAMME": Method(
        lambda K: baselines.SAMMEClassifier(calibration=None, n_estimators=50, max_depth=2, n_jobs=1),
        paper=(79.80, 45.65, 83.82, 87.53, 99.70),
        reference=(80.45, 42.90, 85.73, 85.31, 99.96),
    ),
    "AdaBoost.MM, adaptive": Method(
        lambda K: distboost.AdaBoostMMClassifier(calibration=None, n_estimators=50, max_depth=2, n_jobs=1),
        paper=(83.95, 42.00, 80.53, 86.20, 99.55),
        reference=(85.85, 50.78, 86.19, 90.09, 99.98),
    ),
    "AdaBoost.MM, edge 0.1": Method(
        lambda K: distboost.AdaBoostMMClassifier(
            strategy="fixed", edge=0.1, n_estimators=50, max_depth=2, n_jobs=1
        ),
        paper=(83.95, 42.00, 80.53, 86.20, 99.55),
        reference=(86.25, 61.30, 91.22, 91.71, 99.92),
    ),
    "GD-MCBoost, codeword": Method(
        lambda K: distboost.GDMCBoostClassifier(leaf="codeword", n_estimators=50, max_depth=2, n_jobs=1),
        paper=(86.65, 59.65, 92.94, 92.32, 99.73),
        reference=(86.65, 61.42, 92.62, 91.60, 99.99),
    ),
    "GD-MCBoost, direction": Method(
        lambda K: distboost.GDMCBoostClassifier(leaf="direction", n_estimators=50, max_depth=2, n_jobs=1),
        reference=(86.75, 79.40, 95.77, 94.71, 99.99),
    ),
}

# Figure 2: three Gaussian classes, for which the best rule is known.

MEANS = np.array([[1.0, 2.0], [-1.0, 0.0], [2.0, -1.0]])
COVARIANCES = np.array([[[1, 0.5], [0.5, 2]], [[1, 0.3], [0.3, 1]], [[0.4, 0.1], [0.1, 0.8]]])
ROWS = 1000


def gaussians(name: str) -> Iterator[Split]:
    """Training and test rows of equally probable classes."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = rng.integers(3, size=2 * ROWS)
        X = MEANS[y] + np.einsum(
            "kij,kj->ki", np.linalg.cholesky(COVARIANCES)[y], rng.normal(size=(2 * ROWS, 2))
        )
        yield Split(X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:])


def beside_bayes(model, split: Split) -> list[float]:
    """Bayes' error on the test rows, and the error after some rounds."""
    density = [
        multivariate_normal(mean, cov).pdf(split.X_test) for mean, cov in zip(MEANS, COVARIANCES, strict=True)
    ]
    bayes = 100 * np.mean(np.argmax(density, axis=0) != split.y_test)
    curve = error_curve(model, split)
    return [float(bayes), *(after(curve, n) for n in (1, 10, 50, 100))]


def draw_predictions(canvas, quick: bool) -> None:
    """The paper's figure 2: f(x) of the test rows in the plane of the codewords, and these, dashed."""
    canvas.set_size_inches(10, 3.6)
    split = next(gaussians("Gaussians"))
    codewords = np.array(
        [[np.cos(angle), np.sin(angle)] for angle in np.pi / 2 + 2 * np.pi * np.arange(3) / 3]
    )
    for axes, n in zip(canvas.subplots(1, 3), (1, 10, QUICK_ROUNDS if quick else 100), strict=True):
        model = distboost.CDMCBoostClassifier(calibration=None, n_estimators=n, n_jobs=1)
        # The scores are the products of f and the codewords, whose squares sum to 3/2 in each direction.
        f = model.fit(split.X, split.y).decision_function(split.X_test) @ codewords / 1.5
        axes.scatter(*f.T, c=split.y_test, cmap="Set2", vmin=0, vmax=7, s=6)
        reach = 1.1 * np.abs(f).max()
        for codeword in codewords:
            axes.plot(*np.outer(codeword, (0, reach)), "--", color="black", linewidth=1)
        axes.set(
            title=f"{n} round{'s' * (n > 1)}", aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach)
        )


TABLES = (
    Table(
        name="figure_2",
        caption="Three Gaussian classes in two dimensions, 1,000 rows to learn from and 1,000 test rows, stumps: test errors in "
        "%, mean (standard deviation) of 10 draws.",
        datasets=("Gaussians",),
        methods={
            "CD-MCBoost": Method(
                lambda K: distboost.CDMCBoostClassifier(calibration=None, n_estimators=100, n_jobs=1),
                paper=(11.30,),
            )
        },
        splits=gaussians,
        measure=beside_bayes,
        columns=("Bayes", "1 round", "10 rounds", "50 rounds", "100 rounds"),
        quick=("Gaussians",),
        picture=Picture(
            "saberian_vasconcelos_figure_2.png",
            "Predictions of the test rows and codewords after 1, 10 and 100 rounds",
            draw_predictions,
        ),
        comment="The picture shows f(x) of the first draw's test rows, and the codewords. As in the paper, later rounds move f "
        "away from the origin, most of it to the side of the codeword of its class. The paper has one draw, with a Bayes error "
        "of 11.13 % on the test rows, 11.30 % after 100 rounds.",
    ),
    Table(
        name="table_1",
        caption="Decision stumps: one-vs-all with 20 rounds per class, the others with the same total, 20 K. CD-MCBoost "
        "has K - 1 coordinates, so that 20 (K - 1) stumps are 20 per coordinate.",
        datasets=DATASETS,
        methods=STUMPS,
        splits=official,
        measure=accuracy,
        quick=("satimage",),
        comment="distboost agrees with the reference in every figure (0.01 is rounding). The paper's AdaBoost.MH is another "
        "system. It learns one binary problem on K copies of the rows, with the number of the class as a further feature; here "
        "each leaf has a vote for each class. A stump on such copies tests either the class or a feature, so a sum of stumps "
        "ranks the classes alike for all rows and predicts one of them. The reference's version has 23.05 % on satimage, "
        "10.13 % on optdigits and, on shuttle, exactly the paper's 79.16 %: the share of the largest class in the test rows. "
        "The paper's other figures of AdaBoost.MH are higher than such a system's; why is not known. With the other "
        "methods, the paper's figures on letter and shuttle are lower than ours. A possible reason is that the paper used few "
        "thresholds: with 4 or 5 bins of equal width per feature, the reference's one-vs-all has 55.7 and 60.6 % on "
        "letter, 88.3 and 93.4 % on shuttle. The K copies and the bins of equal width are not in `tests/reference`.",
    ),
    Table(
        name="table_2",
        caption="Trees of depth 2, 50 rounds. The paper's AdaBoost-Cost is AdaBoost.MM; the paper does not state its edges.",
        datasets=DATASETS,
        methods=TREES,
        splits=official,
        measure=accuracy,
        quick=("satimage",),
        comment="distboost agrees with the reference in every figure (0.01 is rounding). AdaBoost.M1 stops if its first "
        "tree has an error of 1/2 or more, as on letter, pendigits and optdigits, for which the paper has no figure.",
    ),
)

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, TABLES))
