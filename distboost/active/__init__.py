"""Active learning: a committee asks for the labels that it would learn the most from, of a pool that is never loaded whole."""

from distboost.active.comparison import learning_curves
from distboost.active.curve import LearningCurve
from distboost.active.from_log import resume
from distboost.active.plotting import plot_curves
from distboost.active.query import QueryByCommittee

__all__ = ["LearningCurve", "QueryByCommittee", "learning_curves", "plot_curves", "resume"]
