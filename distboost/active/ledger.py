"""The record of queries and lessons, in memory and in a log that outlives the process.

A log is a text file. Each event adds a line, a checksum and a JSON object, which is on disk before the call that caused it
returns. The first line, the header, says what work the log belongs to. A process that reads the log resumes in the state of the
one that wrote it.

Several processes may write to a log. Each hears what the others have written before it adds an event, and checks the event
against that: in a lock, so that the order of the lines is the order of what happened.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from distboost.active import records
from distboost.active.records import SETTINGS, check_kind, checked_labels, kind_of, rows_of, said
from distboost.errors import DataError, StoreError
from distboost.io.files import read_local
from distboost.io.publishing import force_names
from distboost.io.retry import quoted
from distboost.io.storage import local_path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

clock = time.time  # of the events


class Ledger:
    """Which rows of a pool were asked for and which were taught, by whom.

    Parameters
    ----------
    header : dict
        The settings of the work, as JSON values.
    log : str, path or None
        File on a local disk; if it exists, the work resumes from it. None: nothing outlives the process.

    Attributes
    ----------
    n_rows : int
        Number of rows of the pool.
    settings : dict
        Those entries of the header that may change, as they are now.
    labelled : dict
        Rows taught and their labels, in the order taught.
    skipped : dict
        Rows that are never asked for, and why.
    undecided : dict
        Rows that some people cannot tell, and these people.
    seeds : list of dict
        Labelled rows from outside the pool: x, their values or where they are, and labels.
    audited : set of int
        Rows that were asked for at random, so that they stand for the pool.
    n_queries : int
    trained : list of int
        For each run of a committee that grows: how many of the rows it learned from.
    notes : dict
        What else is needed to resume, as JSON values; the latest of each name.
    answers : set of str
        The names of answers that are recorded. One that comes again is not.
    events : list of dict
        All of the above, as it happened.
    """

    def __init__(self, header: dict[str, Any], log: str | os.PathLike[str] | None):
        self.header = {"distboost": "labels", "version": records.VERSION, **header}
        self.n_rows: int = header["pool"][0]
        self.settings = {name: header[name] for name in SETTINGS}
        self.labelled: dict[int, Any] = {}
        self.skipped: dict[int, str] = {}
        self.seeds: list[dict[str, Any]] = []
        self.audited: set[int] = set()
        self.n_queries = 0
        self.trained: list[int] = []
        self.notes: dict[str, Any] = {}
        self.answers: set[str] = set()
        self.events: list[dict[str, Any]] = []
        # The event that asked for a row, though its time may be over.
        self._open: dict[int, dict[str, Any]] = {}
        self.undecided: dict[int, set[str | None]] = {}
        self._last: dict[int, dict[str, Any]] = {}  # the latest event of each row
        self._latest = 0.0  # the time of the latest event
        self._log = None if log is None else LabelLog(log, self._hear)
        if self._log is not None:
            given = json.loads(json.dumps(self.header))
            self._log.begin(self.header)
            self._check_header(given, self._log.path)

    @classmethod
    def from_log(cls, log: str | os.PathLike[str]) -> Ledger:
        """Return the ledger of an existing log, whatever work it belongs to."""
        header = read_header(log)
        if header is None:
            raise DataError(
                f"there is no log of labels at {os.fspath(log)!r}. Pass the path of one that was begun."
            )
        return cls(header, log)

    # What is known.

    @property
    def rows(self) -> list[int]:
        """Rows taught so far, in the order taught."""
        return list(self.labelled)

    @property
    def labels(self) -> list[Any]:
        """Their labels, as they are now."""
        return list(self.labelled.values())

    @property
    def seed_labels(self) -> list[Any]:
        """The labels of the rows from outside the pool."""
        return [label for seed in self.seeds for label in seed["labels"]]

    @property
    def asked(self) -> list[int]:
        """Rows that were asked for and are still with somebody, in the order asked."""
        now = self._now()
        return [row for row, event in self._open.items() if now < event.get("until", math.inf)]

    def asked_of(self, by: str | None) -> list[int]:
        """Return those that this person was asked for."""
        return [row for row in self.asked if self._open[row].get("by") == by]

    @property
    def is_new(self) -> bool:
        """Whether nothing is known of any row."""
        return not self._last and not self.seeds

    def last(self, row: int) -> dict[str, Any] | None:
        """Return the latest event of a row."""
        return self._last.get(row)

    @property
    def classes(self) -> np.ndarray | None:
        """The valid labels (n_classes,); None if any label is valid."""
        declared = self.header["classes"]
        return None if declared is None else np.array(declared)

    def is_free(self, row: int, by: str | None = None) -> bool:
        """Return whether this person can be asked for a row now."""
        return not self._taken(row, by, self._now())

    def excluded(self, by: str | None = None) -> np.ndarray:
        """Return the rows that no query of this person returns now, ascending."""
        unsure = [row for row, people in self.undecided.items() if by in people]
        return np.unique(np.array([*self.labelled, *self.asked, *self.skipped, *unsure], np.int64))

    def text(self) -> str:
        """Return the content of a log of all that happened so far."""
        return "".join(map(records.to_line, [self.header, *self.events]))

    # What happens.

    def update(self) -> None:
        """Hear what others have written to the log."""
        if self._log is not None:
            self._log.read()

    def ask(
        self, rows: np.ndarray, audit: np.ndarray, by: str | None = None, seconds: float | None = None
    ) -> list[int]:
        """Record a query that found these rows; return those that nobody has taken since, which are of this person now.

        With `seconds`, they come free after that time. Those of `audit` were drawn at random.
        """

        def still_free() -> list[int] | None:
            now = self._now()
            return [row for row in rows.tolist() if not self._taken(row, by, now)] or None

        until = None if seconds is None else self._now() + seconds
        return rows_of(
            self._add("asked", still_free, by, until=until, audit=audit.tolist() or None) or {"asked": []}
        )

    def teach(
        self,
        rows: Any,
        labels: Any,
        by: str | None = None,
        seconds: float | None = None,
        answer: str | None = None,
    ) -> None:
        """Record labels; raise DataError and record none if one is invalid."""
        self._add_labels("taught", rows, labels, by, seconds, answer)

    def correct(
        self,
        rows: Any,
        labels: Any,
        by: str | None = None,
        seconds: float | None = None,
        answer: str | None = None,
    ) -> None:
        """Record other labels of rows that have some."""
        self._add_labels("corrected", rows, labels, by, seconds, answer)

    def _add_labels(
        self, kind: str, rows: Any, labels: Any, by: str | None, seconds: float | None, answer: str | None
    ) -> None:
        if seconds is not None:
            if not (isinstance(seconds, Real) and records.is_time(float(seconds))):
                raise DataError(f"seconds are {seconds!r:.100}. Pass a number of at least 0.")
            seconds = float(seconds)
        listed, known = _listed(rows), checked_labels(labels).tolist()
        value = {"rows": listed, "labels": known}
        self._add(kind, lambda: value if listed or known else None, by, seconds=seconds, answer=answer)

    def withdraw(self, rows: Any, by: str | None = None, answer: str | None = None) -> None:
        """Record that nothing said of these rows counts: they may be asked for again."""
        self._add("withdrawn", lambda: _listed(rows) or None, by, answer=answer)

    def skip(self, rows: Any, why: str = "", by: str | None = None, answer: str | None = None) -> None:
        """Record rows that are never to be asked for."""
        if not records.is_text(why):
            raise DataError(
                f"why is {why!r:.100}. Pass text of at most {records.MAX_TEXT_LENGTH} characters."
            )
        listed = _listed(rows)
        self._add("skipped", lambda: {"rows": listed, "why": why} if listed else None, by, answer=answer)

    def unsure(self, rows: Any, by: str | None = None, answer: str | None = None) -> None:
        """Record rows that this person cannot tell."""
        self._add("unsure", lambda: _listed(rows) or None, by, answer=answer)

    def seed(self, x: list[Any] | str, labels: Any, by: str | None = None) -> None:
        """Record labelled rows from outside the pool: their values, or where they are."""
        known = checked_labels(labels).tolist()
        self._add("seeded", lambda: {"x": x, "labels": known} if known else None, by)

    def extend(self, n_rows: int, by: str | None = None) -> None:
        """Record that the pool has grown to this many rows."""
        self._add("extended", lambda: n_rows if n_rows != self.n_rows else None, by)

    def set(self, name: str, value: Any, by: str | None = None) -> None:
        """Record a setting, unless it is what it was."""
        if self.settings[name] != value:
            self._add("setting", lambda: {name: value} if self.settings[name] != value else None, by)

    def train(self, n: int) -> bool:
        """Record that the committee was trained on the first n rows taught; return False if others trained it otherwise."""
        known = self.trained[:]
        self._add("trained", lambda: n if self.trained == known else None)
        return self.trained == [*known, n]

    def note(self, name: str, value: Any) -> None:
        """Record a note, unless it equals the last one of this name."""
        if self.notes.get(name) != value:
            self._add("note", lambda: {name: value} if self.notes.get(name) != value else None)

    def fail(self, error: BaseException, by: str | None = None) -> None:
        """Record that a query failed."""
        text = f"{type(error).__name__}: {error}".encode(errors="replace").decode()
        self._add("error", lambda: text[: records.MAX_TEXT_LENGTH], by)

    def _now(self) -> float:
        """Return the time, which does not go back."""
        return max(round(clock(), 3), self._latest)

    def _add(self, kind: str, value: Callable[[], Any], by: str | None = None, **more: Any) -> Any:
        """Record an event, and return its record; None if its value is None, once all is heard that others have recorded."""
        if by is not None and not records.is_person(by):
            raise DataError(f"by is {by!r:.100}. Pass the name of a person, in one line.")
        answer = more.get("answer")
        if answer is not None and not records.is_answer(answer):
            raise DataError(f"answer is {answer!r:.100}. Pass at most 64 letters, digits, _ and -.")

        def record() -> dict[str, Any] | None:
            found = None if answer in self.answers else value()
            if found is None:
                return None
            about = {"by": by, "at": self._now(), **more}
            made = {kind: found, **{name: said for name, said in about.items() if said is not None}}
            self._check(made)
            records.check_record(made)
            return made

        made = record() if self._log is None else self._log.append(record)
        if made is not None:
            self._apply(made)
        return made

    # What a line does.

    def _hear(self, record: dict[str, Any], is_header: bool) -> None:
        """Take up a line of the log; raise ValueError if it is not possible after those before."""
        if is_header:
            self.header = record
            self.n_rows, self.settings = record["pool"][0], {name: record[name] for name in SETTINGS}
            return
        records.check_record(record)
        self._check(record)
        self._apply(record)

    def _check_header(self, given: dict[str, Any], path: Path) -> None:
        """Raise DataError if the header of the log is that of other work."""
        ours = {**given, **{name: self.header[name] for name in SETTINGS}}
        # The rows may have become more.
        found = {**self.header, "pool": [given["pool"][0], self.header["pool"][1]]}
        if found != ours:
            raise other_work(path, *_difference(found, ours))

    def _check(self, record: dict[str, Any]) -> None:
        """Raise ValueError unless this event is possible after those before."""
        kind, rows = kind_of(record), rows_of(record)
        if record.get("answer") in self.answers:
            raise ValueError(f"the answer {record['answer']!r} was recorded before")
        self._check_rows(rows)
        if kind == "asked":
            for row in rows:
                if what := self._taken(row, record.get("by"), record.get("at", 0)):
                    raise DataError(f"row {row} {what}{said(self._last.get(row))}.")
        elif kind in ("taught", "skipped", "unsure"):
            self._refuse(
                rows,
                self.labelled,
                "was taught already, as {label!r}{said}. Teach each row once, or correct it.",
            )
        elif kind == "corrected":
            unknown = [row for row in rows if row not in self.labelled]
            self._refuse(rows, unknown, "has no label to correct{said}. Teach it.")
        elif kind == "withdrawn":
            unknown = [row for row in rows if row not in self._last]
            self._refuse(rows, unknown, "was neither asked for nor taught{said}. Leave it out.")
        elif kind == "extended" and record[kind] < self.n_rows:
            raise DataError(
                f"the pool has {record[kind]} rows, but the log knows of {self.n_rows}. Pass all of them: ``extend(pool)``."
            )
        elif kind == "trained":
            self._check_trained(record[kind])
        if type(record[kind]) is dict and "labels" in record[kind]:
            self.check_labels(record[kind])
        changes_past = kind in ("corrected", "seeded") or (
            kind == "withdrawn" and not self.labelled.keys().isdisjoint(rows)
        )
        if changes_past and self.header["warm_start"]:
            raise DataError(
                "a committee that grows (``warm_start=True``) keeps what it learned: labels can neither be corrected nor "
                "withdrawn, nor rows seeded. Begin a new log without it, and teach that."
            )

    def _check_rows(self, rows: list[int]) -> None:
        for row in rows:
            if not 0 <= row < self.n_rows:
                raise DataError(f"row {row} is not in the pool, which has rows 0 to {self.n_rows - 1}.")
        if len(set(rows)) < len(rows):
            row = next(row for place, row in enumerate(rows) if row in rows[:place])
            raise DataError(f"row {row} is given twice. Teach each row once.")

    def _refuse(self, rows: list[int], bad: Any, what: str) -> None:
        """Raise DataError if one of the rows is a bad one."""
        for row in rows:
            if row in bad:
                text = what.format(label=self.labelled.get(row), said=said(self._last.get(row)))
                raise DataError(f"row {row} {text}")

    def _taken(self, row: int, by: str | None, now: float) -> str:
        """Return why this person cannot be asked for a row now; "" if nothing is in the way."""
        if row in self.labelled:
            return f"was taught already, as {self.labelled[row]!r}"
        if row in self.skipped:
            return "was skipped"
        if row in self._open and now < self._open[row].get("until", math.inf):
            return "was asked for before"
        return "could not be told" if by in self.undecided.get(row, ()) else ""

    def check_labels(self, value: dict[str, Any]) -> None:
        """Raise DataError unless there is a valid label for each row."""
        labels, classes = value["labels"], self.classes
        rows = value.get("rows", value.get("x"))
        if type(rows) is list and len(rows) != len(labels):
            raise DataError(f"{len(labels)} labels for {len(rows)} rows: pass one for each.")
        earlier = (
            next(iter(self.labelled.values()), None) if self.labelled else next(iter(self.seed_labels), None)
        )
        if earlier is not None and labels:
            check_kind(labels[0], earlier)
        known = np.array(labels)
        if classes is not None and not np.isin(known, classes).all():
            place = int(np.flatnonzero(~np.isin(known, classes))[0])
            where = f"row {value['rows'][place]}" if "rows" in value else f"row {place} of the seeds"
            raise DataError(
                f"the label {labels[place]!r} of {where} is none of the classes {classes.tolist()}. Correct "
                "it, or declare that class: ``classes=...``"
            )
        if "x" in value and type(rows) is list and len(rows[0]) != self.header["pool"][1]:
            raise DataError(
                f"seeds have {len(rows[0])} features, but the pool has {self.header['pool'][1]}. Pass the same features."
            )

    def _check_trained(self, n: int) -> None:
        last, labels = self.trained[-1] if self.trained else 0, self.labels
        if not (self.header["warm_start"] and last < n <= len(labels) and len(set(labels[:n])) > 1):
            raise ValueError(f"it says that the committee was trained with {n} of {len(labels)} rows")

    def _apply(self, record: dict[str, Any]) -> None:
        kind, rows = kind_of(record), rows_of(record)
        value = record[kind]
        self.events.append(record)
        self._latest = max(self._latest, record.get("at", 0.0))
        if "answer" in record:
            self.answers.add(record["answer"])
        for row in rows:
            self._last[row] = record
            self._open.pop(row, None)
            if kind in ("taught", "withdrawn"):
                self.skipped.pop(row, None)
                self.undecided.pop(row, None)
        if kind == "asked":
            self._open |= dict.fromkeys(rows, record)
            self.audited.update(set(rows).intersection(record.get("audit", ())))
            self.n_queries += 1
        elif kind in ("taught", "corrected"):
            self.labelled |= zip(rows, value["labels"], strict=True)
        elif kind == "withdrawn":
            for row in rows:
                self.labelled.pop(row, None)
        elif kind == "skipped":
            self.skipped |= dict.fromkeys(rows, value["why"])
        elif kind == "unsure":
            for row in rows:
                self.undecided.setdefault(row, set()).add(record.get("by"))
        elif kind == "seeded":
            self.seeds.append(value)
        elif kind == "setting":
            self.settings |= value
        elif kind == "extended":
            self.n_rows = value
        elif kind == "trained":
            self.trained.append(value)
        elif kind == "note":
            self.notes |= value


def _listed(rows: Any) -> list[int]:
    """Return row numbers as a list; raise DataError if they are none."""
    found = np.asarray(rows)
    if found.size and (found.ndim != 1 or found.dtype.kind not in "iu"):
        raise DataError(
            f"rows are an array of type {found.dtype} and shape {found.shape}: pass a list of row numbers."
        )
    listed: list[int] = found.tolist()
    return listed


class LabelLog:
    """The file of a log.

    Parameters
    ----------
    url : str or path
        On a local disk: an object store cannot append to a file.
    hear : callable
        hear(record, is_header) takes up a line of the log; it raises ValueError if that cannot be.
    """

    def __init__(self, url: str | os.PathLike[str], hear: Callable[[dict[str, Any], bool], None]):
        path = local_path(url)
        if path is None:
            raise DataError(
                f"the log {os.fspath(url)!r} is not on a local disk, as it must be since each event appends a line. Keep it in a "
                "local folder, and copy it to other places."
            )
        self.path, self._hear = path, hear
        self._end = self._n_lines = 0  # of the lines that this object has read or written
        self._last = b""  # the last of them

    def begin(self, header: dict[str, Any]) -> None:
        """Read an existing log, or begin a new one."""
        self.read(header)
        if not self._n_lines:
            self.append(lambda: None if self._n_lines else header, header)

    def read(self, header: dict[str, Any] | None = None) -> None:
        """Hear all complete lines that have been added."""
        self._take(_content(self.path, self._end - len(self._last)), header)

    def _take(self, content: bytes, header: dict[str, Any] | None) -> None:
        """Hear the lines of this content, which begins with the last line known."""
        if not content.startswith(self._last):
            raise StoreError(
                f"the log {self.path} no longer has the lines that were read from it. Restore it, or resume from it as it is."
            )
        content = content[len(self._last) :]
        complete = content[: content.rfind(b"\n") + 1]
        # Unless not even the header was written, what is there must be a log.
        if header is not None and not self._end and not records.to_line(header).encode().startswith(content):
            complete = complete or content
        for line in complete.splitlines(keepends=True):
            with _damage_reported(self.path, self._n_lines + 1):
                found = records.from_line(line.removesuffix(b"\n"))
                is_header = self._n_lines == 0
                self._hear(_checked_header(self.path, found) if is_header else found, is_header)
            self._known(line)

    def _known(self, line: bytes) -> None:
        self._end, self._n_lines, self._last = self._end + len(line), self._n_lines + 1, line

    def append(
        self, make: Callable[[], dict[str, Any] | None], header: dict[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Hear what was added, and append the line of what `make` returns then, unless that is None.

        When this returns, the line is on disk; if it raises, the log is unchanged.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = not self._end and not self.path.exists()
            with open(self.path, "r+b" if self._end else "a+b", buffering=0) as file, _locked(file):
                file.seek(self._end - len(self._last))
                self._take(file.read(), header)
                record = make()
                if record is None:
                    return None
                line = records.to_line(record).encode()
                self._write(file, line)
                self._known(line)
            if new:
                force_names(self.path.parent)
            return record
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"the log {self.path} cannot be written: {quoted(error)}. Nothing of this was kept. Solve that and try again."
            ) from error

    def _write(self, file: Any, line: bytes) -> None:
        """Write a line behind the complete ones: what is there was cut off when a process died."""
        file.truncate(self._end)
        file.seek(self._end)
        try:
            written = 0
            while written < len(line):
                written += file.write(line[written:])
            os.fsync(file.fileno())
        except OSError:
            file.truncate(self._end)
            raise


def read_header(log: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the header of a log; None if there is no log yet, or its first line is incomplete."""
    path = local_path(log)
    content = b"" if path is None else _content(path)
    if path is None or b"\n" not in content:
        return None
    with _damage_reported(path, 1):
        return _checked_header(path, records.from_line(content[: content.index(b"\n")]))


def _content(path: Path, start: int = 0) -> bytes:
    """Return the content of a log, from a byte on."""
    try:
        return read_local(path, kind=StoreError, start=start)
    except FileNotFoundError:
        return b""
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"the log {path} cannot be read: {quoted(error)}. Pass a file.") from error


def _checked_header(path: Path, header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a log, as one of this version."""
    if header.get("distboost") == "labels" and header.get("version") not in (1, records.VERSION):
        raise StoreError(
            f"{path} is a log of version {header.get('version')!r:.100}, not {records.VERSION}: install a newer distboost."
        )
    header = records.upgraded(header)
    records.check_header(header)
    return header


@contextmanager
def _damage_reported(path: Path, number: int) -> Iterator[None]:
    """Turn a ValueError about a line into a StoreError that names the line."""
    try:
        yield
    except ValueError as error:
        raise StoreError(
            f"line {number} of {path} is damaged, or this is no log of labels: {str(error).removesuffix('.')}. Restore it from a "
            "copy, or remove that line to continue without its content."
        ) from error


def other_work(path: str | Path, name: str, theirs: Any, own: Any) -> DataError:
    """Return the error for a log of other work."""
    grown = name == "pool" and own[0] > theirs[0]
    remedy = (
        "If rows were appended: ``extended|resume(log, pool, extend=True)``. Else set it"
        if grown
        else "Set it"
    )
    return DataError(
        f"the log {path} belongs to other work: its ``{name}`` is {theirs!r}, not {own!r}. {remedy} to that, or "
        "begin a new log and teach it the old labels``again|: teach(old.labelled_, old.labels_)``."
    )


def _difference(found: dict[str, Any], ours: dict[str, Any]) -> tuple[str, Any, Any]:
    """Return the first entry, or parameter, in which two headers differ: its name and both values."""
    none = "not there"
    name = next(name for name in ours | found if found.get(name, none) != ours.get(name, none))
    theirs, own = found.get(name, none), ours.get(name, none)
    return _difference(theirs, own) if name == "parameters" else (name, theirs, own)


@contextmanager
def _locked(file: Any) -> Iterator[None]:
    """Keep other processes from appending to the file."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)
    yield  # closing the file releases the lock
