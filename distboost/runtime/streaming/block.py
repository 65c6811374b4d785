"""A block on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path

import numpy as np

from distboost.data.blocks import AnyRows
from distboost.io.ahead import load_file_ahead
from distboost.rows.messages import Draw, Splits
from distboost.rows.stored_bins import StoredBins
from distboost.runtime.block import Block, Grown, Traits
from distboost.runtime.streaming.scratch import FileRegion, Scratch
from distboost.weights.sampled import MAGNITUDES, drawn

BINS = "bins"  # the name of the stored ones


class StreamedBlock:
    """A block on disk: its rows are read again for each question; the state that boosting keeps of them is in scratch files.

    Parameters
    ----------
    read : callable
        It returns the rows.
    make : callable
        It makes a block of them.
    scratch : Scratch
    in_memory : collection of str
        The names of arrays that stay in memory.
    usual : ndarray of shape (D,), uint8, or None
        The bins of 0. If few bins differ, these come from scratch files after the first time.
    """

    def __init__(
        self,
        read: Callable[[], AnyRows],
        make: Callable[..., Block],
        scratch: Scratch,
        in_memory: Collection[str] = (),
        usual: np.ndarray | None = None,
    ):
        self._usual = usual
        self._read, self._make, self._scratch, self._in_memory = read, make, scratch, in_memory
        self._arrays: dict[str, np.ndarray] = {}  # that stay in memory
        self._extents: dict[str, FileRegion] = {}  # of the others
        self._traits: Traits | None = None
        self._files: tuple[Path, ...] = ()  # of the bins, on a local disk
        self.spans = np.zeros((1, 2), np.int32)
        self.grown: Grown | None = None
        self.first = self.round = self._n_rows = 0

    def open(self, names: Iterable[str] = (), changed: Collection[str] | None = None) -> Block:
        """Read the block's bins, and the stored arrays of these names. Other arrays are read when they are used.

        Arrays may be memory-mapped unless they are named in `changed`; with None, none is.
        """
        rows, held = self._read(), None
        packed = self._load(BINS)
        if packed is not None:
            assert self._usual is not None
            held = StoredBins.unpacked(packed, self._usual, self._n_rows)
        block = self._make(rows, load=partial(self._load, changed=changed), traits=self._traits, held=held)
        if self._traits is None:
            self._traits, self._files, self._n_rows = block.traits, rows.files, block.n_rows
        block.spans, block.grown, block.round = self.spans, self.grown, self.round
        for name in names:
            block.load(name)
        return block

    def read_ahead(self, names: Iterable[str]) -> None:
        """Ask the system to load the bins and these arrays into its cache, if they are on a local disk."""
        for file in self._files:
            load_file_ahead(file)
        for name in (BINS, *names):
            if name in self._extents:
                self._scratch.read_ahead(self._extents[name])

    def put_back(self, block: Block) -> None:
        """Write the changed arrays to scratch files, or keep them; the first time also the bins, if few are to be stored."""
        if self._usual is not None and BINS not in self._extents:
            stored = StoredBins.of(block.bins, self._usual)
            if stored is None:
                self._usual = None
            else:
                self._put(BINS, stored.packed())
                self._files = ()
        for name in block.changed:
            self._put(name, block.buffers[name])
        block.changed.clear()
        self.spans, self.grown, self.round = block.spans, block.grown, block.round
        self.first = block.first

    @property
    def is_left_out(self) -> bool:
        """Whether the histograms of the growing tree sum none of the rows."""
        return self.grown is not None and self.spans[0, 1] == 0

    def begin(self, draw: Draw) -> None:
        """Begin a tree if none of the rows is drawn for its histograms. They need not be read for this."""
        magnitudes = self._load(MAGNITUDES)
        assert magnitudes is not None
        if not len(drawn(draw, self.first, magnitudes, np.arange(len(magnitudes), dtype=np.int32))):
            self._put("order", np.empty(0, np.int32))
            self.spans, self.grown = np.zeros((64, 2), np.int32), Grown(is_gathered=True)

    def split(self, splits: Splits, missing_bin: np.ndarray) -> None:
        """Divide nodes none of whose rows the histograms sum."""
        assert self.grown is not None
        self.grown = self.grown.followed_by(splits, missing_bin)

    def _put(self, name: str, array: np.ndarray) -> None:
        if name in self._in_memory:
            self._arrays[name] = array
        else:
            self._extents[name] = self._scratch.write(array, self._extents.get(name))

    def _load(self, name: str, changed: Collection[str] | None = None) -> np.ndarray | None:
        if name in self._arrays:
            return self._arrays[name]
        extent = self._extents.get(name)
        if extent is None:
            return None
        return self._scratch.read(extent, to_change=changed is None or name in changed)
