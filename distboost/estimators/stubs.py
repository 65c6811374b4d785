"""Write the type stubs of the estimators for editors and type checkers: `python -m distboost.estimators.stubs`.

The estimators are made on first use, so no source file contains their parameters.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import Any

import distboost
from distboost import registry
from distboost.algorithms.constraints import StrOptions
from distboost.estimators.factory import estimator

_HEAD = """# Written by `python -m distboost.estimators.stubs`: do not edit.

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from distboost.estimators.base import BoostingClassifier
from distboost.training.loop import Callback
"""

_FUNCTIONS = """from distboost import baselines as baselines
from distboost import errors as errors
from distboost import export as export
from distboost import plot as plot
from distboost.algorithms.base import Algorithm as Algorithm
from distboost.estimators.evaluating import evaluate as evaluate
from distboost.estimators.factory import classifier as classifier
from distboost.estimators.factory import load as load
from distboost.estimators.plan import plan as plan
from distboost.evaluation.metrics import Evaluation as Evaluation
from distboost.explanation.shap import expected_scores as expected_scores
from distboost.explanation.shap import shap_values as shap_values
from distboost.export.text import export_text as export_text
from distboost.model.learned import Calibration as Calibration
from distboost.model.learned import Progress as Progress
from distboost.reporting.report import report as report
from distboost.selection.search import SearchResult as SearchResult
from distboost.selection.search import search as search
from distboost.selection.validation import CrossValidation as CrossValidation
from distboost.selection.validation import cross_validate as cross_validate
from distboost.training.binning import bin as bin
from distboost.training.events import EventLog as EventLog
from distboost.training.memory_plan import MemoryPlan as MemoryPlan
from distboost.training.record import TrainingRecord as TrainingRecord

__version__: str
"""


def stubs() -> dict[Path, str]:
    """Return the text of each stub, by its path."""
    package = Path(distboost.__file__).parent
    return {
        package / "__init__.pyi": _HEAD + _FUNCTIONS + _classes(registry.PAPERS),
        package / "baselines.pyi": _HEAD + _classes(registry.BASELINES),
    }


def _classes(places: dict[str, str]) -> str:
    return "".join(_class(estimator(name)) for name in sorted(places))


def _class(made: type[Any]) -> str:
    given = [(f.name, _type(f), f.default) for f in fields(made)]
    attributes = "".join(f"    {name}: {kind}\n" for name, kind, _ in given)
    parameters = "".join(f"        {name}: {kind} = {default!r},\n" for name, kind, default in given)
    documentation = textwrap.indent(made.__doc__ or "", "    ").strip().replace("\\", "\\\\")
    return (
        f'\nclass {made.__name__}(BoostingClassifier):\n    """{documentation}\n    """\n\n{attributes}\n'
        f"    def __init__(\n        self,\n        *,\n{parameters}    ) -> None: ...\n"
    )


def _type(parameter: Any) -> str:
    """Return the type of a parameter; for a choice of texts, a Literal."""
    for allowed in parameter.metadata.get("allowed", ()):
        if isinstance(allowed, StrOptions):
            options = ", ".join(map(repr, sorted(allowed.options)))
            return re.sub(r"\bstr\b", f"Literal[{options}]", parameter.type)
    return str(parameter.type)


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
