"""The same figures as the study grows: 1,700, 5,100 and 17,000 samples of one task."""

from tests.benchmarks.common import in_turn, show
from tests.benchmarks.overhead import NAMES

CASES = (340, 1_020, 3_400)


def table() -> None:
    """Print them, one run each."""
    found = in_turn("overhead.measure", {f"{5 * cases:,} samples": ("shared", cases) for cases in CASES}, rounds=1)
    rows = [(name, [f"{figures[key]:.2f}" for figures in found.values()]) for key, name in NAMES.items()]
    show("Growth: curate on copies of the bundled cases", tuple(found), rows)
