"""Text and one-hot tables through scikit-learn's pipelines, beside LightGBM: ``python -m tests.benchmarks.text``.

Documents are synthetic: words are drawn by Zipf's law, some of them more often in documents of their class. Counts are float32,
because LightGBM takes no others.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import click
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from distboost import GDMCBoostClassifier
from tests.benchmarks.datasets import official
from tests.benchmarks.results import table

N_WORDS = 8000
SHARE = 0.75  # of the documents to learn from


class Texts(NamedTuple):
    """Documents, or rows of categories, what makes numbers of them, and how many are learned from."""

    rows: Any
    y: np.ndarray
    encoder: Any
    n_train: int


def documents(
    encoder: Any,
    n: int,
    n_classes: int,
    length: int,
    wrong: float = 0.0,
    strength: float = 6.0,
    seed: int = 0,
) -> Texts:
    """`length` words a document, on average; in 60 words of a class, `strength` times as often; some labels are `wrong`."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    frequency = 1 / np.arange(10, N_WORDS + 10)
    of_class = np.tile(frequency, (n_classes, 1))
    for k in range(n_classes):
        of_class[k, rng.choice(2000, 60, replace=False)] *= strength
    of_class /= of_class.sum(axis=1, keepdims=True)
    words = np.array([f"w{d}" for d in range(N_WORDS)])
    rows = [" ".join(rng.choice(words, rng.poisson(length) + 1, p=of_class[k])) for k in y]
    y = np.where(rng.random(n) < wrong, rng.integers(0, n_classes, n), y)
    return Texts(rows, y, encoder, int(SHARE * n))


def phrases(n: int) -> Texts:
    """Documents whose class is the order of two words, which all classes have equally often."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, n)
    pairs = ["one two", "two one", "three four", "four three"]
    rest = documents(None, n, 1, 20, seed=2).rows
    rows = [
        f"{text} {pairs[k]}" if i % 2 else f"{pairs[k]} {text}"
        for i, (k, text) in enumerate(zip(y, rest, strict=True))
    ]
    return Texts(rows, y, CountVectorizer(ngram_range=(1, 2), min_df=3, dtype=np.float32), int(SHARE * n))


def one_hot(name: str) -> Texts:
    split = official(name)
    encoder = OneHotEncoder(handle_unknown="ignore")
    return Texts(
        np.concatenate([split.X, split.X_test]), np.append(split.y, split.y_test), encoder, len(split.y)
    )


TABLES: dict[str, Callable[[int], Texts]] = {
    "5 topics": lambda n: documents(CountVectorizer(dtype=np.float32), n, 5, 80),
    "20 topics": lambda n: documents(CountVectorizer(dtype=np.float32), n, 20, 120),
    "short texts": lambda n: documents(CountVectorizer(min_df=2, dtype=np.float32), n, 8, 15, strength=20.0),
    "wrong labels": lambda n: documents(CountVectorizer(dtype=np.float32), n, 5, 80, wrong=0.1),
    "two classes": lambda n: documents(
        CountVectorizer(binary=True, dtype=np.float32), n, 2, 60, strength=3.0
    ),
    "tf-idf": lambda n: documents(TfidfVectorizer(), n, 10, 100),
    "hashing": lambda n: documents(HashingVectorizer(n_features=2**12), n, 10, 100),
    "phrases": phrases,
    "letter, one-hot": lambda n: one_hot("letter"),
    "splice, one-hot": lambda n: one_hot("splice"),
}


def lightgbm_classifier() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=2, verbose=-1)


# For many features that tell a little each: cheap rounds, and many of them.
FOR_TEXT: dict[str, Any] = {
    "loss": "softmax", "leaf": "newton", "learning_rate": 0.2, "max_features": 0.1, "n_estimators": 1200, "calibration": None
}  # fmt: skip

MODELS: dict[str, Callable[[], Any]] = {
    "defaults": partial(GDMCBoostClassifier, n_jobs=2),
    "for text": partial(GDMCBoostClassifier, n_jobs=2, **FOR_TEXT),
    "LightGBM": lightgbm_classifier,
}


def measured(texts: Texts, model: str) -> tuple[float, float]:
    """The accuracy on the held-out rows, and the seconds that the pipeline takes to fit."""
    rows, y, encoder, n = texts
    pipeline = make_pipeline(encoder, MODELS[model]())
    started = time.perf_counter()
    pipeline.fit(rows[:n], y[:n])
    return float(np.mean(pipeline.predict(rows[n:]) == y[n:])), time.perf_counter() - started


@click.command()
@click.option("--data", multiple=True, type=click.Choice(list(TABLES)), help="All if not given.")
@click.option("--model", multiple=True, type=click.Choice(list(MODELS)), help="All if not given.")
@click.option("--rows", default=12_000, show_default=True, help="Documents of a table.")
def main(data: tuple[str, ...], model: tuple[str, ...], rows: int) -> None:
    """Prints test accuracy and seconds of each pipeline: distboost at its defaults and set for text, LightGBM at its defaults."""
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    models = model or tuple(MODELS)
    lines = []
    for name in data or TABLES:
        texts = TABLES[name](rows)
        found = [measured(texts, one) for one in models]
        cells = [f"{accuracy:.1%}" for accuracy, _ in found] + [f"{seconds:.1f}" for _, seconds in found]
        lines.append([name, *cells])
    click.echo(table(["data", *models, *(f"{one}, s" for one in models)], lines))


if __name__ == "__main__":
    main()
