"""Tell apart the errors of s3fs, gcsfs, adlfs and the libraries below them. They are known by name: all are optional.

An error that comes out of these libraries is one of access, whatever its type: they report a wrong option as a TypeError and
adlfs reports a broken connection as a RuntimeError. Damage is found later, by who decodes what they have read.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator

_PACKAGES = {"botocore", "aiobotocore", "aiohttp", "s3fs", "gcsfs", "adlfs", "azure", "google", "requests"}
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
_REFUSED_STATUS = {401, 403, 404, 405, 410, 501}
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


def is_refused(error: BaseException) -> bool:
    """Whether a server says that a request is not allowed, not possible, or leads nowhere.

    Some say that a request is not allowed if there is nothing.
    """
    refusal = isinstance(error, (PermissionError, NotImplementedError)) or str(error).startswith("Forbidden")
    return refusal or any(_status(cause) in _REFUSED_STATUS for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, what it was raised from, and so on."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__


def _status(error: BaseException) -> int | None:
    """Return the HTTP status in an error of one of the libraries."""
    if _package(type(error).__module__) not in _PACKAGES:
        return None
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
