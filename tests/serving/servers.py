"""A server of the page in a process of its own, and people who call it as the page does."""

from __future__ import annotations

import itertools
import json
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from distboost.active.ledger import Ledger
from tests.ports import free_ports
from tests.programs import Program

COMMAND = "from distboost.cli import main; main()"
DEADLINE = 90.0  # seconds
_NUMBERS = itertools.count()


class Server:
    """`distboost active serve`, on a port that stays the same when it is started again."""

    def __init__(self, log: Path, *options: object, people: str = "ann,bob"):
        [port] = free_ports(1)
        self.log, self.address = log, f"http://127.0.0.1:{port}"
        self._arguments = ("active", "serve", "--log", log, "--port", port, "--people", people, *options)
        self._n = people.count(",") + 1
        self.start()

    def start(self) -> None:
        self.process = Program(COMMAND, *self._arguments)
        self.urls = {}
        for _ in range(self._n):
            line = self.process.stdout.readline()
            assert line, self.process.communicate(timeout=10)[1]
            name, _, url = line.strip().partition(": ")
            self.urls[name] = url

    def person(self, name: str) -> Person:
        return Person(self.address, self.urls[name].partition("#")[2])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        self.process.stdout.close()
        self.process.stderr.close()

    @property
    def ledger(self) -> Ledger:
        return Ledger.from_log(self.log)


class Person:
    """Somebody with a token."""

    def __init__(self, address: str, token: str):
        self._address, self._token = address, token

    def request(self, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._address}/api/{path}", data, headers)
        return urllib.request.urlopen(request, timeout=DEADLINE)

    def get(self, path: str) -> Any:
        with self.request(path) as answer:
            return json.load(answer)

    def status(self, path: str, body: Any = None) -> int:
        try:
            with self.request(path, body) as answer:
                return answer.status
        except HTTPError as error:
            return error.code

    def rows(self, n: int) -> list[int]:
        """So many rows, once the server has them."""
        end = time.monotonic() + DEADLINE
        while len(found := self.get(f"rows?n={n}")["open"]) < n:
            assert time.monotonic() < end, found
        return found

    def answer(self, *answers: dict[str, Any]) -> dict[str, str]:
        """Those that were refused, and why."""
        with self.request("answers", {"answers": [*answers]}) as answer:
            return json.load(answer)["refused"]

    def until(self, condition: Any) -> dict[str, Any]:
        """The state in which a condition holds."""
        end = time.monotonic() + DEADLINE
        while not condition(state := self.get("state")):
            assert time.monotonic() < end, state
            time.sleep(0.05)
        return state


def label(rows: list[int], text: object, **more: Any) -> dict[str, Any]:
    return {"id": f"answer-{next(_NUMBERS)}", "do": "label", "rows": rows, "label": str(text), **more}


def other(do: str, rows: list[int], **more: Any) -> dict[str, Any]:
    return {"id": f"answer-{next(_NUMBERS)}", "do": do, "rows": rows, **more}
