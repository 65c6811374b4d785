"""From zarr arrays to a model and predictions, on a cluster of three processes: `make demo`.

Trains GD-MCBoost on the UCI letter data (16,000 + 4,000 rows, 16 features, 26 classes), first on a Dask scheduler and two
workers, then in this process. The two model files are the same, byte for byte.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import dask.array as da
import numpy as np
import psutil
import zarr
from dask.distributed import Client

from distboost import GDMCBoostClassifier
from distboost.cluster.local import local_cluster

LETTER = Path(__file__).parent / "data" / "letter.npz"
TEXT = np.dtypes.StringDType()  # zarr's type for text of any length


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument(
        "--folder", type=Path, default=Path("demo-data"), help="where to write arrays and models"
    )
    options = parser.parse_args()
    data = write_arrays(options.folder.resolve())

    with (
        PeakMemory() as memory,
        local_cluster(n_workers=2) as cluster,
        Client(cluster.address, timeout=30) as client,
    ):
        print(f"A scheduler at {cluster.address} and 2 worker processes are up.", flush=True)
        clock = Clock()
        model = GDMCBoostClassifier(n_estimators=options.rounds, verbose=1, callbacks=[clock])
        model.client = client
        # Give paths, not arrays: each worker reads its own rows.
        model.fit(f"{data}/x_train", f"{data}/y_train")
        model.save(f"{options.folder}/cluster.dboost")

        # `predicted` is a lazy dask array: the workers compute and write it chunk by chunk.
        predicted = model.predict(f"{data}/x_test").astype(TEXT)
        predicted.to_zarr(f"{data}/predicted", overwrite=True)
        right = predicted_right(f"{data}/predicted", f"{data}/y_test")

    # The client is closed, so this training runs in this process.
    clock_alone = Clock()
    alone = GDMCBoostClassifier(n_estimators=options.rounds, callbacks=[clock_alone])
    alone.fit(f"{data}/x_train", f"{data}/y_train")
    alone.save(f"{options.folder}/alone.dboost")
    digests = [sha256(options.folder / name) for name in ("cluster.dboost", "alone.dboost")]

    print(f"test accuracy   {right:.2%}")
    print(
        f"time per round  {clock.per_round():.3f} s on the cluster, {clock_alone.per_round():.3f} s in one process alone"
    )
    print(
        f"all rounds      {clock.total():.1f} s and {clock_alone.total():.1f} s, including binning and compilation"
    )
    print(f"peak memory     {memory}")
    print(f"cluster.dboost  sha256 {digests[0]}")
    print(f"alone.dboost    sha256 {digests[1]}")
    same = digests[0] == digests[1]
    print("The two model files are equal." if same else "ERROR: the two model files differ.")
    return 0 if same else 1


def write_arrays(folder: Path) -> str:
    """Writes the data as chunked zarr arrays; returns the path of their group."""
    with np.load(LETTER) as letter:
        X, y, n_train = letter["X"], letter["classes"][letter["y"]].astype(TEXT), int(letter["n_train"])
    group = zarr.open_group(folder / "letter.zarr", mode="w")
    for part, rows in (("train", slice(n_train)), ("test", slice(n_train, None))):
        for name, values in (("x", X[rows].astype(np.float32)), ("y", y[rows])):
            chunks = (2000, *values.shape[1:])
            array = group.create_array(
                f"{name}_{part}", shape=values.shape, chunks=chunks, dtype=values.dtype
            )
            array[:] = values
    return str(folder / "letter.zarr")


def predicted_right(predicted: str, true: str) -> float:
    """The fraction of equal labels in two arrays, chunk by chunk."""
    return float((da.from_zarr(predicted) == da.from_zarr(true)).mean().compute())


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Clock:
    """A callback that records when each round ended."""

    def __init__(self) -> None:
        self.times = [time.perf_counter()]

    def __call__(self, progress: object) -> None:
        self.times.append(time.perf_counter())

    def total(self) -> float:
        return self.times[-1] - self.times[0]

    def per_round(self) -> float:
        """The median without the first round, which compiles."""
        return float(np.median(np.diff(self.times)[1:] if len(self.times) > 2 else np.diff(self.times)))


class PeakMemory:
    """The peak resident memory of this process and its children, sampled ten times a second."""

    def __init__(self) -> None:
        self.largest = self.together = self.processes = 0
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watcher.join(timeout=5)

    def __str__(self) -> str:
        return (
            f"{self.largest / 2**20:,.0f} MiB in the largest process, {self.together / 2**20:,.0f} MiB in all "
            f"{self.processes} (this one and those of the cluster)"
        )

    def _watch(self) -> None:
        me = psutil.Process(os.getpid())
        while not self._ended.wait(0.1):
            found = []
            for process in (me, *me.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):  # it has ended
                    found.append(process.memory_info().rss)
            self.largest = max(self.largest, *found)
            self.together, self.processes = max((self.together, self.processes), (sum(found), len(found)))


if __name__ == "__main__":
    sys.exit(main())
