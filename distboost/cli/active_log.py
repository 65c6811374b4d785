"""Commands about the log of active learning: bring labels, take them out, take them back, and look who did what."""

from __future__ import annotations

from typing import Any

import click

from distboost.cli.active_options import person_option, rows_of_text
from distboost.cli.options import Command, check_writable, overwrite_option, path_option

_log = path_option("--log", "Log of the work.")
MOST_SHOWN = 6  # rows of an event


@click.command("import", cls=Command, example="distboost active import --log work.log --labels labels.csv")
@_log
@path_option(
    "--labels", "CSV, .parquet or .json file with rows and labels, or what Label Studio exports as JSON."
)
@click.option("--key", metavar="COLUMN", help="Column of keys in place of numbers of rows (default: row).")
@path_option("--keys", "The pool's keys, (rows,): zarr, or Parquet with the column of --key.", required=False)
@person_option
@click.option("--correct", is_flag=True, help="Replace labels that differ.")
def import_labels(
    log: str, labels: str, key: str | None, keys: str | None, by: str | None, correct: bool
) -> None:
    """Read labels of any rows of the pool, by their numbers or keys, whether they were asked for or not."""
    from distboost.active.ledger import Ledger
    from distboost.cli.answers import record
    from distboost.cli.labels_files import read_labels, rows_by_key

    if (key is None) != (keys is None):
        raise click.UsageError("--key and --keys go together.")
    ledger = Ledger.from_log(log)
    if key is None or keys is None:
        texts = read_labels(labels)
    else:
        texts = rows_by_key(read_labels(labels, key), keys, key, ledger.n_rows, labels)
    click.echo(record(ledger, texts, labels, by=by, correct=correct, any_row=True))


@click.command(cls=Command, example="distboost active export --log work.log --out labels.csv")
@_log
@path_option("--out", "CSV, .parquet or .json file to write: row, label, by whom and when.")
@overwrite_option
def export(log: str, out: str, overwrite: bool) -> None:
    """Write the labels as they are now to a file."""
    from distboost.active.ledger import Ledger
    from distboost.active.records import when
    from distboost.cli.labels_files import write_labels

    check_writable(out, overwrite)
    ledger = Ledger.from_log(log)
    lines = []
    for row, label in ledger.labelled.items():
        event = ledger.origin(row) or {}
        at = when(event["at"]) if "at" in event else None
        lines.append((row, label, event.get("by"), at))
    write_labels(out, ("row", "label", "by", "at"), lines)
    click.echo(f"{len(lines)} labels in {out}")


@click.command(cls=Command, example="distboost active withdraw --log work.log --rows 5,17")
@_log
@click.option("--rows", required=True, metavar="N,N", help="Numbers of rows in the pool.")
@person_option
def withdraw(log: str, rows: str, by: str | None) -> None:
    """Take back what was said of rows: labels, or that they are skipped.

    They may be asked for again.
    """
    from distboost.active.ledger import Ledger

    listed = rows_of_text(rows)
    Ledger.from_log(log).withdraw(listed, by)
    click.echo(f"{len(listed)} rows withdrawn")


@click.command("log", cls=Command, example="distboost active log --log work.log")
@_log
def show_log(log: str) -> None:
    """Show what happened, one line for each event: when, who, what."""
    from distboost.active.ledger import Ledger
    from distboost.active.records import when
    from distboost.io.text import visible

    for event in Ledger.from_log(log).events:
        at = when(event["at"]) if "at" in event else "-"
        click.echo(f"{at}  {visible(event.get('by', '-'))}  {visible(_described(event))}")


def _described(event: dict[str, Any]) -> str:
    from distboost.active.records import kind_of, rows_of, when

    kind, rows = kind_of(event), rows_of(event)
    value = event[kind]
    if kind == "seeded":
        return f"seeded {len(value['labels'])} rows" + (
            f" of {value['x']}" if isinstance(value["x"], str) else ""
        )
    if not rows:
        said = ", ".join(f"{name} {now}" for name, now in value.items()) if isinstance(value, dict) else value
        return f"{kind} {said}"
    labels = value.get("labels") if isinstance(value, dict) else None
    shown = [
        str(row) if labels is None else f"{row} as {labels[k]}" for k, row in enumerate(rows[:MOST_SHOWN])
    ]
    text = f"{kind} {len(rows)} rows: {', '.join(shown)}{', ...' if len(rows) > MOST_SHOWN else ''}"
    if "again" in event:
        text += f"; {len(event['again'])} for a second opinion"
    if "until" in event:
        text += f"; until {when(event['until'])}"
    if "seconds" in event:
        text += f"; {event['seconds']:g} s"
    return text + (f"; {value['why']}" if kind == "skipped" and value["why"] else "")
