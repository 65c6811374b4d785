# Written by `python -m distboost.estimators.stubs`: do not edit.

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from distboost.estimators.base import BoostingClassifier
from distboost.training.loop import Callback
from distboost import baselines as baselines
from distboost import errors as errors
from distboost import export as export
from distboost import plot as plot
from distboost.algorithms.base import Algorithm as Algorithm
from distboost.estimators.evaluating import evaluate as evaluate
from distboost.estimators.factory import classifier as classifier
from distboost.estimators.factory import load as load
from distboost.estimators.plan import plan as plan
from distboost.evaluation.metrics import Evaluation as Evaluation
from distboost.explanation.shap import expected_scores as expected_scores
from distboost.explanation.shap import shap_values as shap_values
from distboost.export.text import export_text as export_text
from distboost.model.learned import Calibration as Calibration
from distboost.model.learned import Progress as Progress
from distboost.reporting.report import report as report
from distboost.selection.search import SearchResult as SearchResult
from distboost.selection.search import search as search
from distboost.selection.validation import CrossValidation as CrossValidation
from distboost.selection.validation import cross_validate as cross_validate
from distboost.training.binning import bin as bin
from distboost.training.events import EventLog as EventLog
from distboost.training.memory_plan import MemoryPlan as MemoryPlan
from distboost.training.record import TrainingRecord as TrainingRecord

__version__: str

class AdaBoostMMClassifier(BoostingClassifier):
    """AdaBoost.MM and the optimal strategies of the boosting game.

    Mukherjee & Schapire, *A theory of multiclass boosting*, NIPS 2010.

    Parameters
    ----------
    strategy : {"adaptive", "fixed", "os-exponential", "os-zero-one"}, default="adaptive"
        "adaptive" is AdaBoost.MM (eq. 7): it measures each round's edge. "fixed" (eq. 6) assumes the edges that `edge` gives.
        The OS strategies play the game optimally against weak learners of one given edge: "os-exponential" for the exponential
        loss with a step `eta`, "os-zero-one" for the 0-1 loss after exactly `n_estimators` rounds.
    edge : float or sequence of float, default=0.1
        Edge over random of the weak learners, 0 < edge < 1; "fixed" also takes one for each round. Not used by "adaptive".
    alphas : float, sequence of float or None, default=None
        Steps of "fixed"; None: the best steps for the edges.
    eta : float, default=0.1
        Step of "os-exponential".
    max_depth : int or None, default=6
        The largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
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

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,), object
        The names of the features, if the training rows had any.
    n_iter_ : int
        The number of rounds done.
    best_iteration_ : int
        The number of rounds kept: fewer than `n_iter_` only after early stopping.
    train_loss_, train_error_ : ndarray of shape (`n_iter_`,)
        The algorithm's own loss and the error rate on the training rows after each round.
    eval_loss_, eval_error_ : ndarray of shape (`n_iter_`,)
        The same on the first set of `eval_set`, if one was given.
    eval_history_ : dict of str to dict of str to ndarray of shape (`n_iter_`,)
        "loss", "error" and the `eval_metric` of each set of `eval_set` by name. A set without a name is "eval".
    feature_importances_ : ndarray of shape (n_features,)
    outcome_ : str
        Why training ended.
    runtime_ : str
        Where `fit` trained: in this process, or on which cluster. Models from files have none.
    training_record_ : TrainingRecord
        What `fit` took: `seconds`, `rounds_per_second`, `peak_bytes` of memory, `workers_lost`; and on how many rows, `n_rows`.
        Models from files have none.
    memory_plan_ : MemoryPlan
        The memory that `fit` planned: `n_bytes` of `limit`, rows that are `resident` and `streamed`. Models from files have none.
    calibration_ : Calibration or None
        How `predict_proba` makes probabilities of scores: its `method` and `temperature`; with the method "vector" also `scales`
        and `shifts` of the classes. None: as the algorithm's paper implies.
    edge_ : ndarray of shape (`n_iter_`,)
        The edge over random of each round's weak learner on the round's costs: delta_t of an adaptive round. The weak learner
        meets the edge-over-random condition of a strategy if this is at least `edge`.
    loss_bound_ : ndarray of shape (`n_iter_`,)
        The theory's upper bound on the loss. "adaptive": (K - 1) prod sqrt(1 - delta_t^2), or more
        where steps are shrunk or cut off. "fixed" and "os-exponential": (K - 1) prod kappa, with each round's edge and step,
        while the edges are met. "os-zero-one": the potential before the first round, which bounds the last loss.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import AdaBoostMMClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostMMClassifier(n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_estimators: int
    learning_rate: float
    max_bins: int
    categorical_features: Any
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    subsample: float
    sampling: Literal['uniform', 'weight']
    max_features: float | int | Literal['log2', 'sqrt']
    sketch: int | None
    statistic_bits: int | None
    on_separation: Literal['continue', 'stop']
    calibration: Literal['auto', 'temperature', 'vector'] | None
    class_weight: dict[Any, float] | Literal['balanced'] | None
    early_stopping_rounds: int | None
    validation_fraction: float | None
    eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any]
    min_delta: float
    score_dtype: Literal['float32', 'float64']
    feature_dim: str | None
    nodata: float | str | None
    missing_chunks: Literal['error', 'ignore', 'warn']
    memory_limit: int | str | None
    scratch: str | os.PathLike[str] | None
    storage_options: dict[str, Any] | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int | str
    worker_timeout: float
    wait_for_workers: int | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: int
    callbacks: Sequence[Callback] | None
    strategy: Literal['adaptive', 'fixed', 'os-exponential', 'os-zero-one']
    edge: Any
    alphas: Any
    eta: float
    max_depth: int | None
    max_leaf_nodes: int | None

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = 'from_dtype',
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        subsample: float = 1.0,
        sampling: Literal['uniform', 'weight'] = 'uniform',
        max_features: float | int | Literal['log2', 'sqrt'] = 1.0,
        sketch: int | None = None,
        statistic_bits: int | None = None,
        on_separation: Literal['continue', 'stop'] = 'continue',
        calibration: Literal['auto', 'temperature', 'vector'] | None = 'auto',
        class_weight: dict[Any, float] | Literal['balanced'] | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any] = 'error',
        min_delta: float = 0.0,
        score_dtype: Literal['float32', 'float64'] = 'float64',
        feature_dim: str | None = None,
        nodata: float | str | None = None,
        missing_chunks: Literal['error', 'ignore', 'warn'] = 'warn',
        memory_limit: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | str = 10,
        worker_timeout: float = 30.0,
        wait_for_workers: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        strategy: Literal['adaptive', 'fixed', 'os-exponential', 'os-zero-one'] = 'adaptive',
        edge: Any = 0.1,
        alphas: Any = None,
        eta: float = 0.1,
        max_depth: int | None = 6,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class CDMCBoostClassifier(BoostingClassifier):
    """CD-MCBoost: multiclass boosting by coordinate descent over the coordinates of the simplex codewords.

    Saberian & Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011, Algorithm 1 (left). Round t moves
    coordinate t mod (K - 1) of the predictor by a tree, with an exact line search. Use a multiple of (K - 1) rounds, so that all
    coordinates are moved equally often.

    Parameters
    ----------
    loss : {"exponential", "logistic"}, default="exponential"
        The paper's risk, or that of the logistic loss, which section 4 proposes for data with outliers: the mean of
        sum_k log(1 + exp(F[i, k] - F[i, y_i])). A row weighs at most K - 1, however wrong it is.
    leaf : {"sign", "mean"}, default="sign"
        Output of a leaf: -1 or +1; or the mean weight of its rows along the coordinate: a regression tree, fitted to the weights
        by least squares.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump. The two signs of a stump are opposite; each leaf of a deeper tree has its own.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
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

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,), object
        The names of the features, if the training rows had any.
    n_iter_ : int
        The number of rounds done.
    best_iteration_ : int
        The number of rounds kept: fewer than `n_iter_` only after early stopping.
    train_loss_, train_error_ : ndarray of shape (`n_iter_`,)
        The algorithm's own loss and the error rate on the training rows after each round.
    eval_loss_, eval_error_ : ndarray of shape (`n_iter_`,)
        The same on the first set of `eval_set`, if one was given.
    eval_history_ : dict of str to dict of str to ndarray of shape (`n_iter_`,)
        "loss", "error" and the `eval_metric` of each set of `eval_set` by name. A set without a name is "eval".
    feature_importances_ : ndarray of shape (n_features,)
    outcome_ : str
        Why training ended.
    runtime_ : str
        Where `fit` trained: in this process, or on which cluster. Models from files have none.
    training_record_ : TrainingRecord
        What `fit` took: `seconds`, `rounds_per_second`, `peak_bytes` of memory, `workers_lost`; and on how many rows, `n_rows`.
        Models from files have none.
    memory_plan_ : MemoryPlan
        The memory that `fit` planned: `n_bytes` of `limit`, rows that are `resident` and `streamed`. Models from files have none.
    calibration_ : Calibration or None
        How `predict_proba` makes probabilities of scores: its `method` and `temperature`; with the method "vector" also `scales`
        and `shifts` of the classes. None: as the algorithm's paper implies.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import CDMCBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CDMCBoostClassifier(n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_estimators: int
    learning_rate: float
    max_bins: int
    categorical_features: Any
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    subsample: float
    sampling: Literal['uniform', 'weight']
    max_features: float | int | Literal['log2', 'sqrt']
    sketch: int | None
    statistic_bits: int | None
    on_separation: Literal['continue', 'stop']
    calibration: Literal['auto', 'temperature', 'vector'] | None
    class_weight: dict[Any, float] | Literal['balanced'] | None
    early_stopping_rounds: int | None
    validation_fraction: float | None
    eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any]
    min_delta: float
    score_dtype: Literal['float32', 'float64']
    feature_dim: str | None
    nodata: float | str | None
    missing_chunks: Literal['error', 'ignore', 'warn']
    memory_limit: int | str | None
    scratch: str | os.PathLike[str] | None
    storage_options: dict[str, Any] | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int | str
    worker_timeout: float
    wait_for_workers: int | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: int
    callbacks: Sequence[Callback] | None
    loss: Literal['exponential', 'logistic']
    leaf: Literal['mean', 'sign']
    max_depth: int | None
    max_leaf_nodes: int | None

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = 'from_dtype',
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        subsample: float = 1.0,
        sampling: Literal['uniform', 'weight'] = 'uniform',
        max_features: float | int | Literal['log2', 'sqrt'] = 1.0,
        sketch: int | None = None,
        statistic_bits: int | None = None,
        on_separation: Literal['continue', 'stop'] = 'continue',
        calibration: Literal['auto', 'temperature', 'vector'] | None = 'auto',
        class_weight: dict[Any, float] | Literal['balanced'] | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any] = 'error',
        min_delta: float = 0.0,
        score_dtype: Literal['float32', 'float64'] = 'float64',
        feature_dim: str | None = None,
        nodata: float | str | None = None,
        missing_chunks: Literal['error', 'ignore', 'warn'] = 'warn',
        memory_limit: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | str = 10,
        worker_timeout: float = 30.0,
        wait_for_workers: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        loss: Literal['exponential', 'logistic'] = 'exponential',
        leaf: Literal['mean', 'sign'] = 'sign',
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class GAMBLEClassifier(BoostingClassifier):
    """GAMBLE: gentle adaptive multiclass boosting.

    Huang, *A Multiclass Boosting Classification Method with Active Learning*, Penn State, 2009, Algorithm 2. Weak learners
    are least-squares trees grown best first. With 7 or more classes the loss may rise in a round; with more than 2 it does not
    bound the error. With 2 classes, `learning_rate=0.5` is Gentle AdaBoost.

    Parameters
    ----------
    max_leaf_nodes : int or None, default=31
        Trees grow best first up to this number of leaves; None: level by level. On many classes with
        thousands of rows, give 127 or 255. The thesis mostly has 15.
    max_depth : int or None, default=None
        The largest depth of a tree; None: no limit.
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

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,), object
        The names of the features, if the training rows had any.
    n_iter_ : int
        The number of rounds done.
    best_iteration_ : int
        The number of rounds kept: fewer than `n_iter_` only after early stopping.
    train_loss_, train_error_ : ndarray of shape (`n_iter_`,)
        The algorithm's own loss and the error rate on the training rows after each round.
    eval_loss_, eval_error_ : ndarray of shape (`n_iter_`,)
        The same on the first set of `eval_set`, if one was given.
    eval_history_ : dict of str to dict of str to ndarray of shape (`n_iter_`,)
        "loss", "error" and the `eval_metric` of each set of `eval_set` by name. A set without a name is "eval".
    feature_importances_ : ndarray of shape (n_features,)
    outcome_ : str
        Why training ended.
    runtime_ : str
        Where `fit` trained: in this process, or on which cluster. Models from files have none.
    training_record_ : TrainingRecord
        What `fit` took: `seconds`, `rounds_per_second`, `peak_bytes` of memory, `workers_lost`; and on how many rows, `n_rows`.
        Models from files have none.
    memory_plan_ : MemoryPlan
        The memory that `fit` planned: `n_bytes` of `limit`, rows that are `resident` and `streamed`. Models from files have none.
    calibration_ : Calibration or None
        How `predict_proba` makes probabilities of scores: its `method` and `temperature`; with the method "vector" also `scales`
        and `shifts` of the classes. None: as the algorithm's paper implies.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GAMBLEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GAMBLEClassifier(n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_estimators: int
    learning_rate: float
    max_bins: int
    categorical_features: Any
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    subsample: float
    sampling: Literal['uniform', 'weight']
    max_features: float | int | Literal['log2', 'sqrt']
    sketch: int | None
    statistic_bits: int | None
    on_separation: Literal['continue', 'stop']
    calibration: Literal['auto', 'temperature', 'vector'] | None
    class_weight: dict[Any, float] | Literal['balanced'] | None
    early_stopping_rounds: int | None
    validation_fraction: float | None
    eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any]
    min_delta: float
    score_dtype: Literal['float32', 'float64']
    feature_dim: str | None
    nodata: float | str | None
    missing_chunks: Literal['error', 'ignore', 'warn']
    memory_limit: int | str | None
    scratch: str | os.PathLike[str] | None
    storage_options: dict[str, Any] | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int | str
    worker_timeout: float
    wait_for_workers: int | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: int
    callbacks: Sequence[Callback] | None
    max_leaf_nodes: int | None
    max_depth: int | None

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = 'from_dtype',
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        subsample: float = 1.0,
        sampling: Literal['uniform', 'weight'] = 'uniform',
        max_features: float | int | Literal['log2', 'sqrt'] = 1.0,
        sketch: int | None = None,
        statistic_bits: int | None = None,
        on_separation: Literal['continue', 'stop'] = 'continue',
        calibration: Literal['auto', 'temperature', 'vector'] | None = 'auto',
        class_weight: dict[Any, float] | Literal['balanced'] | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any] = 'error',
        min_delta: float = 0.0,
        score_dtype: Literal['float32', 'float64'] = 'float64',
        feature_dim: str | None = None,
        nodata: float | str | None = None,
        missing_chunks: Literal['error', 'ignore', 'warn'] = 'warn',
        memory_limit: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | str = 10,
        worker_timeout: float = 30.0,
        wait_for_workers: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        max_leaf_nodes: int | None = 31,
        max_depth: int | None = None,
    ) -> None: ...

class GDMCBoostClassifier(BoostingClassifier):
    """GD-MCBoost: multiclass boosting by functional gradient descent in margin space.

    Saberian & Vasconcelos, *Multiclass Boosting: Theory and Algorithms*, NIPS 2011, Algorithm 1 (right).

    Parameters
    ----------
    loss : {"exponential", "logistic", "softmax"}, default="exponential"
        The paper's risk; that of the logistic loss of section 4, the mean of sum_k ln(1 + exp(F[i, k] - F[i, y_i])); or the
        multinomial logistic one, the mean of ln sum_k exp(F[i, k] - F[i, y_i]). With these two, the scores are logarithms of the
        odds, so that `predict_proba` is good without calibration, and rows with wrong labels weigh less. The exponential's
        classes are mostly better.
    leaf : {"direction", "codeword", "newton"}, default="direction"
        Output of a leaf: any direction of the margin space, which learns more per round, or one of the class codewords, as in the
        paper (use `max_depth=2`). "newton", only with loss="softmax": for each class k Newton's step for its score alone,
        (K - 1) / K S_k / (H_k + l2) (Friedman 2001, algorithm 6, with a penalty): S_k and H_k are the sums of [k = y_i] - p_k and
        of p_k (1 - p_k) over the leaf's rows, and p is softmax(F). Then splits are chosen by `|S|^2 / (n + l2)`, summed over the
        two sides, where n is the number of rows of a side, or their weight. Newton's values are taken as they are, or multiplied
        by the step below 1 that minimises the risk; the other leaves are multiplied by the step that minimises it.
    l2 : float, default=1.0
        Penalty on the curvature, for leaf="newton".
    max_depth : int or None, default=6
        The largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.
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

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,), object
        The names of the features, if the training rows had any.
    n_iter_ : int
        The number of rounds done.
    best_iteration_ : int
        The number of rounds kept: fewer than `n_iter_` only after early stopping.
    train_loss_, train_error_ : ndarray of shape (`n_iter_`,)
        The algorithm's own loss and the error rate on the training rows after each round.
    eval_loss_, eval_error_ : ndarray of shape (`n_iter_`,)
        The same on the first set of `eval_set`, if one was given.
    eval_history_ : dict of str to dict of str to ndarray of shape (`n_iter_`,)
        "loss", "error" and the `eval_metric` of each set of `eval_set` by name. A set without a name is "eval".
    feature_importances_ : ndarray of shape (n_features,)
    outcome_ : str
        Why training ended.
    runtime_ : str
        Where `fit` trained: in this process, or on which cluster. Models from files have none.
    training_record_ : TrainingRecord
        What `fit` took: `seconds`, `rounds_per_second`, `peak_bytes` of memory, `workers_lost`; and on how many rows, `n_rows`.
        Models from files have none.
    memory_plan_ : MemoryPlan
        The memory that `fit` planned: `n_bytes` of `limit`, rows that are `resident` and `streamed`. Models from files have none.
    calibration_ : Calibration or None
        How `predict_proba` makes probabilities of scores: its `method` and `temperature`; with the method "vector" also `scales`
        and `shifts` of the classes. None: as the algorithm's paper implies.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GDMCBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GDMCBoostClassifier(n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_estimators: int
    learning_rate: float
    max_bins: int
    categorical_features: Any
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    subsample: float
    sampling: Literal['uniform', 'weight']
    max_features: float | int | Literal['log2', 'sqrt']
    sketch: int | None
    statistic_bits: int | None
    on_separation: Literal['continue', 'stop']
    calibration: Literal['auto', 'temperature', 'vector'] | None
    class_weight: dict[Any, float] | Literal['balanced'] | None
    early_stopping_rounds: int | None
    validation_fraction: float | None
    eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any]
    min_delta: float
    score_dtype: Literal['float32', 'float64']
    feature_dim: str | None
    nodata: float | str | None
    missing_chunks: Literal['error', 'ignore', 'warn']
    memory_limit: int | str | None
    scratch: str | os.PathLike[str] | None
    storage_options: dict[str, Any] | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int | str
    worker_timeout: float
    wait_for_workers: int | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: int
    callbacks: Sequence[Callback] | None
    loss: Literal['exponential', 'logistic', 'softmax']
    leaf: Literal['codeword', 'direction', 'newton']
    l2: float
    max_depth: int | None
    max_leaf_nodes: int | None

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = 'from_dtype',
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        subsample: float = 1.0,
        sampling: Literal['uniform', 'weight'] = 'uniform',
        max_features: float | int | Literal['log2', 'sqrt'] = 1.0,
        sketch: int | None = None,
        statistic_bits: int | None = None,
        on_separation: Literal['continue', 'stop'] = 'continue',
        calibration: Literal['auto', 'temperature', 'vector'] | None = 'auto',
        class_weight: dict[Any, float] | Literal['balanced'] | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any] = 'error',
        min_delta: float = 0.0,
        score_dtype: Literal['float32', 'float64'] = 'float64',
        feature_dim: str | None = None,
        nodata: float | str | None = None,
        missing_chunks: Literal['error', 'ignore', 'warn'] = 'warn',
        memory_limit: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | str = 10,
        worker_timeout: float = 30.0,
        wait_for_workers: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        loss: Literal['exponential', 'logistic', 'softmax'] = 'exponential',
        leaf: Literal['codeword', 'direction', 'newton'] = 'direction',
        l2: float = 1.0,
        max_depth: int | None = 6,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class REBELClassifier(BoostingClassifier):
    """REBEL: multiclass boosting with one vector of votes per weak learner.

    Appel & Perona, *A simple multi-class boosting framework with theoretical guarantees and empirical proficiency*, ICML 2017.
    A weak learner is a tree of -1 and +1, or a similarity to one or two rows. It votes for or against every class, with the best
    step for each.

    The paper's procedure (section 5.2) finds a round's similarity: it splits the rows into two groups, chooses the row that is
    easiest to separate from all others, and tries its nearest neighbours in the other group one by one. This takes 4 passes over
    the rows and one more for each two-point similarity tried. A coordinate that is missing in either row adds nothing to their
    distance. Training keeps the rows' raw values: 8 bytes for each feature and 8 for each class. `max_features` and the limits
    of trees do not apply to similarities.

    Parameters
    ----------
    weak_learner : {"tree", "similarity"}, default="tree"
        "tree": each split is the one that lowers the loss of the whole tree most. "similarity": localized similarities
        (section 5). They measure Euclidean distances: scale the features comparably.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump.
    similarity : {"two-point", "one-point"}, default="two-point"
        The number of rows whose distances a similarity measures.
    output : {"real", "sign"}, default="real"
        Output of similarities: their value, with steps by exact line searches, or its sign.
    max_candidates : int or None, default=None
        Upper limit of the two-point similarities tried in a round; each costs a pass over the rows. None: no limit, as in the
        paper.
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

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,), object
        The names of the features, if the training rows had any.
    n_iter_ : int
        The number of rounds done.
    best_iteration_ : int
        The number of rounds kept: fewer than `n_iter_` only after early stopping.
    train_loss_, train_error_ : ndarray of shape (`n_iter_`,)
        The algorithm's own loss and the error rate on the training rows after each round.
    eval_loss_, eval_error_ : ndarray of shape (`n_iter_`,)
        The same on the first set of `eval_set`, if one was given.
    eval_history_ : dict of str to dict of str to ndarray of shape (`n_iter_`,)
        "loss", "error" and the `eval_metric` of each set of `eval_set` by name. A set without a name is "eval".
    feature_importances_ : ndarray of shape (n_features,)
    outcome_ : str
        Why training ended.
    runtime_ : str
        Where `fit` trained: in this process, or on which cluster. Models from files have none.
    training_record_ : TrainingRecord
        What `fit` took: `seconds`, `rounds_per_second`, `peak_bytes` of memory, `workers_lost`; and on how many rows, `n_rows`.
        Models from files have none.
    memory_plan_ : MemoryPlan
        The memory that `fit` planned: `n_bytes` of `limit`, rows that are `resident` and `streamed`. Models from files have none.
    calibration_ : Calibration or None
        How `predict_proba` makes probabilities of scores: its `method` and `temperature`; with the method "vector" also `scales`
        and `shifts` of the classes. None: as the algorithm's paper implies.
    passes_ : ndarray of shape (`n_iter_`,)
        Passes over the rows in each round; on a cluster, each is a round trip. The pass for a tree's root does not count: the
        update of the round before usually computes it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import REBELClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = REBELClassifier(n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_estimators: int
    learning_rate: float
    max_bins: int
    categorical_features: Any
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    subsample: float
    sampling: Literal['uniform', 'weight']
    max_features: float | int | Literal['log2', 'sqrt']
    sketch: int | None
    statistic_bits: int | None
    on_separation: Literal['continue', 'stop']
    calibration: Literal['auto', 'temperature', 'vector'] | None
    class_weight: dict[Any, float] | Literal['balanced'] | None
    early_stopping_rounds: int | None
    validation_fraction: float | None
    eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any]
    min_delta: float
    score_dtype: Literal['float32', 'float64']
    feature_dim: str | None
    nodata: float | str | None
    missing_chunks: Literal['error', 'ignore', 'warn']
    memory_limit: int | str | None
    scratch: str | os.PathLike[str] | None
    storage_options: dict[str, Any] | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int | str
    worker_timeout: float
    wait_for_workers: int | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: int
    callbacks: Sequence[Callback] | None
    weak_learner: Literal['similarity', 'tree']
    max_depth: int | None
    similarity: Literal['one-point', 'two-point']
    output: Literal['real', 'sign']
    max_candidates: int | None

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 1.0,
        max_bins: int = 255,
        categorical_features: Any = 'from_dtype',
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        subsample: float = 1.0,
        sampling: Literal['uniform', 'weight'] = 'uniform',
        max_features: float | int | Literal['log2', 'sqrt'] = 1.0,
        sketch: int | None = None,
        statistic_bits: int | None = None,
        on_separation: Literal['continue', 'stop'] = 'continue',
        calibration: Literal['auto', 'temperature', 'vector'] | None = 'auto',
        class_weight: dict[Any, float] | Literal['balanced'] | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any] = 'error',
        min_delta: float = 0.0,
        score_dtype: Literal['float32', 'float64'] = 'float64',
        feature_dim: str | None = None,
        nodata: float | str | None = None,
        missing_chunks: Literal['error', 'ignore', 'warn'] = 'warn',
        memory_limit: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | str = 10,
        worker_timeout: float = 30.0,
        wait_for_workers: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        weak_learner: Literal['similarity', 'tree'] = 'tree',
        max_depth: int | None = 1,
        similarity: Literal['one-point', 'two-point'] = 'two-point',
        output: Literal['real', 'sign'] = 'real',
        max_candidates: int | None = None,
    ) -> None: ...

class StagewiseBoostClassifier(BoostingClassifier):
    """Stage-wise large-margin multiclass boosting.

    Paisitkriangkrai, Shen & van den Hengel, *A scalable stage-wise approach to large-margin multi-class loss based boosting*,
    Algorithm 1. Each round adds a weak learner of -1 and +1 with one non-negative coefficient per class. The coefficients
    minimise the loss exactly. Training ends as "converged" when no weak learner has a slope above `nu`.

    Parameters
    ----------
    max_step : float or None, default=None
        The largest coefficient; None: no limit.
    class_step : float or None, default=None
        The coefficient of the class of steepest descent, where those of all other classes are 0: the paper's figure 1 has 0.01.
        None: the coefficients that minimise the loss.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump. A deeper tree is grown for the class of the best stump, and its leaves have
        the signs that suit that class.
    learning_rate : float, default=0.5
        Shrinkage: each coefficient is multiplied by it.
    loss : {"exponential", "logistic"}, default="exponential"
        The loss that training lowers.
    nu : float, default=1e-9
        Weight of the l1 norm of the coefficients.
    nu_unit : {"sum", "mean"}, default="sum"
        Whether the logistic loss beside `nu` is the sum over the rows, as in the paper, or their mean. Beside a sum, the same
        `nu` means less the more rows there are. The exponential loss is a logarithm, beside which `nu` has one meaning.
    n_estimators : int, default=100
        The number of rounds. Early stopping may end training after fewer.
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

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,), object
        The names of the features, if the training rows had any.
    n_iter_ : int
        The number of rounds done.
    best_iteration_ : int
        The number of rounds kept: fewer than `n_iter_` only after early stopping.
    train_loss_, train_error_ : ndarray of shape (`n_iter_`,)
        The algorithm's own loss and the error rate on the training rows after each round.
    eval_loss_, eval_error_ : ndarray of shape (`n_iter_`,)
        The same on the first set of `eval_set`, if one was given.
    eval_history_ : dict of str to dict of str to ndarray of shape (`n_iter_`,)
        "loss", "error" and the `eval_metric` of each set of `eval_set` by name. A set without a name is "eval".
    feature_importances_ : ndarray of shape (n_features,)
    outcome_ : str
        Why training ended.
    runtime_ : str
        Where `fit` trained: in this process, or on which cluster. Models from files have none.
    training_record_ : TrainingRecord
        What `fit` took: `seconds`, `rounds_per_second`, `peak_bytes` of memory, `workers_lost`; and on how many rows, `n_rows`.
        Models from files have none.
    memory_plan_ : MemoryPlan
        The memory that `fit` planned: `n_bytes` of `limit`, rows that are `resident` and `streamed`. Models from files have none.
    calibration_ : Calibration or None
        How `predict_proba` makes probabilities of scores: its `method` and `temperature`; with the method "vector" also `scales`
        and `shifts` of the classes. None: as the algorithm's paper implies.
    coefficient_passes_ : ndarray of shape (`n_iter_`,)
        Passes over the rows that each round's coefficients needed, besides the pass that every round makes: none with the
        exponential loss, usually one with the logistic.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost import StagewiseBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = StagewiseBoostClassifier(n_estimators=20).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_estimators: int
    learning_rate: float
    max_bins: int
    categorical_features: Any
    min_samples_leaf: int
    min_weight_fraction_leaf: float
    subsample: float
    sampling: Literal['uniform', 'weight']
    max_features: float | int | Literal['log2', 'sqrt']
    sketch: int | None
    statistic_bits: int | None
    on_separation: Literal['continue', 'stop']
    calibration: Literal['auto', 'temperature', 'vector'] | None
    class_weight: dict[Any, float] | Literal['balanced'] | None
    early_stopping_rounds: int | None
    validation_fraction: float | None
    eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any]
    min_delta: float
    score_dtype: Literal['float32', 'float64']
    feature_dim: str | None
    nodata: float | str | None
    missing_chunks: Literal['error', 'ignore', 'warn']
    memory_limit: int | str | None
    scratch: str | os.PathLike[str] | None
    storage_options: dict[str, Any] | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int | str
    worker_timeout: float
    wait_for_workers: int | None
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: int
    callbacks: Sequence[Callback] | None
    loss: Literal['exponential', 'logistic']
    nu: float
    nu_unit: Literal['mean', 'sum']
    max_step: float | None
    class_step: float | None
    max_depth: int | None

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.5,
        max_bins: int = 255,
        categorical_features: Any = 'from_dtype',
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        subsample: float = 1.0,
        sampling: Literal['uniform', 'weight'] = 'uniform',
        max_features: float | int | Literal['log2', 'sqrt'] = 1.0,
        sketch: int | None = None,
        statistic_bits: int | None = None,
        on_separation: Literal['continue', 'stop'] = 'continue',
        calibration: Literal['auto', 'temperature', 'vector'] | None = 'auto',
        class_weight: dict[Any, float] | Literal['balanced'] | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float | None = None,
        eval_metric: Literal['error', 'log_loss', 'loss'] | Callable[..., Any] = 'error',
        min_delta: float = 0.0,
        score_dtype: Literal['float32', 'float64'] = 'float64',
        feature_dim: str | None = None,
        nodata: float | str | None = None,
        missing_chunks: Literal['error', 'ignore', 'warn'] = 'warn',
        memory_limit: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int | str = 10,
        worker_timeout: float = 30.0,
        wait_for_workers: int | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        loss: Literal['exponential', 'logistic'] = 'exponential',
        nu: float = 1e-09,
        nu_unit: Literal['mean', 'sum'] = 'sum',
        max_step: float | None = None,
        class_step: float | None = None,
        max_depth: int | None = 1,
    ) -> None: ...
