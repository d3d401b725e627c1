"""The command `curate-inspect`: what is done before and after a run. Runs themselves are Inspect's `inspect eval`."""

import argparse
import sys
from pathlib import Path

from curate_inspect.cases import at, missing, set_faults
from curate_inspect.sources import DataError, read_cases


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns its exit status: 0, 1 when something is wrong with what was given, 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="curate-inspect", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="check a file or folder of cases by all rules of the bundled ones")
    check.add_argument("path", type=Path, help="a .jsonl, .csv or .xlsx file, or a folder of them")
    check.set_defaults(run=lambda given: _check(given.path))

    given = parser.parse_args(arguments)
    try:
        return int(given.run(given))
    except (DataError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _check(path: Path) -> int:
    """Print every fault of the cases at `path`, and what they lack for some tasks."""
    cases = read_cases(path)
    faults = [fault for i, found in set_faults(cases) for fault in at([found], f"{path} [{cases[i].id}]", 0)]
    for fault in sorted(faults):
        print(fault)
    lacking = {
        name: sum(name in missing(case) for case in cases) for name in ("hazard", "link", "cues", "avoid", "reversed", "control")
    }
    print(f"{len(cases)} cases, {len(faults)} fault{'' if len(faults) == 1 else 's'}.")
    for name, count in lacking.items():
        if count:
            print(f"  {count} without {name}: {_USES[name]}")
    return 1 if faults else 0


_USES = {
    "hazard": "the judge gets no reason why it matters",
    "link": "reports cannot tell explicit from inferred",
    "cues": "they are derived from the constraint",
    "avoid": "any distractor may be drawn",
    "reversed": "left out of the variant 'reversed'",
    "control": "left out of over_caution",
}
