"""What may happen to the labels of a pool: a class for each kind of event, and what is known after all of them.

A class says what its lines in the log hold, when such an event is possible, and what changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from distboost.active import records
from distboost.active.records import (
    SETTINGS,
    Check,
    are_labels,
    are_rows,
    are_some,
    check_kind,
    is_entry,
    is_time,
    said,
)
from distboost.errors import DataError


@dataclass(eq=False, repr=False)
class LabelState:
    """What is known of a pool and its labels: the sum of all events."""

    header: dict[str, Any]  # the settings of the work, as JSON values
    labelled: dict[int, Any] = field(
        default_factory=dict
    )  # rows taught and their labels, in the order taught
    opinions: dict[int, dict[str | None, Any]] = field(
        default_factory=dict
    )  # of these: what each person said
    settled: set[int] = field(default_factory=set)  # of these: those that somebody corrected after others
    skipped: dict[int, str] = field(default_factory=dict)  # rows that are never asked for, and why
    undecided: dict[int, set[str | None]] = field(default_factory=dict)  # rows that some people cannot tell
    seeds: list[dict[str, Any]] = field(default_factory=list)  # from outside the pool: x and labels
    audited: set[int] = field(
        default_factory=set
    )  # rows asked for at random, so that they stand for the pool
    n_queries: int = 0
    trained: list[int] = field(
        default_factory=list
    )  # rows that a committee that grows learned from, run by run
    notes: dict[str, Any] = field(
        default_factory=dict
    )  # what else is needed to resume: the latest of each name
    answers: set[str] = field(default_factory=set)  # names of those that are recorded
    events: list[dict[str, Any]] = field(default_factory=list)  # all of this, as it happened
    open: dict[int, dict[str, Any]] = field(default_factory=dict)  # who was asked for a row, perhaps long ago
    origins: dict[int, dict[str, Any]] = field(default_factory=dict)  # the event that a row's label is of
    latest: dict[int, dict[str, Any]] = field(default_factory=dict)  # that of each row

    def __post_init__(self) -> None:
        self.begin(self.header)

    def begin(self, header: dict[str, Any]) -> None:
        """Take a header up."""
        self.header, self.time = header, 0.0  # of the latest event
        self.n_rows: int = header["pool"][0]
        self.settings = {name: header[name] for name in SETTINGS}

    def take(self, event: Event) -> None:
        """Take up what happened."""
        self.events.append(event.record)
        self.time = max(self.time, event.at)
        if "answer" in event.record:
            self.answers.add(event.record["answer"])
        for row in event.rows:
            self.latest[row] = event.record
            self.open.pop(row, None)
        event.apply(self)

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
    def classes(self) -> np.ndarray | None:
        """The valid labels (n_classes,); None if any label is valid."""
        declared = self.header["classes"]
        return None if declared is None else np.array(declared)

    @property
    def conflicts(self) -> list[int]:
        """Rows of which people say different things, and that nobody has corrected."""
        return [row for row in self.opinions if self._differ(row)]

    def _differ(self, row: int) -> bool:
        return row not in self.settled and len(set(self.opinions[row].values())) > 1

    def last(self, row: int) -> dict[str, Any] | None:
        """Return the latest event of a row."""
        return self.latest.get(row)

    def origin(self, row: int) -> dict[str, Any] | None:
        """Return the event that a row's label is of."""
        return self.origins.get(row)

    def asks_again(self, row: int, by: str | None) -> bool:
        """Whether this person was asked for a second opinion of a row, and has not told it."""
        asked = self.open.get(row, {})
        return row in asked.get("again", ()) and asked.get("by") == by not in self.opinions[row]

    def taken(self, row: int, by: str | None, now: float, again: bool = False) -> str:
        """Return why this person cannot be asked for a row now, or for a second opinion of it; "" if nothing is in the way."""
        if again and row not in self.labelled:
            return "has no label"
        if again and by in self.opinions[row] and not self._differ(row):
            return "was told by this person"
        if row in self.labelled and not again:
            return f"was taught already, as {self.labelled[row]!r}"
        if row in self.skipped:
            return "was skipped"
        if row in self.open and now < self.open[row].get("until", math.inf):
            return "was asked for before"
        return "could not be told" if by in self.undecided.get(row, ()) else ""

    def refuse(self, rows: Iterable[int], what: str) -> None:
        """Raise DataError if there is such a row."""
        for row in rows:
            text = what.format(label=self.labelled.get(row), said=said(self.origin(row) or self.last(row)))
            raise DataError(f"row {row} {text}")

    def check_labels(self, value: dict[str, Any]) -> None:
        """Raise DataError unless there is a valid label for each row."""
        labels, classes = value["labels"], self.classes
        rows = value.get("rows", value.get("x"))
        if type(rows) is list and len(rows) != len(labels):
            raise DataError(f"{len(labels)} labels for {len(rows)} rows: pass one for each.")
        earlier = next(iter(self.labelled.values() or self.seed_labels), None)
        if earlier is not None and labels:
            check_kind(labels[0], earlier)
        known = np.array(labels)
        if classes is not None and not np.isin(known, classes).all():
            place = int(np.flatnonzero(~np.isin(known, classes))[0])
            where = f"row {value['rows'][place]}" if "rows" in value else f"row {place} of the seeds"
            raise DataError(
                f"the label {labels[place]!r} of {where} is none of the classes {classes.tolist()}.",
                remedy="Correct it, or declare that class: ``classes=...``",
                value=labels[place],
            )
        if "x" in value and type(rows) is list and len(rows[0]) != self.header["pool"][1]:
            raise DataError(
                f"seeds have {len(rows[0])} features, but the pool has {self.header['pool'][1]}.",
                remedy="Pass the same features.",
            )


class Event:
    """Something that happened. Its kind is the name of its class.

    Attributes
    ----------
    form : function
        Whether a value can be the content of such a line.
    more : dict
        Checks of what may be beside it.
    unlearns : bool
        Whether a committee that has learned such rows would have to forget.
    """

    form: ClassVar[Check]
    more: ClassVar[dict[str, Check]] = {}
    unlearns: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        KINDS[cls.__name__.lower()] = cls

    def __init__(self, record: dict[str, Any]):
        self.record, self.value = record, record[records.kind_of(record)]
        self.by, self.at = record.get("by"), record.get("at", 0.0)
        self.rows = records.rows_of(record)

    def check_form(self) -> None:
        """Raise ValueError unless a line of the log can say this."""
        beside = {"by": records.is_person, "at": is_time, **self.more}
        kind, *others = sorted(self.record, key=lambda name: name != records.kind_of(self.record))
        is_right = type(self).form(self.record[kind]) and all(
            name in beside and beside[name](self.record[name]) for name in others
        )
        if not is_right:
            raise ValueError(f"it says {self.record!r:.100}")

    def check(self, state: LabelState) -> None:
        """Raise ValueError unless this is possible after all that is state."""
        if self.record.get("answer") in state.answers:
            raise ValueError(f"the answer {self.record['answer']!r} was recorded before")
        for row in self.rows:
            if not 0 <= row < state.n_rows:
                raise DataError(f"row {row} is not in the pool, which has rows 0 to {state.n_rows - 1}.")
        if len(set(self.rows)) < len(self.rows):
            row = next(row for place, row in enumerate(self.rows) if row in self.rows[:place])
            raise DataError(f"row {row} is given twice.", remedy="Teach each row once.")
        self.check_own(state)
        if type(self.value) is dict and "labels" in self.value:
            state.check_labels(self.value)
        learned = not (self.rows and state.labelled.keys().isdisjoint(self.rows))
        if state.header["warm_start"] and self.unlearns and learned:
            raise DataError(
                "a committee that grows (``warm_start=True``) keeps what it learned: labels can neither be corrected nor "
                "withdrawn, nor rows seeded.",
                remedy="Begin a new log without it, and teach that.",
            )

    def check_own(self, state: LabelState) -> None:
        """Raise ValueError unless this kind of event is."""

    def apply(self, state: LabelState) -> None:
        """Change what is state."""


KINDS: dict[str, type[Event]] = {}
_LABELLED = is_entry(rows=are_some, labels=are_labels)


def event_of(record: dict[str, Any]) -> Event:
    """Return the event of a record; raise ValueError unless it is of a known kind."""
    kind = records.kind_of(record)
    if kind not in KINDS:
        raise ValueError(f"it says {record!r:.100}")
    return KINDS[kind](record)


class Asked(Event):
    """These rows were asked for.

    With `until`, they are one person's until then. Those of `audit` were drawn at random; those of `again` have a label.
    """

    form = are_rows
    more: ClassVar = {"until": is_time, "audit": are_rows, "again": are_rows}

    def check_own(self, state: LabelState) -> None:
        again = set(self.record.get("again", ()))
        for row in self.rows:
            if what := state.taken(row, self.by, self.at, row in again):
                raise DataError(f"row {row} {what}{said(state.last(row))}.")

    def apply(self, state: LabelState) -> None:
        state.open |= dict.fromkeys(self.rows, self.record)
        state.audited.update(set(self.rows).intersection(self.record.get("audit", ())))
        state.n_queries += "again" not in self.record


class Taught(Event):
    """Labels of rows; with `seconds`: how long the person took. Of a row that has a label, it is a second opinion."""

    form = _LABELLED
    more: ClassVar = {"seconds": is_time, "answer": records.is_answer}

    def check_own(self, state: LabelState) -> None:
        told = [row for row in self.rows if row in state.labelled and not state.asks_again(row, self.by)]
        state.refuse(told, "was taught already, as {label!r}{said}. Teach each row once, or correct it.")

    def apply(self, state: LabelState) -> None:
        for row, label in zip(self.rows, self.value["labels"], strict=True):
            if row not in state.labelled:
                state.labelled[row], state.opinions[row], state.origins[row] = label, {}, self.record
            state.opinions[row][self.by] = label
            state.skipped.pop(row, None)
            state.undecided.pop(row, None)


class Corrected(Event):
    """Other labels of such rows."""

    form = _LABELLED
    more: ClassVar = {"seconds": is_time, "answer": records.is_answer}
    unlearns = True

    def check_own(self, state: LabelState) -> None:
        unknown = [row for row in self.rows if row not in state.labelled]
        state.refuse(unknown, "has no label to correct{said}. Teach it.")

    def apply(self, state: LabelState) -> None:
        for row, label in zip(self.rows, self.value["labels"], strict=True):
            state.labelled[row], state.origins[row] = label, self.record
            if state.opinions[row].keys() == {self.by}:
                state.opinions[row][self.by] = label
            else:
                state.settled.add(row)


class Withdrawn(Event):
    """What was said of these rows does not count: they are as if nobody had asked."""

    form = are_some
    more: ClassVar = {"answer": records.is_answer}
    unlearns = True

    def check_own(self, state: LabelState) -> None:
        unknown = [row for row in self.rows if row not in state.latest]
        state.refuse(unknown, "was neither asked for nor taught{said}. Leave it out.")

    def apply(self, state: LabelState) -> None:
        for row in self.rows:
            for of_rows in (state.labelled, state.opinions, state.origins, state.skipped, state.undecided):
                of_rows.pop(row, None)
            state.settled.discard(row)


class Skipped(Event):
    """Rows that are never asked for again, and why."""

    form = is_entry(rows=are_some, why=records.is_text)
    more: ClassVar = {"answer": records.is_answer}

    def check_own(self, state: LabelState) -> None:
        told = [row for row in self.rows if row in state.labelled]
        state.refuse(told, "was taught already, as {label!r}{said}. Teach each row once, or correct it.")

    def apply(self, state: LabelState) -> None:
        state.skipped |= dict.fromkeys(self.rows, self.value["why"])


class Unsure(Event):
    """Rows that this person could not tell."""

    form = are_some
    more: ClassVar = {"answer": records.is_answer}
    check_own = Taught.check_own

    def apply(self, state: LabelState) -> None:
        for row in self.rows:
            state.undecided.setdefault(row, set()).add(self.by)


class Seeded(Event):
    """Labelled rows from outside the pool: their values, or where they are."""

    form = is_entry(x=records.are_values, labels=lambda value: are_labels(value) and len(value) > 0)
    unlearns = True

    def apply(self, state: LabelState) -> None:
        state.seeds.append(self.value)


class Setting(Event):
    """A setting, from now on."""

    form = records.is_one_of(SETTINGS)

    def apply(self, state: LabelState) -> None:
        state.settings |= self.value


class Extended(Event):
    """The number of rows of a pool that has grown."""

    form = records.whole(1)

    def check_own(self, state: LabelState) -> None:
        if self.value < state.n_rows:
            raise DataError(
                f"the pool has {self.value} rows, but the log knows of {state.n_rows}.",
                remedy="Pass all of them: ``extend(pool)``.",
                value=self.value,
            )

    def apply(self, state: LabelState) -> None:
        state.n_rows = self.value


class Trained(Event):
    """On how many taught rows a committee that grows was trained."""

    form = records.whole(1)

    def check_own(self, state: LabelState) -> None:
        last, labels = state.trained[-1] if state.trained else 0, state.labels
        grows = state.header["warm_start"] and last < self.value <= len(labels)
        if not (grows and len(set(labels[: self.value])) > 1):
            raise ValueError(
                f"it says that the committee was trained with {self.value} of {len(labels)} rows"
            )

    def apply(self, state: LabelState) -> None:
        state.trained.append(self.value)


class Note(Event):
    """What else is needed to resume."""

    form = records.is_one_of(
        {
            "pool": records.is_str,
            "feature_names": lambda value: type(value) is list and all(map(records.is_str, value)),
            "parameters": lambda value: type(value) is dict and all(map(records.is_scalar, value.values())),
        }
    )

    def apply(self, state: LabelState) -> None:
        state.notes |= self.value


class Error(Event):
    """A query failed."""

    form = records.is_text
