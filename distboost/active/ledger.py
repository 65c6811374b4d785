"""The record of queries and lessons, in memory and in a log that outlives the process.

A log is a text file. Each event adds a line, a checksum and a JSON object, which is on disk before the call that caused it
returns. The first line, the header, says what work the log belongs to. A process that reads the log resumes in the state of the
one that wrote it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from distboost.active import records
from distboost.active.records import check_kind, checked_labels
from distboost.errors import DataError, StoreError
from distboost.io.files import read_local
from distboost.io.publishing import force_names
from distboost.io.retry import quoted
from distboost.io.storage import local_path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Ledger:
    """Which rows of a pool were asked for and which were taught.

    Parameters
    ----------
    n_rows : int
        Number of rows of the pool.
    header : dict
        The settings of the work, as JSON values.
    log : str, path or None
        File on a local disk; if it exists, the work resumes from it. None: nothing outlives the process.

    Attributes
    ----------
    rows, labels : list
        Rows taught so far and their labels, in the order taught.
    asked : list of int
        Rows that were asked for and not taught yet, in the order asked.
    audited : set of int
        Rows that were asked for at random, so that they stand for the pool.
    n_queries : int
    trained : list of int
        For each run of a committee that grows: how many of the rows it learned from.
    notes : dict
        What else is needed to resume, as JSON values; the latest of each name.
    """

    def __init__(self, n_rows: int, header: dict[str, Any], log: str | os.PathLike[str] | None):
        self.n_rows = n_rows
        self.header = {"distboost": "labels", "version": records.VERSION, **header}
        self.rows: list[int] = []
        self.labels: list[Any] = []
        self.asked: list[int] = []
        self.audited: set[int] = set()
        self.n_queries = 0
        self.trained: list[int] = []
        self.notes: dict[str, Any] = {}
        self._taught: set[int] = set()
        self._records: list[dict[str, Any]] = []
        self._log = None if log is None else LabelLog(log, self.header)
        if self._log is not None:
            for number, record in enumerate(self._log.records(), 2):
                with _damage_reported(self._log.path, number):
                    self._check(record)
                self._apply(record)

    @classmethod
    def from_log(cls, log: str | os.PathLike[str]) -> Ledger:
        """Return the ledger of an existing log, whatever work it belongs to."""
        header = read_header(log)
        if header is None:
            raise DataError(
                f"there is no log of labels at {os.fspath(log)!r}. Pass the path of one that was begun."
            )
        return cls(header["pool"][0], header, log)

    @property
    def classes(self) -> np.ndarray | None:
        """The valid labels (n_classes,); None if any label is valid."""
        declared = self.header["classes"]
        return None if declared is None else np.array(declared)

    def excluded(self) -> np.ndarray:
        """Return the rows that were asked for or taught, ascending: no query returns them again."""
        return np.sort(np.array([*self.rows, *self.asked], np.int64))

    def ask(self, rows: np.ndarray, audit: np.ndarray) -> None:
        """Record a query that returned these rows, some of them at random (`audit`)."""
        self._add({"asked": rows.tolist()} | ({"audit": audit.tolist()} if len(audit) else {}))

    def teach(self, rows: Any, labels: Any) -> None:
        """Record labels; raise DataError and record none if one is invalid."""
        checked, known = self._checked(rows, labels)
        if len(checked):
            self._add({"taught": {"rows": checked, "labels": known.tolist()}})

    def _checked(self, rows: Any, labels: Any) -> tuple[list[int], np.ndarray]:
        """Return rows and labels (n,) if they can be taught now; raise DataError if not."""
        checked, known, classes = self._checked_rows(rows), checked_labels(labels), self.classes
        if len(checked) != len(known):
            raise DataError(f"{len(known)} labels for {len(checked)} rows: pass one for each.")
        if self.labels and len(known):
            check_kind(known[0].item(), self.labels[0])
        if classes is not None and not np.isin(known, classes).all():
            place = int(np.flatnonzero(~np.isin(known, classes))[0])
            raise DataError(
                f"the label {known[place].item()!r} of row {checked[place]} is none of the classes {classes.tolist()}. Correct "
                "it, or declare that class: ``classes=...``"
            )
        return checked, known

    def train(self) -> None:
        """Record that the committee was trained on all rows taught so far."""
        self._add({"trained": len(self.rows)})

    def note(self, name: str, value: Any) -> None:
        """Record a note, unless it equals the last one of this name."""
        if name not in self.notes or self.notes[name] != value:
            self._add({"note": {name: value}})

    def text(self) -> str:
        """Return the content of a log of all that happened so far."""
        return "".join(map(records.to_line, [self.header, *self._records]))

    def _add(self, record: dict[str, Any]) -> None:
        if self._log is not None:
            self._log.append(record)
        self._apply(record)

    def _check(self, record: dict[str, Any]) -> None:
        """Raise ValueError unless this event is possible after those before."""
        records.check_record(record)
        if "asked" in record:
            rows = self._checked_rows(record["asked"])
            again = set(self.asked).intersection(rows)
            if again:
                raise ValueError(f"it asks for row {min(again)}, which was asked for before")
            if not set(rows).issuperset(record.get("audit", ())):
                raise ValueError("it draws rows that it does not ask for")
        elif "taught" in record:
            self._checked(record["taught"]["rows"], record["taught"]["labels"])
        elif "trained" in record:
            last, n = self.trained[-1] if self.trained else 0, record["trained"]
            if not (
                self.header["warm_start"] and last < n <= len(self.rows) and len(set(self.labels[:n])) > 1
            ):
                raise ValueError(f"it says that the committee was trained with {n} of {len(self.rows)} rows")

    def _apply(self, record: dict[str, Any]) -> None:
        self._records.append(record)
        if "asked" in record:
            self.asked += record["asked"]
            self.audited.update(record.get("audit", ()))
            self.n_queries += 1
        elif "taught" in record:
            rows = record["taught"]["rows"]
            self.rows += rows
            self.labels += record["taught"]["labels"]
            self._taught.update(rows)
            now = set(rows)
            self.asked = [row for row in self.asked if row not in now]
        elif "note" in record:
            self.notes.update(record["note"])
        else:
            self.trained.append(record["trained"])

    def _checked_rows(self, rows: Any) -> list[int]:
        found = np.asarray(rows)
        if found.size and (found.ndim != 1 or found.dtype.kind not in "iu"):
            raise DataError(
                f"rows are an array of type {found.dtype} and shape {found.shape}: pass a list of row numbers."
            )
        listed: list[int] = found.tolist()
        for row in listed:
            if not 0 <= row < self.n_rows:
                raise DataError(f"row {row} is not in the pool, which has rows 0 to {self.n_rows - 1}.")
            if row in self._taught:
                raise DataError(
                    f"row {row} was taught already, as {self.labels[self.rows.index(row)]!r}. Teach each row once."
                )
        if len(set(listed)) < len(listed):
            row = next(row for place, row in enumerate(listed) if row in listed[:place])
            raise DataError(f"row {row} is given twice. Teach each row once.")
        return listed


class LabelLog:
    """The file of a log.

    Parameters
    ----------
    url : str or path
        On a local disk: an object store cannot append to a file.
    header : dict
        The settings of the work, as JSON values. An existing log must have the same.
    """

    def __init__(self, url: str | os.PathLike[str], header: dict[str, Any]):
        path = local_path(url)
        if path is None:
            raise DataError(
                f"the log {os.fspath(url)!r} is not on a local disk, as it must be since each event appends a line. Keep it in a "
                "local folder, and copy it to other places."
            )
        self.path, self.header = path, header
        self._end = 0  # the end of the lines that this object has read

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the events of an existing log in their order, or begin a new log."""
        content, end = _content(self.path)
        # Not even the header was written.
        if not end and records.to_line(self.header).encode().startswith(content):
            self.append(self.header)
            return
        header, *others = _records(self.path, content[:end] or content)
        self._end = end
        self._check_header(header)
        yield from others

    def _check_header(self, found: dict[str, Any]) -> None:
        found, ours = records.upgraded(found), json.loads(json.dumps(self.header))
        if found != ours:
            name, theirs, own = _difference(found, ours)
            raise DataError(
                f"the log {self.path} belongs to other work: its ``{name}`` is {theirs!r}, not {own!r}. Set it to that, or "
                "begin a new log and teach it the old labels``again|: teach(old.labelled_, old.labels_)``."
            )

    def append(self, record: dict[str, Any]) -> None:
        """Append a line. When this returns, the line is on disk; if it raises, the log is unchanged."""
        line = records.to_line(record).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = not self.path.exists()
            with open(self.path, "a+b", buffering=0) as file, _locked(file):
                file.seek(self._end)
                if b"\n" in file.read():
                    raise DataError(
                        f"another process has written to {self.path} since. Make a new object, which reads the whole log."
                    )
                file.truncate(self._end)
                try:
                    written = 0
                    while written < len(line):
                        written += file.write(line[written:])
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(self._end)
                    raise
                self._end += len(line)
            if new:
                force_names(self.path.parent)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(
                f"the log {self.path} cannot be written: {quoted(error)}. Nothing of this was kept. Solve that and try again."
            ) from error


def read_header(log: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the header of a log; None if there is no log yet, or its first line is incomplete."""
    path = local_path(log)
    content, end = (b"", 0) if path is None else _content(path)
    if path is None or not end:
        return None
    return records.upgraded(_records(path, content[: content.index(b"\n") + 1])[0])


def _content(path: Path) -> tuple[bytes, int]:
    """Return the content of a log, and where its last complete line ends: a process may have died while it wrote another."""
    try:
        content = read_local(path, kind=StoreError)
    except FileNotFoundError:
        return b"", 0
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"the log {path} cannot be read: {quoted(error)}. Pass a file.") from error
    return content, content.rfind(b"\n") + 1


def _records(path: Path, lines: bytes) -> list[dict[str, Any]]:
    """Return the records of these lines. The first is the header."""
    found = []
    for number, line in enumerate(lines.splitlines(), 1):
        with _damage_reported(path, number):
            found.append(records.from_line(line))
            if number == 1:
                _check_version(path, found[0])
                records.check_header(records.upgraded(found[0]))
    return found


def _check_version(path: Path, header: dict[str, Any]) -> None:
    if header.get("distboost") == "labels" and header.get("version") not in (1, records.VERSION):
        raise StoreError(
            f"{path} is a log of version {header.get('version')!r:.100}, not {records.VERSION}: install a newer distboost."
        )


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
