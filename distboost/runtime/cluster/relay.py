"""Questions to many workers go out along a tree of workers, and their answers are combined on the way back.

So neither the coordinator nor any worker sends or receives more than a few messages per question, and a large table of sums
arrives once, however many workers have added to it. If a worker of the tree does not answer, nor does the tree: the coordinator
then asks each worker itself.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from distributed import Worker
from distributed.comm.core import CommClosedError
from distributed.protocol.pickle import dumps, loads
from distributed.protocol.serialize import to_serialize

from distboost.runtime.cluster.placement import combined

SMALL = 2**16  # bytes


def packed(value: Any) -> Any:
    """Return a value in the form in which a message carries it; `unpacked` is the inverse.

    Dask serializes and reads each array of a value by itself, without copying it. For the many small arrays of a question or of
    an answer this takes most of the time of a message: so they are sent as one string of bytes.
    """
    arrays: list[pickle.PickleBuffer] = []
    pickled = dumps(value, buffer_callback=arrays.append)
    views = [array.raw() for array in arrays]
    if len(pickled) + sum(view.nbytes for view in views) > SMALL:
        wrap: Any = to_serialize  # it has no types
        return wrap(value)
    return pickle.dumps((pickled, [(bytes if view.readonly else bytearray)(view) for view in views]))


def unpacked(found: Any) -> Any:
    """Return the value of a message that was received."""
    if not isinstance(found, bytes):  # Dask has restored it
        return found
    pickled, arrays = pickle.loads(found)
    return loads(pickled, buffers=arrays)


Member = TypeVar("Member")


class Peer(NamedTuple):
    """A session on a worker, as others address it."""

    address: str
    session: str
    token: str


class UnansweredError(Exception):
    """A session below this one has not answered."""


def subtrees(members: Sequence[Member], fan_out: int) -> list[list[Member]]:
    """Divide members into at most `fan_out` subtrees. The first member of each asks the others.

    >>> subtrees(range(5), 2)
    [[0, 2, 4], [1, 3]]
    """
    n = min(fan_out, len(members))
    return [list(members[k::n]) for k in range(n)]


async def gathered(
    own: Awaitable[Any], forward: Callable[[list[Peer]], Awaitable[Any]], members: list[Peer], fan_out: int
) -> Any:
    """Return the combined answer of this session and of all members.

    Parameters
    ----------
    own : awaitable
        The answer of this session.
    forward : callable
        forward(subtree) returns the answer of a subtree.
    members : list of Peer
    fan_out : int
        The largest number of subtrees.

    Raises
    ------
    UnansweredError
        As soon as it is known that a member does not answer.
    """
    waiting = [asyncio.ensure_future(own)]
    waiting += [asyncio.ensure_future(forward(subtree)) for subtree in subtrees(members, fan_out)]
    found = None
    try:
        for each in asyncio.as_completed(waiting):
            answer = await each
            if getattr(answer, "failed", False):
                return answer
            found = combined(found, answer)
        return found
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)  # asyncio warns of errors that nobody looks at


def forwarder(
    worker: Worker, handler: str, method: str, *, arguments: Sequence[Any], fan_out: int, timeout: float
) -> Callable[[list[Peer]], Awaitable[Any]]:
    """Return a function that asks a subtree of sessions on other workers.

    It raises UnansweredError if the head of the subtree does not respond for `timeout` seconds. An answer may take longer.
    """
    sent = packed(arguments)

    async def ask(head: Peer, members: list[Peer]) -> Any:
        reply = await getattr(worker.rpc(head.address), handler)(
            session=head.session,
            token=head.token,
            method=method,
            arguments=sent,
            members=members,
            fan_out=fan_out,
            timeout=timeout,
        )
        if reply is None or "gone" in reply:
            raise UnansweredError(f"{head.address} has no session, or one below it has not answered")
        if "error" in reply:
            raise unpacked(reply["error"])
        return unpacked(reply["value"])

    async def forward(subtree: list[Peer]) -> Any:
        head, *members = subtree
        asked = asyncio.ensure_future(ask(head, members))
        try:
            while not (await asyncio.wait([asked], timeout=timeout / 2))[0]:
                await asyncio.wait_for(worker.rpc(head.address).identity(), timeout / 2)
            return await asked
        except (OSError, CommClosedError, TimeoutError) as error:
            raise UnansweredError(f"{head.address}: {error!r}") from error
        finally:
            asked.cancel()

    return forward
