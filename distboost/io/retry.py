"""Retry reads and writes after transient failures of disks and networks.

There are three kinds of failure. *Transient* ones (an I/O error, a timeout, a lost connection) are retried at growing intervals
until a deadline. *Damage* (content that cannot be decoded, or has another checksum) is read a second time, in case it was damaged
in transit. All other errors (a full disk, no permission, a missing file) are raised at once.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    stop_after_attempt,
    stop_before_delay,
    wait_exponential,
    wait_random,
)

from distboost.errors import DistboostError, StoreError
from distboost.io.remote import is_remote, remote_may_pass
from distboost.message import Message

ATTEMPTS = 6
FIRST_WAIT = 0.1  # seconds; each further one is three times as long
DEADLINE = 60.0  # seconds, after which no attempt begins

_PASSING = {
    getattr(errno, name)
    for name in (
        "EIO", "EREMOTEIO", "EAGAIN", "EBUSY", "EINTR", "ESTALE", "ETIMEDOUT", "ENETDOWN", "ENETRESET", "ENETUNREACH",
        "EHOSTDOWN", "EHOSTUNREACH",
    )
    if hasattr(errno, name)  # systems differ
}  # fmt: skip

log = logging.getLogger("distboost")
T = TypeVar("T")
What = str | Callable[[], str]  # a text, or a function that returns it, for frequent calls


def retried(call: Callable[[], T], what: What, doing: str = "read", *, reread: bool = False) -> T:
    """Return call(), retrying it after transient failures.

    Parameters
    ----------
    call : callable
    what : str or callable
        What is read or written, for the log and the error ("chunk c/0/0 of X (data.zarr/x)"), or a function that returns it.
    doing : str, default="read"
        The participle of the verb for the access, such as "read" or "written".
    reread : bool, default=False
        Whether damage is read a second time.

    Raises
    ------
    StoreError
        If access fails permanently. Damage and FileNotFoundError are raised unchanged: their meaning depends on the caller.
    """
    try:
        try:
            return call()
        except Exception as error:
            if not _may_pass(error, reread):
                raise
            attempt = _after(error, call)
        return Retrying(**_policy(what, doing, reread))(attempt)
    except Exception as error:
        if _is_access(error):
            raise _inaccessible(what, doing, error) from error
        raise


async def retried_async(call: Callable[[], Awaitable[T]], what: str, doing: str = "read") -> T:
    """`retried` for a coroutine."""
    try:
        try:
            return await call()
        except Exception as error:
            if not _may_pass(error):
                raise
            again = _after(error, call)

        async def attempt() -> T:  # tenacity awaits declared coroutines only
            return await again()

        return await AsyncRetrying(**_policy(what, doing, False))(attempt)
    except Exception as error:
        if _is_access(error):
            raise _inaccessible(what, doing, error) from error
        raise


def _after(error: Exception, call: Callable[[], T]) -> Callable[[], T]:
    """Return a call whose first attempt raises `error`, which the real call has raised already; later attempts are real.

    So tenacity makes no object unless a call is repeated. Each of its objects is in a reference cycle, with a `threading.local`
    and the last error. The error has the frames of all callers: their arrays and folders would stay until the garbage
    collector runs. And if that frees a `threading.local` while Dask's profiler lists the frames of all threads, CPython waits
    for a lock that it already holds (seen with 3.11), and the worker hangs.
    """
    first = [error]

    def attempt() -> T:
        if first:
            raise first.pop()
        return call()

    return attempt


def text_of(what: What) -> str:
    """Return the text of `what`, which is made now if it is a function."""
    return what if isinstance(what, str) else what()


def quoted(error: BaseException) -> str:
    """An error as text, to quote in the message of another error."""
    return f"{type(error).__name__}: {error}"


def is_damage(error: BaseException) -> bool:
    """Whether the content that was read is at fault, rather than access to it or this process."""
    ours = isinstance(error, (OSError, MemoryError, DistboostError))
    return isinstance(error, Exception) and not ours and not is_remote(error)


def _policy(what: What, doing: str, reread: bool) -> dict[str, Any]:
    def is_worth_it(state: RetryCallState) -> bool:
        error = None if state.outcome is None else state.outcome.exception()
        return error is not None and _may_pass(error, reread and state.attempt_number == 1)

    def say(state: RetryCallState) -> None:
        assert state.outcome is not None
        assert state.next_action is not None
        cause = quoted(state.outcome.exception() or AssertionError())
        log.warning(
            "%s cannot be %s (%s): attempt %d of %d in %.1f s",
            Message(text_of(what)), doing, cause, state.attempt_number + 1, ATTEMPTS, state.next_action.sleep,
        )  # fmt: skip

    return {
        "stop": stop_after_attempt(ATTEMPTS) | stop_before_delay(DEADLINE),
        "wait": wait_exponential(multiplier=FIRST_WAIT, exp_base=3) + wait_random(0, FIRST_WAIT),
        "retry": is_worth_it,
        "before_sleep": say,
        "reraise": True,
    }


def _may_pass(error: BaseException, reread: bool = False) -> bool:
    """Whether another attempt may succeed."""
    return _is_passing(error) or (reread and is_damage(error))


def _is_passing(error: BaseException) -> bool:
    if isinstance(error, DistboostError):
        return False
    if is_remote(error):
        told = remote_may_pass(error)
        if told is not None:
            return told
    if isinstance(error, (ConnectionError, TimeoutError)):
        return True
    return isinstance(error, OSError) and error.errno in _PASSING


def _is_access(error: BaseException) -> bool:
    if isinstance(error, (DistboostError, FileNotFoundError)):
        return False
    return isinstance(error, OSError) or is_remote(error)


def _inaccessible(what: What, doing: str, error: Exception) -> StoreError:
    if _is_passing(error):
        remedy = f"distboost tried up to {ATTEMPTS} times. Check the disk or the network, and start again."
    elif isinstance(error, PermissionError):
        remedy = "Grant this process the right to do that."
    else:
        remedy = "Correct the cause, and start again."
    return StoreError(f"{text_of(what)} cannot be {doing}: {quoted(error)}.", remedy=remedy)
