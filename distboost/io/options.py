"""Paths and URLs that a user passes, and the options of their file systems."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from distboost.errors import ArgumentError, DataError


class StorageOptions(dict[str, Any]):
    """Options by name. Their text has the names alone: values may be secrets, which no log and no message should show."""

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: ...' for name in self)}}}"

    __str__ = __repr__


_in_force: ContextVar[StorageOptions | None] = ContextVar("storage_options", default=None)


def hidden(options: Any) -> Any:
    """Return a mapping as StorageOptions; anything else, such as None, as it is."""
    if isinstance(options, Mapping) and not isinstance(options, StorageOptions):
        return StorageOptions(options)
    return options


@contextmanager
def storage_options(options: Mapping[str, Any] | None) -> Iterator[None]:
    """Open URLs with these options within the context; None: with those of the context around it."""
    if options is None:
        yield
        return
    if not (isinstance(options, Mapping) and all(isinstance(name, str) for name in options)):
        raise DataError(
            f"``storage_options`` is of type {type(options).__name__}, expected a mapping of names to values, such as "
            "{'anon': True} or {'endpoint_url': 'http://...'}."
        )
    token = _in_force.set(hidden(options))
    try:
        yield
    finally:
        _in_force.reset(token)


def options_in_force() -> StorageOptions:
    """Return the options with which a URL is opened now."""
    return _in_force.get() or StorageOptions()


def url_of(value: Any, name: str) -> str:
    """Return a path or URL as text; raise ArgumentError if the argument of this name is anything else.

    >>> from pathlib import PurePosixPath
    >>> url_of(PurePosixPath("models/letter"), "url")
    'models/letter'
    """
    found = os.fspath(value) if isinstance(value, str | os.PathLike) else value
    if not isinstance(found, str):
        raise ArgumentError(
            f"{name} is {value!r:.100}, of type {type(value).__name__}.",
            remedy="Pass a path or URL: a text or a pathlib.Path.",
            where=name,
            value=value,
        )
    return found
