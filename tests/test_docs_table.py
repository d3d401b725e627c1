"""The table of faults in `README.md` names tests that exist."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROWS = [line for line in (HERE / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]


def test_there_are_rows() -> None:
    assert len(ROWS) > 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_every_row_is_shown_by_a_test(row: str) -> None:
    named = re.search(r"`(test_\w+\.py)::(test_\w+)` \|$", row)
    assert named
    assert f"\ndef {named[2]}(" in (HERE / named[1]).read_text(encoding="utf-8")
