"""The process that trains while people label: it ranks the rows of the pool, explains them, and judges the labels.

It reads the log like anybody else, and tells the server what it finds over a pipe. It ends when the server does.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from distboost.active.from_log import resume
from distboost.active.query import QueryByCommittee
from distboost.errors import DataError, DistboostError
from distboost.explanation.shap import shap_values
from distboost.io.options import storage_options

RANKED, MORE = 100, 500  # rows found at a time: by the committee, and at random for when those are used up
PAUSE = 0.25  # seconds between two looks at the log
RETRY = 10.0  # seconds after an error
NICENESS = 19  # of this process: the server answers first
SETTLED = 5.0  # seconds after which fewer labels than a batch are learned from, too
ADVICE_GROWTH = 1.1  # of the number of labels, after which they are judged again
EXPLAINED, N_FEATURES = 2 * RANKED, 30  # rows, and features of each


class Ranked(NamedTuple):
    """Rows to label.

    Attributes
    ----------
    rows, more : list of int
        The most useful first; and others, when these are used up.
    audit : set of int
        Those of them that were drawn at random.
    n_labels : int
        What the committee has learned from.
    """

    rows: list[int]
    more: list[int]
    audit: set[int]
    n_labels: int


class Hints(NamedTuple):
    """What the final model says of rows.

    Attributes
    ----------
    classes : list of str
    guesses : dict of int to tuple
        For each row, the places of the two most probable classes and their probabilities.
    order : dict of int to list
        For each row, features with what they add to the score of the first of these classes more than to that of the second,
        the largest first.
    """

    classes: list[str]
    guesses: dict[int, tuple[int, int, float, float]]
    order: dict[int, list[tuple[int, float]]]


class Judgement(NamedTuple):
    """What the labels tell: `Advice`, and when."""

    n_labels: int
    error: tuple[float, float, float, int] | None
    doubts: list[tuple[int, str, str]]
    next_steps: list[str]


class Failed(NamedTuple):
    """What went wrong."""

    text: str


def interleaved(rows: list[int], audit: set[int]) -> list[int]:
    """Return rows with those of the audit, which come last, spread evenly: so each part of them has its share."""
    useful, drawn = [row for row in rows if row not in audit], [row for row in rows if row in audit]
    places = [(i + 0.5) / len(part) for part in (useful, drawn) for i in range(len(part))]
    order = np.argsort(places, kind="stable")
    return [(useful + drawn)[i] for i in order.tolist()]


def ranking_of(learner: QueryByCommittee) -> Ranked:
    """Return the rows to label next."""
    first = learner.ledger.is_new
    rows, audit, more = learner.ranked(learner.n_initial if first else RANKED, MORE)
    drawn = set(audit.tolist())
    return Ranked(interleaved(rows.tolist(), drawn), more.tolist(), drawn, len(learner.ledger.labelled))


def hints_of(learner: QueryByCommittee, ranked: Ranked) -> Hints:
    """Return what the final model says of ranked rows."""
    model = learner.model_
    rows = np.array([*ranked.rows, *ranked.more], np.int64)
    with learner.pool.runtime(learner.home) as runtime:
        X = learner.pool.take(rows, runtime)
    P = np.asarray(model.predict_proba(X))
    best = np.argsort(-P, axis=1, kind="stable")[:, :2]
    order: dict[int, list[tuple[int, float]]] = {}
    with suppress(DataError):  # an ensemble without trees has no explanation
        explained = rows[:EXPLAINED].tolist()
        values = shap_values(model, X.first(len(explained)))
        for i, row in enumerate(explained):
            difference = values[i, :, best[i, 0]] - values[i, :, best[i, 1]]
            features = np.argsort(-np.abs(difference), kind="stable")[:N_FEATURES]
            order[row] = [(int(d), float(difference[d])) for d in features if difference[d]]
    guesses = {
        row: (int(a), int(b), float(P[i, a]), float(P[i, b]))
        for i, (row, (a, b)) in enumerate(zip(rows.tolist(), best, strict=True))
    }
    return Hints([str(label) for label in model.classes_.tolist()], guesses, order)


def judgement_of(learner: QueryByCommittee) -> Judgement:
    """Return what the labels tell."""
    n = len(learner.ledger.labelled)
    advice = learner.advice()
    error = None if advice.error is None else (advice.error.error, *advice.error[1:])
    doubts = [(doubt.row, str(doubt.label), str(doubt.rather)) for doubt in advice.doubts[:10]]
    return Judgement(n, error, doubts, advice.next_steps)


class Trainer:
    """Trains whenever labels have come, or rows are used up.

    Parameters
    ----------
    learner : QueryByCommittee
    say : callable
        say(found) tells the server.
    """

    def __init__(self, learner: QueryByCommittee, say: Callable[[Any], None]):
        self.learner, self._say = learner, say
        self.is_dry = threading.Event()  # the server has used up the rows
        self._learned: Any = None  # the labels of the last ranking
        self._ranked_at = 0.0
        self._n_judged = 0
        # The rows of the start are not to be replaced.
        self._n_first = learner.n_initial if learner.ledger.is_new else 0

    def step(self) -> bool:
        """Do what is due; return whether anything was."""
        learner, ledger = self.learner, self.learner.ledger
        ledger.update()
        labels = (ledger.labelled.copy(), len(ledger.seeds))
        if self._learned is None or self.is_dry.is_set() or self._has_news(labels):
            self.is_dry.clear()
            self._learned, self._ranked_at = labels, time.monotonic()
            ranked = ranking_of(learner) if learner.n_open_ else Ranked([], [], set(), len(labels[0]))
            self._say(ranked)
            if ranked.rows and learner.has_committee_:
                self._say(hints_of(learner, ranked))
            return True
        n = len(ledger.labelled)
        if learner.has_committee_ and n >= max(int(ADVICE_GROWTH * self._n_judged) + 1, self._n_first):
            self._n_judged = n
            self._say(judgement_of(learner))
            return True
        return False

    def _has_news(self, labels: Any) -> bool:
        """Return whether labels are to be learned from: a batch of them, or any after some seconds."""
        if labels == self._learned or len(labels[0]) < self._n_first or not self.learner.has_committee_:
            return False
        more = len(labels[0]) - len(self._learned[0])
        return more >= self.learner.batch_size or time.monotonic() > self._ranked_at + SETTLED


def train(connection: Connection, log: str, options: Mapping[str, Any]) -> None:
    """Train for a server, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to us, too
    os.nice(NICENESS)
    with storage_options(options):
        try:
            trainer = Trainer(resume(log), connection.send)
        except DistboostError as error:
            connection.send(Failed(str(error)))
            time.sleep(RETRY)  # the server starts another one
            return

        def listen() -> None:
            with suppress(EOFError, OSError):
                while connection.recv() is None:
                    trainer.is_dry.set()
            os._exit(0)

        threading.Thread(target=listen, daemon=True).start()
        while True:
            try:
                busy = trainer.step()
            except BrokenPipeError:
                return
            except DistboostError as error:
                connection.send(Failed(str(error)))
                time.sleep(RETRY)
            else:
                if not busy:
                    trainer.is_dry.wait(PAUSE)
