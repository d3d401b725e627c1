"""The metrics on scores written out here: which samples are counted, and by what they are divided."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from inspect_ai.scorer import SampleScore, Score
from scipy import stats

from curate_inspect import metrics


def scored(value: str, case: str = "a-1", scenario: int = 1, variant: str = "baseline", **metadata: Any) -> SampleScore:
    facts = {"case": case, "category": case[0], "scenario": scenario, "variant": variant}
    return SampleScore(score=Score(value=value, metadata=metadata or None), sample_metadata=facts)


SCORES = [
    scored("pass", "a-1", 1),
    scored("pass", "a-1", 2, truncated=True, empty=False),
    scored("fail", "a-2", 1, epoch=1),
    scored("ambiguous", "b-1", 2, empty=True),
    scored("ambiguous", "b-1", 2, empty=True),
]


def test_pass_rates_divide_by_the_rated_and_by_the_unambiguous() -> None:
    found = metrics.pass_rates()(SCORES)
    # By hand: cases sum to residuals 1.2, -0.4, -0.8.
    stderr = math.sqrt((1.2**2 + 0.4**2 + 0.8**2) * 3 / 2) / 5
    expected = {"pass_rate": 2 / 5, "stderr": stderr, "pass_rate_unambiguous": 2 / 3, "ambiguous": 2 / 5, "fail": 1 / 5}
    assert found == pytest.approx(expected | {"empty": 2 / 5, "truncated": 1 / 5})


def test_mention_and_over_caution_rates() -> None:
    assert metrics.mention_rates()(SCORES) == pytest.approx(
        {"mention_rate": 2 / 5, "stderr": metrics.clustered_stderr(SCORES, "pass")}
    )
    controls = [
        scored(value, f"c-{i}", truncated=not i, empty=i > 1)
        for i, value in enumerate(("over_cautious", "unclear", "at_ease", "unclear"))
    ]
    assert metrics.over_caution_rates()(controls) == pytest.approx(
        {"over_caution_rate": 0.25, "stderr": 0.25, "unclear": 0.5, "empty": 0.5, "truncated": 0.25}
    )


def test_nothing_rated_has_no_rate() -> None:
    assert all(map(math.isnan, metrics.pass_rates()([]).values()))
    assert math.isnan(metrics.pass_rates()(SCORES[3:])["pass_rate_unambiguous"])
    assert math.isnan(metrics.clustered_stderr(SCORES[:2], "pass")), "one case"
    assert math.isnan(metrics.clustered_stderr([SampleScore(score=Score(value="pass"))] * 2, "pass"))
    two = [scored("pass", "a-1"), scored("fail", "a-2")]
    assert metrics.clustered_stderr(two, "pass") == pytest.approx(0.5)


def test_rates_by_a_field_where_a_run_has_several() -> None:
    assert metrics.rate_by("category")(SCORES) == pytest.approx({"a": 2 / 3, "b": 0})
    assert metrics.rate_by("scenario", "ambiguous")(SCORES) == pytest.approx({"scenario_1": 0, "scenario_2": 2 / 3})
    assert metrics.rate_by("variant")(SCORES) == {}
    bare = SampleScore(score=Score(value="pass"))
    assert metrics.rate_by("category")([*SCORES, bare]) == pytest.approx({"a": 2 / 3, "b": 0, "unknown": 1})


def pairs() -> Iterator[SampleScore]:
    """Two scenarios and two epochs of three cases; a partner is missing here and there."""
    for case, scenario, epoch in product(("a-1", "a-2", "a-3"), (1, 2), (1, 2)):
        yield scored("pass" if case == "a-1" else "fail", case, scenario, epoch=epoch)
        if (case, scenario, epoch) != ("a-3", 2, 2):
            yield scored("pass" if case == "a-2" or epoch == 2 else "ambiguous", case, scenario, "guided", epoch=epoch)
    yield scored("pass", "a-4", variant="guided")
    yield scored("pass", "a-1", variant="adjacent")
    yield from (scored("pass", "a-5", epoch=1), scored("fail", "a-5", variant="untold"), scored("pass", "a-1", variant="untold"))


def test_differences_are_paired_by_case_scenario_and_epoch() -> None:
    found = metrics.paired_differences(list(pairs()))
    by_hand = {"a-1": -0.5, "a-2": 1, "a-3": 1 / 3}
    assert found == {"guided": pytest.approx(by_hand), "adjacent": {"a-1": 0}, "untold": {"a-5": -1, "a-1": 0}}
    assert metrics.paired_differences(list(pairs()), "fail")["guided"] == pytest.approx({"a-1": 0, "a-2": -1, "a-3": -1})
    figures = metrics.difference_to_baseline()(list(pairs()))
    expected = {"adjacent_difference": 0}
    for variant, differences in (("guided", list(by_hand.values())), ("untold", [-1, 0])):
        n = len(differences)
        lower, upper = stats.t.interval(0.95, n - 1, sum(differences) / n, stats.sem(differences))
        expected |= {f"{variant}_difference": sum(differences) / n, f"{variant}_lower": lower, f"{variant}_upper": upper}
    assert figures == pytest.approx(expected)
