"""What callbacks may be told besides the rounds, and a log of all of it."""

from __future__ import annotations

import json
import math
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from distboost.io.files import check_folder, check_replaceable, publish, read
from distboost.io.options import url_of
from distboost.io.phases import Phase, Phases
from distboost.io.progress import SHORT, Display, Draw, display
from distboost.io.storage import local_path
from distboost.model.learned import ERROR, LOSS, History, Progress
from distboost.training.loop import Callback
from distboost.training.record import PlannedMemory, TrainingRecord

PHASE_EVERY = 5.0  # seconds between two lines about a phase
PUBLISHED_EVERY = 5.0  # seconds between two writes of a log in an object store, where nothing can be appended


class Beginning(NamedTuple):
    """The argument of a callback's method `begin`, before the first round.

    Attributes
    ----------
    algorithm : str
    rounds_done : int
        Rounds of an earlier run that this one resumes.
    n_rounds : int
        Rounds requested, earlier ones included.
    n_features, n_classes : int
    n_rows : mapping of str to int
        The number of rows with a weight above 0: of "train", and of each evaluation set by name.
    """

    algorithm: str
    rounds_done: int
    n_rounds: int
    n_features: int
    n_classes: int
    n_rows: Mapping[str, int]


class Ending(NamedTuple):
    """The argument of a callback's method `end`, after the last round.

    Attributes
    ----------
    outcome : str
        As `outcome_`; "error" if an error or an interrupt ended the training.
    rounds_done : int or None
        The number of rounds; None after an error.
    best_round : int or None
        The best round by the last evaluation set; None if there is none, or after an error.
    error : str or None
        The error, in one line.
    """

    outcome: str
    rounds_done: int | None = None
    best_round: int | None = None
    error: str | None = None


class Fitted(NamedTuple):
    """The argument of a callback's method `fitted`, when `fit` is done: the model is calibrated.

    Attributes
    ----------
    digest : str
        That of the model, as `digest()` of the estimator and of its file.
    took : TrainingRecord
    memory : PlannedMemory
    """

    digest: str
    took: TrainingRecord
    memory: PlannedMemory


def tell_start(callbacks: Iterable[Any]) -> None:
    """Call the method `start` of the callbacks that have one, when `fit` begins."""
    for callback in callbacks:
        if hasattr(callback, "start"):
            callback.start()


def tell_fitted(callbacks: Iterable[Any], fitted: Callable[[], Fitted]) -> None:
    """Call the method `fitted` of the callbacks that have one."""
    listening = [callback.fitted for callback in callbacks if hasattr(callback, "fitted")]
    found = fitted() if listening else None
    for listener in listening:
        listener(found)


@contextmanager
def told(callbacks: Sequence[Any], beginning: Beginning) -> Iterator[Callable[[History], None]]:
    """Tell the callbacks that have methods `begin` and `end` of the beginning and the end.

    Yield a function to call at the end. If an error is raised in the context, that is the end.
    """

    def tell(method: str, event: Beginning | Ending) -> None:
        for callback in callbacks:
            if hasattr(callback, method):
                getattr(callback, method)(event)

    def end(history: History) -> None:
        best = history.best_round() if history.watch.sets else None
        tell("end", Ending(history.outcome, history.n_rounds, best))

    tell("begin", beginning)
    try:
        yield end
    except BaseException as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        tell("end", Ending("error", error=text))
        raise


def phases_of(callbacks: Iterable[Any]) -> Phases:
    """Return phases of which these callbacks are told, if they have a method `phase`."""
    return Phases(*(callback.phase for callback in callbacks if hasattr(callback, "phase")))


class EventLog:
    r"""A callback that writes what happens in a training run to a file of JSON lines.

    There are lines about each phase before and after the rounds (when it begins, every 5 seconds and when it ends), one when the
    rounds begin, one for each round, one at their end, also if an error ends them, and one about what `fit` took, with the
    digest of the model: `distboost.report(..., events=...)` shows it. All lines of a training run have the same identifier,
    `training`. The file has only complete lines at any time. If it exists, lines are added to it: those of a training run that
    resumes follow the earlier ones, and its first rounds are those after its checkpoint. In an object store, which cannot
    append, the file is written again every 5 seconds and at the end. Numbers that are not finite are null.

    Parameters
    ----------
    url : str or path
        Path or URL of the file.

    Examples
    --------
    >>> import json, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from distboost import EventLog, GDMCBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> path = tempfile.mkdtemp() + "/run.jsonl"
    >>> model = GDMCBoostClassifier(n_estimators=2, callbacks=[EventLog(path)])
    >>> model = model.fit(X[::2], y[::2], eval_set={"other": (X[1::2], y[1::2])})
    >>> with open(path) as lines:
    ...     events = [json.loads(line) for line in lines]
    >>> [event["event"] for event in events]
    ['phase', 'phase', ...'begin', 'round', 'round', 'end', 'fitted']
    >>> sorted(events[-3]["evaluations"]["other"])
    ['error', 'loss']
    >>> events[-1]["model"] == model.digest(), events[-1]["took"]["n_rounds"]
    (True, 2)
    >>> len({event["training"] for event in events})
    1
    """

    def __init__(self, url: str | os.PathLike[str]):
        self.url = url_of(url, "url")
        self._path = local_path(self.url)
        self._content = b""  # of a file in an object store
        self._new_training()
        self._published = self._began

    def _new_training(self) -> None:
        self._training, self._began = uuid.uuid4().hex[:12], time.perf_counter()
        self._phases: dict[str, float] = {}  # by name: when a line was written

    def start(self) -> None:
        """Prepare the file for the lines of a training run."""
        self._new_training()
        if self._path is None:
            with suppress(FileNotFoundError):
                self._content = read(self.url)
        else:
            check_folder(self.url)
            check_replaceable(self._path)
            cut_incomplete_line(self._path)

    def phase(self, phase: Phase) -> None:
        """Write a line about a phase, unless there was one in the last seconds."""
        now, written = time.perf_counter(), self._phases.get(phase.name, -PHASE_EVERY)
        if phase.ended:
            del self._phases[phase.name]
        elif now - written < PHASE_EVERY:
            return
        else:
            self._phases[phase.name] = now
        content = {
            "phase": phase.name,
            "done": phase.done,
            "total": phase.total,
            "unit": phase.unit,
            "took": round(phase.seconds, 3),
            "rate": phase.rate,
            "left": phase.left,
            "ended": phase.ended,
            "error": phase.error,
        }
        self._write("phase", content)

    def begin(self, beginning: Beginning) -> None:
        """Write the line about the beginning of the rounds."""
        self._write("begin", {"time": datetime.now(UTC).isoformat(), **beginning._asdict()}, at_once=True)

    def __call__(self, progress: Progress) -> None:
        """Write the line about a round."""
        content = {
            "round": progress.round,
            "n_rounds": progress.n_rounds,
            "train": {"loss": progress.train_loss, "error": progress.train_error},
            "evaluations": progress.evaluations,
            "best_round": progress.best_round,
        }
        self._write("round", content)

    def end(self, ending: Ending) -> None:
        """Write the line about the end of the rounds."""
        self._write("end", ending._asdict(), at_once=True)

    def fitted(self, fitted: Fitted) -> None:
        """Write the line about what `fit` took."""
        content = {"model": fitted.digest, "took": asdict(fitted.took), "memory": asdict(fitted.memory)}
        self._write("fitted", content, at_once=True)

    def _write(self, event: str, content: dict[str, Any], at_once: bool = False) -> None:
        now = time.perf_counter()
        seconds = round(now - self._began, 3)
        record = {"event": event, "training": self._training, "seconds": seconds, **_finite(content)}
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        if self._path is not None:
            append_line(self._path, line)
            return
        self._content += line
        if at_once or now - self._published >= PUBLISHED_EVERY:
            publish(self.url, self._content)
            self._published = now


def append_line(path: Path, line: bytes) -> None:
    """Append a line in one write: a process that is killed leaves it out or writes it whole."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def cut_incomplete_line(path: Path) -> None:
    """Remove what follows the last line of a file: a full disk may have cut a line off."""
    with suppress(FileNotFoundError), open(path, "r+b") as file:
        content = file.read()
        file.truncate(content.rfind(b"\n") + 1)


def _finite(value: Any) -> Any:
    """Return the value with None in place of numbers that JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


LEAST_DIGITS, MOST_DIGITS = 4, 16  # of the loss
PARTS = 4  # of the rounds: where there is no terminal, a line at the first round and at the end of each


class _Shown:
    """A callback that shows phases and the latest losses, and at the end the best round if it is not the last."""

    def __init__(self, shown: Display):
        self._display = shown
        self._draw: Draw | None = None  # from the first round on
        self._last: Progress | None = None
        self._digits = LEAST_DIGITS

    def phase(self, phase: Phase) -> None:
        self._display.phase(phase)

    def __call__(self, progress: Progress) -> None:
        if self._last is not None:
            self._digits = digits(progress.train_loss, self._last.train_loss, self._digits)
        self._last = progress
        self._show(progress)

    def end(self, ending: Ending) -> None:
        """Say why a training run ended early, and which round is the best."""
        last, best = self._last, ending.best_round
        if last is not None and ending.outcome == "early stopping":
            self._show(last, f"stopped early after round {ending.rounds_done}: round {best} is the best")

    def _show(self, progress: Progress, note: str = "") -> None:
        if self._draw is None:
            self._draw = self._display.bar(parts=PARTS)
        self._draw(progress.round, _losses(progress, self._digits), progress.n_rounds, note=note)


def digits(loss: float, before: float, otherwise: int) -> int:
    """Return how many digits of a loss show how it changes; `otherwise`, if that cannot be told.

    Many losses approach 1, not 0.

    >>> digits(2.8163, 3.4, 4), digits(1.0001385, 1.0001512, 4), digits(1.0, 1.0, 6)
    (4, 8, 6)
    """
    change = abs(loss - before)
    if not (loss and change and math.isfinite(loss) and math.isfinite(change)):
        return otherwise
    places = math.floor(math.log10(abs(loss))) - math.floor(math.log10(change))
    return min(max(places + 3, LEAST_DIGITS), MOST_DIGITS)


def _losses(progress: Progress, digits: int) -> str:
    losses = f"rounds, loss {progress.train_loss:.{digits}g}, error {progress.train_error:.2%}"
    for name, metrics in progress.evaluations.items():
        losses += f", {name} error {metrics[ERROR]:.2%}"
        losses += "".join(
            f", {name} {metric} {value:.4g}"
            for metric, value in metrics.items()
            if metric not in (LOSS, ERROR)
        )
    if progress.best_round not in (None, progress.round):
        losses += f", best round {progress.best_round}"
    return losses


@contextmanager
def progress_shown(title: str) -> Iterator[Callback]:
    """A callback that shows phases, and a bar with the latest losses; where there is no terminal, about ten lines.

    A phase that takes less than a second has no line.
    """
    with display(title, least=SHORT) as shown:
        yield _Shown(shown)
