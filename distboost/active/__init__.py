"""Active learning: choose the rows of a pool whose labels would teach a committee the most. The pool is never loaded whole."""

from distboost.active.advice import Advice
from distboost.active.comparison import learning_curves
from distboost.active.curve import LearningCurve
from distboost.active.from_log import resume
from distboost.active.plotting import plot_curves
from distboost.active.query import QueryByCommittee

__all__ = ["Advice", "LearningCurve", "QueryByCommittee", "learning_curves", "plot_curves", "resume"]
