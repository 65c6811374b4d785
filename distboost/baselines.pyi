# Written by `python -m distboost.estimators.stubs`: do not edit.

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from distboost.estimators.base import BoostingClassifier
from distboost.training.loop import Callback

class AdaBoostECCClassifier(BoostingClassifier):
    """AdaBoost.ECC: in each round, half of the classes against the other half.

    Guruswami & Sahai, *Multiclass learning, boosting, and error-correcting codes*, COLT 1999, with colorings drawn at random
    ("random-half").

    Parameters
    ----------
    colorings : sequence of sequences of -1 and +1, or None, default=None
        Which classes are +1, one row per round. None: half of the classes (rounded down), drawn at random from `random_state` and
        the round.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump, whose two sides have opposite signs. Each leaf of a deeper tree has its own
        sign.
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
    >>> from distboost.baselines import AdaBoostECCClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostECCClassifier(n_estimators=20).fit(X, y)
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
    random_state: Any
    verbose: int
    callbacks: Sequence[Callback] | None
    colorings: Any
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
        random_state: Any = 0,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        colorings: Any = None,
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class AdaBoostM1Classifier(BoostingClassifier):
    """AdaBoost.M1: each tree predicts classes, and must be right about more than half of the weight.

    Freund & Schapire, *Experiments with a new boosting algorithm*, ICML 1996. Training ends as "no better than chance" before
    a tree that errs on half of the weight.

    Parameters
    ----------
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
    >>> from distboost.baselines import AdaBoostM1Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostM1Classifier(n_estimators=20).fit(X, y)
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
        max_depth: int | None = 6,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class AdaBoostM2Classifier(BoostingClassifier):
    """AdaBoost.M2: trees that name the plausible labels of each leaf, and lower the pseudo-loss.

    Freund & Schapire, *Experiments with a new boosting algorithm*, ICML 1996. Any tree that orders labels better than chance is
    of use: the exact condition for boosting (Mukherjee & Schapire 2010).

    Parameters
    ----------
    vote : {"labels", "label"}, default="labels"
        "labels": a leaf names all labels that are more often right than wrong. "label": it names one.
    max_depth : int or None, default=3
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
    >>> from distboost.baselines import AdaBoostM2Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostM2Classifier(n_estimators=20).fit(X, y)
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
    vote: Literal['label', 'labels']
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
        vote: Literal['label', 'labels'] = 'labels',
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class AdaBoostMHClassifier(BoostingClassifier):
    """AdaBoost.MH: one tree per round for all binary questions "does the row have this class?".

    Schapire & Singer, *Improved boosting algorithms using confidence-rated predictions*, Machine Learning, 1999.

    Parameters
    ----------
    vote : {"sign", "label", "real"}, default="sign"
        "sign": each leaf votes -1 or +1 for each class, with one step for all. "label": each leaf votes +1 for one class and -1
        for all others; training ends as "no better than chance" before a tree whose votes agree with half of the weight or less.
        "real": each leaf votes with a real number for each class.
    max_depth : int or None, default=1
        The largest depth of a tree. With sign votes, the two sides of a stump have opposite votes (the factorised weak
        learner). Each leaf of a deeper tree has its own votes.
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
    >>> from distboost.baselines import AdaBoostMHClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostMHClassifier(n_estimators=20).fit(X, y)
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
    vote: Literal['label', 'real', 'sign']
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
        vote: Literal['label', 'real', 'sign'] = 'sign',
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class AdaBoostMOClassifier(BoostingClassifier):
    """AdaBoost.MO: AdaBoost.MH over all ways to split the classes into two groups, for few classes.

    Schapire & Singer, *Improved boosting algorithms using confidence-rated predictions*, 1999, with the exhaustive code of
    2^(K-1) - 1 columns. A round adds a tree for every column, all of them with one step.

    Parameters
    ----------
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump, whose two sides have opposite signs. Each leaf of a deeper tree has its own
        sign.
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
    >>> from distboost.baselines import AdaBoostMOClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostMOClassifier(n_estimators=20).fit(X, y)
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
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class AdaBoostMRClassifier(BoostingClassifier):
    """AdaBoost.MR: AdaBoost.M2 with the step that minimises the ranking loss.

    Schapire & Singer, *Improved boosting algorithms using confidence-rated predictions*, Machine Learning, 1999. The step ignores
    pairs that a tree does not order, so it is longer than AdaBoost.M2's.

    Parameters
    ----------
    vote : {"labels", "label"}, default="labels"
        "labels": a leaf names all labels that are more often right than wrong. "label": it names one.
    max_depth : int or None, default=3
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
    >>> from distboost.baselines import AdaBoostMRClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostMRClassifier(n_estimators=20).fit(X, y)
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
    vote: Literal['label', 'labels']
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
        vote: Literal['label', 'labels'] = 'labels',
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class AllPairsClassifier(BoostingClassifier):
    """All pairs: AdaBoost for each pair of classes, on the rows of these two classes.

    Allwein, Schapire & Singer, *Reducing multiclass to binary*, JMLR, 2000. A round adds a tree for each of the K (K - 1) / 2
    pairs, for at most 64 classes. A pair that is told apart without an error keeps up with the others: else their scores, which
    mean nothing for rows of these two classes, would outvote it. In `min_samples_leaf`, rows of other classes count.

    Parameters
    ----------
    decoding : {"votes", "sum"}, default="votes"
        The scores of the classes. "votes": the sum of each pair's vote p - q, where p and q are the probabilities that AdaBoost's
        score f gives its two classes: p - q = tanh(f). "sum": the sum of f, as in the paper. With "sum", scores are sums over
        trees, which SHAP values, tables of trees and exports other than ONNX need; but pairs that are far apart outvote those
        that matter.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump, whose two sides have opposite signs. Each leaf of a deeper tree has its own
        sign.
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
    >>> from distboost.baselines import AllPairsClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AllPairsClassifier(n_estimators=20).fit(X, y)
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
    max_depth: int | None
    max_leaf_nodes: int | None
    decoding: Literal['sum', 'votes']

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
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
        decoding: Literal['sum', 'votes'] = 'votes',
    ) -> None: ...

class AOSOLogitBoostClassifier(BoostingClassifier):
    """AOSO-LogitBoost: one tree per round, in whose nodes one class is set against another.

    Sun, Reid & Zhou, *AOSO-LogitBoost: adaptive one-vs-one LogitBoost for multi-class problem*, ICML 2012. Each node chooses
    a pair of classes, for its split or, in a leaf, for Newton's step. Histograms have K (K + 1) / 2 sums: at most 64 classes.

    Parameters
    ----------
    largest_response : float, default=5.0
        Newton's step of a leaf is clipped to this absolute value.
    max_leaf_nodes : int or None, default=20
        Trees grow best first up to this number of leaves; None: level by level.
    learning_rate : float, default=0.1
        Shrinkage: each step is multiplied by it.
    max_depth : int or None, default=None
        The largest depth of a tree; None: no limit.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost.baselines import AOSOLogitBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AOSOLogitBoostClassifier(n_estimators=20).fit(X, y)
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
    largest_response: float
    max_depth: int | None
    max_leaf_nodes: int | None

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
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
        largest_response: float = 5.0,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = 20,
    ) -> None: ...

class GentleAdaBoostClassifier(BoostingClassifier):
    """Gentle AdaBoost.MH: least-squares trees of -1 and +1, a committee for each class.

    Friedman, Hastie & Tibshirani, *Additive logistic regression: a statistical view of boosting*, 2000. With 2 classes, the
    two committees have opposite scores, each of which is Gentle AdaBoost.

    Parameters
    ----------
    max_depth : int or None, default=1
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
    >>> from distboost.baselines import GentleAdaBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GentleAdaBoostClassifier(n_estimators=20).fit(X, y)
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
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class GradBoostClassifier(BoostingClassifier):
    """GradBoost: stumps with one coefficient per class, moved by bounded gradient steps under a mixed-norm penalty.

    Duchi & Singer, *Boosting with structural sparsity*, ICML 2009. Training ends as "converged" when the penalty
    leaves the best stump's coefficients unchanged, except for rounding.

    Parameters
    ----------
    penalty : float, default=1e-4
        Weight of the sum of the Euclidean norms of the stumps' coefficients.
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
    >>> from distboost.baselines import GradBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GradBoostClassifier(n_estimators=20).fit(X, y)
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
    penalty: float

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
        penalty: float = 0.0001,
    ) -> None: ...

class JointBoostClassifier(BoostingClassifier):
    """JointBoost: Gentle AdaBoost for each class, with one stump per round that a subset of the classes shares.

    Torralba, Murphy & Freeman, *Sharing visual features for multiclass and multiview object detection*, IEEE Transactions on
    Pattern Analysis and Machine Intelligence, 2007. Each other class gets a constant. As in the paper, the search for the subset
    is greedy: it grows by the class that, with the best stump for all in it, lowers the error most. The best of the K subsets
    that it had is taken.

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
    sharing_ : ndarray of shape (`n_iter_`,)
        How many classes share the stump of each round.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost.baselines import JointBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = JointBoostClassifier(n_estimators=20).fit(X, y)
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
    ) -> None: ...

class LogitBoostClassifier(BoostingClassifier):
    """LogitBoost: Newton's steps for the multinomial logistic loss, a least-squares tree for each class.

    Friedman, Hastie & Tibshirani, *Additive logistic regression: a statistical view of boosting*, Annals of Statistics, 2000,
    algorithm 6. A round adds K trees. Its steps are bounded, but may overshoot: the loss may rise.

    Parameters
    ----------
    largest_response : float, default=4.0
        The working responses are clipped to this absolute value. The paper recommends 2 to 4.
    max_depth : int or None, default=None
        The largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=8
        Trees grow best first up to this number of leaves, as the paper's; None: level by level.
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
    >>> from distboost.baselines import LogitBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogitBoostClassifier(n_estimators=20).fit(X, y)
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
    largest_response: float
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
        largest_response: float = 4.0,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = 8,
    ) -> None: ...

class MultiBoostClassifier(BoostingClassifier):
    """MultiBoost: totally corrective boosting with direct multiclass margins.

    Shen & Hao, *A direct formulation for totally-corrective multi-class boosting*, CVPR 2011. Weak learners are stumps. Every
    round computes the coefficients of all stumps again, in many passes over the rows. `staged_scores` returns partial sums with
    the final coefficients. Training ends as "converged" when no stump has a slope above `nu`.

    Parameters
    ----------
    nu : float, default=1e-4
        Weight of the l1 norm of the coefficients.
    loss : {"exponential", "logistic"}, default="exponential"
        The loss that training lowers.
    nu_unit : {"sum", "mean"}, default="sum"
        Whether the logistic loss beside `nu` is the sum over the rows, as in the paper, or their mean. Beside a sum, the same
        `nu` means less the more rows there are. The exponential loss is a logarithm, beside which `nu` has one meaning.
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
    coefficient_passes_ : ndarray of shape (`n_iter_`,)
        Passes over the rows that each round's coefficients needed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost.baselines import MultiBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MultiBoostClassifier(n_estimators=20).fit(X, y)
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
        nu: float = 0.0001,
        nu_unit: Literal['mean', 'sum'] = 'sum',
    ) -> None: ...

class OneVsAllAdaBoostClassifier(BoostingClassifier):
    """One-vs-all AdaBoost: a committee for each class, against all others.

    Freund & Schapire, *A decision-theoretic generalization of on-line learning and an application to boosting*, 1997, for each
    class. A round adds a tree to every committee.

    Parameters
    ----------
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump, whose two sides have opposite signs. Each leaf of a deeper tree has its own
        sign.
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
    >>> from distboost.baselines import OneVsAllAdaBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsAllAdaBoostClassifier(n_estimators=20).fit(X, y)
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
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class OutputCodeClassifier(BoostingClassifier):
    """Error-correcting output codes: AdaBoost for each column of a fixed code.

    Dietterich & Bakiri, *Solving multiclass learning problems via error-correcting output codes*, JAIR, 1995; Allwein, Schapire
    & Singer, *Reducing multiclass to binary*, JMLR, 2000. A round adds a tree for each column. The class whose row of the code
    has the largest product with the scores is predicted.

    Parameters
    ----------
    code : {"random", "exhaustive"} or array-like of shape (n_classes, n_columns), default="random"
        "random": 10 log2(K) columns of -1 and +1, rounded up, drawn from `random_state`. "exhaustive": all 2^(K-1) - 1 ways to
        divide the classes into two groups, for at most 12 classes. A matrix has a row for each class, in the order of
        `classes_`, of -1, 0 and +1: rows of a class of 0 have no part in the column's problem, but count in `min_samples_leaf`.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump, whose two sides have opposite signs. Each leaf of a deeper tree has its own
        sign.
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
    >>> from distboost.baselines import OutputCodeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OutputCodeClassifier(n_estimators=20).fit(X, y)
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
    random_state: Any
    verbose: int
    callbacks: Sequence[Callback] | None
    max_depth: int | None
    max_leaf_nodes: int | None
    code: Any

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
        random_state: Any = 0,
        verbose: int = 0,
        callbacks: Sequence[Callback] | None = None,
        max_depth: int | None = 1,
        max_leaf_nodes: int | None = None,
        code: Any = 'random',
    ) -> None: ...

class SAMMEClassifier(BoostingClassifier):
    """SAMME: AdaBoost.M1 for weak learners that need only be better than a random guess among all classes.

    Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost*, Statistics and Its Interface, 2009. Training ends as "no better than
    chance" before a tree whose error is 1 - 1/K or more.

    Parameters
    ----------
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
    >>> from distboost.baselines import SAMMEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SAMMEClassifier(n_estimators=20).fit(X, y)
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
        max_depth: int | None = 6,
        max_leaf_nodes: int | None = None,
    ) -> None: ...

class SAMMERClassifier(BoostingClassifier):
    """SAMME.R: trees that vote with the class probabilities of their leaves.

    Zhu, Zou, Rosset & Hastie, *Multi-class AdaBoost*, Statistics and Its Interface, 2009. The trees lower the weighted Gini
    impurity.

    Parameters
    ----------
    floor : float, default=1e-5
        The least probability that a leaf has for a class. It bounds the step: the paper's is infinite where a class is absent.
    max_depth : int or None, default=3
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
    >>> from distboost.baselines import SAMMERClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SAMMERClassifier(n_estimators=20).fit(X, y)
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
    max_depth: int | None
    max_leaf_nodes: int | None
    floor: float

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
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        floor: float = 1e-05,
    ) -> None: ...

class StructBoostClassifier(BoostingClassifier):
    """StructBoost: totally corrective boosting of the multiclass hinge loss, by linear programs.

    Shen, Lin & van den Hengel, *StructBoost: boosting methods for predicting structured output variables*, IEEE Transactions on
    Pattern Analysis and Machine Intelligence, 2014, for classes. Weak learners are stumps. Every round computes the coefficients
    of all stumps again, in many passes over the rows. `staged_scores` returns partial sums with the final coefficients. Training
    ends as "converged" when no stump violates its dual constraint.

    Parameters
    ----------
    C : float, default=100.0
        Weight of the mean loss beside the l1 norm of the coefficients.
    tolerance : float, default=1e-3
        The objective is within this fraction of its minimum, and dual constraints hold up to it.
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
    coefficient_passes_ : ndarray of shape (`n_iter_`,)
        Passes over the rows that each round's coefficients needed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distboost.baselines import StructBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = StructBoostClassifier(n_estimators=20).fit(X, y)
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
    C: float
    tolerance: float

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
        C: float = 100.0,
        tolerance: float = 0.001,
    ) -> None: ...
