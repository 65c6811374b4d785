"""Whether client, scheduler and workers have the same versions of what decides a model."""

from __future__ import annotations

import asyncio
import platform
import warnings
from collections.abc import Iterable
from importlib.metadata import version

import distboost
from distboost.errors import ClusterError
from distboost.runtime.cluster.coordinator import LostError
from distboost.runtime.cluster.link import Link

REQUIRED = ("python", "distboost")  # questions and answers may not be understood by another one
LIBRARIES = ("numpy", "scipy", "numba", "dask", "distributed", "zarr")
MOST_NAMED = 3  # places that a message names, of each version

REMEDY = "Install the same everywhere, from one lock file or image."


def check_versions(link: Link, workers: Iterable[str]) -> None:
    """Raises if a worker or the scheduler has another distboost or Python, or none; warns of other versions of libraries.

    Who does not answer in time is passed over: it is given up anyway.
    """
    found = {"this process": installed(), **_query(link, list(workers))}
    if different := _different(found, REQUIRED):
        raise ClusterError(f"versions differ: {different}. {REMEDY}")
    if different := _different(found, LIBRARIES):
        warnings.warn(
            f"versions differ: {different}. The same model, bit for bit, is promised for one set of "
            f"versions only. {REMEDY}",
            UserWarning,
            stacklevel=3,
        )


def installed() -> dict[str, str]:
    """The versions of this process."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {
        "python": python,
        "distboost": distboost.__version__,
        **{name: version(name) for name in LIBRARIES},
    }


def _query(link: Link, workers: list[str]) -> dict[str, dict[str, str]]:
    """The versions of the scheduler and each worker, by the names that messages give them; asked all at once."""
    asked = {
        "the scheduler": link.run_on_scheduler(installed),
        **{f"worker {address}": link.run_on(address, installed) for address in workers},
    }

    async def ask() -> list:
        return await asyncio.gather(
            *(asyncio.wait_for(one, link.timeout) for one in asked.values()), return_exceptions=True
        )

    found = {}
    for place, answer in zip(asked, link.answer(ask(), within=2 * link.timeout), strict=True):
        if isinstance(answer, LostError | TimeoutError):  # no answer
            continue
        if isinstance(answer, BaseException):
            raise ClusterError(_reason(place, answer)) from answer
        found[place] = answer
    return found


def _reason(place: str, error: BaseException) -> str:
    if "No module named" in str(error):  # errors of workers come as text
        return f"{place} has not distboost {distboost.__version__} ({error}). {REMEDY}"
    return f"{place} did not say its versions ({type(error).__name__}: {error}). Look at its log."


def _different(found: dict[str, dict[str, str]], names: Iterable[str]) -> str:
    """Who has what of those packages that are not the same everywhere."""
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
