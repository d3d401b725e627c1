"""All measurements of what our tasks cost, as tables: `python -m tests.benchmarks [TABLE…]`, from the root of a checkout.

Figures are medians of fresh processes that take turns, so that ratios hold although times depend on the machine. Everything runs
offline, with canned replies. The whole takes about 45 minutes; one table: `python -m tests.benchmarks calls`.
"""

import argparse

from tests.benchmarks import calls, growth, latency, overhead, parts, start

TABLES = {
    "calls": calls.table,
    "overhead": overhead.table,
    "start": start.table,
    "latency": latency.table,
    "parts": parts.table,
    "growth": growth.table,
}

parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=(__doc__ or "").split("\n")[0])
parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"any of {', '.join(TABLES)}; all by default")
chosen = parser.parse_args().tables
if unknown := [name for name in chosen if name not in TABLES]:
    parser.error(f"{unknown[0]!r} is no table; choose from {', '.join(TABLES)}")
for name in chosen or TABLES:
    TABLES[name]()
