"""A worker's part in the exchange of histograms.

Each worker sums the histograms of its rows and sends each *owner* the bins of the features that it owns. The owner adds what
all workers send, and searches the best splits of its features. So the coordinator receives best splits only, and no process
holds the sums of all features over all rows.

A question is exchanged in numbered attempts. If a worker is lost, what it has sent may have reached some owners and not others.
Then the parts without an answer are exchanged again in a new attempt, and messages of the failed one are refused. A worker
computes its own sums once for each question: later attempts only send them again.

This module does no I/O: `worker_exchange` sends its pieces over Dask, and the tests send them in virtual time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from distboost.kernels import exchange, simd
from distboost.rows.messages import Expanded, Expansion, HistogramQuestion, UpdateQuestion
from distboost.rows.reduced import Reduced
from distboost.runtime.block import Key
from distboost.runtime.shard import Shard
from distboost.splits.tree_histograms import TreeHistograms

PIECE_BYTES = 2**23  # of sums in one message, unless one node has more


class Part(NamedTuple):
    """Features of a tree, and the session that owns their histograms."""

    number: int
    first: int  # of its features, by their position among the tree's
    stop: int
    owner: int


@dataclass(frozen=True)
class Attempt:
    """An attempt at the exchange of a question.

    Attributes
    ----------
    number : int
        Later attempts have larger numbers.
    question : int
        The number of the question.
    keep : int
        Sums of questions with a smaller number are no longer needed.
    features : ndarray of shape (m,), int64
        The tree's features, ascending.
    parts : tuple of Part
        The parts that have no answer yet.
    contributors : frozenset of int
        The sessions that have rows. They send their sums to the owners of all parts.
    n_channels : int
        Channels of the histograms.
    peers : mapping of int to object
        How the owners' sessions are addressed.
    timeout : float
        Seconds within which a piece arrives and is added.
    """

    number: int
    question: int
    keep: int
    features: np.ndarray
    parts: tuple[Part, ...]
    contributors: frozenset[int]
    n_channels: int
    peers: Mapping[int, Any]
    timeout: float

    def features_of(self, part: Part) -> np.ndarray:
        """Return the features of a part."""
        return self.features[part.first : part.stop]


class Piece(NamedTuple):
    """A contributor's sums of some nodes over the bins of a part."""

    attempt: int
    part: int
    contributor: int
    first: int  # of the nodes, by their position in the question
    sums: np.ndarray  # (n_nodes, n_bins, n_channels) int32, or int64 if they do not fit


class Reply(NamedTuple):
    """A session's answer to an attempt."""

    totals: np.ndarray  # (n_totals,) int64: of its rows, for a new tree's statistic
    losses: Reduced | None  # of its rows, for an update
    answers: dict[int, Expanded]  # of the parts that it owns
    unreachable: int | None = None  # an owner that its sums did not reach: the attempt has failed


@dataclass
class Contribution:
    """The answer of this process's rows to a question, before it is exchanged."""

    memory: np.ndarray  # (n,) int64, in which `sums` lies
    sums: np.ndarray  # (n_nodes, total bins, channels with padding) int64
    covered: set[Key] = field(default_factory=set)
    totals: np.ndarray | None = None
    losses: Reduced | None = None


class OwnedPart:
    """The histograms of the features that this process owns.

    Parameters
    ----------
    features : ndarray of shape (m,), int64
    tree : TreeHistograms
        Of these features alone.
    """

    def __init__(self, features: np.ndarray, tree: TreeHistograms):
        self.features, self._tree = features, tree
        self._lock = threading.Lock()
        self._attempt = self._question = 0
        self._answer: Expanded | None = None

    def begin(self, attempt: int, question: int, expansion: Expansion, n_pieces: int) -> None:
        """Clear the sums of the question's nodes: `n_pieces` will be added. An answer that is known already stays."""
        with self._lock:
            self._attempt = attempt
            if question != self._question:
                self._question, self._answer = question, None
                if expansion.root is not None:
                    own = np.arange(len(self.features))
                    expansion = replace(expansion, root=expansion.root._replace(features=own))
                self._slots = self._tree.prepare(expansion)
                self._expansion = expansion
            if self._answer is None:
                self._tree.histograms.pool[self._slots] = 0
                self._missing, self._received = n_pieces, set[tuple[int, int]]()
            else:
                self._missing = 0

    def add(self, piece: Piece) -> bool:
        """Add a piece, unless it was added before; return whether it is of the current attempt.

        The attempt is compared under the lock: another one may begin at any moment, and may count other rows.
        """
        with self._lock:
            if piece.attempt != self._attempt:
                return False
            origin = piece.contributor, piece.first
            if self._missing and origin not in self._received:
                slots = np.array(self._slots[piece.first :][: len(piece.sums)], np.int64)
                exchange.add(piece.sums, slots, self._tree.histograms.pool)
                self._received.add(origin)
                self._missing -= 1
            return True

    @property
    def is_complete(self) -> bool:
        """Whether all pieces have been added."""
        return not self._missing

    def answer(self) -> Expanded:
        """Return the answer to the question, whose pieces have all been added."""
        with self._lock:
            if self._missing:
                raise RuntimeError("the sums are not complete: another attempt has begun")
            if self._answer is None:
                self._answer = self._tree.answer(self._expansion).of_features(self.features)
            return self._answer

    def search(self, node: int, context: np.ndarray) -> Expanded:
        """Find the best split of a node."""
        with self._lock:
            return Expanded(None, self._tree.search([node], context)).of_features(self.features)


class Exchange:
    """The exchange, as one process takes part in it.

    Parameters
    ----------
    shard : Shard
        The rows of this process.
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    """

    def __init__(self, shard: Shard, n_bins: np.ndarray):
        self._shard, self._n_bins = shard, n_bins
        self._contributions: dict[int, Contribution] = {}
        self._memory = np.empty(0, np.int64)  # of sums that are no longer needed
        self._parts: dict[int, OwnedPart] = {}
        self._own: list[int] = []  # the parts of the current attempt that this process owns
        self._attempt: Attempt | None = None
        self._changing, self._computing = threading.Lock(), threading.Lock()

    # The owner.

    def begin(self, attempt: Attempt, expansion: Expansion, session: int) -> None:
        """Begin an attempt: from now on, pieces of earlier ones are refused."""
        with self._changing:
            former, self._attempt = self._attempt, attempt
            own = [part for part in attempt.parts if part.owner == session]
            is_new = former is None or former.question != attempt.question
            if is_new and expansion.root is not None and not expansion.restored:
                self._parts = {
                    part.number: self._parts[part.number] for part in own if self._holds(attempt, part)
                }
            for part in own:
                if not self._holds(attempt, part):
                    tree = TreeHistograms(
                        self._n_bins[attempt.features_of(part)], self._shard.n_classes, self._shard.threads
                    )
                    self._parts[part.number] = OwnedPart(attempt.features_of(part), tree)
                n_pieces = len(attempt.contributors) * len(self.spans(attempt, part, len(expansion.build)))
                self._parts[part.number].begin(attempt.number, attempt.question, expansion, n_pieces)
            self._own = [part.number for part in own]

    def _holds(self, attempt: Attempt, part: Part) -> bool:
        """Whether there is memory for the histograms of a part."""
        known = self._parts.get(part.number)
        return known is not None and np.array_equal(known.features, attempt.features_of(part))

    def receive(self, piece: Piece) -> bool:
        """Add a piece to the sums of its part; return whether all pieces of this process's parts have been added."""
        with self._changing:
            part, own = self._parts.get(piece.part), [self._parts[number] for number in self._own]
        return part is not None and part.add(piece) and all(other.is_complete for other in own)

    def answers(self) -> dict[int, Expanded]:
        """Return the answers of this process's parts."""
        with self._changing:
            own = {number: self._parts[number] for number in self._own}
        return {number: part.answer() for number, part in own.items()}

    def search(self, parts: Collection[int], node: int, context: np.ndarray) -> dict[int, Expanded]:
        """Find the best splits of a node in some of this process's parts."""
        return {number: self._parts[number].search(node, context) for number in parts}

    # The contributor.

    def contribute(
        self, attempt: Attempt, question: HistogramQuestion | UpdateQuestion, n_nodes: int
    ) -> Contribution:
        """Sum the histograms of the rows that this process holds and that the question has not covered yet."""
        with self._computing:
            for number in [number for number in self._contributions if number < attempt.keep]:
                self._memory = self._contributions.pop(number).memory
            keys = self._shard.held.keys()
            known = self._contributions.get(attempt.question)
            todo = keys - known.covered if known else keys
            if known is not None and not todo:
                return known
            memory, pool = self._room(n_nodes, simd.padded(attempt.n_channels))
            found = Contribution(memory, pool, keys)
            slots, only = np.arange(n_nodes), None if known is None else todo
            if isinstance(question, UpdateQuestion):
                found.losses, found.totals = self._shard.update(question, pool, slots, only)
            else:
                found.totals = self._shard.histogram(question, pool, slots, only)
            if known is not None:
                found.sums += known.sums
                found.totals = found.totals + known.totals
                if found.losses is not None and known.losses is not None:
                    found.losses = found.losses.combined(known.losses)
            self._contributions[attempt.question] = found
            return found

    def _room(self, n_nodes: int, n_channels: int) -> tuple[np.ndarray, np.ndarray]:
        """Return memory and an array for sums in it, whose content is arbitrary."""
        shape = n_nodes, int(self._shard.offsets[-1]), n_channels
        memory, self._memory = self._memory, np.empty(0, np.int64)
        if memory.size < math.prod(shape):
            memory = np.empty(math.prod(shape), np.int64)
        return memory, memory[: math.prod(shape)].reshape(shape)

    def spans(self, attempt: Attempt, part: Part, n_nodes: int) -> list[range]:
        """Return the nodes of each piece of a part, by their position in the question."""
        n_bytes = 8 * int((self._n_bins[attempt.features_of(part)] + 1).sum()) * attempt.n_channels
        step = max(PIECE_BYTES // n_bytes, 1)
        return [range(first, min(first + step, n_nodes)) for first in range(0, n_nodes, step)]

    def piece(
        self, attempt: Attempt, part: Part, contribution: Contribution, nodes: range, session: int
    ) -> Piece:
        """Return the sums of some nodes over the bins of a part."""
        sums, offsets = contribution.sums[nodes.start : nodes.stop], self._shard.offsets
        features = attempt.features_of(part)
        shape = len(nodes), int((self._n_bins[features] + 1).sum()), attempt.n_channels
        # Most sums over the rows of one process fit into 32 bits.
        out = np.empty(shape, np.int32)
        if not exchange.narrow(sums, features, offsets, out):
            out = np.empty(shape, np.int64)
            exchange.narrow(sums, features, offsets, out)
        return Piece(attempt.number, part.number, session, nodes.start, out)
