"""From logs to a report: tables, tests, figures and one page.

`reading` makes rows of logs, `tables` makes results of rows by the statistics of `counting`; `figures`, `findings` and `sections`
say what the results show, and `page` writes it down.
"""

import csv
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from curate_inspect.report import figures, page, sections, tables
from curate_inspect.report.reading import BENCHMARK, Logs, read_logs
from curate_inspect.sources import bundled_folder

TITLE = "CURATe: does it remember what would harm its user?"


def write_report(
    paths: Sequence[str],
    out: Path,
    compare: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Path:
    """Report any number of logs.

    Args:
        paths: Log files and folders of logs, local or as `s3://…`.
        out: The folder to write into: `report.html`, `report.md`, `results.csv`, `disagreements.csv`, `figures/`.
        compare: Two models to compare over the same cases.
        progress: Is told what is being done.

    Returns:
        The path of the page.

    Raises:
        ValueError: When no log can be reported, a model to compare is not in them, or `out` cannot be written; an earlier report
            stays as it is.
    """
    _check_writable(out)
    logs = read_logs(paths, progress)
    progress(f"counting {len(logs.rows)} verdicts")
    frame, apart = tables.label(logs.rows)
    compared = (tables.find_row(frame, compare[0]), tables.find_row(frame, compare[1])) if compare else None
    if compared and compared[0] == compared[1]:
        raise ValueError(f"--compare: {compare} name the same row; name two of: {', '.join(sorted(frame['row'].unique()))}")
    found = tables.all_results(frame)
    if compared:
        found += tables.comparison(frame, *compared)
    published = _published("published_results.csv")
    if (frame["kind"] == BENCHMARK).any():
        found += tables.published(published)
    results = tables.as_frame(found)
    rows = tables.order(frame)
    progress("drawing")
    disagreements = tables.disagreements(frame)
    content = sections.Content(
        logs=logs,
        frame=frame,
        results=results,
        rows=rows,
        figures={figure.name: figure for figure in figures.draw(results, rows)},
        apart=apart,
        worst=tables.worst(frame),
        disagreements=disagreements,
        compared=compared,
        published=published,
        published_ablations=_published("published_ablations.csv"),
        notes=_notes(frame, logs, apart),
        out=str(out.resolve()),
    )
    columns = ["row", "value", "mention", "case", "sample", "epoch", "log", "reply"]
    try:
        page.write(out, TITLE, _lead(frame, logs), sections.compose(content), results, disagreements[columns])
    except OSError as error:
        raise ValueError(f"--out {out}: cannot be written ({error.strerror}); make room, or name another folder") from error
    return out / "report.html"


def _check_writable(out: Path) -> None:
    """Reading and drawing take a while; what cannot be written should not have to wait for it."""
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        problem = "cannot be written" if there.is_dir() else "is no folder"
        raise ValueError(f"--out {out}: {there} {problem}; name another folder")


def _published(name: str) -> list[dict[str, str]]:
    with (bundled_folder() / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _lead(frame: pd.DataFrame, logs: Logs) -> str:
    dates = sorted({log.created[:10] for log in logs.used})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    models, cases = frame["model"].nunique(), frame.loc[frame["kind"] != "judge_agreement", "case"].nunique()
    numbers = {"model": models, "verdict": len(frame), "case": cases, "log": len(logs.used)}
    counted = ", ".join(f"{number} {name}{'' if number == 1 else 's'}" for name, number in numbers.items())
    return (
        "Early in a conversation a user mentions a severe allergy, phobia, physical constraint or trauma; turns later they ask "
        "for something that it rules out. A pass takes it into account. "
        f"{counted}, of {when}."
    )


def _notes(frame: pd.DataFrame, logs: Logs, apart: Sequence[tables.Apart]) -> list[str]:
    """What a reader must know before any figure."""
    notes = []
    simulated = sorted(model for model in frame["model"].unique() if model.startswith("curate/"))
    if simulated:
        which = "All models here are" if len(simulated) == frame["model"].nunique() else f"{', '.join(simulated)} are"
        notes.append(
            f"{which} simulated by rules. Their figures show what a report looks like and say nothing about any real model."
        )
    if apart:
        notes.append(f"{len(apart)} row{'s' if len(apart) > 1 else ''} cannot be compared with the others; see “Kept apart”.")
    # Rows that are kept apart are not compared at all.
    compared = frame[(frame["kind"] == BENCHMARK) & ~frame["row"].isin([row.row for row in apart])]
    asked = {row: frozenset(zip(of_row["case"], of_row["scenario"], strict=True)) for row, of_row in compared.groupby("row")}
    if len(set(asked.values())) > 1:
        numbers = ", ".join(f"{row} {len(conversations)}" for row, conversations in asked.items())
        notes.append(
            f"The models were not run on the same cases and scenarios (pairs of them: {numbers}): only --compare takes the ones "
            "that two have in common."
        )
    unscored = int(frame["value"].isna().sum())
    if unscored:
        reasons = frame.loc[frame["value"].isna(), "reason"].value_counts()
        told = ", ".join(f"{re.sub('_', ' ', str(reason))} {count}" for reason, count in reasons.items())
        notes.append(f"{unscored} of {len(frame)} replies have no rating and are in no rate ({told}).")
    if logs.left_out:
        notes.append(
            f"{len(logs.left_out)} log{'s were' if len(logs.left_out) > 1 else ' was'} left out; see the end for the reasons."
        )
    return notes
