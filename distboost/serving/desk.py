"""What people do on the page: take rows, and answer. The log has all of it.

People have tokens that nobody can guess. These outlive the server, so that open pages stay valid.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distboost.active import ledger as ledgers
from distboost.active.label_texts import labels_before, parse_labels
from distboost.active.ledger import Ledger
from distboost.active.records import is_person, kind_of, rows_of, said
from distboost.errors import DataError, StoreError
from distboost.serving.training import Hints, Judgement, Ranked

TOKEN_BYTES = 24


def tokens_of(path: str, people: Sequence[str]) -> dict[str, str]:
    """Return the token of each of these people: those of a file, which gets new ones for whom it lacks.

    Only its owner can read the file.
    """
    for name in people:
        if not is_person(name):
            raise DataError(
                f"{name!r:.100} is no name of a person.",
                remedy="Pass names in one line, separated by commas.",
                where=name,
            )
    if len(set(people)) < len(people) or not people:
        raise DataError(f"the people are {', '.join(people) or 'nobody'}.", remedy="Name each person once.")
    known = _read(path)
    tokens = {name: known.get(name) or secrets.token_urlsafe(TOKEN_BYTES) for name in people}
    if not tokens.items() <= known.items():
        descriptor, partial = tempfile.mkstemp(
            ".new", f"{os.path.basename(path)}.", os.path.dirname(path) or "."
        )
        with open(descriptor, "w") as file:
            json.dump(known | tokens, file)
        os.replace(partial, path)
    return tokens


def _read(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise StoreError(
            f"{path} has no tokens: {error}.", remedy="Remove it; everybody gets a new one.", where=path
        ) from error
    if type(known) is not dict or not all(
        type(token) is str and len(token) > TOKEN_BYTES for token in known.values()
    ):
        raise StoreError(f"{path} has no tokens.", remedy="Remove it; everybody gets a new one.", where=path)
    return known


def person_with(tokens: dict[str, str], token: str) -> str | None:
    """Return whose token this is; None if it is nobody's. The time that it takes tells nothing."""
    found = None
    for name, known in tokens.items():
        if hmac.compare_digest(known.encode(), token.encode()):
            found = name
    return found


HISTORY = 30  # answers of a person that are listed
HOUR = 3600.0
ANSWERS = ("taught", "corrected", "skipped", "unsure", "withdrawn")


class Desk:
    """Gives rows to people, and takes their answers.

    Parameters
    ----------
    ledger : Ledger
    hours : float
        How long a row is kept for a person.
    need : callable
        Is called when rows are used up.
    """

    def __init__(self, ledger: Ledger, hours: float, need: Callable[[], None]):
        self._ledger, self._seconds, self._need = ledger, hours * HOUR, need
        self._ranked = Ranked([], [], set(), 0)
        self.hints = Hints([], {}, {})
        self.judged: deque[Judgement] = deque(maxlen=500)
        self.problem = ""  # why the trainer has failed

    # What the trainer says.

    def hear(self, found: Any) -> None:
        """Take up what the trainer has found."""
        self.problem = getattr(found, "text", "")
        if isinstance(found, Ranked):
            self._ranked = found
        elif isinstance(found, Hints):
            self.hints = found
        elif isinstance(found, Judgement):
            self.judged.append(found)

    # Rows.

    def rows(self, by: str, n: int) -> list[int]:
        """Return up to n rows of this person: those that are open, then others that nobody has."""
        ledger = self._ledger
        ledger.update()
        mine = ledger.asked_of(by)
        while len(mine) < n and (free := self._free(by, n - len(mine))):
            mine += self._lease(free, by)
        return mine[:n]

    def is_over(self, by: str) -> bool:
        """Return whether nothing is left for this person."""
        ledger = self._ledger
        return not ledger.asked_of(by) and len(ledger.excluded(by)) == ledger.n_rows

    def _free(self, by: str, n: int) -> list[int]:
        found = [row for row in self._ranked.rows + self._ranked.more if self._ledger.is_free(row, by)]
        if len(found) <= n:
            self._need()
        return found[:n]

    def _lease(self, rows: list[int], by: str) -> list[int]:
        audit = np.array([row for row in rows if row in self._ranked.audit], np.int64)
        return self._ledger.ask(np.array(rows, np.int64), audit, by, self._seconds)

    def alike(self, by: str, label: str, n: int) -> list[int]:
        """Return up to n rows that the model takes for this class, the most probable first. They are this person's."""
        self._ledger.update()
        hints = self.hints
        if label not in hints.classes:
            return []
        place = hints.classes.index(label)
        likely = [(-p, row) for row, (first, _, p, _) in hints.guesses.items() if first == place]
        mine = set(self._ledger.asked_of(by))
        found = [row for _, row in sorted(likely) if row in mine or self._ledger.is_free(row, by)][:n]
        taken = [row for row in found if row not in mine]
        mine.update(self._lease(taken, by) if taken else [])
        return [row for row in found if row in mine]

    def hint(self, row: int) -> dict[str, Any] | None:
        """Return what the model says of a row."""
        if row not in self.hints.guesses:
            return None
        first, second, p, q = self.hints.guesses[row]
        names = self.hints.classes
        guesses = [{"label": names[first], "p": p}, {"label": names[second], "p": q}]
        return {"guesses": guesses, "order": self.hints.order.get(row, [])}

    # Answers.

    def answer(self, by: str, given: dict[str, Any]) -> None:
        """Record an answer, unless it is recorded; raise DataError if it cannot be."""
        ledger, name, rows = self._ledger, given["id"], given["rows"]
        ledger.update()
        if name in ledger.answers:
            if given["do"] == "label" and not given.get("correct"):  # it is refused for the same rows again
                self._refuse_others(rows, self._parsed(given["label"]))
            return
        answer = ledger.answer(name)
        if given["do"] == "label":
            self._label(by, given)
        elif given["do"] == "skip":
            answer.skip(rows, given.get("why", ""), by)
        elif given["do"] == "unsure":
            answer.unsure(rows, by)
        elif given["do"] == "release":
            mine = set(ledger.asked_of(by))
            answer.withdraw([row for row in rows if row in mine], by)
        else:
            self._undo(by, rows, name)

    def _label(self, by: str, given: dict[str, Any]) -> None:
        """Record a label of rows. Those that have one keep it, unless this person has seen it, and corrects it."""
        ledger, answer, rows = self._ledger, self._ledger.answer(given["id"]), given["rows"]
        label = self._parsed(given["label"])
        seconds = given.get("seconds")
        told = [row for row in rows if row in ledger.labelled]
        if not told:
            answer.teach(rows, [label] * len(rows), by, seconds)
        elif given.get("correct") and len(told) == len(rows):
            answer.correct(rows, [label] * len(rows), by, seconds)
        else:
            if new := [row for row in rows if row not in told]:
                answer.teach(new, [label] * len(new), by, seconds)
            self._refuse_others(told, label)

    def _refuse_others(self, rows: list[int], label: Any) -> None:
        """Raise DataError if one of the rows has another label."""
        ledger = self._ledger
        for row in rows:
            if (told := ledger.labelled.get(row, label)) != label:
                raise DataError(
                    f"row {row} was labelled {told!r}{said(ledger.last(row))}.",
                    remedy="Open it in the list of answers to correct it.",
                    value=told,
                )

    def _parsed(self, text: str) -> Any:
        return parse_labels({0: text}, labels_before(self._ledger), "the page")[0]

    def _undo(self, by: str, rows: list[int], name: str) -> None:
        """Take back what this person has said last of rows, which are theirs again."""
        ledger = self._ledger
        for row in rows:
            last = ledger.last(row) or {}
            if last.get("by") != by:
                raise DataError(f"row {row} is no longer as you left it{said(last)}.")
        ledger.answer(name).withdraw(rows, by)
        ledger.ask(np.array(rows, np.int64), np.zeros(0, np.int64), by, self._seconds)

    # What has happened.

    def state(self, by: str) -> dict[str, Any]:
        """Return how the work stands."""
        ledger = self._ledger
        ledger.update()
        counts = Counter(map(str, ledger.labels + ledger.seed_labels))
        declared = ledger.header["classes"]
        classes = [str(label) for label in declared] if declared else sorted(counts, key=_natural)
        last = self.judged[-1] if self.judged else None
        curve = [(one.n_labels, *one.error) for one in self.judged if one.error is not None]
        return {
            "classes": classes,
            "is_declared": bool(declared),
            "counts": counts,
            "n_labels": len(ledger.labelled),
            "n_rows": ledger.n_rows,
            "per_hour": self._per_hour(),
            "curve": curve,
            "doubts": [] if last is None else [one for one in last.doubts if self._still(one)],
            "next_steps": [] if last is None else last.next_steps,
            "n_learned": self._ranked.n_labels,
            "problem": self.problem,
            "history": self._history(by),
        }

    def _still(self, doubt: tuple[int, str, str]) -> bool:
        return str(self._ledger.labelled.get(doubt[0])) == doubt[1]

    def _per_hour(self) -> dict[str, int]:
        """Return how many rows each person has labelled within the last hour."""
        found: Counter[str] = Counter()
        since = ledgers.clock() - HOUR
        for event in reversed(self._ledger.events):
            if event.get("at", 0.0) < since:
                break
            if kind_of(event) == "taught" and "by" in event:
                found[event["by"]] += len(rows_of(event))
        return found

    def _history(self, by: str) -> list[dict[str, Any]]:
        """Return the last answers of a person, the latest first, one for each row."""
        found: dict[int, dict[str, Any]] = {}
        seen: set[int] = set()
        for event in reversed(self._ledger.events):
            if event.get("by") != by or (kind := kind_of(event)) not in ANSWERS:
                continue
            value = event[kind]
            labels = value["labels"] if kind in ("taught", "corrected") else None
            for i, row in enumerate(rows_of(event)):
                if row not in seen and kind != "withdrawn":
                    label = None if labels is None else str(labels[i])
                    found[row] = {"row": row, "kind": kind, "label": label, "at": event.get("at")}
                seen.add(row)
            if len(found) >= HISTORY:
                break
        return list(found.values())[:HISTORY]


def _natural(text: str) -> tuple[int, float, str]:
    """Sort numbers as numbers."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text
