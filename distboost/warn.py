"""Warn the caller of the package."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import warnings
from collections.abc import Iterable

from distboost.message import Message

_PASSED_OVER = (os.path.dirname(__file__) + os.sep, contextlib.__file__, functools.__file__)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that names the line outside of this package that called it."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(_PASSED_OVER):
        frame, level = frame.f_back, level + 1
    warnings.warn(category(Message(message)), stacklevel=level)


def warn_of_all(messages: Iterable[str]) -> None:
    """Issue each of these warnings, as `warn_user` does."""
    for message in messages:
        warn_user(message)
