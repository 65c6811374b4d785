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

import math
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
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

    @cached_property
    def _group_of(self) -> dict[int, tuple[int, ...]]:
        return {session: group for group in self.groups for session in group}

    def group(self, session: int) -> tuple[int, ...]:
        """Return the group of a session."""
        return self._group_of[session]

    def collector(self, group: tuple[int, ...], position: int) -> int:
        """Return the member of a group that collects the group's sums of ``parts[position]``."""
        return group[position * len(group) // len(self.parts)]

    def collected(self, session: int) -> list[OwnedFeatures]:
        """Return the parts that a session collects."""
        group, n = self.group(session), len(self.parts)
        first, stop = (-(-k * n // len(group)) for k in (group.index(session), group.index(session) + 1))
        return list(self.parts[first:stop])

    def gathers(self, session: int) -> bool:
        """Whether a session adds up the sums of others of its group."""
        return len(self.group(session)) > 1 and bool(self.collected(session))

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
        self._group = GroupSums(n_bins)
        self._begun = 0, 0  # the last attempt, and its question
        self._changing, self._computing = threading.Lock(), threading.Lock()

    # An attempt: first all processes begin it and contribute.

    def begin(self, attempt: Attempt, question: HistogramQuestion | UpdateQuestion) -> set[int]:
        """Begin an attempt: from now on, pieces of earlier ones are refused.

        Returns
        -------
        set of int
            The parts that this process owns and has no answer for.
        """
        expansion = _expansion(question)
        with self._changing:
            if attempt.number < self._begun[0]:
                raise RuntimeError("another attempt has begun")
            is_new, self._begun = self._begun[1] != attempt.question, (attempt.number, attempt.question)
            own = [part for part in attempt.parts if part.owner == self.session]
            if is_new and expansion.root is not None and not expansion.restores:
                self._parts = {
                    part.number: self._parts[part.number] for part in own if self._holds(attempt, part)
                }
            for part in own:
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
            if attempt.gathers(self.session):
                features = attempt.features_of(*attempt.collected(self.session))
                self._group.begin(attempt.number, features, len(expansion.build), attempt.n_channels)
            parts = {part.number: self._parts[part.number] for part in own}
            return {n for n, part in parts.items() if part.begin(attempt.number, attempt.question, expansion)}

    def _holds(self, attempt: Attempt, part: OwnedFeatures) -> bool:
        """Whether there is memory for the histograms of a part."""
        known = self._parts.get(part.number)
        return known is not None and np.array_equal(known.features, attempt.features_of(part))

    def contribute(self, attempt: Attempt, question: HistogramQuestion | UpdateQuestion) -> Contribution:
        """Sum the histograms of the rows that this process holds and that the question has not covered yet."""
        expansion = _expansion(question)
        n_nodes, features = len(expansion.build), expansion.features
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
        features = attempt.features_of(*attempt.collected(self.session))
        self._group.add_own(attempt.number, found.sums, features)

    def _collected(self, attempt: Attempt, found: Contribution) -> Sums:
        """Return the sums of this process's group, or of the process if it is alone."""
        return self._group.sums(attempt.number) if attempt.gathers(self.session) else found.sums

    def keep(self, attempt: Attempt, part: OwnedFeatures, found: Contribution) -> None:
        """Add the sums of its group to a part that this process collects and owns."""
        with self._changing:
            owned = self._parts.get(part.number)
        if owned is not None:
            sums = self._collected(attempt, found)
            owned.add_own(attempt.number, sums, attempt.features_of(part))

    def spans(
        self,
        attempt: Attempt,
        question: HistogramQuestion | UpdateQuestion,
        parts: Collection[OwnedFeatures],
    ) -> list[range]:
        """Return the nodes of each piece of some parts, by their position in the question."""
        n_nodes = len(_expansion(question).build)
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

    # Then the owners search.

    def answer(self, attempt: Attempt) -> Expanded | None:
        """Return the answer over the features that this process owns; None if it owns none."""
        with self._changing:
            own = [self._parts[part.number] for part in attempt.parts if part.owner == self.session]
        found: Expanded | None = reduce(combined, (part.answer(attempt.number) for part in own), None)
        return found

    def search(self, owners: Mapping[int, int], node: int, context: np.ndarray) -> Expanded | None:
        """Find the best split of a node over the features that this process owns; None if it owns none."""
        own = [self._parts[number] for number, owner in owners.items() if owner == self.session]
        found: Expanded | None = reduce(combined, (part.search(node, context) for part in own), None)
        return found


def _expansion(question: HistogramQuestion | UpdateQuestion) -> Expansion:
    assert question.expansion is not None, "a histogram is wanted"
    return question.expansion


def _enough(memory: np.ndarray, n: int) -> np.ndarray:
    """Return memory for n numbers: the given one if it suffices."""
    return memory if memory.size >= n else np.empty(n, np.int64)
