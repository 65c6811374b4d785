"""Begin work that keeps a log, and resume work from its log."""

from __future__ import annotations

import os
from typing import Any

from distboost.active.committee import EXTRA_TREES, default_committee
from distboost.active.ledger import Ledger
from distboost.active.pool import Pool
from distboost.active.query import QueryByCommittee
from distboost.active.strategies import STRATEGIES
from distboost.errors import DataError, ModelFormatError
from distboost.estimators.factory import described
from distboost.estimators.parameters import RUN_PARAMETERS, library_class, own_parameters
from distboost.io.options import storage_options, url_of
from distboost.io.storage import local_path

# Entries of a log's header that are no parameters of QueryByCommittee.
NOT_SETTINGS = {"distboost", "version", "pool", "algorithm", "parameters", "final"}


def begin(estimator: Any, pool: str, log: str | os.PathLike[str], **settings: Any) -> QueryByCommittee:
    """Return a new learner, with a log that holds all that `resume` needs.

    Parameters
    ----------
    estimator, log, **settings
        As for `QueryByCommittee`.
    pool : str
        Path or URL of a zarr array, or of Parquet files.
    """
    learner = QueryByCommittee(estimator, pool, log=log, **settings)
    _note(learner, pool)
    return learner


def resume(
    log: str | os.PathLike[str],
    pool: Any = None,
    *,
    estimator: Any = None,
    client: Any = None,
    parameters: dict[str, Any] | None = None,
    extend: bool = False,
    **settings: Any,
) -> QueryByCommittee:
    """Return the learner of a log, in the state that the last process left.

    Parameters
    ----------
    log : str or path
    pool : as for `QueryByCommittee`, default=None
        The same rows as before; their place may differ. None: the place that the log names, as logs of the command line do.
    estimator : classifier or None, default=None
        The committee. None: as the log describes it, if it is one of distboost's or the default one.
    client : distributed.Client or None, default=None
        The cluster that scores the pool.
    parameters : dict or None, default=None
        Parameters of the committee. Those that do not decide what is learned, such as n_jobs, may differ from before.
    extend : bool, default=False
        Whether rows may have been appended to the pool, which are to be taken up.
    **settings
        Parameters of `QueryByCommittee`: those that may not change must equal those of the log.

    Returns
    -------
    learner : QueryByCommittee

    Raises
    ------
    distboost.errors.DataError
        If there is no log, the log belongs to other work, or it does not say where the pool is.
    distboost.errors.StoreError
        If the log is damaged.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GAMBLEClassifier
    >>> from distboost.active import QueryByCommittee, resume
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = f"{folder}/labels.log"
    ...     rows = QueryByCommittee(GAMBLEClassifier(n_estimators=5), X, n_initial=10, log=log).query()
    ...     committee = resume(log, X)
    >>> bool((committee.asked_ == rows).all())
    True
    """
    log = url_of(log, "log")
    ledger = Ledger.from_log(log)
    header, notes = ledger.header, ledger.notes
    pool = notes.get("pool") if pool is None else pool
    if pool is None:
        raise DataError(
            f"the log {log} does not say where its pool is.", remedy="Pass the pool, too.", where=log
        )
    strategy = ledger.settings["strategy"]
    if strategy not in STRATEGIES and "strategy" not in settings:
        raise DataError(
            f"the log {log} asks by {strategy}, which is none of {', '.join(STRATEGIES)}.",
            remedy="Pass that function, or one of these: ``strategy=...``",
            where=log,
        )
    if estimator is None:
        estimator = _classifier(header, log)
    final = settings.pop("final", None)
    if final is None and header["final"] is not None:
        final = _classifier(header["final"], log)
    home = estimator if final is None else final
    _set_run_parameters(home, notes.get("parameters", {}), log)
    home.client = client
    estimator.set_params(**(parameters or {}))
    kept = {name: value for name, value in (header | ledger.settings).items() if name not in NOT_SETTINGS}
    if extend:
        with storage_options(home.storage_options):
            ledger.extend(Pool(pool, home.categorical_features).n_rows)
    learner = QueryByCommittee(estimator, pool, log=log, final=final, **{**kept, **settings})
    if isinstance(pool, str):
        _note(learner, pool)
    return learner


def _classifier(description: dict[str, Any], log: str | os.PathLike[str]) -> Any:
    """Return the classifier that a log describes."""
    name, parameters = description["algorithm"], description["parameters"]
    try:
        if name == EXTRA_TREES:
            return default_committee().set_params(**parameters)
        if "." in name:
            raise DataError(
                f"the log {log} has a committee of the class {name}.",
                remedy="Pass one: ``estimator=...``",
                where=log,
            )
        return described(description, f"the log {log}")
    except (ModelFormatError, ValueError) as error:
        raise DataError(str(error)) from error


def _set_run_parameters(estimator: Any, told: dict[str, Any], log: str | os.PathLike[str]) -> None:
    """Set the parameters that say how the estimator runs, as the log notes them; raise DataError if they are invalid."""
    unknown = told.keys() - RUN_PARAMETERS
    if unknown:
        raise DataError(
            f"the log {os.fspath(log)} notes {min(unknown)!r:.100}, which is no parameter of how to run.",
            remedy="Begin a new log.",
            where=log,
        )
    try:
        estimator.set_params(**told).validate()
    except ValueError as error:
        raise DataError(
            f"the log {os.fspath(log)} notes invalid parameters: {error} Begin a new log.", where=log
        ) from error


def _note(learner: QueryByCommittee, pool: str) -> None:
    """Note in the log what its header does not hold: where the pool is, and how the estimator runs."""
    estimator = learner.home
    told = {
        name: value
        for name, value in own_parameters(estimator).items()
        if name in RUN_PARAMETERS
        and value != getattr(library_class(estimator), name)
        and isinstance(value, (int, float, str))  # JSON has no other scalars
    }
    learner.ledger.note("parameters", told)
    path = local_path(pool)
    learner.ledger.note("pool", pool if path is None else os.path.abspath(path))
