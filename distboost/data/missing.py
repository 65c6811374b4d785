"""Warnings about chunks of zarr arrays that were never written."""

from __future__ import annotations

import warnings

from distboost.data.sources import Source, ZarrSource
from distboost.errors import DataError, MissingChunkError

MISSING_CHUNKS = ("warn", "error", "ignore")


def check_chunks(source: Source, policy: str) -> str | None:
    """Return a warning if chunks of a zarr source were never written, else None; with "error", raise MissingChunkError."""
    if policy not in MISSING_CHUNKS:
        raise DataError(
            f"missing_chunks is {policy!r}, expected one of {', '.join(map(repr, MISSING_CHUNKS))}."
        )
    if not isinstance(source, ZarrSource) or policy == "ignore":
        return None
    missing = source.missing_chunks()
    if not missing:
        return None
    named = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
    message = (
        f"{len(missing)} chunks of {source.place} are not in the store and read as the fill value "
        f"{source.array.fill_value}: {named}."
    )
    if policy == "error":
        raise MissingChunkError(f"{message} Write them, or allow this with missing_chunks='warn'.")
    return f"{message} By default, zarr does not write chunks that are all fill value. If these are not, write them again."


def warn_of_missing(source: Source, policy: str, stacklevel: int) -> None:
    """Warn about chunks that were never written, or raise MissingChunkError, depending on the policy."""
    message = check_chunks(source, policy)
    warn_all([message] if message else [], stacklevel + 1)


def warn_all(messages: list[str], stacklevel: int) -> None:
    """Issue warnings; `stacklevel` as in `warnings.warn`, counted from the caller."""
    for message in messages:
        warnings.warn(message, UserWarning, stacklevel=stacklevel)
