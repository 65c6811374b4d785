"""What the work of a round costs on one core. `measure` finds these numbers on a machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

OF_MESSAGES = "send", "send_byte", "receive", "receive_byte", "ask", "answer"
MEASURED = Path(__file__).parents[1] / "costs.json"


@dataclass(frozen=True)
class Costs:
    """Seconds of one core, unless another unit is given.

    A *number* is an entry of a histogram: of one node, bin and channel, in 64 bits.
    """

    # A worker's work on its rows.
    root_row: float  # adding a row's statistic to one feature's histogram of the root, per 8 channels
    node_row: float  # the same of another node
    far_row: float  # what is added in each level below the first, where the rows of a node lie far apart
    fill_number: float  # a number of a bin that has rows: its way between memory and caches
    split_row: float  # dividing the rows of a level among its nodes, per row
    update_row: float  # scores, losses and the next statistics, per row and class
    leaf_row: float  # sums per leaf: per row, and 8 classes

    # The exchange.
    clear_number: float  # before rows are added
    pack_number: float  # looking for bins with rows, and copying these
    add_number: float  # adding a number of a piece
    own_number: float  # copying a number of the worker's own, to which others are added
    search_number: float  # subtracting siblings and comparing thresholds

    # Messages between workers, with their replies: each has a fixed part and one per byte.
    send: float
    send_byte: float
    receive: float
    receive_byte: float

    # The process of the client, in which the scheduler runs, too.
    ask: float  # a question to one worker, with the answer
    answer: float  # at the worker
    client_round: float  # what a round costs apart from its questions: the growing tree, the step
    add_star: float  # the client adds a number of a worker's histogram

    idle: float  # fraction of a core that a worker takes that does nothing: heartbeats, watching itself
    client_idle: float  # the same of the client with the scheduler
    smaller: float  # fraction of the rows that is in the smaller children
    crowd: float  # how much more messages cost for each further process that shares a core
    jitter: float  # relative standard deviation of the time that a piece of work takes

    def crowded(self, factor: float) -> Costs:
        """The costs of messages are higher by a factor."""
        return replace(self, **{name: factor * getattr(self, name) for name in OF_MESSAGES})

    def save(self, path: Path = MEASURED) -> None:
        """Write a JSON file."""
        path.write_text(json.dumps({k: float(f"{v:.3g}") for k, v in asdict(self).items()}, indent=2) + "\n")

    @classmethod
    def load(cls, path: Path = MEASURED) -> Costs:
        """Read a JSON file."""
        values = json.loads(path.read_text())
        return cls(**{field.name: values[field.name] for field in fields(cls)})
