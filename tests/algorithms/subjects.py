"""The algorithms of the registry, each in some variants: what is tested of all algorithms is tested of these."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from distboost import registry

ROUNDS = 4
MOST_ROUNDS = 30  # of any test: settings that name a value for each round name so many

# Each column without some class.
SPARSE_CODE = [[1, 0, -1, 1], [-1, 1, 0, 1], [0, -1, 1, -1], [1, 1, 1, 0]]

HALVES = [[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]

VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "cd-mcboost": {
        "depth 3": {"max_depth": 3},
        "best first": {"max_depth": None, "max_leaf_nodes": 4},
        "logistic": {"loss": "logistic"},
        "mean": {"leaf": "mean", "max_depth": 3},
        "logistic mean": {"loss": "logistic", "leaf": "mean", "max_depth": 2},
    },
    "gd-mcboost": {
        "codeword": {"leaf": "codeword", "max_depth": 2},
        "best first": {"max_depth": None, "max_leaf_nodes": 4},
        "logistic": {"loss": "logistic", "max_depth": 3},
        "logistic codeword": {"loss": "logistic", "leaf": "codeword", "max_depth": 2},
        "softmax": {"loss": "softmax", "max_depth": 3},
        "softmax codeword": {"loss": "softmax", "leaf": "codeword", "max_depth": 2},
        "newton": {"loss": "softmax", "leaf": "newton", "max_depth": 3},
    },
    "adaboost-mm": {
        "stumps": {"max_depth": 1},
        "fixed": {"strategy": "fixed", "edge": 0.2, "max_depth": 3},
        "fixed steps": {
            "strategy": "fixed",
            "edge": np.linspace(0.4, 0.1, MOST_ROUNDS).tolist(),
            "alphas": np.linspace(0.6, 0.3, MOST_ROUNDS).tolist(),
            "max_depth": 3,
        },
        "os-exponential": {"strategy": "os-exponential", "edge": 0.2, "eta": 0.3, "max_depth": 3},
        "os-zero-one": {"strategy": "os-zero-one", "edge": 0.2, "max_depth": 3},
    },
    "stagewise": {
        "logistic": {"loss": "logistic"},
        "depth 2": {"max_depth": 2},
        "bounded steps": {"max_step": 0.3, "learning_rate": 1.0},
        "class steps": {"class_step": 0.3, "learning_rate": 1.0},
        "mean": {"loss": "logistic", "nu": 0.01, "nu_unit": "mean"},
    },
    "gamble": {"by level": {"max_leaf_nodes": None, "max_depth": 2}},
    "rebel": {
        "depth 2": {"max_depth": 2},
        "similarity": {"weak_learner": "similarity"},
        "similarity sign": {"weak_learner": "similarity", "output": "sign"},
        "similarity one-point": {"weak_learner": "similarity", "similarity": "one-point"},
    },
    "one-vs-all": {"depth 2": {"max_depth": 2}},
    "adaboost-m1": {"best first": {"max_depth": None, "max_leaf_nodes": 5}},
    "adaboost-mh": {
        "depth 3": {"max_depth": 3},
        "real": {"vote": "real"},
        "label": {"vote": "label", "max_depth": 3},
    },
    "adaboost-ecc": {"colorings": {"colorings": HALVES * (MOST_ROUNDS // 3)}, "depth 2": {"max_depth": 2}},
    "adaboost-m2": {"one label": {"vote": "label"}, "stumps": {"max_depth": 1}},
    "adaboost-mr": {"one label": {"vote": "label"}},
    "adaboost-mo": {"depth 2": {"max_depth": 2}},
    "all-pairs": {"sum": {"decoding": "sum", "max_depth": 2}},
    "output-code": {"exhaustive": {"code": "exhaustive"}, "matrix": {"code": SPARSE_CODE, "max_depth": 2}},
    "samme": {"depth 2": {"max_depth": 2}},
    "samme-r": {"best first": {"max_depth": None, "max_leaf_nodes": 4}},
    "gentle-adaboost": {"4 leaves": {"max_depth": None, "max_leaf_nodes": 4}},
    "logitboost": {"by level": {"max_depth": 2, "max_leaf_nodes": None}},
    "aoso-logitboost": {"by level": {"max_depth": 3, "max_leaf_nodes": None, "learning_rate": 1.0}},
    "jointboost": {"some features": {"max_features": 0.6, "learning_rate": 0.5}},
    "gradboost": {"penalty": {"penalty": 0.01}},
    "structboost": {"lighter": {"C": 20.0, "tolerance": 0.01}},
    "multiboost": {"logistic": {"loss": "logistic", "nu": 0.1}},
}

CORRECTIVE = {"multiboost", "structboost"}  # every round rewrites the coefficients of all


@dataclass(frozen=True)
class Subject:
    """An algorithm with some settings."""

    algorithm: str
    variant: str

    def __str__(self) -> str:
        return f"{self.algorithm} {self.variant}".strip()

    @property
    def settings(self) -> dict[str, Any]:
        return VARIANTS[self.algorithm][self.variant] if self.variant else {}

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of each run. Calibration is the same for all variants: the first one of each algorithm is calibrated."""
        is_first = self.variant == next(iter(VARIANTS[self.algorithm]))
        return {"n_estimators": ROUNDS, **({} if is_first else {"calibration": None}), **self.settings}

    def make(self, **parameters):
        """The estimator; the test's parameters go before the variant's."""
        place = "distboost.baselines" if self.algorithm in registry.BASELINES else "distboost"
        names = {name: estimator for estimator, name in registry.estimator_names(registry.ALGORITHMS).items()}
        estimator = getattr(importlib.import_module(place), names[self.algorithm])
        return estimator(**{"n_jobs": 1, **self.parameters, **parameters})


SUBJECTS = [
    Subject(name, variant) for name in registry.ALGORITHMS for variant in ("", *VARIANTS.get(name, ()))
]
TREES = [subject for subject in SUBJECTS if "similarity" not in subject.variant]
OF_SUMS = [
    subject for subject in TREES if str(subject) != "all-pairs"
]  # its scores are votes: no sums over trees


def sampled(subject: Subject) -> dict[str, Any]:
    """Parameters that have each round see some rows and features only; a totally corrective step needs all rows."""
    rows = {} if subject.algorithm in CORRECTIVE else {"subsample": 0.6}
    return {"max_features": 0.6, "random_state": 3, **rows}


# A variant of each kind of learner and of parameters: growth, an element for each round, raw values.
OF_EACH_KIND = {
    "gd-mcboost best first",
    "gd-mcboost newton",
    "adaboost-mm fixed steps",
    "rebel similarity",
    "rebel depth 2",
    "adaboost-mh real",
}
