"""Prediction in which all chunks but the first one take long, in processes that are interrupted. Workers import this, too."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

from distboost.estimators import evaluating
from distboost.evaluation import sums
from distboost.prediction import streamed

PIECE_ROWS, PIECE_SECONDS = 100, 0.3  # of 10,000 rows: half a minute
_this = threading.local()
_pieces, _predict_into = streamed._pieces, streamed.predict_into
_judge_part, _sums = evaluating.judge_part, sums.Judge.sums


def _slowly(n_rows: int, at_once: int) -> Iterator[slice]:
    for rows in _pieces(n_rows, at_once):
        yield rows
        time.sleep(PIECE_SECONDS * _this.is_slow)


def _sums_slowly(judge: sums.Judge, *rows: Any) -> sums.Sums:
    time.sleep(PIECE_SECONDS * _this.is_slow)
    return _sums(judge, *rows)


streamed.PIECE_ROWS = sums.PIECE_ROWS = PIECE_ROWS
streamed._pieces = _slowly
sums.Judge.sums = _sums_slowly


def predict_into(model: Any, part: Any, start: int, *more: Any) -> None:
    _this.is_slow = start > 0
    _predict_into(model, part, start, *more)


def predict_into_and_interrupt(model: Any, part: Any, start: int, *more: Any) -> None:
    """When the first chunk is written, Ctrl-C as a terminal sends it."""
    predict_into(model, part, start, *more)
    if start == 0:
        os.killpg(os.getpgid(0), signal.SIGINT)


def judge_and_interrupt(judge: sums.Judge, x: Any, y: Any, weights: Any, first: int) -> Any:
    """When the first chunk is judged, Ctrl-C for this process."""
    _this.is_slow = first > 0
    found = _judge_part(judge, x, y, weights, first)
    if first == 0:
        os.kill(os.getpid(), signal.SIGINT)
    return found
