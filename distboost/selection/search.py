"""Search for parameters by cross-validation on rows that are binned once."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from distboost import __version__
from distboost.errors import ArgumentError, CheckpointError, DataError
from distboost.estimators.parameters import CommonParameters, adjusted, algorithm_of, deciding_parameters
from distboost.estimators.validation import Given
from distboost.evaluation.metrics import chosen
from distboost.evaluation.results import as_json
from distboost.io.files import publish, read
from distboost.io.options import storage_options, url_of
from distboost.io.storage import local_path, only_writer
from distboost.model.learned import Learned
from distboost.selection.ground import Ground, Grounds, Groups, check_estimator, check_folds, opened
from distboost.selection.judging import Scoring
from distboost.selection.trial import trials_shown, tried
from distboost.training.events import append_line, cut_incomplete_line

NAME = "trials.jsonl"


class Result(NamedTuple):
    """The result of one run.

    Attributes
    ----------
    score : float
    fit_time, score_time : float
        Seconds.
    """

    score: float
    fit_time: float
    score_time: float


def key_of(model: CommonParameters, ground: Ground, fold: int, metric: str) -> str:
    """Return the digest of all that decides the result of a training run."""
    decides = [
        __version__,
        ground.identity,
        fold,
        metric,
        model.algorithm_name,
        deciding_parameters(model),
    ]
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


class KeptResults:
    """The results that are known, by their keys. New ones are written to a file, a line of JSON each, unless there is none.

    A key is a digest of all that decides a result: the rows, their folds, the fold that was left out, the parameters, the metric,
    and the version of distboost. So a search that was killed goes on, and another search over the same rows uses its results.
    """

    def __init__(self, file: str | None = None):
        self._file = file
        self._content = b""  # of a file in an object store, which cannot append
        self._known: dict[str, Result] = {}
        if file is None:
            return
        path = local_path(file)
        if path is not None:
            cut_incomplete_line(path)
        with suppress(FileNotFoundError):
            self._content = read(file)
        for number, line in enumerate(self._content.splitlines()):
            key, result = _parsed(line, f"line {number + 1} of {file}")
            self._known[key] = result

    def get(self, key: str) -> Result | None:
        """Return the result with this key, if it is known."""
        return self._known.get(key)

    def add(self, key: str, result: Result, about: dict[str, Any]) -> None:
        """Write a result. `about` is for human readers."""
        self._known[key] = result
        if self._file is None:
            return
        line = json.dumps({"key": key, **result._asdict(), **about}).encode() + b"\n"
        path = local_path(self._file)
        if path is not None:
            append_line(path, line)
        else:
            self._content += line
            publish(self._file, self._content)


def _parsed(line: bytes, place: str) -> tuple[str, Result]:
    try:
        found = json.loads(line)
        key, result = found["key"], Result(*(found[name] for name in Result._fields))
        if not (isinstance(key, str) and all(isinstance(value, float) for value in result)):
            raise TypeError("a field has another type")
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{place} is not a result of a search ({type(error).__name__}: {error}).",
            remedy="Remove this line, or choose another folder.",
            where=place,
        ) from error
    return key, result


@contextmanager
def kept_results(folder: str | os.PathLike[str] | None) -> Iterator[KeptResults]:
    """Open the results in a folder, or at a URL, which no other process writes meanwhile. None: they are not kept."""
    if folder is None:
        yield KeptResults()
        return
    url = url_of(folder, "checkpoint").rstrip("/")
    with only_writer(url):
        yield KeptResults(f"{url}/{NAME}")


class Rung(NamedTuple):
    """A stage of a search: the number of settings, and the part of their rounds that they are trained for."""

    n_settings: int
    divisor: int

    def rounds(self, n_estimators: int) -> int:
        """Return the rounds of a setting with so many in all."""
        return math.ceil(n_estimators / self.divisor)


def rungs_of(n_settings: int, halving: int | None) -> list[Rung]:
    """Return the stages of a search. `halving`: one of so many settings goes on; None: all have all rounds.

    The last stage has at most `halving` settings, with all rounds.

    >>> rungs_of(12, 3)
    [Rung(n_settings=12, divisor=9), Rung(n_settings=4, divisor=3), Rung(n_settings=2, divisor=1)]
    >>> rungs_of(12, None)
    [Rung(n_settings=12, divisor=1)]
    """
    if halving is None:
        return [Rung(n_settings, 1)]
    if not (isinstance(halving, int) and halving >= 2):
        raise DataError.expected("``halving``", halving, "a whole number of at least 2, or None")
    left = [n_settings]
    while left[-1] > halving:
        left.append(math.ceil(left[-1] / halving))
    return [Rung(n, halving ** (len(left) - 1 - number)) for number, n in enumerate(left)]


def check_halving(models: Sequence[CommonParameters]) -> None:
    """Raise DataError if a training run of one of them cannot go on with more rounds."""
    for model in models:
        if "n_estimators" in algorithm_of(model, 2).fixed_parameters:
            raise DataError(
                f"``halving`` trains few rounds first, but ``{type(model).__name__}`` with these parameters depends on the "
                "number of all rounds.",
                remedy="``no_halving|Set halving=None``.",
            )


log = logging.getLogger("distboost")

Setting = Mapping[str, Any]


def search(
    estimator: Any,
    space: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    X: Any,
    y: Any = None,
    folds: int = 5,
    scoring: str = "accuracy",
    *,
    n_iter: int | None = None,
    halving: int | None = None,
    groups: Any = None,
    tile_size: int | Mapping[str, int] | None = None,
    sample_weight: Any = None,
    random_state: int = 0,
    refit: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: int = 0,
) -> SearchResult:
    """Find the parameters whose models are best on rows that they have not learned from.

    Each setting is judged as by `cross_validate`: on the same folds, by rows that are binned once, where `fit` would run. One
    training runs after another, with all threads or workers, within the estimator's `memory_limit`. Settings of `max_bins` or
    `random_state` have bins of their own. The scores do not depend on where the search runs.

    Parameters
    ----------
    estimator : classifier
        An estimator of distboost. It stays as it is: clones are trained. Only the refit writes its checkpoint.
    space : mapping, or sequence of mappings
        Lists of values by the names of parameters: all combinations are tried. With `n_iter`, values may also be distributions
        of `scipy.stats`. As for scikit-learn's `ParameterGrid` and `ParameterSampler`.
    X, y, folds, groups, tile_size, sample_weight
        As for `cross_validate`.
    scoring : str, default="accuracy"
        The metric to maximise: one of those of `cross_validate`, with `neg_` before losses, as "neg_log_loss". For those of
        probabilities, each run is calibrated as the setting's `calibration` says, else none is.
    n_iter : int or None, default=None
        The number of settings to draw from the space; all of them, if it has fewer. None: all combinations.
    halving : int or None, default=None
        Train all settings for few rounds. One of `halving` settings, the best, goes on with `halving` times as many rounds, from
        the rounds that it has, and so on; the last ones, at most `halving`, have all rounds. None: every setting has all rounds.
    random_state : int, default=0
        The seed of the folds and of the settings that are drawn.
    refit : bool, default=True
        Whether to fit the best setting to all rows.
    checkpoint : str, path or None, default=None
        Folder or URL for the results of finished runs. A search that was interrupted, and called again with the same
        arguments, goes on after these. A search of other settings over the same rows and folds uses those that it has in common.
    verbose : int, default=0
        1: show a progress bar of the runs.

    Returns
    -------
    SearchResult

    Raises
    ------
    ValueError
        If a parameter of a setting is invalid. All are checked before the first training.
    distboost.errors.DataError
        If the data cannot be used, or cannot be divided into so many folds.

    Examples
    --------
    >>> import distboost
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"max_depth": [1, 3], "learning_rate": [0.3, 1.0]}
    >>> found = distboost.search(distboost.GDMCBoostClassifier(n_estimators=5), space, X, y, folds=3)
    >>> sorted(found.best_params_), found.best_score_ > 0.9, found.best_estimator_.n_iter_
    (['learning_rate', 'max_depth'], True, 5)
    """
    check_estimator(estimator)
    check_folds(folds, random_state)
    settings = _settings(space, n_iter, random_state)
    models = [clone(estimator).set_params(**setting) for setting in settings]
    for model in models:
        check_estimator(model)
    wanted, rungs = Scoring.of(scoring), rungs_of(len(settings), halving)
    if halving is not None:
        check_halving(models)
    given = Given(X, y, sample_weight)
    n_trials = folds * sum(rung.n_settings for rung in rungs)
    with (
        storage_options(estimator.storage_options),
        kept_results(checkpoint) as kept,
        trials_shown("search", n_trials, verbose) as done,
        opened(estimator, given, Groups(groups, tile_size), folds, random_state) as grounds,
    ):
        stages = _Stages(settings, models, grounds, n_folds=folds, scoring=wanted, kept=kept, done=done)
        for rung in rungs:
            stages.climb(rung)
    results = _cv_results(settings, stages.results, stages.rungs, stages.rounds)
    best = int(np.flatnonzero(results["rank_test_score"] == 1)[0])
    score = float(results["mean_test_score"][best])
    log.info("search: the best of %d settings is %s, %s %.6g", len(settings), settings[best], scoring, score)
    fitted, seconds = None, None
    if refit:
        start = time.perf_counter()
        fitted = clone(estimator).set_params(**settings[best]).fit(X, y, sample_weight)
        seconds = time.perf_counter() - start
    return SearchResult(
        cv_results_=results,
        best_index_=best,
        best_params_=settings[best],
        best_score_=score,
        best_estimator_=fitted,
        refit_time_=seconds,
        n_splits_=folds,
        scoring=scoring,
    )


@dataclass(frozen=True, repr=False, kw_only=True)
class SearchResult:
    """The results of a search, with the names of scikit-learn's searches. As text it is a table of the best settings.

    Attributes
    ----------
    cv_results_ : dict of str to array
        "params", "param_*", "split*_test_score", "mean_test_score", "std_test_score", "rank_test_score", and the means and
        standard deviations of "fit_time" and "score_time". "n_rounds": the rounds after which a setting was judged last. With
        halving, settings with more stages rank before those with fewer, and times are those of the last stage.
    best_index_ : int
    best_params_ : dict
    best_score_ : float
        The mean score of the best setting.
    best_estimator_ : classifier or None
        The estimator with these parameters, fitted to all rows; None with `refit=False`.
    refit_time_ : float or None
        Seconds.
    n_splits_ : int
        The number of folds.
    scoring : str
    """

    cv_results_: dict[str, Any]
    best_index_: int
    best_params_: Setting
    best_score_: float
    best_estimator_: Any
    refit_time_: float | None
    n_splits_: int
    scoring: str

    def __repr__(self) -> str:
        found = self.cv_results_
        order = np.argsort(found["rank_test_score"], kind="stable")[:10].tolist()
        rows = [
            f"{found['rank_test_score'][n]:>4}  {found['mean_test_score'][n]:.6g} ± {found['std_test_score'][n]:.2g}  "
            + named(found["params"][n])
            for n in order
        ]
        return "\n".join([f"rank  {self.scoring}", *rows])

    def to_json(self) -> str:
        """Return all but the estimator as JSON; numbers that are not defined are null.

        The settings are in "params" of "cv_results", which has no "param_*".
        """
        found = {name: values for name, values in self.cv_results_.items() if not name.startswith("param_")}
        return as_json(
            {
                "scoring": self.scoring,
                "n_splits": self.n_splits_,
                "best_index": self.best_index_,
                "best_params": self.best_params_,
                "best_score": self.best_score_,
                "refit_time": self.refit_time_,
                "cv_results": found,
            }
        )


class _Stages:
    """The settings of a search, with the results of their last stage.

    Attributes
    ----------
    results : list of list of Result
        Of each setting and fold.
    rungs, rounds : list of int
        The number of stages of each setting, and the rounds of the last one.
    """

    def __init__(
        self,
        settings: list[Setting],
        models: list[CommonParameters],
        grounds: Grounds,
        *,
        n_folds: int,
        scoring: Scoring,
        kept: KeptResults,
        done: Callable[[str], None],
    ):
        self._settings, self._models, self._grounds, self._n_folds = settings, models, grounds, n_folds
        for model in models:
            grounds.of(model)  # all rows are binned, and divided, before the first training
        self._scoring, self._kept, self._done = scoring, kept, done
        self._left = list(range(len(models)))
        self._learned: dict[tuple[int, int], Learned] = {}  # by setting and fold, for those that may go on
        self.results: list[list[Result]] = [[] for _ in models]
        self.rungs, self.rounds = [0] * len(models), [0] * len(models)

    def climb(self, rung: Rung) -> None:
        """Judge the best settings of the last stage after the rounds of this one."""
        self._left = sorted(self._left, key=self._order)[: rung.n_settings]
        goes_on = rung.divisor > 1
        for number in sorted(self._left):
            model = self._models[number]
            self.rounds[number] = rung.rounds(model.n_estimators)
            self.rungs[number] += 1
            self.results[number] = []
            for fold in range(self._n_folds):
                result = self._result(number, fold, self.rounds[number], goes_on)
                self.results[number].append(result)
                self._done(f"{named(self._settings[number])}; fold {fold}: {result.score:.6g}")
        self._learned = {key: learned for key, learned in self._learned.items() if key[0] in self._left}

    def _order(self, number: int) -> float:
        return -float(np.mean([result.score for result in self.results[number]] or [0.0]))

    def _result(self, number: int, fold: int, rounds: int, goes_on: bool) -> Result:
        """Return a result that is known, or train."""
        model = adjusted(clone(self._models[number]), n_estimators=rounds)
        ground, metric = self._grounds.of(model), self._scoring.metric
        key = key_of(model, ground, fold, metric)
        known = self._kept.get(key)
        if known is not None:
            return known
        earlier = self._learned.pop((number, fold), None)
        found = tried(model, ground, fold, chosen([metric]), earlier=earlier)
        if goes_on:
            self._learned[number, fold] = model.learned_
        score = self._scoring.sign * found.metrics[metric]
        result = Result(score, found.fit_time, found.score_time)
        log.info("search: setting %d, fold %d, %d rounds: %.6g", number, fold, rounds, score)
        self._kept.add(key, result, {"fold": fold, "parameters": deciding_parameters(model)})
        return result


def named(setting: Setting) -> str:
    """Return the parameters of a setting as text."""
    return ", ".join(f"{name}={value!r}" for name, value in setting.items())


def _settings(space: Any, n_iter: int | None, seed: int) -> list[Setting]:
    _check_space(space)
    if n_iter is None:
        _check_lists(space)
        settings = list(ParameterGrid(space))
        if not settings:
            raise DataError("``space`` has no settings.", remedy="List at least one value of each parameter.")
        return settings
    if not (isinstance(n_iter, Integral) and n_iter >= 1):
        raise DataError.expected(
            "``n_iter``", n_iter, "a whole number of at least 1, or None for all combinations"
        )
    with warnings.catch_warnings():  # a space of fewer settings is tried as a whole
        warnings.filterwarnings("ignore", "The total space of parameters", UserWarning)
        return list(ParameterSampler(space, n_iter, random_state=seed))


def _check_space(space: Any) -> None:
    """Raise ArgumentError unless it has values by the name of a parameter."""
    parts = [space] if isinstance(space, Mapping) else space
    if not isinstance(parts, list | tuple) or not all(isinstance(part, Mapping) for part in parts):
        raise ArgumentError.expected(
            "``space``",
            space,
            "a dict of lists of values by parameter, such as {'max_depth': [4, 6]}, or a list of such dicts",
        )


def _check_lists(space: Any) -> None:
    """Raise DataError if a parameter has a distribution: it has no list of all values."""
    for part in [space] if isinstance(space, Mapping) else space:
        for name, values in part.items():
            if hasattr(values, "rvs"):
                raise DataError(
                    f"``space`` has a distribution of {name}, from which ``n_iter`` settings must be drawn.",
                    remedy="Pass ``n_iter``, or a list of values.",
                )


def _cv_results(
    settings: list[Setting], results: list[list[Result]], rungs: list[int], rounds: list[int]
) -> dict[str, Any]:
    """Return the results in the layout of scikit-learn's searches."""
    table = np.array(results)  # (settings, folds, fields of Result)
    scores, times = (
        table[:, :, 0],
        dict(zip(Result._fields[1:], np.moveaxis(table[:, :, 1:], 2, 0), strict=True)),
    )
    found: dict[str, Any] = {}
    for name, values in times.items():
        found |= {f"mean_{name}": values.mean(axis=1), f"std_{name}": values.std(axis=1)}
    for name in sorted({name for setting in settings for name in setting}):
        column = np.ma.MaskedArray(np.empty(len(settings), object), mask=True)
        for n, setting in enumerate(settings):
            if name in setting:
                column[n] = setting[name]
        found[f"param_{name}"] = column
    found["params"] = settings
    found |= {f"split{n}_test_score": values for n, values in enumerate(scores.T)}
    found["mean_test_score"], found["std_test_score"] = scores.mean(axis=1), scores.std(axis=1)
    places = list(zip(rungs, found["mean_test_score"].tolist(), strict=True))
    found["rank_test_score"] = np.array(
        [1 + sum(other > place for other in places) for place in places], np.int32
    )
    found["n_rounds"] = np.array(rounds)
    return found
