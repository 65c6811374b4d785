"""A program that trains in a network of its own, whose workers have network namespaces of their own, and cuts cables.

    unshare --net python -m tests.faults.cut_off all FOLDER
    unshare --net python -m tests.faults.cut_off "each other" FOLDER WORKERS silent|refused QUESTION FAN_OUT
    unshare --net python -m tests.faults.cut_off "a relay" FOLDER silent|refused

It leaves the model's file and the log in the folder.
"""

from __future__ import annotations

import ctypes
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from distboost.data import ingest
from tests.faults import traps
from tests.faults.crews import FORKS, Workers, until, work
from tests.faults.rounds import Slowly, at
from tests.faults.stages import QUESTIONS, exchange
from tests.faults.trainings import BLOCK, TRAININGS, Data, fit
from tests.faults.traps import Trap

CLONE_NEWNET = 0x40000000
NETWORK = "10.77.0"
TIMEOUT, SHORT = 3.0, 1.0


def ip(*arguments: object, inside: tuple[str, ...] = ()) -> None:
    subprocess.run([*inside, "ip", *map(str, arguments)], check=True, timeout=10)


def work_apart(number: int, *arguments) -> None:
    """A worker's process, in a namespace that is to be connected from outside."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    until(lambda: "eth0" in dict(map(reversed, socket.if_nameindex())), "a link")
    ip("address", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
    for link in ("lo", "eth0"):
        ip("link", "set", link, "up")
    work(*arguments)


class Apart(Workers):
    """Workers that have a cable each to one bridge, where the scheduler and this process are."""

    def __init__(self, folder: Path):
        ip("link", "add", "hub", "type", "bridge")
        ip("address", "add", f"{NETWORK}.1/24", "dev", "hub")
        for link in ("lo", "hub"):
            ip("link", "set", link, "up")
        super().__init__(folder, f"{NETWORK}.1")

    def begin(self, n: int = 1, **options) -> list[str]:
        begun = super().begin(n, **options)
        for name in begun:
            until(lambda name=name: self._is_apart(name), "a namespace")
            cable = ("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", self.pid(name))
            ip(*cable)
            ip("link", "set", name, "master", "hub", "up")
        return begun

    def _process(self, *arguments):
        return FORKS.Process(target=work_apart, args=(len(self._processes) + 2, *arguments), daemon=True)

    def _is_apart(self, name: str) -> bool:
        ours, theirs = (os.readlink(f"/proc/{process}/ns/net") for process in ("self", self.pid(name)))
        return ours != theirs


def cut_from_all(folder: Path) -> None:
    """One worker, for a while, after which it takes part again, and for good."""
    data, workers = Data(folder), Apart(folder)
    workers.restore(3)
    name = min(workers.there())
    cut, mend = (lambda to=to: ip("link", "set", name, to) for to in ("down", "up"))
    # It holds its old blocks as soon as it answers, but takes part only from here on.
    back = Slowly(31, lambda: "1 workers have joined" in (folder / "log").read_text())
    gone = Slowly(31, lambda: back.done and (cut() or True))
    fit(
        TRAININGS["long"],
        data,
        workers.client,
        folder,
        callbacks=[at(10, cut), at(30, mend), back, gone],
        wait_for_workers=3,  # one that joins later would count as the one that comes back
        worker_timeout=TIMEOUT,
    )
    assert back.done
    assert gone.done
    workers.close()


def cut(workers: Apart, how: str) -> None:
    """Two workers from each other: packets vanish, or the first one has no route."""
    first, second = sorted(workers.there())[:2]
    if how == "refused":
        address = urlsplit(workers.there()[second]).hostname
        inside = ("nsenter", "--net", "--target", str(workers.pid(first)))
        ip("route", "add", "unreachable", f"{address}/32", inside=inside)
        return
    for name in (first, second):
        ip("link", "set", name, "type", "bridge_slave", "isolated", "on")


def cut_between(folder: Path, n_workers: str, how: str, number: str, fan_out: str) -> None:
    """Two workers, before a question; the scheduler and this process reach both."""
    exchange(pytest.MonkeyPatch(), fan_out=int(fan_out))
    data, workers = Data(folder), Apart(folder)
    workers.restore(int(n_workers))
    traps.set_up(str(folder), QUESTIONS, {"question": Trap(int(number), what=lambda: cut(workers, how))})
    all_there = {"wait_for_workers": int(n_workers), "worker_timeout": SHORT}
    fit(TRAININGS["levels"], data, workers.client, folder, **all_there)
    workers.close()


def cut_relay(folder: Path, how: str) -> None:
    """Two workers, of which the first relays questions to the second."""
    exchange(pytest.MonkeyPatch(), pays=False, fan_out=1)
    data, workers = Data(folder), Apart(folder)
    workers.restore(3)
    callbacks = [at(3, lambda: cut(workers, how))]
    fit(TRAININGS["levels"], data, workers.client, folder, callbacks=callbacks, wait_for_workers=3)
    workers.close()


def main(kind: str, folder: Path, *how: str) -> None:
    logging.basicConfig(filename=folder / "log", level=logging.WARNING)
    logging.getLogger("distboost").setLevel(logging.INFO)
    ingest.BLOCK_ROWS = BLOCK
    FORKS.set_forkserver_preload(["tests.warm"])
    {"all": cut_from_all, "each other": cut_between, "a relay": cut_relay}[kind](folder, *how)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
