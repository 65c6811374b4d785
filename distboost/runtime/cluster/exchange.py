"""A worker's part in the exchange of histograms.

Each worker sums the histograms of its rows. The features are divided into *parts*, and each part has an *owner* that adds the
sums of all workers and searches the best splits of its features. So the coordinator receives best splits only, and no process
holds the sums of all features over all rows.

If each worker sent its sums to each owner, the number of messages would be the square of the number of workers. So many workers
form groups. Within a group, each member *collects* the sums of some parts; then the collectors send the sums of their groups to
the owners. Few workers are groups of one, each of which collects all parts of its own sums.

A question is exchanged in numbered attempts. If a worker is lost, what it has sent may have reached some workers and not others.
Then the parts without an answer are exchanged again in a new attempt, and messages of the failed one are refused. A worker
computes its own sums once for each question: later attempts only send them again.

This module does no I/O: `worker_exchange` sends its pieces over Dask, and the tests send them in virtual time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from distboost.kernels import simd
from distboost.kernels.categories import set_words
from distboost.rows.messages import Expanded, Expansion, HistogramQuestion, UpdateQuestion
from distboost.rows.reduced import Reduced
from distboost.runtime.block import Key
from distboost.runtime.cluster.answers import combined
from distboost.runtime.cluster.gathering import Gathering, GroupSums, OwnedPart, Piece, Sums
from distboost.runtime.parts import Slots, StoredPart
from distboost.runtime.shard import Shard
from distboost.splits.histograms import offsets_of
from distboost.splits.tree_histograms import TreeHistograms

PIECE_BYTES = 2**23  # of sums in one message, unless one node has more


class OwnedFeatures(NamedTuple):
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
    parts : tuple of OwnedFeatures
        The parts that have no answer yet.
    groups : tuple of tuples of int
        The sessions that have rows.
    n_channels : int
        Channels of the histograms.
    peers : mapping of int to object
        How other sessions are addressed.
    timeout : float
        Seconds within which a piece arrives and is added.
    """

    number: int
    question: int
    keep: int
    features: np.ndarray
    parts: tuple[OwnedFeatures, ...]
    groups: tuple[tuple[int, ...], ...]
    n_channels: int
    peers: Mapping[int, Any]
    timeout: float

    def group(self, session: int) -> tuple[int, ...]:
        """Return the group of a session."""
        return next(group for group in self.groups if session in group)

    def collector(self, group: tuple[int, ...], position: int) -> int:
        """Return the member of a group that collects the group's sums of ``parts[position]``."""
        return group[position * len(group) // len(self.parts)]

    def collected(self, session: int) -> list[OwnedFeatures]:
        """Return the parts that a session collects."""
        group = self.group(session)
        return [part for n, part in enumerate(self.parts) if self.collector(group, n) == session]

    def features_of(self, *parts: OwnedFeatures) -> np.ndarray:
        """Return the features of some parts."""
        return np.concatenate([self.features[part.first : part.stop] for part in parts])


class Reply(NamedTuple):
    """The answer of some sessions to an attempt."""

    totals: np.ndarray  # (n_totals,) int64: of their rows, for a new tree's statistic
    losses: Reduced | None  # of their rows, for an update
    expanded: Expanded | None  # over the features that they own
    unreachable: int | None = None  # a session that another one's sums did not reach: the attempt has failed

    @property
    def failed(self) -> bool:
        """Whether the attempt has failed."""
        return self.unreachable is not None

    def combined(self, other: Reply) -> Reply:
        """Return the answer of the sessions of both."""
        return Reply(
            self.totals + other.totals,
            combined(self.losses, other.losses),
            combined(self.expanded, other.expanded),
            self.unreachable if self.failed else other.unreachable,
        )


@dataclass
class Contribution:
    """The answer of this process's rows to a question, before it is exchanged."""

    memory: np.ndarray  # (n,) int64, in which the values of `sums` lie
    sums: Sums
    covered: set[Key] = field(default_factory=set)
    totals: np.ndarray | None = None
    losses: Reduced | None = None


class Exchange:
    """The exchange, as one process takes part in it.

    Parameters
    ----------
    session : int
        The id of this process's session.
    shard : Shard
        The rows of this process.
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    """

    def __init__(self, session: int, shard: Shard, n_bins: np.ndarray):
        self.session, self._shard, self._n_bins = session, shard, n_bins
        self._contributions: dict[int, Contribution] = {}
        self._memory = np.empty(0, np.int64)  # of sums that are no longer needed
        self._parts: dict[int, OwnedPart] = {}
        self._own: list[int] = []  # the parts of the current attempt that this process owns
        self._group = GroupSums(n_bins)
        self._has_group = False  # whether this process collects for others too
        self._attempt: Attempt | None = None
        self._changing, self._computing = threading.Lock(), threading.Lock()

    # An attempt: first all processes begin it and contribute.

    def begin(self, attempt: Attempt, expansion: Expansion) -> None:
        """Begin an attempt: from now on, pieces of earlier ones are refused."""
        n_nodes = len(expansion.build)
        with self._changing:
            former, self._attempt = self._attempt, attempt
            own = [(n, part) for n, part in enumerate(attempt.parts) if part.owner == self.session]
            is_new = former is None or former.question != attempt.question
            if is_new and expansion.root is not None and not expansion.restores:
                self._parts = {
                    part.number: self._parts[part.number] for _, part in own if self._holds(attempt, part)
                }
            for position, part in own:
                if not self._holds(attempt, part):
                    features = attempt.features_of(part)
                    bins, categorical = self._n_bins[features], self._shard.categorical[features]
                    tree = TreeHistograms(
                        bins,
                        categorical,
                        self._shard.n_classes,
                        self._shard.threads,
                        n_words=set_words(self._shard.categorical),
                    )
                    self._parts[part.number] = OwnedPart(features, tree)
                collectors = [attempt.collector(group, position) for group in attempt.groups]
                n_pieces = self._n_pieces(attempt, [part], n_nodes, collectors)
                self._parts[part.number].begin(attempt.number, attempt.question, expansion, n_pieces)
            self._own = [part.number for _, part in own]
            self._begin_group(attempt, n_nodes)

    def _holds(self, attempt: Attempt, part: OwnedFeatures) -> bool:
        """Whether there is memory for the histograms of a part."""
        known = self._parts.get(part.number)
        return known is not None and np.array_equal(known.features, attempt.features_of(part))

    def _begin_group(self, attempt: Attempt, n_nodes: int) -> None:
        """Clear the sums of this process's group, unless it has no other members."""
        group, parts = attempt.group(self.session), attempt.collected(self.session)
        self._has_group = len(group) > 1 and bool(parts)
        if self._has_group:
            features = attempt.features_of(*parts)
            shape = n_nodes, int((self._n_bins[features] + 1).sum()), simd.padded_sums(attempt.n_channels)
            n_pieces = self._n_pieces(attempt, parts, n_nodes, group)
            self._group.begin(attempt.number, features, shape, n_pieces)

    def _n_pieces(
        self, attempt: Attempt, parts: Collection[OwnedFeatures], n_nodes: int, senders: Collection[int]
    ) -> int:
        """Return the number of pieces that senders make of their sums of some parts. Own sums are one."""
        return sum(
            1 if sender == self.session else len(self.spans(attempt, parts, n_nodes)) for sender in senders
        )

    def contribute(self, attempt: Attempt, question: HistogramQuestion | UpdateQuestion) -> Contribution:
        """Sum the histograms of the rows that this process holds and that the question has not covered yet."""
        assert question.expansion is not None, "a histogram is wanted"
        n_nodes, features = len(question.expansion.build), question.expansion.features
        with self._computing:
            for number in [number for number in self._contributions if number < attempt.keep]:
                self._memory = self._contributions.pop(number).memory
            keys = self._shard.held.keys()
            known = self._contributions.get(attempt.question)
            todo = keys - known.covered if known else keys
            if known is not None and not todo:
                return known
            memory, sums = self._room(n_nodes, features, simd.padded_sums(attempt.n_channels))
            found = Contribution(memory, sums, keys)
            slots = Slots(sums.values, np.arange(n_nodes), sums.offsets)
            parts, only = [StoredPart(features, slots)], None if known is None else todo
            if isinstance(question, UpdateQuestion):
                found.losses, found.totals = self._shard.update(question, parts, only)
            else:
                found.totals = self._shard.histogram(question, parts, only)
            if known is not None:
                found.sums.values[:] += known.sums.values
                found.totals = found.totals + known.totals
                if found.losses is not None and known.losses is not None:
                    found.losses = found.losses.combined(known.losses)
            self._contributions[attempt.question] = found
            return found

    def _room(self, n_nodes: int, features: np.ndarray, n_channels: int) -> tuple[np.ndarray, Sums]:
        """Return memory, and sums in it, whose content is arbitrary."""
        offsets = offsets_of(self._n_bins, features)
        shape = n_nodes, int(offsets[-1]), n_channels
        memory, self._memory = _enough(self._memory, math.prod(shape)), np.empty(0, np.int64)
        return memory, Sums(memory[: math.prod(shape)].reshape(shape), offsets)

    # Then the members of a group send their sums to the collectors, and these send the sums of the group to the owners.

    def collect(self, attempt: Attempt, found: Contribution) -> None:
        """Add this process's sums to those of its group."""
        if self._has_group:
            self._group.add_contribution(attempt.number, self.session, found.sums)

    def _collected(self, attempt: Attempt, found: Contribution) -> Sums:
        """Return the sums of this process's group, or of the process if it is alone."""
        return self._group.sums(attempt.number) if self._has_group else found.sums

    def keep(self, attempt: Attempt, part: OwnedFeatures, found: Contribution) -> None:
        """Add the sums of its group to a part that this process collects and owns."""
        with self._changing:
            owned = self._parts.get(part.number)
        if owned is not None:
            sums = self._collected(attempt, found)
            owned.add_own(attempt.number, self.session, sums, attempt.features_of(part))

    def spans(self, attempt: Attempt, parts: Collection[OwnedFeatures], n_nodes: int) -> list[range]:
        """Return the nodes of each piece of some parts, by their position in the question."""
        n_bytes = 8 * int((self._n_bins[attempt.features_of(*parts)] + 1).sum()) * attempt.n_channels
        step = max(PIECE_BYTES // n_bytes, 1)
        return [range(first, min(first + step, n_nodes)) for first in range(0, n_nodes, step)]

    def group_piece(self, attempt: Attempt, collector: int, found: Contribution, nodes: range) -> Piece:
        """Return this process's sums of some nodes over the parts that another member of its group collects."""
        features = attempt.features_of(*attempt.collected(collector))
        packed = found.sums.packed(features, nodes, attempt.n_channels)
        return Piece(attempt.number, None, self.session, nodes.start, *packed)

    def piece(self, attempt: Attempt, part: OwnedFeatures, found: Contribution, nodes: range) -> Piece:
        """Return the sums of its group of some nodes over a part that this process collects."""
        packed = self._collected(attempt, found).packed(attempt.features_of(part), nodes, attempt.n_channels)
        self._collected(attempt, found)  # another attempt would have cleared them meanwhile
        return Piece(attempt.number, part.number, self.session, nodes.start, *packed)

    def receive(self, piece: Piece) -> None:
        """Add a piece that another process sends."""
        with self._changing:
            gathering: Gathering | None = self._group if piece.part is None else self._parts.get(piece.part)
        if gathering is not None:
            gathering.add(piece)

    @property
    def has_collected(self) -> bool:
        """Whether the sums of this process's group are complete."""
        return not self._has_group or self._group.is_complete

    @property
    def has_all(self) -> bool:
        """Whether the sums of all parts that this process owns are complete."""
        with self._changing:
            return all(self._parts[number].is_complete for number in self._own)

    # Then the owners search.

    def answer(self) -> Expanded | None:
        """Return the answer over the features that this process owns; None if it owns none."""
        with self._changing:
            own = [self._parts[number] for number in self._own]
        found: Expanded | None = reduce(combined, (part.answer() for part in own), None)
        return found

    def search(self, owners: Mapping[int, int], node: int, context: np.ndarray) -> Expanded | None:
        """Find the best split of a node over the features that this process owns; None if it owns none."""
        own = [self._parts[number] for number, owner in owners.items() if owner == self.session]
        found: Expanded | None = reduce(combined, (part.search(node, context) for part in own), None)
        return found


def _enough(memory: np.ndarray, n: int) -> np.ndarray:
    """Return memory for n numbers: the given one if it suffices."""
    return memory if memory.size >= n else np.empty(n, np.int64)
