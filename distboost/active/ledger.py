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
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from distboost.active import records
from distboost.active.events import LabelState, event_of
from distboost.active.lessons import Lessons
from distboost.active.records import SETTINGS, checked_labels
from distboost.errors import DataError, StoreError
from distboost.io.files import force_names, read_local
from distboost.io.retry import quoted
from distboost.io.storage import local_path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

clock = time.time  # of the events


class Ledger(LabelState, Lessons):
    """What is known of a pool, as a log has it. What happens is checked against all that others have recorded.

    Parameters
    ----------
    header : dict
        The settings of the work, as JSON values.
    log : str, path or None
        File on a local disk; if it exists, the work resumes from it. None: nothing outlives the process.
    """

    def __init__(self, header: dict[str, Any], log: str | os.PathLike[str] | None):
        super().__init__({"distboost": "labels", "version": records.VERSION, **header})
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
                f"there is no log of labels at {os.fspath(log)!r}.",
                remedy="Pass the path of one that was begun.",
                where=log,
            )
        return cls(header, log)

    # What is known now.

    @property
    def asked(self) -> list[int]:
        """Rows without a label that are with somebody, in the order asked."""
        return [row for row, _ in self._held() if row not in self.labelled]

    def asked_of(self, by: str | None) -> list[int]:
        """Return the rows that this person was asked for, also for a second opinion."""
        return [row for row, event in self._held() if event.get("by") == by]

    def _held(self) -> list[tuple[int, dict[str, Any]]]:
        now = self._now()
        return [(row, event) for row, event in self.open.items() if now < event.get("until", math.inf)]

    @property
    def is_new(self) -> bool:
        """Whether nothing is known of any row."""
        return not self.latest and not self.seeds

    def is_free(self, row: int, by: str | None = None) -> bool:
        """Return whether this person can be asked for a row now."""
        return not self.taken(row, by, self._now())

    def excluded(self, by: str | None = None) -> np.ndarray:
        """Return the rows that no query of this person returns now, ascending."""
        unsure = [row for row, people in self.undecided.items() if by in people]
        return np.unique(np.array([*self.labelled, *self.asked, *self.skipped, *unsure], np.int64))

    def conflicts_for(self, by: str) -> list[int]:
        """Return the rows on which people differ, and that this person may be asked for now."""
        return self._may_compare(self.conflicts, by)

    def told_by_one_other(self, by: str) -> list[int]:
        """Return the rows that one other person told, that nobody corrected, and that this person may be asked for now."""
        alone = (row for row, told in self.opinions.items() if len(told) == 1 and row not in self.settled)
        return self._may_compare(alone, by)

    def _may_compare(self, rows: Iterable[int], by: str) -> list[int]:
        now = self._now()
        return [row for row in rows if not self.taken(row, by, now, again=True)]

    def n_asked_of(self, by: str) -> int:
        """Return the number of rows that this person was ever asked for."""
        return sum(len(event["asked"]) for event in self.events if "asked" in event and event.get("by") == by)

    def text(self) -> str:
        """Return the content of a log of all that happened so far."""
        return "".join(map(records.to_line, [self.header, *self.events]))

    # What happens.

    def update(self) -> None:
        """Hear what others have written to the log."""
        if self._log is not None:
            self._log.read()

    def ask(
        self,
        rows: np.ndarray,
        audit: np.ndarray,
        by: str | None = None,
        seconds: float | None = None,
        again: Collection[int] = (),
    ) -> list[int]:
        """Record a query that found these rows; return those that nobody has taken since, which are of this person now.

        With `seconds`, they come free after that time. Those of `audit` were drawn at random, those of `again` have labels.
        """

        def still_free() -> list[int]:
            now = self._now()
            return [row for row in rows.tolist() if not self.taken(row, by, now, row in again)]

        until = None if seconds is None else self._now() + seconds
        beside = {"audit": audit.tolist() or None, "again": [*again] or None}
        made = self.record("asked", still_free, by, until=until, **beside)
        return [] if made is None else records.rows_of(made)

    def answer(self, name: str) -> NamedAnswer:
        """Return an answer of this name: what it says is recorded once, however often it comes."""
        return NamedAnswer(self, name)

    def seed(self, x: list[Any] | str, labels: Any, by: str | None = None) -> None:
        """Record labelled rows from outside the pool: their values, or where they are."""
        known = checked_labels(labels).tolist()
        self.record("seeded", {"x": x, "labels": known} if known else None, by)

    def extend(self, n_rows: int, by: str | None = None) -> None:
        """Record that the pool has grown to this many rows."""
        self.record("extended", lambda: n_rows if n_rows != self.n_rows else None, by)

    def set(self, name: str, value: Any, by: str | None = None) -> None:
        """Record a setting, unless it is what it was."""
        if self.settings[name] != value:
            self.record("setting", lambda: {name: value} if self.settings[name] != value else None, by)

    def train(self, n: int) -> bool:
        """Record that the committee was trained on the first n rows taught; return False if others trained it otherwise."""
        known = self.trained[:]
        self.record("trained", lambda: n if self.trained == known else None)
        return self.trained == [*known, n]

    def note(self, name: str, value: Any) -> None:
        """Record a note, unless it equals the last one of this name."""
        if self.notes.get(name) != value:
            self.record("note", lambda: {name: value} if self.notes.get(name) != value else None)

    def fail(self, error: BaseException, by: str | None = None) -> None:
        """Record that a query failed."""
        text = f"{type(error).__name__}: {error}".encode(errors="replace").decode()
        self.record("error", text[: records.MAX_TEXT_LENGTH], by)

    def _now(self) -> float:
        """Return the time, which does not go back."""
        return max(round(clock(), 3), self.time)

    def record(self, kind: str, value: Any, by: str | None = None, **more: Any) -> Any:
        """Record an event, and return its record; None if there is none, as the value is None or no rows.

        The value may be a function, which is called once all is heard that others have recorded.
        """
        if by is not None and not records.is_person(by):
            raise DataError.expected("by", by, remedy="Pass the name of a person, in one line.")
        answer = more.get("answer")
        if answer is not None and not records.is_answer(answer):
            raise DataError.expected("answer", answer, remedy="Pass at most 64 letters, digits, _ and -.")

        def made() -> dict[str, Any] | None:
            found = value() if callable(value) else value
            if found is None or found == [] or answer in self.answers:
                return None
            about = {"by": by, "at": self._now(), **more}
            event = event_of(
                {kind: found, **{name: said for name, said in about.items() if said is not None}}
            )
            event.check(self)
            event.check_form()
            return event.record

        record = made() if self._log is None else self._log.append(made)
        if record is not None:
            self.take(event_of(record))
        return record

    # What a line does.

    def _hear(self, record: dict[str, Any], is_header: bool) -> None:
        """Take up a line of the log; raise ValueError if it is not possible after those before."""
        if is_header:
            self.begin(record)
            return
        event = event_of(record)
        event.check_form()
        event.check(self)
        self.take(event)

    def _check_header(self, given: dict[str, Any], path: Path) -> None:
        """Raise DataError if the header of the log is that of other work."""
        ours = {**given, **{name: self.header[name] for name in SETTINGS}}
        # The rows may have become more.
        found = {**self.header, "pool": [given["pool"][0], self.header["pool"][1]]}
        if found != ours:
            raise other_work(path, *_difference(found, ours))


class NamedAnswer(Lessons):
    """An answer whose sender may send it again: see `Ledger.answer`."""

    def __init__(self, ledger: Ledger, name: str):
        self._ledger, self._name = ledger, name

    def record(self, kind: str, value: Any, by: str | None = None, **more: Any) -> Any:
        """Record an event, unless this answer is recorded."""
        return self._ledger.record(kind, value, by, answer=self._name, **more)


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
                f"the log {os.fspath(url)!r} is not on a local disk, as it must be since each event appends a line.",
                remedy="Keep it in a local folder, and copy it to other places.",
                where=url,
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
                f"the log {self.path} no longer has the lines that were read from it.",
                remedy="Restore it, or resume from it as it is.",
                where=self.path,
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
                f"the log {self.path} cannot be written: {quoted(error)}. Nothing of this was kept.",
                remedy="Solve that and try again.",
                where=self.path,
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
        raise StoreError(
            f"the log {path} cannot be read: {quoted(error)}.", remedy="Pass a file.", where=path
        ) from error


def _checked_header(path: Path, header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a log, as one of this version."""
    if header.get("distboost") == "labels" and header.get("version") not in (1, records.VERSION):
        raise StoreError(
            f"{path} is a log of version {header.get('version')!r:.100}, not {records.VERSION}: install a newer distboost.",
            where=path,
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
            f"line {number} of {path} is damaged, or this is no log of labels: {str(error).removesuffix('.')}.",
            remedy="Restore it from a copy, or remove that line to continue without its content.",
            where=path,
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
        f"the log {path} belongs to other work: its ``{name}`` is {theirs!r}, not {own!r}.",
        remedy=f"{remedy} to that, or begin a new log and teach it the old labels``again|: teach(old.labelled_, "
        "old.labels_)``.",
        where=path,
        value=theirs,
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
