"""Types of single cells from an AnnData store in zarr, larger than the memory if you ask for it.

    python -m examples.cells
    python -m examples.cells --cells 100_000 --genes 20_000 --types 40 --memory-limit 2GB

Writes two made stores part by part, as anndata would (`X` in CSR, types in `obs`, names in `var`), learns the types from the
first, and predicts those of the second. Counts are negative binomial: each type expresses some marker genes more, and cells
differ in depth. `--picture` draws which types are taken for which, and the genes that tell them apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import zarr

import distboost
from distboost import GDMCBoostClassifier

PART = 500  # cells that are made together
CHUNK = 2**18  # stored counts of a chunk
MARKERS = 20  # genes that a type expresses more
DISPERSION = 2.0  # of the negative binomial distribution
STORED = 0.05  # about so many counts are not 0


class Tissue:
    """What the cells of each type express."""

    def __init__(self, n_genes: int, n_types: int, seed: int, stored: float = STORED):
        random = np.random.default_rng(seed)
        common = random.gamma(0.4, 1.0, n_genes)
        self.rates = np.tile(common * stored / common.mean(), (n_types, 1))
        for rates in self.rates:
            rates[random.choice(n_genes, MARKERS, replace=False)] += random.gamma(2.0, 0.12, MARKERS)
        self.genes = [f"gene {d}" for d in range(n_genes)]
        self.types = np.array([f"type {k}" for k in range(n_types)])

    def cells(self, n: int, random: np.random.Generator) -> tuple[scipy.sparse.csr_array, np.ndarray]:
        """Counts of n cells, (n, n_genes) float32, and the number of the type of each."""
        types = random.integers(0, len(self.types), n)
        rates = self.rates[types] * random.lognormal(0.0, 0.3, (n, 1))
        counts = random.poisson(random.gamma(DISPERSION, rates / DISPERSION))
        return scipy.sparse.csr_array(counts.astype(np.float32)), types

    def write(self, path: Path, n_cells: int, seed: int) -> None:
        """Write an AnnData store of n cells. Only a part of them is in memory."""
        random = np.random.default_rng(seed)
        store = zarr.create_group(path, attributes={"encoding-type": "anndata", "encoding-version": "0.1.0"})
        matrix = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}
        X = store.create_group("X", attributes={**matrix, "shape": [n_cells, len(self.genes)]})
        arrays = {
            name: X.create_array(name, shape=(0,), chunks=(CHUNK,), dtype=dtype)
            for name, dtype in {"data": "f4", "indices": "i4", "indptr": "i8"}.items()
        }
        arrays["indptr"].append(np.zeros(1, "i8"))
        types = []
        for first in range(0, n_cells, PART):
            counts, of_cells = self.cells(min(PART, n_cells - first), random)
            arrays["indptr"].append(arrays["data"].shape[0] + counts.indptr[1:].astype("i8"))
            arrays["data"].append(counts.data)
            arrays["indices"].append(counts.indices.astype("i4"))
            types.append(of_cells)
        frame = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"}
        texts(store.create_group("var", attributes={**frame, "column-order": []}), "_index", self.genes)
        obs = store.create_group("obs", attributes={**frame, "column-order": ["cell_type"]})
        texts(obs, "_index", [f"cell {i}" for i in range(n_cells)])
        category = {"encoding-type": "categorical", "encoding-version": "0.2.0", "ordered": False}
        column = obs.create_group("cell_type", attributes=category)
        codes = np.concatenate(types).astype(np.int16)
        column.create_array("codes", data=codes, config={"write_empty_chunks": True})
        texts(column, "categories", self.types.tolist())


def texts(group: zarr.Group, name: str, values: list[str]) -> None:
    """Write an array of texts."""
    array = group.create_array(name, data=np.array(values, np.dtypes.StringDType()))
    array.attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})


def draw(model: GDMCBoostClassifier, found: Mapping[str, Any], path: Path) -> None:
    """Draw the confusion of types, and the importances of genes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    share = found["confusion"] / found["confusion"].sum(axis=1, keepdims=True)
    left.imshow(share, cmap="Blues", vmin=0, vmax=1)
    left.set(xlabel="predicted type", ylabel="type", title="Share of the cells of a type")
    best = np.argsort(-model.feature_importances_)[:15][::-1]
    right.barh(model.feature_names_in_[best], model.feature_importances_[best])
    right.set_title("Importance of genes")
    figure.savefig(path, dpi=100)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in {"cells": 4000, "genes": 500, "types": 12, "rounds": 40}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--memory-limit", help="of the training, such as 2GB")
    parser.add_argument("--out", type=Path, help="where to write the stores (default: a temporary folder)")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        tissue = Tissue(options.genes, options.types, seed=0)
        tissue.write(folder / "cells.zarr", options.cells, seed=1)
        tissue.write(folder / "new.zarr", max(options.cells // 4, 1), seed=2)
        cells, new = f"{folder}/cells.zarr", f"{folder}/new.zarr"
        stored = zarr.open_group(cells, mode="r")["X/data"].shape[0]
        print(
            f"{options.cells:,} cells, {options.genes:,} genes, "
            f"{stored / options.cells / options.genes:.1%} of the counts are stored"
        )
        model = GDMCBoostClassifier(
            n_estimators=options.rounds, memory_limit=options.memory_limit, calibration=None
        )
        began = time.perf_counter()
        model.fit(f"{cells}/X", f"{cells}/obs/cell_type")
        print(f"{options.rounds} rounds in {time.perf_counter() - began:.1f} s")
        found = distboost.evaluate(model, f"{new}/X", f"{new}/obs/cell_type")
        print(f"accuracy {found['accuracy']:.2%} on {options.cells // 4:,} new cells")
        if options.picture is not None:
            draw(model, found, options.picture)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
