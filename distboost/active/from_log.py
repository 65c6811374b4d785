"""Work that goes on from its log: the log says what was asked and taught, with what settings, and where the pool is."""

from __future__ import annotations

import os
from typing import Any

from distboost.active.ledger import Ledger
from distboost.active.query import QueryByCommittee
from distboost.errors import DataError, ModelFormatError
from distboost.estimators.factory import described
from distboost.estimators.parameters import RUN_PARAMETERS
from distboost.io.storage import local_path

# Of a log's header: what are no settings of QueryByCommittee, but of what it is made of.
NOT_SETTINGS = {"distboost", "version", "pool", "algorithm", "parameters"}


def begin(estimator: Any, pool: str, log: str | os.PathLike, **settings: Any) -> QueryByCommittee:
    """A learner whose log knows all that `resume` needs.

    Parameters
    ----------
    estimator, log, **settings
        As for `QueryByCommittee`.
    pool : str
        Path or URL of a zarr array.
    """
    learner = QueryByCommittee(estimator, pool, log=log, **settings)
    _note(learner, pool)
    return learner


def resume(
    log: str | os.PathLike,
    pool: Any = None,
    *,
    client: Any = None,
    parameters: dict[str, Any] | None = None,
    **settings: Any,
) -> QueryByCommittee:
    """The learner of a log, as it was when the process that wrote the log ended.

    Parameters
    ----------
    log : str or path
    pool : as for `QueryByCommittee`, default=None
        The same rows, wherever they are by now. None: where the log says they are, as logs of the command line do.
    client : distributed.Client or None, default=None
        Where the pool is scored.
    parameters : dict or None, default=None
        Of the estimator. Those that do not change what is learned may be others than before, such as n_jobs.
    **settings
        Of `QueryByCommittee`, to be sure of them: none may be another than the log's. `verbose` may.

    Returns
    -------
    learner : QueryByCommittee

    Raises
    ------
    distboost.errors.DataError
        If there is no log, the log is of other work, or it does not say where the pool is.
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
    ledger = Ledger.from_log(log)
    header, notes = ledger.header, ledger.notes
    pool = notes.get("pool") if pool is None else pool
    if pool is None:
        raise DataError(f"the log {os.fspath(log)} does not say where its pool is. Give the pool, too.")
    try:
        estimator = described(header, f"the log {os.fspath(log)}")
    except ModelFormatError as error:
        raise DataError(str(error)) from error
    _set_run_parameters(estimator, notes.get("parameters", {}), log)
    estimator.set_params(**(parameters or {}))
    estimator.client = client
    kept = {name: value for name, value in header.items() if name not in NOT_SETTINGS}
    learner = QueryByCommittee(estimator, pool, log=log, **{**kept, **settings})
    if isinstance(pool, str):
        _note(learner, pool)
    return learner


def _set_run_parameters(estimator: Any, told: dict[str, Any], log: str | os.PathLike) -> None:
    """How the estimator runs, as the log says; raises DataError if it cannot."""
    unknown = told.keys() - RUN_PARAMETERS
    if unknown:
        raise DataError(
            f"the log {os.fspath(log)} notes {min(unknown)!r:.100}, which does not say how to run. Begin a new log."
        )
    try:
        estimator.set_params(**told)._validate_params()
    except ValueError as error:
        raise DataError(
            f"the log {os.fspath(log)} notes parameters that cannot be: {error} Begin a new log."
        ) from error


def _note(learner: QueryByCommittee, pool: str) -> None:
    """Keeps in the log what its header has not: where the pool is, and how the estimator runs."""
    estimator = learner.estimator
    told = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name in RUN_PARAMETERS
        and value != getattr(type(estimator), name)
        and isinstance(value, (int, float, str))  # others are Python's, not JSON's
    }
    learner.ledger.note("parameters", told)
    path = local_path(pool)
    learner.ledger.note("pool", pool if path is None else os.path.abspath(path))
