"""The parts by themselves: the dataset, the draw, the mention scorer, the parser of verdicts."""

import time
from collections.abc import Callable
from itertools import cycle, islice

from tests.benchmarks.common import Figures, in_turn, show


def table(rounds: int = 5) -> None:
    """Print the CPU seconds of each."""
    found = in_turn("parts.measure", {"parts": ()}, rounds)["parts"]
    show(
        f"Parts, medians of {rounds} fresh processes",
        ("CPU, s",),
        [(name, [f"{seconds:.3f}"]) for name, seconds in found.items()],
    )


def measure() -> Figures:
    """Time each once; reading the data comes first and by itself."""
    from curate_inspect import curate
    from curate_inspect.distractors import draw
    from curate_inspect.judge import CONSIDERATION
    from curate_inspect.mention import cues_of, mentions
    from curate_inspect.sources import load
    from curate_inspect.verdicts import parse_verdict
    from tests.benchmarks.common import REPLY, VERDICT

    figures: Figures = {}

    def timed(name: str, run: Callable[[], object]) -> None:
        started = time.process_time()
        run()
        figures[name] = time.process_time() - started

    timed("reading the 340 bundled cases", load)
    timed("the dataset of 1,700 samples", curate)
    source = load()
    cases = list(islice(cycle(source.cases), 10_000))
    timed("10,000 draws", lambda: [draw(source.pools, case, seed=1, epoch=1, trivia_turns=3) for case in cases])
    replies = [(f"{REPLY} Besides, number {i} is {case.hazard}", cues_of(case)) for i, case in enumerate(cases)]
    timed("10,000 replies by the mention scorer", lambda: [mentions(reply, cues) for reply, cues in replies])
    verdicts = [VERDICT.replace("forgets", f"forgets {i}") for i in range(100_000)]
    timed("100,000 verdicts by the parser", lambda: [parse_verdict(verdict, CONSIDERATION.factors) for verdict in verdicts])
    return figures
