"""The tasks. Each plays conversations in which a user mentions a severe allergy, phobia, physical constraint or trauma early on.

Turns later an exciting request comes that this user must not say yes to: does the assistant remember? (CURATe,
arXiv 2410.21159.) Temperature, limits, epochs and the models belong to Inspect's own options. A value that does not fit raises
ValueError before any model is called.
"""

from collections.abc import Sequence
from typing import Any, Literal

from inspect_ai import Task, task
from inspect_ai.viewer import SampleScoreView, TaskSamplesColumn, TaskSamplesView, ViewerConfig

from curate_inspect.agreement import agreement_score, judge_example, read_examples
from curate_inspect.cases import CATEGORIES
from curate_inspect.dialogue import PAPER_VARIANTS, SCENARIOS, VARIANTS, Variant
from curate_inspect.samples import build, select
from curate_inspect.scorers import constraint_mention, curate_judge, over_caution_judge
from curate_inspect.solvers import converse
from curate_inspect.sources import load

# Raised by every change that makes scores incomparable: of the protocol, a rubric, a metric.
VERSION = 1
_COLOURS: dict[str, Literal["good", "warn", "bad"]] = {
    "pass": "good",
    "ambiguous": "warn",
    "fail": "bad",
    "at_ease": "good",
    "unclear": "warn",
    "over_cautious": "bad",
}
_TITLES = {
    "curate_judge": "Judge",
    "constraint_mention": "Mention",
    "over_caution_judge": "Judge",
    "agreement_score": "Judged",
}


def _chosen(name: str, value: Any, allowed: Sequence[Any]) -> list[Any]:
    """The allowed values that an argument names: one of them, several, as themselves or as text.

    Raises:
        ValueError: When it names none or others.
    """
    given = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else [value]
    known = {str(option): option for option in allowed}
    wrong = [item for item in given if str(item).strip() not in known]
    if wrong or not given:
        problem = f"there is no {wrong[0]!r}" if wrong else "is empty"
        raise ValueError(f"{name}={value!r}: {problem}; choose from {', '.join(known)}")
    return [known[key] for key in dict.fromkeys(str(item).strip() for item in given)]


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name}={value!r}: give a whole number, {least} or more")
    return value


def _one(name: str, value: Any, allowed: Sequence[Any]) -> Any:
    chosen = _chosen(name, value, allowed)
    if len(chosen) > 1:
        raise ValueError(f"{name}={value!r} names {len(chosen)}; choose one of {', '.join(map(str, allowed))}")
    return chosen[0]


def _counts(name: str, value: Any) -> list[int]:
    given = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    # The command line gives several numbers as texts.
    counts = [_whole(name, int(n) if isinstance(n, str) and n.strip().isdecimal() else n, 0) for n in given]
    if not counts:
        raise ValueError(f"{name}={value!r} is empty; give whole numbers from 0")
    return list(dict.fromkeys(counts))


def _viewer(scorers: Sequence[str]) -> ViewerConfig:
    names = ("sampleStatus", "sampleId", "epoch", "input")
    columns = [TaskSamplesColumn(id=name) for name in names] + [TaskSamplesColumn.score(name) for name in scorers]
    view = TaskSamplesView(
        name="Replies",
        columns=columns,
        score_labels={name: _TITLES[name] for name in scorers},
        score_color_scales=dict.fromkeys(scorers, _COLOURS),
        color_scales_enabled=True,
    )
    return ViewerConfig(task_samples_view=view, sample_score_view=SampleScoreView(default="grid"))


def _task(
    *,
    cases: str,
    scenarios: Any = SCENARIOS,
    categories: Any = CATEGORIES,
    variants: Sequence[Variant] = ("baseline",),
    per_category: int | None,
    trivia_turns: int | list[int] | tuple[int, ...] = 3,
    stored_answers: bool = False,
    seed: int,
    share_prefix: bool,
    scorers: Sequence[str],
) -> Task:
    """What the tasks have in common: the samples of some scenarios, categories and variants, played and scored."""
    if not isinstance(share_prefix, bool):
        raise ValueError(f"share_prefix={share_prefix!r} is neither true nor false")
    source = load(cases)
    limit = None if per_category is None else _whole("per_category", per_category, 1)
    dataset = build(
        source,
        select(source, _chosen("categories", categories, CATEGORIES), limit),
        _chosen("scenarios", scenarios, SCENARIOS),
        variants,
        trivia_turns=_counts("trivia_turns", trivia_turns) if stored_answers else [_whole("trivia_turns", trivia_turns, 0)],
        seed=_whole("seed", seed, 0),
    )
    return Task(
        dataset=dataset,
        solver=converse(share_prefix, stored_answers, needs_grader=any(name in _JUDGES for name in scorers)),
        scorer=[(_JUDGES | _OFFLINE)[name]() for name in scorers],
        headline_metric=scorers[0],
        viewer=_viewer(scorers),
        tags=["safety", "personalisation", "multi-turn"],
        metadata={"paper": "arXiv:2410.21159", "data_version": source.version},
        version=VERSION,
    )


_JUDGES = {"curate_judge": curate_judge, "over_caution_judge": over_caution_judge}
_OFFLINE = {"constraint_mention": constraint_mention}


def _scorers(scorer: str) -> list[str]:
    by = _one("scorer", scorer, ("judge", "mention"))
    return ["curate_judge", "constraint_mention"] if by == "judge" else ["constraint_mention"]


@task
def curate(
    cases: str = "bundled",
    scenarios: int | str | list[int] | tuple[int, ...] = SCENARIOS,
    categories: str | list[str] | tuple[str, ...] = CATEGORIES,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, the whole benchmark: every case in scenarios 1–5, the headline task.

    Each conversation opens with the user's constraint, goes on with trivia and other people's wishes, and ends with a request
    that would harm this user. A pass takes the constraint into account; the score is "pass", "ambiguous" or "fail" by a
    grader model, with a mention check by words beside it. Method: arXiv 2410.21159, `docs/protocol.md`; scoring:
    `docs/judge.md`; data: 340 cases, `data/README.md`.

    Args:
        cases: "bundled", "paper", "paper-raw", a path, or a hub id; see `sources.load`.
        scenarios: Any of 1 (alone), 2, 3, 4 (one, two, three others who want it), 5 (three strangers).
        categories: Any of "allergy", "phobia", "physical_constraint", "trauma".
        per_category: Only the first so many cases of each category.
        trivia_turns: How many trivia questions stand between constraint and request.
        seed: Of the draw of facts, trivia and strangers.
        share_prefix: Whether conversations of a case that begin alike share the replies to these turns.
        scorer: "judge", or "mention" for the mention check alone, which needs no grader.

    Raises:
        ValueError: When an argument or the data do not fit.
    """
    return _task(
        cases=cases,
        scenarios=scenarios,
        categories=categories,
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def scenario_1(
    cases: str = "bundled",
    categories: str | list[str] | tuple[str, ...] = CATEGORIES,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, scenario 1 in all categories: the user is alone: no other people, a request about "I".

    Each conversation opens with the user's constraint, goes on with trivia, and ends with a request that would harm this
    user. Scored "pass", "ambiguous" or "fail" by a grader model, with a mention check by words beside it. Method: arXiv
    2410.21159, `docs/protocol.md`; scoring: `docs/judge.md`; data: 340 cases, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=1,
        categories=categories,
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def scenario_2(
    cases: str = "bundled",
    categories: str | list[str] | tuple[str, ...] = CATEGORIES,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, scenario 2 in all categories: one other person wants it as well.

    Each conversation opens with the user's constraint, goes on with trivia and other people's wishes, and ends with a request
    that would harm this user. Scored "pass", "ambiguous" or "fail" by a grader model, with a mention check by words beside
    it. Method: arXiv 2410.21159, `docs/protocol.md`; scoring: `docs/judge.md`; data: 340 cases, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=2,
        categories=categories,
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def scenario_3(
    cases: str = "bundled",
    categories: str | list[str] | tuple[str, ...] = CATEGORIES,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, scenario 3 in all categories: two other people want it, the second strongly.

    Each conversation opens with the user's constraint, goes on with trivia and other people's wishes, and ends with a request
    that would harm this user. Scored "pass", "ambiguous" or "fail" by a grader model, with a mention check by words beside
    it. Method: arXiv 2410.21159, `docs/protocol.md`; scoring: `docs/judge.md`; data: 340 cases, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=3,
        categories=categories,
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def scenario_4(
    cases: str = "bundled",
    categories: str | list[str] | tuple[str, ...] = CATEGORIES,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, scenario 4 in all categories: three other people want it, the third more than anything.

    Each conversation opens with the user's constraint, goes on with trivia and other people's wishes, and ends with a request
    that would harm this user. Scored "pass", "ambiguous" or "fail" by a grader model, with a mention check by words beside
    it. Method: arXiv 2410.21159, `docs/protocol.md`; scoring: `docs/judge.md`; data: 340 cases, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=4,
        categories=categories,
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def scenario_5(
    cases: str = "bundled",
    categories: str | list[str] | tuple[str, ...] = CATEGORIES,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, scenario 5 in all categories: three strangers are introduced whose likings have nothing to do with it.

    Each conversation opens with the user's constraint, goes on with trivia and strangers, and ends with a request that would
    harm this user. Scored "pass", "ambiguous" or "fail" by a grader model, with a mention check by words beside it. Method:
    arXiv 2410.21159, `docs/protocol.md`; scoring: `docs/judge.md`; data: 340 cases, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=5,
        categories=categories,
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def allergy(
    cases: str = "bundled",
    scenarios: int | str | list[int] | tuple[int, ...] = SCENARIOS,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, severe allergies and intolerances in scenarios 1–5.

    Each conversation opens with the user's constraint, goes on with trivia and other people's wishes, and ends with a request
    that would harm this user. Scored "pass", "ambiguous" or "fail" by a grader model, with a mention check by words beside
    it. Method: arXiv 2410.21159, `docs/protocol.md`; scoring: `docs/judge.md`; data: 85 cases, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=scenarios,
        categories="allergy",
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def phobia(
    cases: str = "bundled",
    scenarios: int | str | list[int] | tuple[int, ...] = SCENARIOS,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, severe phobias in scenarios 1–5.

    Each conversation opens with the user's constraint, goes on with trivia and other people's wishes, and ends with a request
    that would harm this user. Scored "pass", "ambiguous" or "fail" by a grader model, with a mention check by words beside
    it. Method: arXiv 2410.21159, `docs/protocol.md`; scoring: `docs/judge.md`; data: 85 cases, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=scenarios,
        categories="phobia",
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def physical_constraint(
    cases: str = "bundled",
    scenarios: int | str | list[int] | tuple[int, ...] = SCENARIOS,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, physical constraints in scenarios 1–5.

    Each conversation opens with the user's constraint, goes on with trivia and other people's wishes, and ends with a request
    that would harm this user. Scored "pass", "ambiguous" or "fail" by a grader model, with a mention check by words beside
    it. Method: arXiv 2410.21159, `docs/protocol.md`; scoring: `docs/judge.md`; data: 85 cases, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=scenarios,
        categories="physical_constraint",
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def trauma(
    cases: str = "bundled",
    scenarios: int | str | list[int] | tuple[int, ...] = SCENARIOS,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """CURATe, trauma triggers in scenarios 1–5.

    Each conversation opens with the user's constraint, goes on with trivia and other people's wishes, and ends with a request
    that would harm this user. Scored "pass", "ambiguous" or "fail" by a grader model, with a mention check by words beside
    it. Method: arXiv 2410.21159, `docs/protocol.md`; scoring: `docs/judge.md`; data: 85 cases, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=scenarios,
        categories="trauma",
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def ablations(
    cases: str = "bundled",
    scenario: int = 3,
    variants: str | list[str] | tuple[str, ...] = PAPER_VARIANTS,
    categories: str | list[str] | tuple[str, ...] = CATEGORIES,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """What changes the pass rate: one scenario in several variants, paired case by case with the baseline.

    The metrics give for each variant the mean difference to the baseline with its 95 % interval. Two variants of a case differ
    in nothing but what their name says. Method: the ablations of arXiv 2410.21159 without their confounds, and two of our own
    (`docs/protocol.md`). Scored as in `curate`; data: 340 cases, `data/README.md`.

    Args:
        cases: As in `curate`.
        scenario: One of 1, 2, 3, 4, 5.
        variants: Any of "baseline", "neutral" (the question asked plainly), "middle" (constraint and facts after the second
            trivia question), "helpful_harmless" and "guided" (a sentence before the request), "reversed" (the constraint is the
            first other's, their liking the user's), "untold" (the constraint is never said) and "adjacent" (said right before
            the request). The first six are the paper's.
        categories: As in `curate`.
        per_category: As in `curate`.
        trivia_turns: As in `curate`.
        seed: As in `curate`.
        share_prefix: As in `curate`.
        scorer: As in `curate`.

    Raises:
        ValueError: When an argument or the data do not fit, or a variant fits none of the cases.
    """
    return _task(
        cases=cases,
        scenarios=_one("scenario", scenario, SCENARIOS),
        variants=_chosen("variants", variants, VARIANTS),
        categories=categories,
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def over_caution(
    cases: str = "bundled",
    categories: str | list[str] | tuple[str, ...] = CATEGORIES,
    per_category: int | None = None,
    trivia_turns: int = 3,
    seed: int = 0,
    share_prefix: bool = True,
) -> Task:
    """Does the assistant warn people off what is safe for them? The controls, alone (scenario 1) and with strangers (5).

    A control is the near miss of a request: same flavour, no danger for this user. The score is "at_ease", "unclear" or
    "over_cautious" by a grader model. An assistant that says no to everything passes `curate` and fails here. The paper has
    no such control. Scoring: `docs/judge.md`; data: 340 controls, `data/README.md`.

    Args and errors as in `curate`.
    """
    return _task(
        cases=cases,
        scenarios=(1, 5),
        variants=("control",),
        categories=categories,
        per_category=per_category,
        trivia_turns=trivia_turns,
        seed=seed,
        share_prefix=share_prefix,
        scorers=["over_caution_judge"],
    )


@task
def retention(
    cases: str = "bundled",
    trivia_turns: int | list[int] | tuple[int, ...] = (0, 3, 10, 30, 100),
    categories: str | list[str] | tuple[str, ...] = CATEGORIES,
    per_category: int | None = None,
    seed: int = 0,
    share_prefix: bool = True,
    scorer: str = "judge",
) -> Task:
    """How far back does the assistant remember? Scenario 1 with more and more trivia between constraint and request.

    The trivia are answered by the short answers of the data, so that a sample costs two generations, of which the first, the
    reply to the introduction, is shared by the lengths of a case unless `share_prefix` is off. Scored as in `curate`. The
    paper keeps the distance fixed.

    Args:
        cases: As in `curate`; the trivia need answers.
        trivia_turns: The numbers of trivia turns to compare.
        categories: As in `curate`.
        per_category: As in `curate`.
        seed: As in `curate`.
        share_prefix: As in `curate`.
        scorer: As in `curate`.

    Raises:
        ValueError: When an argument or the data do not fit, or the pool has too few trivia.
    """
    if any(not trivia.answer for trivia in load(cases).pools.trivia):
        raise ValueError(f"cases={cases!r} has trivia without answers, which retention needs; use the bundled ones")
    return _task(
        cases=cases,
        scenarios=1,
        categories=categories,
        per_category=per_category,
        trivia_turns=trivia_turns,
        stored_answers=True,
        seed=seed,
        share_prefix=share_prefix,
        scorers=_scorers(scorer),
    )


@task
def judge_agreement(examples: str = "bundled", cases: str = "bundled") -> Task:
    """How well does a model judge? The evaluated model rates replies whose ratings are known, with the judge's prompt and parser.

    Gives agreement, Cohen's kappa with its bootstrap interval, Krippendorff's alpha, bias and the 3 × 3 table, for each rater,
    and agreement by category and by kind of difficulty. No grader role is needed. Method: `docs/judge.md`; figures:
    `docs/statistics.md`; data: 175 rated replies, `data/README.md`.

    Args:
        examples: "bundled", "paper", or a file of rated replies; see `agreement.read_examples`.
        cases: Where the cases of the examples are from, as in `curate`.

    Raises:
        ValueError: When the data do not fit.
    """
    return Task(
        dataset=read_examples(examples, cases),
        solver=judge_example(),
        scorer=agreement_score(),
        headline_metric="agreement_score",
        viewer=_viewer(["agreement_score"]),
        tags=["judge"],
        metadata={"paper": "arXiv:2410.21159", "data_version": load(cases).version},
        version=VERSION,
    )
