"""The functions of the product in which workers are struck, and what tests know of the inside of the exchange of histograms."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from distboost.runtime.cluster import owners, questions
from tests.faults.trainings import EVALUATED
from tests.faults.traps import Stage

_SHARD = "distboost.runtime.shard:Shard"
_EXCHANGE = "distboost.runtime.cluster.exchange:Exchange"


WORK = {
    "scan": Stage("distboost.data.scan:scan_labels"),
    "sample": Stage("distboost.data.scan:scan_features"),
    "bin": Stage("distboost.data.ingest:bin_rows"),
    "load": Stage("distboost.data.store.store:StoredRows._read"),
    "histogram": Stage(f"{_SHARD}.histogram"),
    "split": Stage("distboost.runtime.block:Block.split"),
    "leaf sums": Stage(f"{_SHARD}.sums"),
    "update": Stage(f"{_SHARD}.update"),
    "evaluate": Stage(
        "distboost.weights.margin:MarginWeights.risk",
        lambda call: EVALUATED in [getattr(each, "n_rows", 0) for each in call],
    ),
    "write labels": Stage("distboost.data.store.passes:_write_labels"),
    "write block": Stage("distboost.data.store.layout:StoredBlocks.write"),
    "predict": Stage("distboost.prediction.predictor:predict_chunk"),
    "predict into": Stage("distboost.prediction.streamed:predict_into"),
}
# Of the exchange.
STAGES = {
    "attempt begins": Stage(f"{_EXCHANGE}.begin"),
    "rows are summed": Stage(f"{_EXCHANGE}.contribute"),
    "a group's piece is made": Stage(f"{_EXCHANGE}.piece", lambda call: call[2].number is None),
    "a piece is made": Stage(f"{_EXCHANGE}.piece", lambda call: call[2].number is not None),
    "a piece is added": Stage(f"{_EXCHANGE}.receive"),
    "splits are searched": Stage(f"{_EXCHANGE}.answer"),
    "a node is searched": Stage(f"{_EXCHANGE}.search"),
}
# On the coordinator: all workers have answered earlier questions, none has been asked this one.
QUESTIONS = {"question": Stage("distboost.runtime.cluster.owners:Owners.expand")}


def exchange(
    patch: pytest.MonkeyPatch,
    pays: bool = True,
    group_size: Callable[[int], int] | None = None,
    fan_out: int | None = None,
) -> None:
    """Choose what else the size of the histograms and the number of workers decide.

    Parameters
    ----------
    patch : pytest.MonkeyPatch
    pays : bool
        Whether the workers own the histograms, or the coordinator adds all.
    group_size : callable, optional
        Of a number of workers.
    fan_out : int, optional
        The workers that are asked directly, by the coordinator and by each relay.
    """
    patch.setattr(owners, "exchange_pays", lambda n_bytes, n_workers: pays)
    if group_size is not None:
        patch.setattr(owners, "group_size", group_size)
    if fan_out is not None:
        patch.setattr(questions, "FAN_OUT", fan_out)
