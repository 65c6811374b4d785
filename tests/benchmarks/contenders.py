"""The compared libraries: each fit records the time after every round; accuracies after every round are measured later.

A library is imported when it is first fitted, so that a process holds only its own.
"""

from __future__ import annotations

import io
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import numpy as np

THREADS = 2

Pause = Callable[[list[float]], None]


class Clock:
    """Seconds since the fit began, one entry per round. What `pause` takes after a round does not count."""

    def __init__(self, pause: Pause | None = None) -> None:
        self.pause = pause
        self.start = time.perf_counter()
        self.seconds: list[float] = []

    def round_done(self, *_: Any) -> None:
        now = time.perf_counter()
        self.seconds.append(now - self.start)
        if self.pause is not None:
            self.pause(self.seconds)
            self.start += time.perf_counter() - now


class Contender(ABC):
    """A library with its parameters; those not given are its defaults."""

    name: str
    pause: Pause | None = None  # is called with the seconds after every round

    def __init__(self, n_threads: int = THREADS):
        self.n_threads = n_threads

    @abstractmethod
    def fit(self, X: np.ndarray, y: np.ndarray, n_rounds: int) -> np.ndarray:
        """Trains, binning included; the seconds until each round was done. Nothing is measured on the way."""

    @abstractmethod
    def predictions(self, X: np.ndarray, n_rounds: int) -> Iterator[np.ndarray]:
        """The predicted classes after each round."""

    def accuracies(self, X: np.ndarray, y: np.ndarray, n_rounds: int) -> np.ndarray:
        """Fraction of right predictions after each round."""
        return np.array([np.mean(p == y) for p in self.predictions(X, n_rounds)])


class Distboost(Contender):
    name = "distboost"

    def __init__(self, n_threads: int = THREADS, **setting: Any):
        super().__init__(n_threads)
        self.setting = setting

    def fit(self, X: np.ndarray, y: np.ndarray, n_rounds: int) -> np.ndarray:
        from distboost import GDMCBoostClassifier

        clock = Clock(self.pause)
        self.model = GDMCBoostClassifier(
            calibration=None,
            n_estimators=n_rounds,
            n_jobs=self.n_threads,
            callbacks=[clock.round_done],
            **self.setting,
        ).fit(X, y)
        return np.array(clock.seconds)

    def predictions(self, X: np.ndarray, n_rounds: int) -> Iterator[np.ndarray]:
        return self.model.staged_predict(X)


class LightGBM(Contender):
    name = "LightGBM"

    def fit(self, X: np.ndarray, y: np.ndarray, n_rounds: int) -> np.ndarray:
        import lightgbm

        clock = Clock(self.pause)
        self.model = lightgbm.LGBMClassifier(n_estimators=n_rounds, n_jobs=self.n_threads, verbose=-1)
        self.model.fit(X, y, callbacks=[clock.round_done])
        return np.array(clock.seconds)

    def predictions(self, X: np.ndarray, n_rounds: int) -> Iterator[np.ndarray]:
        # The booster, as the scikit-learn face misses the column names that an array has not.
        scores = np.zeros((len(X), self.model.n_classes_))
        for number in range(n_rounds):
            scores += self.model.booster_.predict(X, start_iteration=number, num_iteration=1, raw_score=True)
            yield np.argmax(scores, axis=1)


class XGBoost(Contender):
    def __init__(self, multi_strategy: str, n_threads: int = THREADS):
        super().__init__(n_threads)
        self.multi_strategy = multi_strategy
        self.name = f"XGBoost {multi_strategy}"

    def fit(self, X: np.ndarray, y: np.ndarray, n_rounds: int) -> np.ndarray:
        import xgboost

        class Rounds(xgboost.callback.TrainingCallback):
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                clock.round_done()
                return False

        clock = Clock(self.pause)
        self.model = xgboost.XGBClassifier(
            n_estimators=n_rounds,
            n_jobs=self.n_threads,
            tree_method="hist",
            multi_strategy=self.multi_strategy,
            callbacks=[Rounds()],
        ).fit(X, y)
        return np.array(clock.seconds)

    def predictions(self, X: np.ndarray, n_rounds: int) -> Iterator[np.ndarray]:
        from xgboost import DMatrix

        rows = DMatrix(X)
        for number in range(n_rounds):  # of one round each, added to those before
            scores = self.model.get_booster().predict(
                rows, output_margin=True, iteration_range=(number, number + 1)
            )
            rows.set_base_margin(scores)
            yield np.argmax(scores, axis=1)


class _RoundLines(io.TextIOBase):
    """Takes what a verbose fit prints: one line with the number of leaves ends a round."""

    def __init__(self, clock: Clock):
        self.clock = clock

    def write(self, text: str) -> int:
        if "leaves" in text and "Fit " not in text:
            self.clock.round_done()
        return len(text)


class ScikitLearn(Contender):
    name = "HistGradientBoosting"

    def fit(self, X: np.ndarray, y: np.ndarray, n_rounds: int) -> np.ndarray:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from threadpoolctl import threadpool_limits

        model = HistGradientBoostingClassifier(max_iter=n_rounds, early_stopping=False, verbose=2)
        with threadpool_limits(self.n_threads):
            clock = Clock(self.pause)
            with redirect_stdout(_RoundLines(clock)):
                self.model = model.fit(X, y)
        return np.array(clock.seconds)

    def predictions(self, X: np.ndarray, n_rounds: int) -> Iterator[np.ndarray]:
        return self.model.staged_predict(X)


class _CatBoostRounds:
    def __init__(self, clock: Clock):
        self.clock = clock

    def after_iteration(self, info: Any) -> bool:
        self.clock.round_done()
        return True


class CatBoost(Contender):
    """Its trees for many classes hold a vector in each leaf."""

    name = "CatBoost"

    def fit(self, X: np.ndarray, y: np.ndarray, n_rounds: int) -> np.ndarray:
        import catboost

        clock = Clock(self.pause)
        self.model = catboost.CatBoostClassifier(
            iterations=n_rounds,
            thread_count=self.n_threads,
            logging_level="Silent",
            allow_writing_files=False,
        )
        self.model.fit(X, y, callbacks=[_CatBoostRounds(clock)])
        return np.array(clock.seconds)

    def predictions(self, X: np.ndarray, n_rounds: int) -> Iterator[np.ndarray]:
        staged = self.model.staged_predict(X, ntree_end=n_rounds, thread_count=self.n_threads)
        return (found.ravel() for found in staged)


RIVALS: dict[str, Callable[[int], Contender]] = {
    "LightGBM": LightGBM,
    "XGBoost one_output_per_tree": partial(XGBoost, "one_output_per_tree"),
    "XGBoost multi_output_tree": partial(XGBoost, "multi_output_tree"),
    "CatBoost": CatBoost,
    "HistGradientBoosting": ScikitLearn,
}


def contender(name: str, n_threads: int = THREADS, **setting: Any) -> Contender:
    """A library by its name; only distboost has settings."""
    return Distboost(n_threads, **setting) if name == Distboost.name else RIVALS[name](n_threads)
