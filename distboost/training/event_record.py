"""What a log of events tells about the training of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from distboost.errors import DataError
from distboost.io.files import read
from distboost.io.text import visible
from distboost.training.record import PlannedMemory, TrainingRecord

_WHOLE, _NUMBER = (int,), (int, float)
_NO_INT = (int, type(None))
_TOOK: dict[str, tuple[type, ...]] = {
    "runtime": (str,), "seconds": _NUMBER, "n_rounds": _WHOLE, "round_seconds": _NUMBER, "peak_bytes": _NO_INT,
    "worker_peak_bytes": (list,), "workers_lost": _WHOLE,
}  # fmt: skip
_MEMORY: dict[str, tuple[type, ...]] = {
    "n_bytes": _WHOLE, "limit": _NO_INT, "resident": _WHOLE, "streamed": _WHOLE, "leader_bytes": _NO_INT,
}  # fmt: skip


class Logged(NamedTuple):
    """What a log tells about a training run.

    Attributes
    ----------
    took : TrainingRecord
    memory : PlannedMemory
    phases : dict of str to float
        Seconds of each phase apart from the rounds, by name.
    """

    took: TrainingRecord
    memory: PlannedMemory
    phases: dict[str, float]


def logged(url: str, digest: str) -> Logged:
    """Return what the log at a path or URL tells about the training of the model with this digest.

    Raises
    ------
    distboost.errors.DataError
        If there is no log, a line is damaged, or the log is of other models.
    """
    found, others = None, []
    for model, training in _trainings(url):
        if model == digest:
            found = training
        else:
            others.append(model)
    if found is not None:
        return found
    if not others:
        raise DataError(
            f"{url} has no line of a model that was fitted: the training has not ended, or an error ended it.",
            remedy="Pass the log of one that has a model.",
            where=url,
        )
    raise DataError(
        f"{url} is the log of another model, with SHA-256 {' or '.join(visible(one) for one in others[-3:])}; this one has "
        f"{digest}.",
        remedy="Pass the log of its own run. To calibrate or to resume makes another model.",
        where=url,
    )


def _trainings(url: str) -> Iterator[tuple[str, Logged]]:
    """Yield the digest of each model that was fitted, and what is told about its training."""
    underway: dict[str | None, dict[str, float]] = {}  # the phases of each run, killed ones among them
    latest = 0.0
    for number, line in enumerate(_content(url).splitlines()):
        try:
            event = json.loads(line)
            kind, seconds = _typed(event, {"event": (str,), "seconds": _NUMBER}).values()
            training = _training(event)
            if training is None:
                # Older logs do not name the training. Where time goes back, another one begins.
                if seconds < latest:
                    underway.pop(None, None)
                latest = seconds
            phases = underway.setdefault(training, {})
            if kind == "phase":
                name, took, ended = _typed(
                    event, {"phase": (str,), "took": _NUMBER, "ended": (bool,)}
                ).values()
                phases[name] = phases.get(name, 0.0) + took * ended
            elif kind == "fitted":
                yield _typed(event, {"model": (str,)})["model"], Logged(*_numbers(event), phases)
                del underway[training]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(
                f"line {number + 1} of {url} is no event of a run ({type(error).__name__}: {error}).",
                remedy="Remove the line, or pass the log of a training run.",
                where=url,
            ) from error


def _training(event: Mapping[str, Any]) -> str | None:
    return None if "training" not in event else str(_typed(event, {"training": (str,)})["training"])


def _content(url: str) -> bytes:
    try:
        return read(url)
    except FileNotFoundError:
        raise DataError(
            f"there is no log of events at {url}.",
            remedy="Pass the file that ``EventLog`` has written.",
            where=url,
        ) from None


def _numbers(event: Mapping[str, Any]) -> tuple[TrainingRecord, PlannedMemory]:
    took, memory = _typed(event["took"], _TOOK), _typed(event["memory"], _MEMORY)
    peaks = took.pop("worker_peak_bytes")
    if not all(isinstance(peak, int) for peak in peaks):
        raise TypeError("worker_peak_bytes has something that is no whole number")
    n_rows = event["took"].get("n_rows")
    if n_rows is not None:
        _typed(n_rows, dict.fromkeys(n_rows, _WHOLE))
    return TrainingRecord(**took, worker_peak_bytes=tuple(peaks), n_rows=n_rows), PlannedMemory(**memory)


def _typed(found: Any, kinds: Mapping[str, tuple[type, ...]]) -> dict[str, Any]:
    """Return these entries of a JSON object; raise TypeError or KeyError unless they are of these types."""
    if not isinstance(found, dict):
        raise TypeError("it is no JSON object")
    for name, kind in kinds.items():
        if not isinstance(found[name], kind):
            raise TypeError(f"{name} is of another type")
    return {name: found[name] for name in kinds}
