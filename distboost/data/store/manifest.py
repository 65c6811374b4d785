"""The manifest of a binned store: its entries, its checksum, and the profile that it holds."""

from __future__ import annotations

import json
import zlib
from typing import Any, cast

import numpy as np
import zarr
from zarr.errors import ContainsArrayError

from distboost.data.blocks import ClassScan, Profile
from distboost.data.categories import listed, restored_categories
from distboost.data.ingest import joined_edges, split_edges
from distboost.data.labels import plain, restored
from distboost.data.store.layout import checksum
from distboost.data.store.reading import intact
from distboost.errors import BinnedStoreError
from distboost.io.retry import is_damage, quoted, retried
from distboost.io.storage import MANIFEST, open_store

STORE_VERSION = 3
NAMES = "feature_names"  # an entry of stores whose features have names
BIN_BYTES = "bin_bytes"  # an entry of stores of sparse bins: the most bytes of a row's in memory
_COMPARED = {"checksum", "checksums", "source"}
_REMEDY = "Bin the data again, after removing this store."


def array_shapes(made_from: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays that are stored in blocks."""
    n, n_features = made_from["n_rows"], made_from["n_features"]
    shapes: dict[str, tuple[int, ...]] = {"bins": (n, n_features), "labels": (n,), "weights": (n,)}
    return {**shapes, "values": (n, n_features)} if made_from["keep_values"] else shapes


def profile_entries(profile: Profile) -> dict[str, Any]:
    """Return the entries of a profile in the manifest."""
    classes = profile.classes
    entries = {"categories": listed(profile.categories)} if profile.categories else {}
    return {
        **entries,
        "class_dtype": classes.dtype.str,
        "classes": plain(classes),
        "class_scans": [
            [scan.n_rows, scan.largest_weight, scan.whole_weights] for scan in profile.class_scans
        ],
        "edges_checksum": checksum(*joined_edges(profile.edges)),
    }


def sealed(entries: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a manifest with their checksum. An entry of None is the same as none."""
    entries = {name: value for name, value in entries.items() if value is not None}
    return {**entries, "checksum": _seal(entries)}


def _seal(entries: dict[str, Any]) -> int:
    """Return the CRC-32 of a manifest, without the entries that are compared with the data: checksums of blocks, source."""
    covered = {name: value for name, value in entries.items() if name not in _COMPARED}
    return zlib.crc32(json.dumps(covered, sort_keys=True).encode())


def check_seal(url: str, entries: dict[str, Any]) -> None:
    """Raise BinnedStoreError unless the checksum of a manifest is right."""
    found, expected = _seal(entries), entries.get("checksum")
    if found != expected:
        raise damaged(url, f"the checksum of its manifest is {found}, not {expected!r}")


def damaged(url: str, what: str) -> BinnedStoreError:
    """Return the error for a damaged manifest."""
    return BinnedStoreError(
        f"zarr.json of the binned store {url} is damaged: {what}.", remedy=_REMEDY, where=url
    )


def opened(url: str) -> tuple[zarr.Group | None, Any]:
    """Return the group at a path or URL, and its manifest; None for each that does not exist."""
    try:
        store = open_store(url)
        group = retried(lambda: zarr.open_group(store, mode="r"), f"zarr.json of the binned store {url}")
    except (FileNotFoundError, ContainsArrayError) as error:
        # zarr leaves a reference cycle of the error and a frame: the callers' objects would stay until a garbage collection.
        error.__traceback__ = None
        return None, None
    except Exception as error:
        if not is_damage(error):
            raise
        raise damaged(url, quoted(error)) from error
    return group, group.attrs.get(MANIFEST)


def stored_profile(group: zarr.Group, described: dict[str, Any], url: str) -> Profile:
    """Read the edges from a store; raise BinnedStoreError if they are damaged."""

    def read() -> list[np.ndarray]:
        arrays = (cast(zarr.Array[Any], group[name]) for name in ("edges", "edge_offsets"))
        joined = [np.asarray(array[:]) for array in arrays]
        found, expected = checksum(*joined), described["edges_checksum"]
        if found != expected:
            raise ValueError(f"their checksum is {found:08x}, not {expected:08x}")
        return joined

    edges, offsets = intact(read, f"arrays edges and edge_offsets of the binned store {url}")
    return Profile(
        described["n_rows"],
        _classes(described, url),
        [ClassScan(*scan) for scan in described["class_scans"]],
        split_edges(edges, offsets),
        restored_categories(described.get("categories", []), len(offsets) - 1, BinnedStoreError),
    )


def _classes(described: dict[str, Any], url: str) -> np.ndarray:
    try:
        return restored(described["classes"], described["class_dtype"], BinnedStoreError)
    except BinnedStoreError as error:
        raise damaged(url, str(error).removesuffix(".")) from error
