"""How much memory a training takes, reckoned before the first row is read."""

from __future__ import annotations

from dask.utils import format_bytes, parse_bytes

from distboost.algorithms.base import Algorithm
from distboost.errors import LimitError


def resident_bytes(n_rows: int, n_features: int, algorithm: Algorithm, score_bytes: int) -> int:
    """Bytes that the rows of one process take while they train."""
    bins = n_features
    label_and_weight = 4 + 8
    scores = algorithm.weighting.n_scores(algorithm.n_classes) * score_bytes
    order = 3 * 4
    return n_rows * (bins + label_and_weight + scores + order + algorithm.row_bytes(n_features))


def check_budget(
    memory_limit: int | str | None, n_rows: int, n_features: int, algorithm: Algorithm, score_bytes: int
) -> None:
    """Raises LimitError if the rows of one process do not fit the limit (bytes, or a text such as "2GB")."""
    if memory_limit is None:
        return
    try:
        limit = parse_bytes(memory_limit)
    except ValueError as error:
        raise LimitError(
            f"memory_limit is {memory_limit!r}, expected a number of bytes or a text such as '2GB'."
        ) from error
    needed = resident_bytes(n_rows, n_features, algorithm, score_bytes)
    if needed > limit:
        raise LimitError(
            f"memory_limit is {format_bytes(limit)} per process, but {n_rows} rows of {n_features} features and "
            f"{algorithm.n_classes} classes take {format_bytes(needed)} with {algorithm.name}. Raise the limit, use more "
            "workers, or set score_dtype='float32'."
        )
