"""What people wrote into a file of labels, recorded in the log."""

from __future__ import annotations

import re
from typing import Any

from distboost.active.label_texts import labels_before, parse_labels
from distboost.active.ledger import Ledger
from distboost.active.records import said
from distboost.errors import DataError
from distboost.io.text import visible

UNSURE = "?"
_SKIP = re.compile(r"-(?:\s+(.*))?", re.DOTALL)  # perhaps with a reason


def record(
    ledger: Ledger, texts: dict[int, str], place: str, *, by: str | None, correct: bool, any_row: bool = False
) -> str:
    """Record the answers of a file, and return what was recorded, as text; raise DataError and record nothing if one is invalid.

    `texts` has the text of each row's label: "" for those without an answer, "?" for those that the person cannot tell, "-" for
    those that are to be skipped, unless these are classes.
    """
    earlier = labels_before(ledger)
    labels, unsure, skipped = answers(texts, earlier)
    known = parse_labels(labels, earlier, place)
    for row in {**known, **dict.fromkeys(unsure), **skipped}:
        if row >= ledger.n_rows or (not any_row and ledger.last(row) is None):
            what = "is not in the pool" if any_row else "was not asked for"
            raise DataError(
                f"{place} labels row {row}, which {what}.",
                remedy="Check that --log is the log of this file. Nothing of it was recorded.",
                where=place,
            )
    told = ledger.labelled
    new = {row: label for row, label in known.items() if row not in told}
    second = {} if correct else {row: known[row] for row in known if ledger.asks_again(row, by)}
    doubtful = set(ledger.conflicts) if correct else set()
    other = {
        row: label
        for row, label in known.items()
        if row in told.keys() - second.keys()
        and (row in doubtful if told[row] == label else correct or ledger.opinions[row].get(by) != label)
    }
    if other and not correct:
        row = min(other, key=list(known).index)
        raise DataError(
            f"{place} labels row {row} as {other[row]!r}, but its label is already {told[row]!r}{said(ledger.origin(row))}.",
            remedy="Correct the file, or add --correct. Nothing of it was recorded.",
            where=place,
            value=other[row],
        )
    first, unseen = not told, sorted({*second.values(), *new.values(), *other.values()} - set(told.values()))
    ledger.check_labels({"rows": list(known), "labels": list(known.values())})
    reasons = {row: why for row, why in skipped.items() if row not in told and row not in ledger.skipped}
    unsure = [row for row in unsure if row not in told and by not in ledger.undecided.get(row, ())]
    ledger.teach([*new, *second], [*new.values(), *second.values()], by)
    ledger.correct(list(other), list(other.values()), by)
    for why in sorted(set(reasons.values())):
        ledger.skip([row for row in reasons if reasons[row] == why], why, by)
    ledger.unsure(unsure, by)
    more = {"second opinions": second, "corrected": other, "skipped": reasons, "unsure": unsure}
    text = "".join(f", {len(rows)} {what}" for what, rows in more.items() if rows)
    text = f"{len(new)} labels told{text}, {len(told)} in all; {len(ledger.asked)} rows are open."
    if unseen:
        text += f" {'Classes' if first else 'New classes'}: {', '.join(map(visible, unseen))}."
    return text


def answers(texts: dict[int, str], earlier: list[Any]) -> tuple[dict[int, str], list[int], dict[int, str]]:
    """Return the labels of a file, the rows that the person cannot tell, and those to skip with the reason."""
    classes = set(map(str, earlier))
    labels, unsure, skipped = {}, [], {}
    for row, text in texts.items():
        skip = _SKIP.fullmatch(text)
        if text == UNSURE and text not in classes:
            unsure.append(row)
        elif skip and text not in classes and "-" not in classes:
            skipped[row] = skip[1] or ""
        elif text:
            labels[row] = text
    return labels, unsure, skipped


def untold(ledger: Ledger, texts: dict[int, str], place: str) -> dict[int, str]:
    """Return the answers of a file that the log does not have."""
    earlier = labels_before(ledger)
    labels, unsure, skipped = answers(texts, earlier)
    known = parse_labels({row: labels[row] for row in labels.keys() & ledger.labelled.keys()}, earlier, place)
    told = {
        row for row, label in known.items() if label in (ledger.labelled[row], *ledger.opinions[row].values())
    }
    told |= {row for row in unsure if row in ledger.undecided or row in ledger.labelled}
    told |= {row for row in skipped if row in ledger.skipped or row in ledger.labelled}
    return {row: text for row, text in texts.items() if text and row not in told}
