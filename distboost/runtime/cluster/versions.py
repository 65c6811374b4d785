"""Check that client, scheduler and workers have the same versions of all packages that affect a model."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterable
from importlib.metadata import version

import distboost
from distboost.errors import ClusterError
from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.link import Link
from distboost.warn import warn_user

REQUIRED = ("python", "distboost")  # other versions may not understand the messages
LIBRARIES = ("numpy", "scipy", "numba", "dask", "distributed", "zarr")
MOST_NAMED = 3  # processes that a message names for each version

REMEDY = "Install the same versions everywhere, from one lock file or image."


def check_versions(link: Link, workers: Iterable[str]) -> None:
    """Compare the versions in this process with those on the scheduler and the workers.

    Processes that do not answer in time are skipped: they are given up anyway.

    Raises
    ------
    ClusterError
        If distboost or Python differ, or distboost is missing somewhere.

    Warns
    -----
    UserWarning
        If versions of other libraries differ.
    """
    found = {"this process": installed(), **_query(link, list(workers))}
    if different := _different(found, REQUIRED):
        raise ClusterError(f"versions differ: {different}.", remedy=REMEDY, value=different)
    if different := _different(found, LIBRARIES):
        warn_user(
            f"versions differ: {different}. The same model, bit for bit, is promised for one set of "
            f"versions only. {REMEDY}"
        )


def installed() -> dict[str, str]:
    """Return the versions in this process, by package."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {
        "python": python,
        "distboost": distboost.__version__,
        **{name: version(name) for name in LIBRARIES},
    }


def _query(link: Link, workers: list[str]) -> dict[str, dict[str, str]]:
    """Ask the scheduler and all workers for their versions, at the same time; return them by the name of the process."""
    asked = {
        "the scheduler": link.run_on_scheduler(installed),
        **{f"worker {address}": link.run_on(address, installed) for address in workers},
    }

    async def ask() -> list[dict[str, str] | BaseException]:
        answers = (asyncio.wait_for(answer, link.timeout) for answer in asked.values())
        return list(await asyncio.gather(*answers, return_exceptions=True))

    found = {}
    for place, answer in zip(asked, link.run(ask(), timeout=2 * link.timeout), strict=True):
        if isinstance(answer, WorkerLostError | TimeoutError):  # it did not answer
            continue
        if isinstance(answer, BaseException):
            raise ClusterError(_reason(place, answer)) from answer
        found[place] = answer
    return found


def _reason(place: str, error: BaseException) -> str:
    if "No module named" in str(error):  # a worker sends its error as text
        return f"{place} does not have distboost {distboost.__version__} ({error}). {REMEDY}"
    return f"{place} did not report its versions ({type(error).__name__}: {error}). Check its log."


def _different(found: dict[str, dict[str, str]], names: Iterable[str]) -> str:
    """Describe which processes have which version, for each of the packages whose versions differ."""
    return "; ".join(
        f"{name} {_holders(name, found)}"
        for name in names
        if len({versions[name] for versions in found.values()}) > 1
    )


def _holders(name: str, found: dict[str, dict[str, str]]) -> str:
    holders: dict[str, list[str]] = {}
    for place, versions in found.items():
        holders.setdefault(versions[name], []).append(place)
    return " and ".join(f"{held} ({_first_few(places)})" for held, places in holders.items())


def _first_few(places: list[str]) -> str:
    more = f" and {len(places) - MOST_NAMED} more" if len(places) > MOST_NAMED else ""
    return ", ".join(places[:MOST_NAMED]) + more
