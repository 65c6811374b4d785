"""Paths and URLs that a user gives."""

from __future__ import annotations

import os
from typing import Any

from distboost.errors import ArgumentError


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
