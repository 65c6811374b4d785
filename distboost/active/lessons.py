"""What people say of rows: methods that the log and the learner have in common."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np

from distboost.active.records import MAX_TEXT_LENGTH, checked_labels, is_text, is_time
from distboost.errors import DataError


class Lessons:
    """Records what people say. Nothing of a call is recorded if it raises."""

    def record(self, kind: str, value: Any, by: str | None = None, **more: Any) -> Any:
        """Record an event, unless its value is None or empty."""
        raise NotImplementedError

    def teach(self, rows: Any, labels: Any, by: str | None = None, seconds: float | None = None) -> Self:
        """Record labels. The committee is trained with them before the next query.

        Parameters
        ----------
        rows : array-like of shape (n,), int
            Any rows of the pool that have no label, asked for or not, and those that `by` was asked for a second opinion of.
        labels : array-like of shape (n,)
            Numbers or text.
        by : str or None, default=None
            Who says so.
        seconds : float or None, default=None
            How long it took.

        Returns
        -------
        self

        Raises
        ------
        distboost.errors.DataError
            If a row or a label is invalid: somebody else may have taught the row. Nothing of the call is recorded then.
        distboost.errors.StoreError
            If the log cannot be written. Nothing of the call is recorded then.
        """
        return self._labelled("taught", rows, labels, by, seconds)

    def correct(self, rows: Any, labels: Any, by: str | None = None, seconds: float | None = None) -> Self:
        """Record other labels of rows that have some. As for `teach`."""
        return self._labelled("corrected", rows, labels, by, seconds)

    def withdraw(self, rows: Any, by: str | None = None) -> Self:
        """Record that nothing said of these rows counts, neither labels nor skips: they may be asked for again."""
        self.record("withdrawn", listed(rows), by)
        return self

    def skip(self, rows: Any, why: str = "", by: str | None = None) -> Self:
        """Record rows that are never to be asked for. As for `teach`."""
        if not is_text(why):
            raise DataError.expected("why", why, remedy=f"Pass text of at most {MAX_TEXT_LENGTH} characters.")
        found = listed(rows)
        self.record("skipped", {"rows": found, "why": why} if found else None, by)
        return self

    def unsure(self, rows: Any, by: str | None = None) -> Self:
        """Record rows that this person cannot tell: only others are asked for them again. As for `teach`."""
        self.record("unsure", listed(rows), by)
        return self

    def _labelled(self, kind: str, rows: Any, labels: Any, by: str | None, seconds: float | None) -> Self:
        if seconds is not None and not (isinstance(seconds, Real) and is_time(float(seconds))):
            raise DataError(
                f"seconds are {seconds!r:.100}.",
                remedy="Pass a number of at least 0.",
                where="seconds",
                value=seconds,
            )
        value = {"rows": listed(rows), "labels": checked_labels(labels).tolist()}
        took = None if seconds is None else float(seconds)
        self.record(kind, value if any(value.values()) else None, by, seconds=took)
        return self


def listed(rows: Any) -> list[int]:
    """Return row numbers as a list; raise DataError if they are none."""
    found = np.asarray(rows)
    if found.size and (found.ndim != 1 or found.dtype.kind not in "iu"):
        raise DataError(
            f"rows are an array of type {found.dtype} and shape {found.shape}: pass a list of row numbers.",
            value=found.dtype,
        )
    return [int(row) for row in found]
