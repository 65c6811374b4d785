"""The report of a model of the UCI letters.

    python -m examples.letter_report --out report.html
    python -m examples.letter_report --picture docs/images/report.png

Trains GD-MCBoost on the 16,000 training rows, of which a tenth is left out for evaluation and calibration, and judges it on
the 4,000 test rows. The picture, of the beginning of the page, needs Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import distboost
from distboost import GDMCBoostClassifier

LETTER = Path(__file__).parent / "data" / "letter.npz"
SIZE = "1200,1290"  # of the picture


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="where to write the report")
    parser.add_argument("--picture", type=Path, help="where to write a picture of it")
    options = parser.parse_args()
    with np.load(LETTER) as letter:
        X, y, n_train = letter["X"].astype(np.float32), letter["classes"][letter["y"]], int(letter["n_train"])
    model = GDMCBoostClassifier(
        n_estimators=options.rounds, eval_metric="log_loss", validation_fraction=0.1, verbose=1
    )
    model.fit(X[:n_train], y[:n_train])
    found = distboost.report(model, X[n_train:], y[n_train:], options.out, title="Letter recognition")
    print(f"accuracy {found['accuracy']:.2%}, log-loss {found['log_loss']:.4f}: {options.out}")
    if options.picture is not None:
        take_picture(options.out, options.picture)
    return 0


def take_picture(page: Path, picture: Path) -> None:
    """Draws the beginning of a page, in its light colours."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("There is no Chromium, which draws the picture. Install it, or leave out --picture.")
    with tempfile.TemporaryDirectory() as profile:
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
            f"--window-size={SIZE}", "--blink-settings=preferredColorScheme=1",
        ]  # fmt: skip
        command = [browser, *options, f"--screenshot={picture.resolve()}", page.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    sys.exit(main())
