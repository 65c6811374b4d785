"""The log of a training run that is replayed on rows which are read again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from distboost.rows.messages import HistogramQuestion, Splits, Step, SumsQuestion, UpdateQuestion

NO_NODES = np.zeros(0, np.int64)


@dataclass(frozen=True)
class ReplayLog:
    """The steps and questions that bring rows which are read again to the same state as the others.

    Attributes
    ----------
    round : int
        The last round whose steps were added to the scores.
    steps : tuple of Steps
        The steps of all rounds.
    questions : tuple of HistogramQuestion or SumsQuestion
        The questions since that round.
    """

    round: int = 0
    steps: tuple[Step, ...] = ()
    questions: tuple[HistogramQuestion | SumsQuestion, ...] = ()

    def with_question(self, question: HistogramQuestion | SumsQuestion | UpdateQuestion) -> ReplayLog:
        """Return a log with one more question."""
        if not isinstance(question, UpdateQuestion):
            return replace(self, questions=(*self.questions, question))
        begun = (
            ()
            if question.root is None
            else (HistogramQuestion(question.root, Splits.empty(), NO_NODES, NO_NODES),)
        )
        return ReplayLog(
            question.round, question.steps if question.from_zero else (*self.steps, *question.steps), begun
        )


EMPTY_LOG = ReplayLog()
