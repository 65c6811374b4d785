"""The server of the page: it gives rows to people and writes their answers to the log, while another process trains."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from socket import AF_INET, AF_INET6, create_server, gethostname
from threading import Thread
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.locks import Condition
from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler

from distboost.active.query import QueryByCommittee
from distboost.active.records import is_answer, is_time
from distboost.errors import DataError, DistboostError, StoreError
from distboost.io.files import read
from distboost.io.options import options_in_force
from distboost.io.text import visible
from distboost.serving.cards import CardMaker
from distboost.serving.companions import companion_at, picture
from distboost.serving.desk import Desk, person_with, tokens_of
from distboost.serving.training import Failed, train

STATIC = os.path.join(os.path.dirname(__file__), "static")
MOST_BYTES = 2**20  # of a request
MOST_ROWS = 500  # of a request
BODY_TIMEOUT = 30.0  # seconds that a request may take to arrive
PATIENCE = 8.0  # seconds that a page waits for the first rows
RESTART = 5.0  # seconds after which a trainer that was killed is started again
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Page:
    """What the page shows beside the rows.

    Attributes
    ----------
    people : sequence of str
    show : str or None
        A CSV or Parquet file, with a line for each row of the pool.
    image : str or None
        The shape of an image, or where images are.
    guidelines : str or None
        A text file.
    guess : {"after", "before", "never"}
        When the model's guess is shown.
    hours : float
        How long a row is kept for a person.
    """

    people: Sequence[str]
    show: str | None = None
    image: str | None = None
    guidelines: str | None = None
    guess: str = "after"
    hours: float = 1.0


class TrainerProcess:
    """The process that trains, started again if it dies.

    Parameters
    ----------
    log : str
    hear : callable
        hear(found) takes up what it has found.
    """

    def __init__(self, log: str, hear: Callable[[Any], None]):
        self._log, self._hear = log, hear
        self._pipe: Connection | None = None
        self._asked = False  # for rows

    def start(self) -> None:
        """Start the process."""
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        context.Process(target=train, args=(theirs, self._log, options_in_force()), daemon=True).start()
        theirs.close()
        self._pipe, self._asked = ours, False
        # A thread waits for what comes: the process may take its time to say it.
        Thread(target=self._listen, args=(ours, IOLoop.current()), daemon=True).start()

    def need(self) -> None:
        """Ask for more rows, once."""
        if self._pipe is not None and not self._asked:
            self._asked = True
            with suppress(OSError):
                self._pipe.send(None)

    def _listen(self, pipe: Connection, loop: IOLoop) -> None:
        with suppress(EOFError, OSError):
            while True:
                loop.add_callback(self._take, pipe.recv())
        loop.add_callback(self._restart)

    def _take(self, found: Any) -> None:
        self._asked = False
        self._hear(found)

    def _restart(self) -> None:
        self._pipe = None
        self._hear(Failed("The process that trains has ended. It is started again."))
        IOLoop.current().call_later(RESTART, self.start)


class Service:
    """All that the handlers share."""

    def __init__(self, learner: QueryByCommittee, log: str, page: Page):
        self.tokens = tokens_of(f"{log}.tokens", page.people)
        pool = learner.pool
        companion = None if page.show is None else companion_at(page.show, pool.n_rows)
        self.maker = CardMaker(pool, learner.home, companion, page.image, learner.random_state)
        self.ledger = learner.ledger
        self.news = Condition()  # of the trainer
        self.trainer = TrainerProcess(log, self._hear)
        self.desk = Desk(self.ledger, page.hours, self.trainer.need)
        self.folder = os.path.dirname(os.path.abspath(page.show or ""))
        self.thread = ThreadPoolExecutor(1, "cards")
        self.setup = {
            **self.maker.setup,
            "name": visible(os.path.basename(log)),
            "guidelines": "" if page.guidelines is None else read(page.guidelines).decode("utf-8", "replace"),
            "guess": page.guess,
        }

    def _hear(self, found: Any) -> None:
        self.desk.hear(found)
        self.news.notify_all()

    async def cards(self, rows: list[int]) -> list[dict[str, Any]]:
        """Return the cards of rows, made while others are served."""
        labelled = self.ledger.labelled.copy()
        made = await IOLoop.current().run_in_executor(self.thread, self.maker.cards, rows, labelled)
        for card in made:
            told = self.ledger.labelled.get(card["row"])
            card |= {"hint": self.desk.hint(card["row"]), "label": None if told is None else str(told)}
        return made


class PageFile(StaticFileHandler):
    """The files of the page, which hold no data."""

    def set_extra_headers(self, path: str) -> None:
        """Let the page load nothing from elsewhere, and run no code of others."""
        for name, value in HEADERS.items():
            self.set_header(name, value)


class PageCall(RequestHandler):
    """A call of the page, by a person with a token."""

    service: Service
    by: str

    def initialize(self, service: Service) -> None:
        """Take what all share."""
        self.service = service

    def set_default_headers(self) -> None:
        """Let nobody keep what is sent, or take it for a page."""
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        """Refuse whoever has no token."""
        scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
        found = person_with(self.service.tokens, token) if scheme == "Bearer" else None
        if found is None:
            raise HTTPError(401)
        self.by = found

    def write_error(self, status_code: int, **about: Any) -> None:
        """Send the message of an error that is meant for people."""
        error = about.get("exc_info", (None, None, None))[1]
        text = str(error) if isinstance(error, DistboostError) else self._reason
        self.finish({"error": text})

    def number(self, name: str, most: int) -> int:
        """Return a whole number of the query."""
        text = self.get_query_argument(name, "")
        if not (text.isascii() and text.isdecimal() and int(text) <= most):
            raise HTTPError(400)
        return int(text)


class SetupCall(PageCall):
    """What holds for the whole work."""

    def get(self) -> None:
        self.finish({**self.service.setup, "by": self.by})


class StateCall(PageCall):
    """How the work stands."""

    def get(self) -> None:
        self.finish(self.service.desk.state(self.by))


class RowsCall(PageCall):
    """The next rows of this person, without those that the page has."""

    async def get(self) -> None:
        desk, n = self.service.desk, self.number("n", MOST_ROWS)
        had = set(self.get_query_argument("have", "").split(",")) - {""}
        while True:
            rows = desk.rows(self.by, n)
            new = [row for row in rows if str(row) not in had]
            is_over = desk.is_over(self.by)
            if new or had or is_over or not await self.service.news.wait(timedelta(seconds=PATIENCE)):
                break
        cards = await self.service.cards(new)
        hints = {row: hint for row in rows if (hint := desk.hint(row)) is not None}
        self.finish({"open": rows, "is_over": is_over, "cards": cards, "hints": hints})


class CardCall(PageCall):
    """The card of a row, to look at again."""

    async def get(self) -> None:
        row = self.number("row", self.service.ledger.n_rows - 1)
        self.finish({"cards": await self.service.cards([row])})


class AlikeCall(PageCall):
    """Rows that the model takes for one class."""

    async def get(self) -> None:
        rows = self.service.desk.alike(self.by, self.get_query_argument("label"), self.number("n", MOST_ROWS))
        self.finish({"cards": await self.service.cards(rows)})


class PictureCall(PageCall):
    """A picture that a column names."""

    async def get(self) -> None:
        row, column = self.number("row", self.service.ledger.n_rows - 1), self.number("column", MOST_ROWS)
        found = await IOLoop.current().run_in_executor(self.service.thread, self._picture, row, column)
        if found is None:
            raise HTTPError(404)
        self.set_header("Content-Type", found[0])
        self.finish(found[1])

    def _picture(self, row: int, column: int) -> tuple[str, bytes] | None:
        name = self.service.maker.picture_name(row, column)
        return None if name is None else picture(self.service.folder, name)


class AnswersCall(PageCall):
    """Answers, of which each is recorded once, in their order."""

    def post(self) -> None:
        try:
            given = json.loads(self.request.body)["answers"]
        except (ValueError, KeyError, TypeError) as error:
            raise HTTPError(400) from error
        if type(given) is not list or not all(map(_is_answer, given)):
            raise HTTPError(400)
        refused = {}
        for one in given:
            try:
                self.service.desk.answer(self.by, one)
            except StoreError:
                raise  # the page keeps it, and sends it again
            except DataError as error:
                refused[one["id"]] = str(error)
        self.finish({"refused": refused, "n_labels": len(self.service.ledger.labelled)})


def _is_answer(given: Any) -> bool:
    """Whether this has the form of an answer."""
    if type(given) is not dict or not is_answer(given.get("id")):
        return False
    rows, label = given.get("rows"), given.get("label")
    return (
        given.get("do") in ("label", "skip", "unsure", "undo", "release")
        and type(rows) is list
        and 0 < len(rows) <= MOST_ROWS
        and all(type(row) is int and 0 <= row < 2**63 for row in rows)
        and (given["do"] != "label" or (type(label) is str and label.strip() == label != ""))
        and type(given.get("why", "")) is str
        and (given.get("seconds") is None or is_time(given["seconds"]))
    )


def application(service: Service) -> Application:
    """Return the handlers of all paths."""
    calls: dict[str, type[PageCall]] = {
        "setup": SetupCall,
        "state": StateCall,
        "rows": RowsCall,
        "card": CardCall,
        "alike": AlikeCall,
        "picture": PictureCall,
        "answers": AnswersCall,
    }
    return Application(
        [
            *((f"/api/{name}", kind, {"service": service}) for name, kind in calls.items()),
            (r"/(.*)", PageFile, {"path": STATIC, "default_filename": "index.html"}),
        ]
    )


def serve(
    learner: QueryByCommittee,
    log: str,
    page: Page,
    *,
    port: int = 8765,
    host: str = "127.0.0.1",
    ready: Callable[[dict[str, str]], None] = lambda urls: None,
) -> None:
    """Serve the page until the process is interrupted or terminated.

    Parameters
    ----------
    learner : QueryByCommittee
        That of the log, which says where its pool is.
    log : str
        Beside it is a file of tokens.
    page : Page
    port : int, default=8765
        0: any that is free.
    host : str, default="127.0.0.1"
        The address to listen at. Others than that of this machine are not encrypted.
    ready : callable, optional
        ready(urls) is called when the page can be reached, with the URL of each person.

    Raises
    ------
    distboost.errors.DataError
        If the port is taken, or a file does not fit to the pool.
    """
    asyncio.run(_serve(Service(learner, log, page), port, host, ready))


async def _serve(service: Service, port: int, host: str, ready: Callable[[dict[str, str]], None]) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    server = HTTPServer(
        application(service),
        max_body_size=MOST_BYTES,
        max_buffer_size=2 * MOST_BYTES,
        body_timeout=BODY_TIMEOUT,
    )
    try:
        listening = create_server((host, port), family=AF_INET6 if ":" in host else AF_INET, backlog=128)
    except OSError as error:
        raise DataError(
            f"the page cannot be served at {host}:{port}: {error.strerror}.", remedy="Pass another port."
        ) from error
    listening.setblocking(False)
    server.add_socket(listening)
    bound = listening.getsockname()[1]
    service.trainer.start()
    shown = gethostname() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    ready({name: f"http://{shown}:{bound}/#{token}" for name, token in service.tokens.items()})
    try:
        await stopped.wait()
    finally:
        server.stop()
        service.thread.shutdown(cancel_futures=True)
