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

Here is what a worker computes. When it computes what, and whom it sends what, is the protocol of `reduce_to_owners`.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from distboost.kernels.categories import set_words
from distboost.rows.messages import Expanded, HistogramQuestion, UpdateQuestion
from distboost.rows.sums import Reduced
from distboost.runtime.block import Key
from distboost.runtime.cluster.gathering import Gathering, GroupSums, OwnedPart, Piece, Sums
from distboost.runtime.cluster.placement import combined
from distboost.runtime.parts import Slots, StoredPart
from distboost.runtime.shard import Shard
from distboost.splits.tree_histograms import TreeHistograms

PIECE_BYTES = 2**23  # of sums in one message, unless one node has more


class OwnedFeatures(NamedTuple):
    """Features of a tree, and the session that owns their histograms."""

    number: int
    first: int  # of its features, by their position among the tree's
    stop: int
    owner: int


class Bundle(NamedTuple):
    """Parts whose sums travel together."""

    number: int | None  # of the part, for its owner; None: for the session that collects them for its group
    parts: tuple[OwnedFeatures, ...]

    @classmethod
    def of(cls, part: OwnedFeatures) -> Bundle:
        """Return a part by itself."""
        return cls(part.number, (part,))


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
    n_nodes, n_channels : int
        Of the histograms.
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
    n_nodes: int
    n_channels: int
    peers: Mapping[int, Any]
    timeout: float

    @cached_property
    def _group_of(self) -> dict[int, tuple[int, ...]]:
        return {session: group for group in self.groups for session in group}

    def group(self, session: int) -> tuple[int, ...]:
        """Return the group of a session."""
        return self._group_of[session]

    def collector(self, group: tuple[int, ...], position: int) -> int:
        """Return the member of a group that collects the group's sums of ``parts[position]``."""
        return group[position * len(group) // len(self.parts)]

    def collected(self, session: int) -> Bundle:
        """Return the parts that a session collects for its group."""
        group, n = self.group(session), len(self.parts)
        first, stop = (-(-k * n // len(group)) for k in (group.index(session), group.index(session) + 1))
        return Bundle(None, self.parts[first:stop])

    def gathers(self, session: int) -> bool:
        """Whether a session adds up the sums of others of its group."""
        return len(self.group(session)) > 1 and bool(self.collected(session).parts)

    def features_of(self, parts: Collection[OwnedFeatures]) -> np.ndarray:
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
        self._group = GroupSums(n_bins)
        self._begun = 0, 0  # the last attempt, and its question
        self._changing, self._computing = threading.Lock(), threading.Lock()

    # An attempt: first all processes begin it and contribute.

    def begin(self, attempt: Attempt, question: HistogramQuestion | UpdateQuestion) -> set[int]:
        """Begin an attempt, after which pieces of earlier ones are refused. Return the own parts that have no answer yet."""
        expansion = question.expansion
        assert expansion is not None, "a histogram is wanted"
        with self._changing:
            if attempt.number < self._begun[0]:
                raise RuntimeError("another attempt has begun")
            is_new, self._begun = self._begun[1] != attempt.question, (attempt.number, attempt.question)
            own = [part for part in attempt.parts if part.owner == self.session]
            if is_new and expansion.root is not None and not expansion.restores:
                kept = {part.number for part in own}
                self._parts = {number: part for number, part in self._parts.items() if number in kept}
            unanswered = set()
            for part in own:
                features, known = attempt.features_of([part]), self._parts.get(part.number)
                if known is None or not np.array_equal(known.features, features):
                    known = self._parts[part.number] = OwnedPart(features, self._tree(features))
                if known.begin(attempt.number, attempt.question, expansion):
                    unanswered.add(part.number)
            if attempt.gathers(self.session):
                features = attempt.features_of(attempt.collected(self.session).parts)
                self._group.begin(attempt.number, features, attempt.n_nodes, attempt.n_channels)
            return unanswered

    def _tree(self, features: np.ndarray) -> TreeHistograms:
        """Return memory for the histograms of some features."""
        bins, categorical = self._n_bins[features], self._shard.categorical[features]
        n_words = set_words(self._shard.categorical)
        return TreeHistograms(
            bins, categorical, self._shard.n_classes, threads=self._shard.threads, n_words=n_words
        )

    def contribute(self, attempt: Attempt, question: HistogramQuestion | UpdateQuestion) -> Contribution:
        """Sum the histograms of the rows that this process holds and that the question has not covered yet."""
        assert question.expansion is not None, "a histogram is wanted"
        n_nodes, features = attempt.n_nodes, question.expansion.features
        with self._computing:
            for number in [number for number in self._contributions if number < attempt.keep]:
                self._memory = self._contributions.pop(number).memory
            keys = self._shard.held.keys()
            known = self._contributions.get(attempt.question)
            todo = keys - known.covered if known else keys
            if known is not None and not todo:
                return known
            memory, self._memory = self._memory, np.empty(0, np.int64)
            memory, sums = Sums.within(memory, self._n_bins, features, n_nodes, attempt.n_channels)
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

    # Then the members of a group send their sums to the collectors, and these send the sums of the group to the owners.

    def _sums(self, attempt: Attempt, bundle: Bundle, found: Contribution) -> Sums:
        """Return the sums that go into a bundle: those of this process for its group, those of the group for owners."""
        if bundle.number is None or not attempt.gathers(self.session):
            return found.sums
        return self._group.sums(attempt.number)

    def _gathering(self, number: int | None) -> Gathering:
        return self._group if number is None else self._parts[number]

    def keep(self, attempt: Attempt, bundle: Bundle, found: Contribution) -> None:
        """Add sums of this process to those that it collects or owns."""
        sums = self._sums(attempt, bundle, found)
        self._gathering(bundle.number).add_own(attempt.number, sums, attempt.features_of(bundle.parts))

    def spans(self, attempt: Attempt, bundle: Bundle) -> list[range]:
        """Return the nodes of each piece, by their position in the question."""
        n_bytes = 8 * int((self._n_bins[attempt.features_of(bundle.parts)] + 1).sum()) * attempt.n_channels
        n_nodes, step = attempt.n_nodes, max(PIECE_BYTES // n_bytes, 1)
        return [range(first, min(first + step, n_nodes)) for first in range(0, n_nodes, step)]

    def piece(self, attempt: Attempt, bundle: Bundle, found: Contribution, nodes: range) -> Piece:
        """Return the sums of some nodes."""
        sums, features = self._sums(attempt, bundle, found), attempt.features_of(bundle.parts)
        packed = sums.packed(features, nodes, attempt.n_channels)
        self._sums(attempt, bundle, found)  # another attempt would have cleared them meanwhile
        return Piece(attempt.number, bundle.number, self.session, nodes.start, *packed)

    def receive(self, attempt: Attempt, piece: Piece) -> None:
        """Add a piece that another process sends."""
        self._gathering(piece.part).add(piece)

    # Then the owners search.

    def answer(self, attempt: Attempt) -> Expanded | None:
        """Return the answer over the features that this process owns; None if it owns none."""
        own = [self._parts[part.number] for part in attempt.parts if part.owner == self.session]
        found: Expanded | None = reduce(combined, (part.answer(attempt.number) for part in own), None)
        return found

    def search(self, owners: Mapping[int, int], node: int, context: np.ndarray) -> Expanded | None:
        """Find the best split of a node over the features that this process owns; None if it owns none."""
        own = [self._parts[number] for number, owner in owners.items() if owner == self.session]
        found: Expanded | None = reduce(combined, (part.search(node, context) for part in own), None)
        return found
