"""The people who label, each with a token that nobody can guess. The tokens outlive the server, so that open pages stay valid."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Sequence

from distboost.active.records import is_person
from distboost.errors import DataError, StoreError

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
