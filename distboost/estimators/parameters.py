"""The parameters that all boosting classifiers share, and what they mean for a training run."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from distboost.algorithms.base import LEARNING_RATE, Algorithm, parameter
from distboost.algorithms.constraints import Interval, Options, RealNotInt, StrOptions, check_parameters
from distboost.errors import ArgumentError, DataError
from distboost.io.options import hidden
from distboost.model.files import as_json
from distboost.model.learned import METHODS
from distboost.training.loop import Callback
from distboost.training.memory_plan import parse_limit
from distboost.training.settings import Settings
from distboost.trees.grower import GrowthLimits


def library_class(estimator: Any) -> type[Any]:
    """Return the class that the library made of an algorithm, from which the estimator's class may derive.

    Model files have the algorithm and the parameters of this class alone.
    """
    cls: Any = type(estimator)
    found: type[Any] = next(base for base in reversed(cls.__mro__) if "algorithm" in vars(base))
    if (cls.algorithm, cls.algorithm_name) != (found.algorithm, found.algorithm_name):
        raise ArgumentError(
            f"{cls.__name__} derives from {found.__name__}, but has another algorithm, {cls.algorithm_name!r}: its models "
            "could not be loaded.",
            remedy="Derive from one estimator of distboost, or make one of the algorithm: distboost.classifier.",
            value=cls.algorithm_name,
        )
    return found


def own_names(own: type[Any]) -> list[str]:
    """Return the names of the parameters of a class of the library, in order."""
    return sorted(field.name for field in fields(own))


def own_parameters(estimator: Any) -> dict[str, Any]:
    """Return the library's parameters of an estimator by name, in this order, whatever the constructor of its class is."""
    own = library_class(estimator)
    names = own_names(own)
    missing = [name for name in names if not hasattr(estimator, name)]
    if missing:
        raise ArgumentError(
            f"{type(estimator).__name__} has no {missing[0]}, a parameter of {own.__name__}.",
            remedy="Call super().__init__ in its __init__, with a value for it.",
        )
    return {name: getattr(estimator, name) for name in names}


def adjusted(estimator: Any, **values: Any) -> Any:
    """Set parameters of the library, which the constructor of the estimator's class may not have; return the estimator."""
    for name, value in values.items():
        setattr(estimator, name, value)
    return estimator


def check_methods(estimator: Any, caller: str, instead: str) -> None:
    """Raise ArgumentError if the estimator's class trains or predicts by methods of its own, which the caller does not call."""
    own = library_class(estimator)
    for name in ("fit", "scores", "decision_function", "predict", "predict_proba"):
        if getattr(type(estimator), name) is not getattr(own, name):
            raise ArgumentError(
                f"{type(estimator).__name__} has a method {name} of its own, but {caller} trains and judges as {own.__name__} "
                f"does. {instead}"
            )


def constructed(estimator: Any) -> dict[str, Any]:
    """Return what the constructor of a subclass makes of its parameters for those of the library; of the library's, nothing."""
    cls = type(estimator)
    if cls.__init__ is library_class(estimator).__init__:
        return {}
    return own_parameters(cls(**estimator.get_params(deep=False)))


# Where and how training runs. These parameters do not affect the model, and files do not store them.
RUN_PARAMETERS = frozenset(
    {
        "feature_dim",
        "nodata",
        "missing_chunks",
        "memory_limit",
        "scratch",
        "storage_options",
        "checkpoint",
        "checkpoint_every",
        "worker_timeout",
        "wait_for_workers",
        "n_jobs",
        "verbose",
        "callbacks",
    }
)

# Parameters that files store only if they differ from these values: files of earlier versions do not have them.
LEFT_OUT = {
    "sampling": "uniform",
    "sketch": None,
    "statistic_bits": None,
    "on_separation": "continue",
    "eval_metric": "error",
    "min_delta": 0.0,
    "calibration": "auto",
    "validation_fraction": None,
    "categorical_features": "from_dtype",
}

_POSITIVE = Interval(Integral, 1, None, closed="left")
_COMPRESSED = {
    "sketch": "only splits of ``GDMCBoostClassifier`` with ``leaf='direction'`` and of ``GradBoostClassifier`` are chosen by "
    "lengths of residuals alone",
    "statistic_bits": "only trees of ``GDMCBoostClassifier`` with ``leaf='direction'`` need no sums of their own statistic",
}
_FRACTION = Interval(Real, 0, 1, closed="right")


@dataclass(kw_only=True, eq=False, repr=False)
class CommonParameters(BaseEstimator):
    """The parameters that all boosting classifiers share.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of rounds. Early stopping may end training after fewer.
    learning_rate : float, default=1.0
        Shrinkage: the factor of each step, at most 10. If the loss diverges, `fit` raises an error.
    max_bins : int, default=255
        The most bins of a feature, besides one for missing values. A feature with at most this many distinct values is binned
        exactly.
    categorical_features : "from_dtype", array-like of int, str or bool, or None, default="from_dtype"
        The features whose values are categories: their numbers, their names, or a mask of all features. A split may send any
        categories of such a feature left, and the others right. "from_dtype": those of a categorical dtype. None: none. See
        the page about categories.
    min_samples_leaf : int, default=1
        The fewest rows (of weight above 0) on either side of a split. With `subsample`, only the drawn rows count.
    min_weight_fraction_leaf : float, default=0.0
        The least fraction of the total sample weight on either side of a split. With `subsample`, only the drawn rows count.
    subsample : float, default=1.0
        The fraction of rows by which each round chooses its splits. The values of the leaves and the step follow from all rows.
        The choice depends only on `random_state`, the round and the row's number.
    sampling : {"uniform", "weight"}, default="uniform"
        How the rows of `subsample` are drawn. "uniform": all are equally likely. "weight": the larger a row's weight in the loss,
        the likelier it is drawn (minimal-variance sampling), and what it adds to histograms is divided by its probability. Needs
        a `subsample` below 1.
    max_features : float, int, "sqrt" or "log2", default=1.0
        The fraction or the number of features that each round may split on; "sqrt" and "log2": this function of their number.
    sketch : int or None, default=None
        Choose the splits by projections of each row's K residuals to this number, below K, by random signs that change with every
        round. Leaves and steps remain exact. It pays with many classes. Only for `GDMCBoostClassifier` with leaf="direction" and
        `GradBoostClassifier`.
    statistic_bits : int or None, default=None
        Choose the splits by residuals that are rounded at random, right on average, so that the largest residual of a row of mean
        weight has this many bits, 2 to 16. Leaves and steps remain exact. Rows whose residuals are all rounded to 0 do not take
        part in the choice, and are not among those that `min_samples_leaf` and `min_weight_fraction_leaf` count. Only for
        `GDMCBoostClassifier` with leaf="direction".
    on_separation : {"continue", "stop"}, default="continue"
        What to do if a weak learner makes no error, so that no finite step is the best one. "continue": trees of one level less
        are tried until one makes an error; if a stump makes none, its step is reduced, mostly to that of an error of 1 %.
        "stop": the step is cut off where it multiplies weights by 2^40, and training ends with `outcome_` "separated". GAMBLE
        has bounded steps: "stop" repeats the tree, as the thesis does.
    calibration : {"auto", "temperature", "vector"} or None, default="auto"
        How `predict_proba` makes probabilities of the scores, which do not depend on this. "temperature": softmax(F / T), where T
        is fitted on the last `eval_set`, on the rows of the `validation_fraction`, or, without these, on rows that a second
        training leaves out. "auto": the same, unless there are too few rows for that. "vector": with a scale and a shift for each
        of up to 1000 classes, too, so that the largest probability may be that of another class than `predict` gives. None: as
        the algorithm's paper implies, without a second training.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; those not given are 1. "balanced": n_samples / (n_classes * rows of the class).
    early_stopping_rounds : int or None, default=None
        Stop after this many rounds without a better one, and keep the rounds up to the best one. The smaller the `eval_metric` on
        the last set of `eval_set`, or on the rows of the `validation_fraction`, the better.
    validation_fraction : float or None, default=None
        Leave out about this share of the rows, above 0 and below 1, and use them as an `eval_set` named "validation". A hash of
        a row's bins says whether it is left out, so equal rows are left out together, and a row of weight 2 equals two rows.
        None: learn from all rows.
    eval_metric : {"error", "log_loss", "loss"} or callable, default="error"
        What tells the best round: the fraction of misclassified rows, the log-loss of the algorithm's own probabilities, or the
        algorithm's own loss. A function(labels, probabilities) is given the class indices of some rows, (n,) int32, and their
        class probabilities, (n, n_classes) float64. It returns one number for each row, (n,), from this row alone.
        Their weighted mean is the metric; its name is that of the function, which a model file does not store.
    min_delta : float, default=0.0
        A round counts as better only if the metric is smaller than that of the best round by more than this.
    score_dtype : {"float64", "float32"}, default="float64"
        Type of the scores that training keeps for each row.
    feature_dim : str or None, default=None
        The dimension along which a cube has its features: an array of xarray or zarr whose dimensions have names. Its rows are
        the cells of the other dimensions. None: each variable of a dataset is a feature. See the page about cubes.
    nodata : int, float, str or None, default=None
        The label of a cell that has none, besides NaN and `_FillValue`. Only for cubes.
    missing_chunks : {"warn", "error", "ignore"}, default="warn"
        What to do if chunks of a zarr array were never written, in training and in prediction. zarr reads them as the fill value.
    memory_limit : int, str or None, default=None
        Bytes (or a text such as "2GB") that one process may use for training, libraries included. Rows that do not fit are
        streamed from disk. If the limit is too small even for that, `fit` raises an error before it reads any row. None: on a
        cluster, the memory that Dask workers may use before they spill; in this process, no limit. Prediction ignores the limit.
    scratch : str, path or None, default=None
        Directory or URL for data that do not fit in memory, shared by all workers. None: the system's temporary directory.
        Workers keep scores in their own temporary directories if this is None or a URL.
    storage_options : dict or None, default=None
        Options of the file systems of all URLs of this estimator, as s3fs, gcsfs and adlfs take them, such as {"anon": True} or
        {"endpoint_url": "http://..."}. None: those of the environment. No model file or log has them, and the text of the
        estimator has their names alone; pickles have all.
    checkpoint : str or None, default=None
        Folder or URL of a checkpoint, written during training and at its end. `fit(..., resume=True)` continues from it, and
        `distboost.load` loads it.
    checkpoint_every : int or str, default=10
        Rounds between two writes of the checkpoint, or a time as a text such as "30s".
    worker_timeout : float, default=30.0
        On a cluster: seconds without a response after which a worker counts as lost and other workers read its rows again.
    wait_for_workers : int or None, default=None
        On a cluster: `fit` begins when so many workers can take work, and plans rows and memory for all of them. If they are not
        there within 600 seconds, it raises an error. None: it begins with the first worker; those that come later join.
    n_jobs : int or None, default=None
        The most threads of training and prediction in this process; None or -1: one per core. Training takes fewer for few rows,
        which more threads would only slow down. On a cluster and in lazy prediction, Dask determines their number.
    random_state : int, RandomState instance or None, default=0
        The seed. None means 0: equal inputs always give equal models.
    verbose : int, default=0
        1: show the progress: a bar on a terminal, some ten lines in a file or a pipe.
    callbacks : list of callables or None, default=None
        Each is called with a `distboost.Progress` after each round; training stops if it returns True. If it has methods `begin`
        and `end`, they are called before the first and after the last round, `start` and `fitted` when `fit` starts and is done,
        and `phase` while rows are scanned, loaded and the like. `distboost.EventLog` writes all this to a file.
    """

    n_estimators: int = parameter(100, _POSITIVE)
    learning_rate: float = parameter(1.0, LEARNING_RATE)
    max_bins: int = parameter(255, Interval(Integral, 2, 255, closed="both"))
    categorical_features: Any = parameter("from_dtype", StrOptions({"from_dtype"}), "array-like", None)
    min_samples_leaf: int = parameter(1, _POSITIVE)
    min_weight_fraction_leaf: float = parameter(0.0, Interval(Real, 0, 0.5, closed="both"))
    subsample: float = parameter(1.0, _FRACTION)
    sampling: str = parameter("uniform", StrOptions({"uniform", "weight"}))
    max_features: float | int | str = parameter(
        1.0, Interval(RealNotInt, 0, 1, closed="right"), _POSITIVE, StrOptions({"sqrt", "log2"})
    )
    sketch: int | None = parameter(None, _POSITIVE, None)
    statistic_bits: int | None = parameter(None, Interval(Integral, 2, 16, closed="both"), None)
    on_separation: str = parameter("continue", StrOptions({"continue", "stop"}))
    calibration: str | None = parameter("auto", StrOptions({"auto", *METHODS}), None)
    class_weight: dict[Any, float] | str | None = parameter(None, dict, StrOptions({"balanced"}), None)
    early_stopping_rounds: int | None = parameter(None, _POSITIVE, None)
    validation_fraction: float | None = parameter(None, Interval(Real, 0, 1, closed="neither"), None)
    eval_metric: str | Callable[..., Any] = parameter(
        "error", StrOptions({"error", "log_loss", "loss"}), callable
    )
    min_delta: float = parameter(0.0, Interval(Real, 0, None, closed="left"))
    score_dtype: str = parameter("float64", StrOptions({"float64", "float32"}))
    feature_dim: str | None = parameter(None, str, None)
    nodata: float | str | None = parameter(None, Real, str, None)
    missing_chunks: str = parameter("warn", StrOptions({"warn", "error", "ignore"}))
    memory_limit: int | str | None = parameter(None, _POSITIVE, str, None)
    scratch: str | os.PathLike[str] | None = parameter(None, str, os.PathLike, None)
    storage_options: dict[str, Any] | None = parameter(None, dict, None)
    checkpoint: str | os.PathLike[str] | None = parameter(None, str, os.PathLike, None)
    checkpoint_every: int | str = parameter(10, _POSITIVE, str)
    worker_timeout: float = parameter(30.0, Interval(Real, 0, None, closed="neither"))
    wait_for_workers: int | None = parameter(None, _POSITIVE, None)
    n_jobs: int | None = parameter(None, _POSITIVE, Options(Integral, {-1}), None)
    random_state: int | np.random.RandomState | None = parameter(0, "random_state")
    verbose: int = parameter(0, "verbose")
    callbacks: Sequence[Callback] | None = parameter(None, list, tuple, None)

    # Where training runs: a `distributed.Client`, or the address of a scheduler; None: the current client if there is one, else
    # this process. It is not a parameter (it cannot be cloned), so it has no annotation: a dataclass would make it a field.
    client = None  # type: Any

    algorithm: ClassVar[type[Algorithm]]
    algorithm_name: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, Any]]

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, np.generic) and name in self.__dataclass_fields__:
            value = value.item()  # NumPy's numbers overflow, and round what is computed from them
        super().__setattr__(name, hidden(value) if name == "storage_options" else value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name: those of the constructor, also if a subclass has a constructor of its own."""
        try:
            found: dict[str, Any] = super().get_params(deep)
        except (AttributeError, RuntimeError) as error:
            raise ArgumentError(
                f"the parameters of {type(self).__name__} are unknown: {error}.",
                remedy="Name each one in its __init__, and store it there, unchanged, as an attribute of the same name.",
            ) from error
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name. What the constructor of a subclass makes of them for the library's own parameters follows."""
        before = constructed(self) if params else {}
        super().set_params(**params)
        for name, value in constructed(self).items() if params else ():
            if name not in params and repr(value) != repr(before[name]):
                setattr(self, name, value)
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy that trains as this one does, also if the constructor of a subclass lacks parameters."""
        copy: Self = super().__sklearn_clone__()
        named = self.get_params(deep=False)
        unnamed = {name: value for name, value in own_parameters(self).items() if name not in named}
        adjusted(copy, **{name: clone(value, safe=False) for name, value in unnamed.items()})
        return copy

    def validate(self) -> Self:
        """Check the parameters' values, as `fit` does first.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter has an invalid value. The message names the valid ones.
        """
        constraints = self._parameter_constraints
        more = {
            name: getattr(self, name) for name in constraints if hasattr(self, name)
        }  # those of a subclass
        check_parameters(constraints, more | own_parameters(self), type(self).__name__)
        if self.sampling == "weight" and self.subsample == 1:
            raise DataError(
                "``sampling='weight'`` needs a subsample below 1, but subsample is 1, which draws all rows.",
                remedy="Set the fraction of rows to draw, such as ``subsample=0.2``, or leave out sampling.",
            )
        return self


def check_own(value: Any, name: str = "estimator", what: str = "an estimator") -> None:
    """Raise ArgumentError unless the argument of this name is an estimator of distboost."""
    if not isinstance(value, CommonParameters):
        found = (
            f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
        )
        raise ArgumentError(f"{name} is {found}, expected {what} of distboost.", where=name, value=found)


def algorithm_of(estimator: CommonParameters, n_classes: int) -> Algorithm:
    """Return the estimator's algorithm, with its parameters, for a number of classes."""
    own = {name: getattr(estimator, name) for name in estimator.algorithm.parameters()}
    if "random_state" in own:
        own["random_state"] = seed_of(estimator)
    return estimator.algorithm(n_classes=n_classes, **own)


def growth_limits(estimator: CommonParameters) -> GrowthLimits:
    """Return the limits of the trees. Estimators without a parameter for the size of trees grow stumps."""
    return GrowthLimits(
        max_depth=getattr(estimator, "max_depth", 1),
        max_leaf_nodes=getattr(estimator, "max_leaf_nodes", None),
        min_samples_leaf=estimator.min_samples_leaf,
        min_weight_fraction_leaf=estimator.min_weight_fraction_leaf,
        subsample=estimator.subsample,
        sampling=estimator.sampling,
        max_features=estimator.max_features,
        sketch=None if estimator.sketch is None else int(estimator.sketch),
        statistic_bits=estimator.statistic_bits,
        seed=seed_of(estimator),
    )


def settings_of(estimator: CommonParameters) -> Settings:
    """Return what the estimator's parameters say of its training runs."""
    return Settings(
        algorithm=partial(algorithm_of, estimator),
        limits=growth_limits(estimator),
        n_rounds=estimator.n_estimators,
        learning_rate=estimator.learning_rate,
        patience=estimator.early_stopping_rounds,
        min_delta=float(estimator.min_delta),
        eval_metric=estimator.eval_metric,
        stops_when_separated=estimator.on_separation == "stop",
        class_weight=estimator.class_weight,
        calibration=estimator.calibration,
        max_bins=estimator.max_bins,
        seed=seed_of(estimator),
        score_dtype=estimator.score_dtype,
        memory_limit=parse_limit(estimator.memory_limit),
        scratch=None if estimator.scratch is None else os.fspath(estimator.scratch),
        n_threads=n_threads(estimator),
    )


def check_compression(estimator: CommonParameters, n_classes: int | None = None) -> None:
    """Raise DataError if the algorithm cannot learn from compressed residuals, or not with so few classes (None: unknown)."""
    algorithm = algorithm_of(estimator, n_classes or 2)
    for name in ("sketch", "statistic_bits"):
        given = getattr(estimator, name)
        if given is not None and name not in algorithm.compressions:
            raise DataError(
                f"``{name}={given}``, but ``{type(estimator).__name__}`` does not accept it with these parameters: "
                f"{_COMPRESSED[name]}.",
                remedy=f"Pass ``{name}=None``, or train such a classifier.",
            )
        if given is not None and estimator.sampling == "weight":
            raise DataError(
                f"``{name}={given}``, but sampling is 'weight', which draws rows by residuals that are not compressed.",
                remedy=f"Pass ``{name}=None``, or ``sampling='uniform'``.",
            )
    if n_classes is not None and estimator.sketch is not None and estimator.sketch >= n_classes:
        raise DataError(
            f"``sketch={estimator.sketch}``, but the data have {n_classes} classes: residuals are projected to fewer numbers "
            "than classes.",
            remedy=f"Set a sketch of at most {n_classes - 1}, or None.",
        )


def seed_of(estimator: CommonParameters) -> int:
    """Return the seed from `random_state`, the same one at every call."""
    given = estimator.random_state
    if given is None:
        return 0
    if isinstance(given, Integral):
        return int(given)
    return int(copy.deepcopy(given).randint(2**31))  # type: ignore[union-attr]  # of a copy: the state stays as it is


def n_threads(estimator: CommonParameters) -> int | None:
    """Return the number of threads in this process; None: one per core."""
    return None if estimator.n_jobs in (None, -1) else estimator.n_jobs


def left_out(estimator: CommonParameters) -> dict[str, Any]:
    """Return the parameters that files store only if they differ from these values, those of the algorithm included."""
    own = estimator.algorithm.parameters().items()
    return {**LEFT_OUT, **{name: f.default for name, f in own if f.metadata.get("is_new")}}


def deciding_parameters(estimator: CommonParameters) -> dict[str, Any]:
    """Return the parameters that affect the model, as JSON values."""
    given = own_parameters(estimator)
    absent = left_out(estimator)
    kept = {
        name: as_json(name, value)
        for name, value in given.items()
        if name not in RUN_PARAMETERS | {"random_state"}
        and not (name == "eval_metric" and callable(value))  # its name is in the histories
    }
    kept = {name: value for name, value in kept.items() if not (name in absent and value == absent[name])}
    return {**kept, "random_state": seed_of(estimator)}
