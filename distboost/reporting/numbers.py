"""Numbers and names as the page shows them."""

from __future__ import annotations

import math
import os
import re
from pathlib import PurePath
from typing import Any

import numpy as np

from distboost.estimators.parameters import RUN_PARAMETERS, own_parameters
from distboost.io.storage import local_path
from distboost.io.text import visible

MOST_LETTERS = 80  # of a name


def name(value: Any) -> str:
    """Return a label or a feature name in one line, cut if it is long.

    >>> name("a" * 100) == "a" * 79 + "…"
    True
    """
    text = visible(str(value)[: MOST_LETTERS + 1])  # of a huge name, only the beginning is looked at
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


def place(url: str | os.PathLike[str]) -> str:
    """Return the name of data, as others may see it: no folders of this machine, no credentials, no signatures.

    >>> place("data/x.zarr"), place("/home/ada/data/letter.zarr/x_train"), place("file:///home/ada/x.zarr")
    ('data/x.zarr', 'letter.zarr/x_train', 'ada/x.zarr')
    >>> place("simplecache::s3://key:secret@bucket/letter.zarr/x"), place("https://host/x.zarr?sig=secret")
    ('simplecache::s3://bucket/letter.zarr/x', 'https://host/x.zarr')
    """
    path = local_path(url)
    if path is not None:
        return visible(PurePath(*path.parts[1:][-2:]) if path.is_absolute() else path)
    return visible("::".join(map(_without_secrets, os.fspath(url).split("::"))))


def _without_secrets(link: str) -> str:
    """Return a URL without user, password, query and fragment."""
    protocol, separator, rest = link.partition("://")
    return protocol + separator + re.split("[?#]", rest)[0].rpartition("@")[2]


def amount(value: float) -> str:
    """Return a number of rows, or their weight.

    >>> amount(12345), amount(0.25)
    ('12,345', '0.25')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def fraction(value: float) -> str:
    """Return a fraction in percent.

    >>> fraction(0.12345)
    '12.3 %'
    """
    return f"{100 * value:.1f} %"


def decimal(value: float) -> str:
    """Return a metric with four decimals, or a dash if it is not defined.

    >>> decimal(0.98765), decimal(float("nan"))
    ('0.9877', '–')
    """
    return "–" if math.isnan(value) else f"{value:.4f}"


def parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that determine the model."""
    return {key: value for key, value in own_parameters(model).items() if key not in RUN_PARAMETERS}


def rounds(model: Any) -> str:
    """Return the number of rounds, and of those that are kept if these are fewer."""
    done = str(model.n_iter_)
    return (
        done if model.best_iteration_ == model.n_iter_ else f"{done}, the first {model.best_iteration_} kept"
    )


def top_features(model: Any, most: int) -> tuple[list[tuple[Any, float]], int]:
    """Return the features of the largest gain, each with its fraction of all gain, and how many features have a gain."""
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    features, gains = model.learned_.ensemble.gains()
    used = np.flatnonzero(gains > 0)
    first = used[np.argsort(-gains[used], kind="stable")[:most]]
    return [(names[features[i]], float(gains[i] / gains.sum())) for i in first], len(used)
