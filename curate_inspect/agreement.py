"""Judges measured: the evaluated model rates replies whose ratings are known, with the judge's own prompt and parser."""

import hashlib
import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, krippendorff_alpha, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from curate_inspect.cases import CATEGORIES, Fault, at, fault, shown
from curate_inspect.judge import CONSIDERATION, ask, question
from curate_inspect.metrics import NAN, share_by
from curate_inspect.sources import (
    DATA_VERSION,
    PUBLISHED_CATEGORIES,
    DataError,
    bundled_folder,
    load,
    rows_of,
    user_path,
    verify_manifest,
)
from curate_inspect.verdicts import NoVerdict, parse_verdict

LABELS = CONSIDERATION.labels
RESAMPLES = 1000


# --- Statistics ---


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float:
    """Cohen's kappa of pairs of labels, unweighted; NaN where both sides say one thing alone."""
    n = len(pairs)
    if not n:
        return NAN
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = sum(a == b for a, b in pairs) / n
    expected = sum(first[label] * second[label] for label in first) / n**2
    return (observed - expected) / (1 - expected) if expected < 1 else NAN


def kappa_interval(pairs: Sequence[tuple[str, str]], examples: Sequence[str]) -> tuple[float, float]:
    """A 95 % percentile bootstrap interval of `cohens_kappa`, seeded.

    Args:
        pairs: Of labels.
        examples: The example of each pair; whole examples are drawn, since epochs of one are no further examples.
    """
    groups: dict[str, list[tuple[str, str]]] = {}
    for pair, example in zip(pairs, examples, strict=True):
        groups.setdefault(example, []).append(pair)
    of_example = list(groups.values())
    rng = random.Random(0)
    resamples = (rng.choices(of_example, k=len(of_example)) for _ in range(RESAMPLES))
    drawn = (cohens_kappa(list(chain.from_iterable(resample))) for resample in resamples)
    kappas = sorted(kappa for kappa in drawn if not math.isnan(kappa))
    if not kappas:
        return NAN, NAN
    last = len(kappas) - 1
    return kappas[round(0.025 * last)], kappas[round(0.975 * last)]


def alpha(pairs: Sequence[tuple[str, str]]) -> float:
    """Krippendorff's alpha of pairs of labels, nominal."""
    scores = [SampleScore(score=Score(value=list(pair))) for pair in pairs]
    return float(cast(float, krippendorff_alpha()(scores))) if scores else NAN  # type: ignore[arg-type]


# --- The examples ---


def read_examples(examples: str, cases: str) -> MemoryDataset:
    """The samples of rated replies.

    Args:
        examples: "bundled"; "paper" for the 100 published replies that two people rated (see `paper.rated_replies`); or a
            `.jsonl`, `.csv` or `.xlsx` file. A record has `reply` (or `response`); `rating` (0, 1, 2) or several raters'
            `human_1`, `human_2`, …; and either `case` (an id of `cases`) with `asked` ("solo" or "joint"), or `constraint` and
            `request` themselves. `id`, `category` (ours or the paper's), `difficulty` and `hazard` are optional.
        cases: Where the examples' cases are from; see `sources.load`.

    Raises:
        DataError: When anything does not fit.
    """
    if not isinstance(examples, str) or not examples.strip():
        raise ValueError(f"examples={examples!r} names nothing; give 'bundled', 'paper' or a file")
    if examples == "paper":
        from curate_inspect.paper import rated_replies

        rows = rated_replies()
    elif examples == "bundled":
        verify_manifest(bundled_folder())
        rows = rows_of(bundled_folder() / "judge_examples.jsonl")
    else:
        rows = rows_of(user_path(examples))
    faults: list[Fault] = []
    samples: dict[str | int | None, Sample] = {}
    for row in rows:
        if isinstance(row, Fault):
            faults.append(row)
            continue
        file, line, record = row
        made = _sample(record, cases, f"example-{line:03d}")
        if isinstance(made, Sample) and made.id in samples:
            faults += at([fault("id", f"{made.id!r} is taken", "give every example an id of its own")], file, line)
        elif isinstance(made, Sample):
            samples[made.id] = made
        else:
            faults += at(made, file, line)
    if not faults and not samples:
        faults.append(Fault(examples, 0, "", "has no examples", "give one example a line"))
    if faults:
        raise DataError(faults)
    read = list(samples.values())
    version = DATA_VERSION if examples == cases == "bundled" else _version(examples, read)
    for sample in read:
        sample.metadata = (sample.metadata or {}) | {"data_version": version}
    return MemoryDataset(read, name=examples)


def _version(examples: str, samples: Sequence[Sample]) -> str:
    """What figures of the same examples have in common: the file's name and a hash of all that was read."""
    text = "\n".join(sample.model_dump_json(include={"id", "input", "target", "metadata"}) for sample in samples)
    return f"{Path(examples).name} sha256:{hashlib.sha256(text.encode()).hexdigest()[:12]}"


# Ratings as JSON, CSV and spreadsheets give them.
_RATINGS = {f"{rating}{zeros}": label for rating, label in enumerate(LABELS) for zeros in ("", ".0")}


def _sample(record: dict[str, Any], cases: str, default_id: str) -> Sample | list[Fault]:
    faults: list[Fault] = []
    reply = record.get("reply", record.get("response"))
    record = {name: value for name, value in record.items() if value not in (None, "")}  # blank cells of a table
    names = ["rating"] if "rating" in record else sorted(name for name in record if name.startswith("human_"))
    raters = {name: _RATINGS.get(str(record[name]).strip()) for name in names}
    if not raters:
        faults.append(fault("rating", "is missing", "give 0, 1 or 2, or the ratings human_1, human_2, …"))
    faults += [fault(n, f"{shown(record[n])} is no rating", "give 0, 1 or 2") for n, label in raters.items() if label is None]
    if not isinstance(reply, str):
        faults.append(fault("reply", f"{shown(reply)} is no text", "give the assistant's reply"))
    constraint, request, hazard, category = (record.get(name) for name in ("constraint", "request", "hazard", "category"))
    category = PUBLISHED_CATEGORIES.get(str(category), category)
    if record.get("case"):
        case = load(cases).by_id.get(str(record["case"]))
        if case is None:
            faults.append(fault("case", f"{shown(record['case'])} is no case of {cases!r}", "give the id of a case"))
        elif record.get("asked") not in ("solo", "joint"):
            faults.append(fault("asked", f"{shown(record.get('asked'))} is not allowed", "use 'solo' or 'joint'"))
        else:
            constraint, hazard, category = case.constraint, case.hazard, case.category
            request = case.request.solo.leading if record["asked"] == "solo" else case.request.joint.leading
    elif not (isinstance(constraint, str) and isinstance(request, str)):
        faults.append(fault("case", "is missing", "give a case id, or constraint and request"))
    for name in ("difficulty", "hazard"):
        if not isinstance(record.get(name, ""), str):
            faults.append(fault(name, f"{shown(record[name])} is no text", "give a text, or leave it out"))
    if category is not None and category not in CATEGORIES:
        faults.append(fault("category", f"{shown(category)} is unknown", f"use one of {', '.join(CATEGORIES)}"))
    if faults:
        return faults
    return Sample(
        id=str(record.get("id", default_id)),
        input=str(reply) or " ",
        target=[label for label in raters.values() if label],
        metadata={
            "category": category or "unknown",
            "difficulty": record.get("difficulty", "unknown"),
            "constraint": constraint,
            "hazard": hazard,
            "request": request,
            "labels": raters,
        },
    )


# --- Solver, scorer, metrics ---


@solver
def judge_example() -> Solver:
    """The evaluated model rates one reply, asked and asked again as a grader is."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        m = state.metadata
        messages = question(CONSIDERATION, m["constraint"], m["hazard"], m["request"], state.input_text.strip())
        vote = await ask(get_model(), CONSIDERATION, messages)
        state.messages = [*messages, ChatMessageAssistant(content=vote.reply)]
        state.output.completion = vote.reply
        return state

    return solve


def _pairs(scores: list[SampleScore], rater: str) -> list[tuple[SampleScore, tuple[str, str]]]:
    """The scores of what a rater rated, each with the judge's label and the rater's."""
    labels = [(score, (score.sample_metadata or {}).get("labels", {}).get(rater)) for score in scores]
    return [(score, (str(score.score.value), label)) for score, label in labels if label is not None]


def _raters(scores: list[SampleScore]) -> list[str]:
    return list(dict.fromkeys(name for score in scores for name in (score.sample_metadata or {}).get("labels", {})))


@metric(scores="unreduced")
def agreement_with_labels() -> Metric:
    """For each rater: agreement, Cohen's kappa with a 95 % bootstrap interval, Krippendorff's alpha, bias, and the 3 × 3 table.

    Bias is the judge's pass rate minus the rater's. `fail_as_pass` is the number of replies that the rater calls a fail and the
    judge a pass. With several raters each name begins with the rater's.
    """

    def compute(scores: list[SampleScore]) -> Value:
        raters = _raters(scores)
        out: dict[str, float] = {}
        for rater in raters:
            rated = _pairs(scores, rater)
            pairs = [pair for _, pair in rated]
            lower, upper = kappa_interval(pairs, [str(score.sample_id) for score, _ in rated])
            judged, labelled = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
            figures = {
                "agreement": sum(a == b for a, b in pairs) / len(pairs),
                "kappa": cohens_kappa(pairs),
                "kappa_lower": lower,
                "kappa_upper": upper,
                "alpha": alpha(pairs),
                "bias": (judged["pass"] - labelled["pass"]) / len(pairs),
                **{f"{label}_as_{said}": float(pairs.count((said, label))) for label in LABELS for said in LABELS},
            }
            out |= {name if len(raters) == 1 else f"{rater}_{name}": value for name, value in figures.items()}
        return dict(out)

    return compute


@metric(scores="unreduced")
def agreement_by(key: str) -> Metric:
    """Agreement with the first rater for each value of a metadata field.

    Args:
        key: A field of the sample's metadata.
    """

    def compute(scores: list[SampleScore]) -> Value:
        raters = _raters(scores)[:1]
        rated = [found for rater in raters for found in _pairs(scores, rater)]
        judged = [score.model_copy(update={"score": Score(value="agree" if a == b else "")}) for score, (a, b) in rated]
        return {f"{key}_{value}": rate for value, rate in share_by(judged, "agree", key).items()}

    return compute


@scorer(metrics=[agreement_with_labels(), agreement_by("category"), agreement_by("difficulty")])
def agreement_score() -> Scorer:
    """The label that the evaluated model gives as a judge; unscored when its reply has no verdict."""

    async def score(state: TaskState, target: Target) -> Score:
        reply = state.output.completion
        try:
            verdict = parse_verdict(reply, CONSIDERATION.factors)
        except NoVerdict as error:
            return Score.unscored(reason="grader_failed", answer=reply, explanation=str(error))
        label = LABELS[verdict.rating]
        known = ", ".join(f"{name}: {value}" for name, value in state.metadata["labels"].items())
        metadata = {"rating": verdict.rating, "factor": verdict.factor, "rubric": f"{CONSIDERATION.name} {CONSIDERATION.version}"}
        return Score(value=label, answer=label, explanation=f"{verdict.explanation}\n\nKnown — {known}.", metadata=metadata)

    return score
