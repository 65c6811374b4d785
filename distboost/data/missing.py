"""Warnings about zarr arrays: chunks that were never written, stores that list nothing, packed numbers that cannot be decoded."""

from __future__ import annotations

from distboost.data.source import Source
from distboost.data.sources import ZarrSource
from distboost.errors import DataError, MissingChunkError
from distboost.warn import warn_user

MISSING_CHUNKS = ("warn", "error", "ignore")


def warnings_about(source: Source, policy: str) -> list[str]:
    """Return the warnings about a source; chunks that were never written follow the `policy`."""
    found = [_about_chunks(source, policy)]
    if isinstance(source, ZarrSource):
        found.append(source.packing_warning())
        found.append(None if policy == "ignore" else source.listing_warning())
    return [message for message in found if message]


def _about_chunks(source: Source, policy: str) -> str | None:
    """Return a warning if chunks of a zarr source were never written, else None; with "error", raise MissingChunkError."""
    if policy not in MISSING_CHUNKS:
        raise DataError(
            f"``missing_chunks`` is {policy!r}, expected one of {', '.join(map(repr, MISSING_CHUNKS))}."
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
        raise MissingChunkError(f"{message} Write them, or allow this with ``missing_chunks='warn'``.")
    return f"{message} By default, zarr does not write chunks that are all fill value. If these are not, write them again."


def warn_about(source: Source, policy: str) -> None:
    """Warn about a source, or raise MissingChunkError, depending on the policy for chunks that were never written."""
    for message in warnings_about(source, policy):
        warn_user(message)
