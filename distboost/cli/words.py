"""Messages of the library in the words of the command line: options in place of Python's parameters and calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial

import click

from distboost.registry import ALGORITHMS, estimator_names

# Parameters of functions, and the options that stand for them.
OPTIONS = {
    "X": "--x",
    "y": "--y",
    "eval_set": "--eval-x",
    "sample_weight": "--sample-weight",
    "memory_limit": "--memory-limit",
    "max_bins": "--max-bins",
    "random_state": "--random-state",
    "keep_values": "--keep-values",
    "categorical_features": "--categorical",
    "groups": "--groups",
    "metrics": "--metrics",
    "space": "--space",
    "scoring": "--scoring",
    "n_iter": "--n-iter",
    "halving": "--halving",
    "wait_for_workers": "--wait-workers",
    "n_workers": "--workers",
    "n_threads": "--threads",
    "classes": "--classes",
    "target_error": "--target-error",
    "max_labels": "--max-labels",
    "n_initial": "--n-initial",
    "batch_size": "--batch-size",
    "pool_fraction": "--pool-fraction",
    "diversity": "--diversity",
}

# Calls and phrases, before single parameters are translated.
_PHRASES: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"Call fit\(\.\.\., eval_set=\(X, y\)\)": "Pass --eval-x and --eval-y",
    r"an eval_set to measure: eval_set=\(X, y\)": "--eval-x and --eval-y, to measure it",
    r"\(X, y\) or \(X, y, sample_weight\)": "--eval-x and --eval-y, or --eval NAME=X,Y[,WEIGHTS]",
    r"eval_set ('[^']*') (?:X|y|sample_weight)": r"--eval \1",
    r"eval_set ('[^']*')": r"--eval \1",
    r"eval_set (X|y)\b": lambda found: f"--eval-{found[1].lower()}",
    r"eval_set sample_weight": "--eval",
    r"\b(an|the|same) eval_set\b": r"\1 evaluation set (--eval-x and --eval-y)",
    r"This \w+ estimator requires y to be passed, but the target y is None\.": "--y is missing.",
    r"fit\(\.\.\., resume=True\)|(?<!-)\bresume=True|(?<=without )resume\b": "--resume",
    r"\bCall fit\b": "Train",
    r"\bfit (?=with --resume)": "train ",
    r"the process that calls fit\b": "the process of this command",
    r"distboost\.bin\([^)]*\), or (?=distboost bin)": "",
    r"Connect a new one: Client\([^)]*\)": "Repeat the command",
    r"wait_for_workers, (?=--wait-workers)": "",
    r"Set halving=None": "Leave --halving out",
    r", or group\['[^']*'\]": "",
    r"^(groups|metrics|space|scoring|halving) (?=\(|has\b|is\b)": r"--\1 ",
    r": teach\(old\.labelled_, old\.labels_\)": "",
}

_FREE = r"(?<![\w/.=\-'\"])"  # not within a path, a quotation or an option
_END = r"(?![\w/\-'\"(\[])(?!\.\w)"


def in_options(text: str) -> str:
    """Return a message with the options of the current command in place of parameters."""
    context = click.get_current_context(silent=True)
    options = set() if context is None else {name for p in context.command.params for name in p.opts}
    for pattern, words in _PHRASES.items():
        text = re.sub(pattern, words, text)
    text = re.sub(
        r"The '(\w+)' parameter of (\w+) must be",
        lambda found: f"{_option(found[1], options)} of {found[2]} must be",
        text,
    )
    # Patterns are compiled for names that occur only: for all of them, that takes longer than all else of a message.
    for name in (*OPTIONS, *_parameters()):
        if name in text:
            text = _named(name, _option(name, options), text)
    for name, algorithm in estimator_names(ALGORITHMS).items():
        if name in text:
            text = re.sub(rf"\b{name}\b(\(\))?", algorithm, text)
    return re.sub(r"\b([Ss])et (?=--)", lambda found: "Pass " if found[1] == "S" else "pass ", text)


def _option(name: str, options: set[str]) -> str:
    """Return what stands for a parameter: an option of its own, or --set NAME."""
    option = OPTIONS.get(name)
    if option is None or (option not in options and name in _parameters()):
        return f"--set {name}"
    return option


@cache
def _parameters() -> tuple[str, ...]:
    """Return the parameters of all estimators."""
    from distboost.estimators.factory import estimator

    found = (name for algorithm in ALGORITHMS for name in estimator(algorithm)().get_params(deep=False))
    return tuple(dict.fromkeys(found))


def _named(name: str, option: str, text: str) -> str:
    """Return the text with an option in place of a parameter: NAME=VALUE anywhere, NAME alone unless it is a word of English."""
    text = re.sub(
        rf"{_FREE}(?<!--set ){name}=(\.\.\.|'[^']*'|[^\s,;)]*[^\s,;).])?", partial(_valued, option), text
    )
    if "_" not in name and name not in ("X", "y"):
        return text
    return re.sub(rf"{_FREE}(?<!--set ){name}{_END}", lambda _: option, text)


def _valued(option: str, found: re.Match[str]) -> str:
    """Return an option with the value that a parameter has in a message."""
    value = found[1] or ""
    if option.startswith("--set "):
        return f"{option}={value}"
    return option if value in ("True", "...", "") else f"{option} {value}"
