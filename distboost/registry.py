"""The registry of algorithms. A line here makes one an estimator, a choice of the command line and a subject of the tests.

This module imports no algorithm: the names must be available without slow imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# The place of each algorithm, by its name on the command line and in model files. Its estimator is named after the class.
PAPERS = {
    "cd-mcboost": "distboost.algorithms.mcboost.CDMCBoost",
    "gd-mcboost": "distboost.algorithms.mcboost.GDMCBoost",
    "adaboost-mm": "distboost.algorithms.adaboost_mm.AdaBoostMM",
    "stagewise": "distboost.algorithms.stagewise.StagewiseBoost",
    "gamble": "distboost.algorithms.gamble.GAMBLE",
    "rebel": "distboost.algorithms.rebel.REBEL",
}

# The systems that the papers compare with, in `distboost.baselines`.
BASELINES = {
    "one-vs-all": "distboost.algorithms.classic.committees.OneVsAllAdaBoost",
    "adaboost-m1": "distboost.algorithms.classic.class_votes.AdaBoostM1",
    "adaboost-m2": "distboost.algorithms.classic.adaboost_m2.AdaBoostM2",
    "adaboost-mr": "distboost.algorithms.classic.adaboost_m2.AdaBoostMR",
    "adaboost-mh": "distboost.algorithms.classic.adaboost_mh.AdaBoostMH",
    "adaboost-ecc": "distboost.algorithms.classic.adaboost_ecc.AdaBoostECC",
    "adaboost-mo": "distboost.algorithms.classic.committees.AdaBoostMO",
    "all-pairs": "distboost.algorithms.classic.output_codes.AllPairs",
    "output-code": "distboost.algorithms.classic.output_codes.OutputCode",
    "samme": "distboost.algorithms.classic.class_votes.SAMME",
    "samme-r": "distboost.algorithms.classic.class_votes.SAMMER",
    "gentle-adaboost": "distboost.algorithms.classic.committees.GentleAdaBoost",
    "logitboost": "distboost.algorithms.classic.logitboost.LogitBoost",
    "aoso-logitboost": "distboost.algorithms.classic.logitboost.AOSOLogitBoost",
    "jointboost": "distboost.algorithms.classic.jointboost.JointBoost",
    "gradboost": "distboost.algorithms.classic.gradboost.GradBoost",
    "structboost": "distboost.algorithms.classic.structboost.StructBoost",
    "multiboost": "distboost.algorithms.classic.multiboost.MultiBoost",
}

ALGORITHMS = PAPERS | BASELINES


def estimator_names(places: dict[str, str]) -> dict[str, str]:
    """Return the name of each algorithm by the name of its estimator."""
    return {place.rpartition(".")[2] + "Classifier": name for name, place in places.items()}


def algorithm(name: str) -> Any:
    """Return the algorithm with this name; raise KeyError if there is none."""
    module, _, attribute = ALGORITHMS[name].rpartition(".")
    return getattr(import_module(module), attribute)
