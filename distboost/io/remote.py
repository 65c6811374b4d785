"""Tell apart the errors of s3fs, gcsfs, adlfs, obstore and the libraries below them. They are known by name: all are optional.

An error that comes out of these libraries is one of access, whatever its type: they report a wrong option as a TypeError and
adlfs reports a broken connection as a RuntimeError. Damage is found later, by who decodes what they have read.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

_PACKAGES = {
    "botocore", "aiobotocore", "aiohttp", "s3fs", "gcsfs", "adlfs", "azure", "google", "requests", "obstore",
}  # fmt: skip
_WHOSE_ERRORS = _PACKAGES | {
    "fsspec"
}  # it also decodes: of what passes through it, only its own errors are of access

_PASSING = {
    "botocore.exceptions.ConnectionError",
    "botocore.exceptions.HTTPClientError",
    "botocore.exceptions.IncompleteReadError",
    "botocore.exceptions.ResponseStreamingError",
    "botocore.parsers.ResponseParserError",
    "aiohttp.client_exceptions.ClientConnectionError",
    "aiohttp.client_exceptions.ClientPayloadError",
    "aiohttp.http_exceptions.ContentLengthError",
    "azure.core.exceptions.IncompleteReadError",
    "azure.core.exceptions.ServiceRequestError",
    "azure.core.exceptions.ServiceResponseError",
    "gcsfs.retry.ChecksumError",
    "google.auth.exceptions.TransportError",
    "requests.exceptions.ChunkedEncodingError",
    "requests.exceptions.ConnectionError",
    "requests.exceptions.Timeout",
}
_PASSING_STATUS = {408, 425, 429, 500, 502, 503, 504}
_ABSENT_STATUS = {404, 410}
_FORBIDDEN_STATUS = {401, 403}
_UNLISTED_STATUS = {*_ABSENT_STATUS, *_FORBIDDEN_STATUS, 405, 501}
_PASSING_CODES = {"BadDigest", "IncompleteBody"}  # of S3, with status 400: what arrived is not what was sent


def is_remote(error: BaseException) -> bool:
    """Whether an error comes from a library that reads and writes objects."""
    if _package(type(error).__module__) in _WHOSE_ERRORS:
        return True
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(_package(frame.f_globals.get("__name__", "")) in _PACKAGES for frame in frames)


def remote_may_pass(error: BaseException) -> bool | None:
    """Whether another attempt at a remote access may succeed; None if the libraries do not say so.

    The status of the server's answer decides, else the types of the error and its causes.
    """
    chain = list(_causes(error))
    for cause in chain:
        if _code(cause) in _PASSING_CODES:
            return True
        status = _status(cause)
        if status is not None:
            return status in _PASSING_STATUS
    names = {f"{cls.__module__}.{cls.__name__}" for cause in chain for cls in type(cause).__mro__}
    passing = names & _PASSING or any(isinstance(cause, (ConnectionError, TimeoutError)) for cause in chain)
    return True if passing else None


def is_absent(error: BaseException) -> bool:
    """Whether a server says that there is no such file."""
    return _status_of(error) in _ABSENT_STATUS


def is_forbidden(error: BaseException) -> bool:
    """Whether a server forbids to read a file. If it also forbids to list, it says so of files that do not exist.

    An operating system, whose errors have a number, tells them apart: its refusal is a real one.
    """
    refused = any(
        (isinstance(cause, PermissionError) and cause.errno is None) or str(cause).startswith("Forbidden")
        for cause in _causes(error)
    )
    return refused or _status_of(error) in _FORBIDDEN_STATUS


def may_be_absent(error: BaseException) -> bool:
    """Whether a server's answer to a read may mean that there is no such file."""
    return is_absent(error) or is_forbidden(error)


def is_unlisted(error: BaseException) -> bool:
    """Whether an error of listing says that this is not allowed or not possible, rather than that it has failed."""
    refused = any(isinstance(cause, (PermissionError, NotImplementedError)) for cause in _causes(error))
    return refused or is_forbidden(error) or _status_of(error) in _UNLISTED_STATUS


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, what it was raised from, and so on."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


def _status_of(error: BaseException) -> int | None:
    """Return the first HTTP status in an error and its causes."""
    return next((status for cause in _causes(error) if (status := _status(cause)) is not None), None)


def _status(error: BaseException) -> int | None:
    """Return the HTTP status in an error of one of the libraries."""
    package = _package(type(error).__module__)
    if package not in _PACKAGES:
        return None
    if package == "obstore":  # it has the answer in its text only
        told = re.search(r"status code: (\d+)", str(error))
        return int(told[1]) if told else None
    answer = getattr(error, "response", None)
    if isinstance(answer, dict):  # botocore
        found = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:  # azure, aiohttp, gcsfs
        found = next(
            (
                getattr(error, name, None)
                for name in ("status_code", "status", "code")
                if hasattr(error, name)
            ),
            None,
        )
    text = str(found)
    return int(text) if text.isdigit() and int(text) >= 400 else None


def _code(error: BaseException) -> str | None:
    """Return the code in an error of botocore."""
    answer = getattr(error, "response", None)
    return str(answer.get("Error", {}).get("Code")) if isinstance(answer, dict) else None


def _package(module: str) -> str:
    return module.partition(".")[0]
