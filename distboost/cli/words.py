"""Messages of the library in the words of the command line: options in place of what is marked in them."""

from __future__ import annotations

import re
from functools import cache

import click

from distboost.message import MARK
from distboost.registry import ALGORITHMS, estimator_names

# Parameters with options of the same name.
_SAME = """
sample_weight memory_limit max_bins random_state keep_values groups resume out overwrite metrics space scoring n_iter halving
classes feature_dim nodata tile_size target_error max_labels n_initial batch_size pool_fraction diversity jobs
strategy audit overlap hours
"""
# What stands for a mark: options for parameters and data, other remedies for those that have a name.
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME.split()} | {
    "X": "--x",
    "y": "--y",
    "eval_set": "--eval-x",
    "eval_set X": "--eval-x",
    "eval_set y": "--eval-y",
    "eval_set sample_weight": "--eval",
    "categorical_features": "--categorical",
    "wait_for_workers": "--wait-workers",
}
REMEDIES = {
    "EventLog": "distboost train --events",
    "again": "",
    "bin_weights": "distboost bin --sample-weight",
    "caller": "the process of this command",
    "connect": "Repeat the command",
    "eval_set=(X, y)": "--eval-x and --eval-y",
    "extended": "distboost active ask --extend",
    "group": "",
    "labelled": "--eval-x and --eval-y, or --eval NAME=X,Y[,WEIGHTS]",
    "no_halving": "Leave --halving out",
    "no_labels": "--y is missing.",
}


def in_options(text: str) -> str:
    """Return a message with the options of the current command in place of its marks."""
    context = click.get_current_context(silent=True)
    options = set() if context is None else {name for p in context.command.params for name in p.opts}
    return MARK.sub(lambda found: _worded(found[1], found[2], options), text)


def _worded(key: str | None, text: str, options: set[str]) -> str:
    """Return the words for a mark: NAME, NAME=VALUE, a set of evaluation rows, an estimator, or KEY|WORDS."""
    if (key or text) in REMEDIES:
        return REMEDIES[key or text]
    if named := re.fullmatch(r"eval_set ('.*')(?: \w+)?", text):
        return f"--eval {named[1]}"
    name, _, value = text.partition("=")
    name = key or name
    option = OPTIONS.get(name)
    if name in _parameters() and option not in options:
        return f"--set {key or text}"
    if option is None:
        return estimator_names(ALGORITHMS).get(name.removesuffix("()"), text)
    return option if value in ("", "True", "...") else f"{option} {value}"


@cache
def _parameters() -> frozenset[str]:
    """Return the parameters of all estimators."""
    from distboost.estimators.factory import estimator

    return frozenset(
        name for algorithm in ALGORITHMS for name in estimator(algorithm)().get_params(deep=False)
    )
