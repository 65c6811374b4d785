"""Active learning: a committee asks for the labels that it would learn the most from, of a pool that is never loaded whole."""

from distboost.active.curve import LearningCurve, learning_curves, plot_curves
from distboost.active.query import QueryByCommittee
from distboost.active.resumed import resume

__all__ = ["LearningCurve", "QueryByCommittee", "learning_curves", "plot_curves", "resume"]
