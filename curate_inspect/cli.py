"""The command `curate-inspect`: what is done before and after a run. Runs themselves are Inspect's `inspect eval`."""

import argparse
import os
import sys
from pathlib import Path

from curate_inspect.cases import at, missing, set_faults
from curate_inspect.sources import DataError, placed_cases


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns its exit status: 0, 1 when something is wrong with what was given, 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="curate-inspect", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="check a file or folder of cases by all rules of the bundled ones")
    check.add_argument("path", type=Path, help="a .jsonl, .csv or .xlsx file, or a folder of them")
    check.set_defaults(run=lambda given: _check(given.path))

    fetch = commands.add_parser("fetch", help="download the published files for cases=paper beforehand, and verify them")
    fetch.set_defaults(run=lambda given: _fetch())

    estimate = commands.add_parser("estimate", help="the calls and tokens that a task will take, and what they cost")
    estimate.add_argument("task", nargs="?", default="curate", metavar="TASK", help="the name of a task (default: curate)")
    estimate.add_argument(
        "-T", action="append", default=[], metavar="NAME=VALUE", help="an argument of the task, as for inspect eval"
    )
    estimate.add_argument("--model", default="model", help="names of models to evaluate, with commas between")
    estimate.add_argument("--grader", help="names of graders, with commas between (default: the default grader)")
    estimate.add_argument("--epochs", type=int, default=1, help="how often each sample is run (default: 1)")
    estimate.add_argument("--reply-tokens", type=int, default=100, help="tokens a reply, thinking included (default: 100)")
    estimate.add_argument("--verdict-tokens", type=int, default=120, help="tokens a grader's verdict (default: 120)")
    price = "dollars for a million input and output tokens of a model, e.g. openai/gpt-4o=2.5/10; once for each model"
    estimate.add_argument("--price", action="append", default=[], metavar="NAME=INPUT/OUTPUT", help=price)
    config = "prices in Inspect's own form, as for inspect eval (default: $INSPECT_EVAL_MODEL_COST_CONFIG)"
    config_default = os.environ.get("INSPECT_EVAL_MODEL_COST_CONFIG")
    estimate.add_argument("--model-cost-config", metavar="FILE", default=config_default, help=config)
    estimate.set_defaults(run=_estimate)

    report = commands.add_parser("report", help="tables, tests, figures and one HTML page from the logs of runs")
    report.add_argument(
        "logs", nargs="*", metavar="LOG", help="log files and folders, local or s3://… (default: Inspect's log folder)"
    )
    report.add_argument("--out", type=Path, default=Path("report"), help="the folder to write (default: report)")
    report.add_argument("--compare", nargs=2, metavar=("A", "B"), help="two models to compare over the same cases")
    report.set_defaults(run=lambda given: _report(given.logs, given.out, given.compare))

    given = parser.parse_args(arguments)
    try:
        return int(given.run(given))
    except (DataError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _check(path: Path) -> int:
    """Print every fault of the cases at `path`, and what they lack for some tasks."""
    placed = placed_cases(path)
    places, cases = list(placed), list(placed.values())
    faults = [fault for i, found in set_faults(cases) for fault in at([found], *places[i])]
    for fault in sorted(faults):
        print(fault)
    lacking = {
        name: sum(name in missing(case) for case in cases) for name in ("hazard", "link", "cues", "avoid", "reversed", "control")
    }
    print(f"{len(cases)} case{'' if len(cases) == 1 else 's'}, {len(faults)} fault{'' if len(faults) == 1 else 's'}.")
    for name, count in lacking.items():
        if count:
            print(f"  {count} without {name}: {_USES[name]}")
    return 1 if faults else 0


def _fetch() -> int:
    """Download and verify the published files; print where they are."""
    from curate_inspect.paper import FILES, paper_files

    for path in paper_files(FILES).values():
        print(path)
    return 0


def _estimate(given: argparse.Namespace) -> int:
    """Print what a run will take."""
    from curate_inspect.estimate import estimate, prices, table, task_arguments
    from curate_inspect.judge import DEFAULT_GRADER

    found = estimate(
        given.task.removeprefix("curate_inspect/"),
        task_arguments(given.T),
        epochs=given.epochs,
        reply_tokens=given.reply_tokens,
        verdict_tokens=given.verdict_tokens,
    )
    models, graders = _names("--model", given.model), _names("--grader", given.grader or DEFAULT_GRADER)
    print(table(found, models, graders, prices(given.price, given.model_cost_config)))
    return 0


def _names(option: str, given: str) -> list[str]:
    names = [name.strip() for name in given.split(",")]
    if not all(names):
        raise ValueError(f"{option} {given}: has an empty name; write names with commas between")
    return names


def _report(logs: list[str], out: Path, compare: list[str] | None) -> int:
    """Write the report of some logs and say where it is."""
    try:
        from curate_inspect.report import write_report
    except ModuleNotFoundError as error:
        if error.name in ("altair", "jinja2", "pandas", "scipy", "vl_convert"):
            raise ValueError(f'the report needs {error.name}: pip install "curate-inspect[report]"') from error
        raise

    def progress(text: str) -> None:
        # One line that is written over on a terminal, lines of their own elsewhere.
        start, end = ("\r\x1b[K", "") if sys.stderr.isatty() else ("", "\n")
        print(f"{start}{text}", end=end, file=sys.stderr, flush=True)

    try:
        page = write_report(logs or [os.environ.get("INSPECT_LOG_DIR", "logs")], out, compare, progress)
    finally:
        if sys.stderr.isatty():
            print(file=sys.stderr)
    print(page)
    return 0


_USES = {
    "hazard": "the judge gets no reason why it matters",
    "link": "reports cannot tell explicit from inferred",
    "cues": "they are derived from the constraint",
    "avoid": "any distractor may be drawn",
    "reversed": "left out of the variant 'reversed'",
    "control": "left out of over_caution",
}
