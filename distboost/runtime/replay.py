"""The log of a training run that is replayed on rows which are read again."""

from __future__ import annotations

from dataclasses import dataclass, replace

from distboost.rows.messages import NO_SPLITS, HistogramQuestion, Step, SumsQuestion, UpdateQuestion


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
        if isinstance(question, HistogramQuestion):
            question = replace(question, expansion=None)  # a replay sums nothing
        if not isinstance(question, UpdateQuestion):
            return replace(self, questions=(*self.questions, question))
        begun = () if question.root is None else (HistogramQuestion(question.root, NO_SPLITS),)
        return ReplayLog(
            question.round, question.steps if question.from_zero else (*self.steps, *question.steps), begun
        )


EMPTY_LOG = ReplayLog()
