"""The statistics of a report, pure: rates with intervals, paired differences, exact tests. The case is the unit everywhere.

Scenarios, variants and epochs of one case are not independent, so intervals are clustered by case, and tests count cases.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy import stats

NAN = float("nan")
LEVEL = 0.95
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Rate:
    """A share with its interval, both from 0 to 1; NaN of nothing."""

    value: float
    lower: float
    upper: float
    n: int
    cases: int


def clustered_stderr(hits: Sequence[bool], cases: Sequence[str]) -> float:
    """The standard error of the share of hits, clustered by case (Miller 2024, arXiv 2411.00640); NaN of one case.

    With the correction g / (g − 1) for g cases, as Inspect's own.
    """
    values = np.asarray(hits, float)
    names, case = np.unique(np.asarray(cases), return_inverse=True)
    groups = len(names)
    if groups < 2:
        return NAN
    residuals = np.bincount(case, values - values.mean())
    return float(np.sqrt((residuals**2).sum() * groups / (groups - 1)) / len(values))


def rate(hits: Sequence[bool], cases: Sequence[str]) -> Rate:
    """The share of hits with a Wilson interval on the effective number of replies.

    That number is what independent replies would need for the clustered standard error, reduced for few cases by the ratio of
    normal and t quantiles (Korn and Graubard 1998, Survey Methodology 24), at most the replies there are. Where all replies or
    none are hits, the data say nothing about clustering, and the number of cases stands in. Unlike the normal
    interval it stays within 0 and 1 and does not shrink to nothing there.

    Args:
        hits: One for each rated reply.
        cases: The case of each reply.
    """
    n, groups = len(hits), len(set(cases))
    if not n:
        return Rate(NAN, NAN, NAN, 0, 0)
    share = float(np.mean(np.asarray(hits, float)))
    error = clustered_stderr(hits, cases)
    tail = (1 + LEVEL) / 2
    if not share * (1 - share) or np.isnan(error):
        effective = float(groups)
    else:
        effective = min(n, share * (1 - share) / error**2) if error else n
        effective *= (NormalDist().inv_cdf(tail) / stats.t.ppf(tail, groups - 1)) ** 2
    z = NormalDist().inv_cdf(tail)
    middle = (share + z**2 / (2 * effective)) / (1 + z**2 / effective)
    half = z / (1 + z**2 / effective) * np.sqrt(share * (1 - share) / effective + z**2 / (4 * effective**2))
    return Rate(share, max(0.0, float(middle - half)), min(1.0, float(middle + half)), n, groups)


@dataclass(frozen=True)
class Difference:
    """A mean paired difference, from −1 to 1, with its interval and an exact test.

    Attributes:
        value: The mean over cases of each case's mean difference.
        lower: Of the t interval over cases; NaN of one case, and where all cases differ alike, since that says nothing about how
            far they vary.
        upper: As `lower`.
        cases: How many cases have a pair.
        pairs: How many pairs there are.
        better: Cases with a positive difference.
        worse: Cases with a negative one.
        p: Two-sided, of the exact test that better and worse are equally likely.
    """

    value: float
    lower: float
    upper: float
    cases: int
    pairs: int
    better: int
    worse: int
    p: float


def paired(first: Mapping[tuple[str, ...], bool], second: Mapping[tuple[str, ...], bool]) -> Difference:
    """The difference second − first over the pairs that both have.

    The test is McNemar's in its exact form, on cases: of those that differ, as many should be better as worse. With
    one pair a case that is the usual McNemar test; with more a case counts once, by the sign of its mean.

    Args:
        first: Hits by pair; a pair's key begins with the case.
        second: As `first`.
    """
    keys = sorted(first.keys() & second.keys())
    by_case: dict[str, list[float]] = {}
    for key in keys:
        by_case.setdefault(key[0], []).append(float(second[key]) - float(first[key]))
    means = np.array([np.mean(differences) for differences in by_case.values()])
    if not means.size:
        return Difference(NAN, NAN, NAN, 0, 0, 0, 0, NAN)
    better, worse = int((means > 0).sum()), int((means < 0).sum())
    value = math.fsum(means) / means.size
    half = NAN
    if np.unique(means).size > 1:
        half = float(stats.t.ppf((1 + LEVEL) / 2, means.size - 1) * means.std(ddof=1) / np.sqrt(means.size))
    lower, upper = float(np.maximum(value - half, -1)), float(np.minimum(value + half, 1))
    return Difference(value, lower, upper, means.size, len(keys), better, worse, exact_p(better, worse))


def exact_p(better: int, worse: int) -> float:
    """The two-sided binomial test that better and worse are equally likely; 1 when there is neither."""
    return float(stats.binomtest(better, better + worse, 0.5).pvalue) if better + worse else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for their number by Holm's step-down method (1979); NaN stay NaN and are not counted."""
    order = sorted((p, i) for i, p in enumerate(p_values) if not np.isnan(p))
    adjusted = [NAN] * len(p_values)
    highest = 0.0
    for rank, (p, i) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - rank)))
        adjusted[i] = highest
    return adjusted


RESAMPLES = 2000


def kappa(first: Sequence[bool], second: Sequence[bool], cases: Sequence[str]) -> tuple[float, float, float]:
    """Cohen's kappa of two yes-or-no judgements, with a percentile bootstrap interval over cases, seeded.

    All three are NaN where one side says one thing alone.

    Args:
        first: One side's judgements.
        second: The other's, in the same order.
        cases: The case of each; whole cases are drawn.
    """
    if not len(first):
        return NAN, NAN, NAN
    cell = 2 * np.asarray(first, int) + np.asarray(second, int)
    names, case = np.unique(np.asarray(cases), return_inverse=True)
    counts = np.zeros((len(names), 4))
    np.add.at(counts, (case, cell), 1)
    weights = np.random.default_rng(0).multinomial(len(names), np.full(len(names), 1 / len(names)), RESAMPLES)
    value = float(_kappa(counts.sum(axis=0)[None])[0])
    if np.isnan(value):
        return NAN, NAN, NAN
    lower, upper = np.nanquantile(_kappa(weights @ counts), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return value, float(lower), float(upper)


def _kappa(counts: np.ndarray) -> np.ndarray:
    """Kappa of each row of counts: neither, second alone, first alone, both; NaN where one side says one thing alone."""
    n = counts.sum(axis=1)
    observed = (counts[:, 0] + counts[:, 3]) / n
    first, second = (counts[:, 2] + counts[:, 3]) / n, (counts[:, 1] + counts[:, 3]) / n
    expected = first * second + (1 - first) * (1 - second)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa: np.ndarray = (observed - expected) / (1 - expected)
    return kappa
