"""From a source to Inspect's samples: which case is played in which scenario and variant, under which id, in which order."""

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from logging import getLogger

from inspect_ai.dataset import MemoryDataset, Sample

from curate_inspect.cases import CATEGORIES, Case, Category
from curate_inspect.dialogue import SCENARIOS, Scenario, Variant, inapplicable, request, told_constraint
from curate_inspect.distractors import draw
from curate_inspect.mention import cues_of
from curate_inspect.sources import Source

logger = getLogger(__name__)


def select(source: Source, categories: Sequence[Category] = CATEGORIES, per_category: int | None = None) -> list[Case]:
    """The cases of some categories, interleaved.

    Args:
        source: Where the cases are from.
        categories: All means those that the source has; a data set of one's own may have one alone.
        per_category: Only the first so many of each.

    Raises:
        ValueError: When a category has fewer cases than asked for, or none.
    """
    groups = {category: [case for case in source.cases if case.category == category] for category in categories}
    if set(categories) == set(CATEGORIES):
        groups = {category: group for category, group in groups.items() if group}
    for category, group in groups.items():
        if len(group) < (per_category or 1):
            wanted = f"per_category={per_category}" if group else f"categories={category}"
            raise ValueError(f"{wanted} asks for more than cases={source.name!r} has: {len(group)} in {category!r}")
    chosen = [group[:per_category] for group in groups.values()]
    return [case for case in chain.from_iterable(zip_longest(*chosen)) if case is not None]


def build(
    source: Source,
    cases: Iterable[Case],
    scenarios: Sequence[Scenario] = SCENARIOS,
    variants: Sequence[Variant] = ("baseline",),
    *,
    trivia_turns: Sequence[int] = (3,),
    seed: int = 0,
) -> MemoryDataset:
    """The samples of a task, scenario by scenario, variant by variant, case by case.

    With the samples of one case far apart, the replies to their shared first turns are ready when the later ones start.

    Args:
        source: Where the cases are from.
        cases: Those to play.
        scenarios: The scenarios to play them in.
        variants: The variants of each scenario.
        trivia_turns: The numbers of trivia turns; one sample for each.
        seed: The seed of the distractors.

    Cases that lack the texts of a variant are left out of it, with a warning.

    Raises:
        ValueError: When a variant fits none of the cases, with the reason; or a pool is too small.
    """
    cases = list(cases)
    for case in cases:
        draw(source.pools, case, seed=seed, epoch=1, trivia_turns=max(trivia_turns))
    samples = []
    for scenario in scenarios:
        for variant in variants:
            for turns in trivia_turns:
                reasons = {case: inapplicable(case, scenario, variant, turns) for case in cases}
                playable = [case for case, reason in reasons.items() if reason is None]
                if not playable:
                    raise ValueError(f"no case can be played: {reasons[cases[0]]}")
                if len(playable) < len(cases):
                    lacking = next(filter(None, reasons.values()))
                    left_out = f"{len(cases) - len(playable)} of {len(cases)} cases"
                    logger.warning(f"{left_out} are left out of {variant!r}: {lacking}, …")
                name = "" if variant == "baseline" else f".{variant}"
                suffix = f".s{scenario}{name}" + (f".t{turns}" if len(trivia_turns) > 1 else "")
                samples += [_sample(source, case, scenario, variant, turns, seed, suffix) for case in playable]
    return MemoryDataset(samples, name=source.name)


def _sample(
    source: Source, case: Case, scenario: Scenario, variant: Variant, trivia_turns: int, seed: int, suffix: str
) -> Sample:
    constraint = told_constraint(case, variant)
    # The hazard is about the user and the request; a control is another request, and `reversed` about another person.
    hazard = None if variant in ("control", "reversed") else case.hazard
    return Sample(
        id=case.id + suffix,
        input=request(case, scenario, variant),
        target=hazard or constraint,
        metadata={
            "case": case.id,
            "category": case.category,
            "scenario": scenario,
            "variant": variant,
            "link": case.link or "unknown",
            "trivia_turns": trivia_turns,
            "constraint": constraint,
            "cues": list(cues_of(case, variant)),
            "cases": source.name,
            "data_version": source.version,
            "seed": seed,
            **({"doubts": list(case.doubts)} if case.doubts else {}),
        },
    )
