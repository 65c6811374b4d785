"""What goes on between the rounds of a training run."""

from __future__ import annotations

import time
from collections.abc import Callable

from distributed import Client

from distboost import Progress
from distboost.runtime.cluster.worker_session import open_sessions

PAUSE = 0.1  # seconds


def at(number: int, do: Callable[[], object]) -> Callable[[Progress], None]:
    """A callback that does something after a round."""

    def callback(progress: Progress) -> None:
        if progress.round == number:
            do()

    return callback


class Slowly:
    """A callback that makes a training run take its time from a round on, until something has come about."""

    def __init__(self, number: int, come_about: Callable[[], object]):
        self.number, self.come_about = number, come_about
        self.done = False

    def __call__(self, progress: Progress) -> None:
        if progress.round >= self.number and not self.done:
            self.done = bool(self.come_about())
            time.sleep(0 if self.done else PAUSE)


def blocks_held(client: Client) -> dict[str, int]:
    """The blocks of each worker that answers."""

    def count() -> int:
        held = [session.host._shard.held for session in open_sessions()]
        return sum(len(holdings.resident) + len(holdings.streamed) for holdings in held)

    return client.run(count, on_error="ignore")
