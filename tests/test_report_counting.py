"""The statistics of reports, against other ways to the same figures."""

import math
import random
import warnings
from itertools import product

import numpy as np
import pytest
from inspect_ai.scorer import SampleScore, Score
from scipy import optimize, stats
from sklearn.metrics import cohen_kappa_score

from curate_inspect import metrics
from curate_inspect.agreement import cohens_kappa
from curate_inspect.report.counting import (
    LEVEL,
    SIGNIFICANT,
    Difference,
    Rate,
    clustered_stderr,
    exact_p,
    holm,
    kappa,
    paired,
    rate,
)


def drawn(seed: int, cases: int, each: int, share: float) -> tuple[list[bool], list[str]]:
    """Replies that cluster by case."""
    rng = random.Random(seed)
    hits, names = [], []
    for case in range(cases):
        own = min(1.0, max(0.0, rng.gauss(share, 0.3)))
        hits += [rng.random() < own for _ in range(each)]
        names += [f"case-{case}"] * each
    return hits, names


@pytest.mark.parametrize("seed", range(5))
def test_the_standard_error_is_that_of_the_log(seed: int) -> None:
    hits, cases = drawn(seed, 12, 6, 0.6)
    scores = [
        SampleScore(score=Score(value="pass" if hit else "fail"), sample_metadata={"case": case})
        for hit, case in zip(hits, cases, strict=True)
    ]
    assert clustered_stderr(hits, cases) == pytest.approx(metrics.clustered_stderr(scores, "pass"))


def test_the_standard_error_of_few_cases() -> None:
    assert clustered_stderr([True, False], ["a", "b"]) == pytest.approx(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(clustered_stderr([True, False], ["a", "a"]))


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_an_interval_holds_the_score_test_at_the_effective_number(share: float) -> None:
    """Wilson's bounds are the shares that lie a normal quantile away from the observed one."""
    hits, cases = drawn(3, 30, 5, share)
    r = rate(hits, cases)
    n = min(r.n, r.value * (1 - r.value) / clustered_stderr(hits, cases) ** 2)
    n *= (stats.norm.ppf(0.975) / stats.t.ppf(0.975, r.cases - 1)) ** 2

    def distance(p: float) -> float:
        return (r.value - p) ** 2 - stats.norm.ppf(0.975) ** 2 * p * (1 - p) / n

    assert r.lower == pytest.approx(optimize.brentq(distance, 0, r.value))
    assert r.upper == pytest.approx(optimize.brentq(distance, r.value, 1))


def test_what_counts_as_more_than_chance_goes_with_the_intervals() -> None:
    assert pytest.approx(1 - LEVEL) == SIGNIFICANT == 0.05


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    covered = 0
    for seed in range(300):
        hits, cases = drawn(seed, 25, 4, 0.5)
        r = rate(hits, cases)
        covered += r.lower <= 0.5 <= r.upper
    assert 0.92 <= covered / 300 <= 0.99


def test_intervals_at_the_ends_have_a_length_that_the_number_of_cases_gives() -> None:
    assert str(rate([], [])) == str(Rate(math.nan, math.nan, math.nan, 0, 0))
    one = rate([True] * 60, [f"{i % 20}" for i in range(60)])
    assert (one.value, one.upper) == (1, 1)
    assert one.lower == pytest.approx(stats.binomtest(20, 20).proportion_ci(method="wilson").low)
    single = rate([True, False], ["a", "a"])
    assert 0 < single.lower < single.value < single.upper < 1


def test_independent_replies_give_the_interval_of_independent_replies() -> None:
    hits = [True] * 700 + [False] * 300
    r = rate(hits, [str(i) for i in range(1000)])
    wilson = stats.binomtest(700, 1000).proportion_ci(method="wilson")
    assert (r.lower, r.upper) == pytest.approx((wilson.low, wilson.high), abs=1e-3)


@pytest.mark.parametrize(("better", "worse"), list(product(range(6), range(6))))
def test_the_exact_test_counts_what_is_as_unlikely(better: int, worse: int) -> None:
    n = better + worse
    weights = [math.comb(n, k) for k in range(n + 1)]
    assert exact_p(better, worse) == pytest.approx(sum(w for w in weights if w <= weights[better]) / 2**n)


def test_pairs_lack_no_partner_and_cases_count_once() -> None:
    first = {("a", "1"): True, ("a", "2"): False, ("b", "1"): False, ("c", "1"): True, ("x", "1"): True}
    second = {("a", "1"): False, ("a", "2"): False, ("b", "1"): True, ("c", "1"): True, ("y", "1"): True}
    d = paired(first, second)
    assert (d.cases, d.pairs, d.better, d.worse, d.p) == (3, 4, 1, 1, 1)
    assert d.value == pytest.approx((-0.5 + 1 + 0) / 3)
    expected = stats.t.interval(0.95, 2, d.value, stats.sem([-0.5, 1, 0]))
    assert (d.lower, d.upper) == pytest.approx((max(-1, expected[0]), min(1, expected[1])))
    assert str(paired({}, second)) == str(Difference(math.nan, math.nan, math.nan, 0, 0, 0, 0, math.nan))
    assert math.isnan(paired({("a", "1"): True}, {("a", "1"): False}).lower)
    alike = paired({(case, "1"): False for case in "abc"}, {(case, "1"): True for case in "abc"})
    assert (alike.value, alike.better) == (1, 3) and math.isnan(alike.lower) and math.isnan(alike.upper)


def test_the_interval_of_a_difference_is_a_t_interval_over_cases() -> None:
    rng = random.Random(4)
    keys = [(f"case-{i % 40}", str(i // 40)) for i in range(120)]
    first, second = ({key: rng.random() < share for key in keys} for share in (0.4, 0.6))
    d = paired(first, second)
    means = [sum(second[key] - first[key] for key in keys[i::40]) / 3 for i in range(40)]
    assert (d.value, d.cases, d.pairs) == (pytest.approx(sum(means) / 40), 40, 120)
    assert (d.lower, d.upper) == pytest.approx(stats.t.interval(0.95, 39, d.value, stats.sem(means)))
    assert (d.better, d.worse) == (sum(m > 0 for m in means), sum(m < 0 for m in means))
    assert d.better > d.worse > 0 and d.p == exact_p(d.better, d.worse)
    # It ends at the ends of what a difference can be.
    wide = paired({("a", "1"): False, ("b", "1"): False}, {("a", "1"): True, ("b", "1"): False})
    assert (wide.lower, wide.upper) == (-1, 1)


def test_holm_is_the_step_down_method() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1, 1]
    assert holm([]) == []
    assert math.isnan(holm([math.nan, 0.5])[0]) and holm([math.nan, 0.5])[1] == 0.5


def test_kappa_is_cohens_and_its_interval_draws_cases() -> None:
    rng = random.Random(1)
    first = [rng.random() < 0.6 for _ in range(400)]
    second = [hit if rng.random() < 0.8 else not hit for hit in first]
    value, lower, upper = kappa(first, second, [str(i) for i in range(400)])
    assert value == pytest.approx(cohens_kappa([(str(a), str(b)) for a, b in zip(first, second, strict=True)]))
    assert value - 0.12 < lower < value < upper < value + 0.12
    # Another bootstrap, one reply at a time.
    agreeing = np.array(list(zip(first, second, strict=True)))
    drawn = [agreeing[np.random.default_rng(seed).integers(400, size=400)] for seed in range(300)]
    kappas = [cohen_kappa_score(sample[:, 0], sample[:, 1]) for sample in drawn]
    assert (lower, upper) == pytest.approx(tuple(np.quantile(kappas, [0.025, 0.975])), abs=0.02)
    # Pinned: the same replies give the same figures tomorrow.
    assert (lower, upper) == pytest.approx((0.45212208980162233, 0.6167888921692132), abs=1e-9)
    # The same replies in few cases tell less.
    clustered = kappa(first, second, [str(i // 40) for i in range(400)])
    assert clustered[0] == value
    assert clustered[1] != lower and clustered[2] != upper
    assert all(math.isnan(figure) for figure in kappa([True, True], [True, True], ["a", "b"]))
    assert all(math.isnan(figure) for figure in kappa([], [], []))
