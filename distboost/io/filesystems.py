"""File systems of paths and URLs, by fsspec. What a URL needs and this environment lacks is named in the error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import metadata
from typing import Any

from fsspec.core import get_filesystem_class, url_to_fs
from fsspec.registry import known_implementations
from fsspec.utils import get_protocol

from distboost.errors import DataError, MissingPackageError
from distboost.io.options import StorageOptions, options_in_force
from distboost.io.packages import install_command

# The extras of distboost, by the package that each installs: pyproject.toml.
_EXTRAS = {"s3fs": "s3", "gcsfs": "gcs", "adlfs": "azure"}


def filesystem_at(url: str | os.PathLike[str]) -> tuple[Any, str]:
    """Return the file system of a path or URL, with the options in force, and the path within it.

    Raises
    ------
    MissingPackageError
        If a package for such URLs is not installed.
    DataError
        If no package for such URLs is known, or the file system does not accept an option.
    """
    with protocol_needed(url):
        filesystem, path = url_to_fs(os.fspath(url), **options_for(url))
    return filesystem, path


def options_for(url: str | os.PathLike[str]) -> StorageOptions:
    """Return the options in force for a URL; none for a local path, which needs none."""
    text = os.fspath(url)
    is_remote = ("://" in text or "::" in text) and not text.startswith("file://")
    return options_in_force() if is_remote else StorageOptions()


@contextmanager
def protocol_needed(url: str | os.PathLike[str]) -> Iterator[None]:
    """Raise the errors of `filesystem_at` if opening a URL in this context fails because of its protocol."""
    try:
        yield
    except TypeError as error:
        if not options_for(url):
            raise
        raise DataError(
            f"{os.fspath(url)!r} cannot be opened with the ``storage_options`` {options_for(url)}: {error}.",
            remedy="Pass options that its file system accepts.",
            where=url,
        ) from error
    except (ImportError, ValueError) as error:
        for link in os.fspath(url).split("::"):  # a chain of file systems, such as simplecache::s3://bucket/x
            protocol = get_protocol(link) if "://" in link else link
            _check_protocol(protocol, os.fspath(url))
        raise error


def _check_protocol(protocol: str, url: str) -> None:
    """Raise MissingPackageError or DataError unless this environment has the file system of a protocol."""
    try:
        get_filesystem_class(protocol)
    except ImportError as error:
        raise MissingPackageError(
            f"{url!r} cannot be opened: {protocol}:// needs {_needed(protocol, error)}",
            where=url,
            value=protocol,
        ) from error
    except ValueError as error:
        raise DataError(
            f"{url!r} cannot be opened: the protocol {protocol}:// is not known.",
            remedy="Pass a path, or a URL of a protocol that fsspec knows, such as s3://bucket/data.zarr/x.",
            where=url,
        ) from error


def _needed(protocol: str, error: ImportError) -> str:
    """Return what to install for a protocol whose file system cannot be imported."""
    package = known_implementations.get(protocol, {}).get("class", "").partition(".")[0]
    if package in _EXTRAS:
        command = install_command(_EXTRAS[package])
    elif protocol in (metadata("fsspec").get_all("Provides-Extra") or ()):
        command = f"pip install 'fsspec[{protocol}]'"
    else:
        return f"a package that cannot be imported ({error}). Install it."
    name = "further packages" if package == "fsspec" else f"the package {package}"
    return f"{name}, which cannot be imported here ({error}). Run: {command}"
