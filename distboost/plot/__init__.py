"""Pictures of fitted models, with matplotlib: `importance`, `tree`, `curves`."""

from distboost.plot.curve import curves
from distboost.plot.importances import importance
from distboost.plot.trees import tree

__all__ = ["curves", "importance", "tree"]
