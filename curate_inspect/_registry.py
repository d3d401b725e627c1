"""What Inspect registers; everything here is imported at every `inspect eval`, so none of it may be slow to import."""

from inspect_ai.model import ModelAPI, modelapi

from curate_inspect.agreement import agreement, agreement_by, agreement_score, agreement_with_labels, judge_example
from curate_inspect.metrics import (
    ambiguous,
    difference_to_baseline,
    empty,
    fail,
    mention_rate,
    over_caution_by,
    over_caution_rate,
    over_caution_stderr,
    pass_rate,
    pass_rate_by,
    pass_rate_unambiguous,
    stderr,
    truncated,
    unclear,
)
from curate_inspect.scorers import check_grader, constraint_mention, curate_judge, over_caution_judge
from curate_inspect.solvers import ask_trivia, introduce, introduce_others, request_recommendation
from curate_inspect.tasks import (
    ablations,
    allergy,
    curate,
    judge_agreement,
    over_caution,
    phobia,
    physical_constraint,
    retention,
    scenario_1,
    scenario_2,
    scenario_3,
    scenario_4,
    scenario_5,
    trauma,
)


@modelapi(name="curate")
def curate_provider() -> type[ModelAPI]:
    """The simulated models, imported when one is asked for."""
    from curate_inspect.simulated import SimulatedAPI

    return SimulatedAPI


__all__ = [
    "ablations",
    "agreement",
    "agreement_by",
    "agreement_score",
    "agreement_with_labels",
    "allergy",
    "ambiguous",
    "ask_trivia",
    "check_grader",
    "constraint_mention",
    "curate",
    "curate_judge",
    "curate_provider",
    "difference_to_baseline",
    "empty",
    "fail",
    "introduce",
    "introduce_others",
    "judge_agreement",
    "judge_example",
    "mention_rate",
    "over_caution",
    "over_caution_by",
    "over_caution_judge",
    "over_caution_rate",
    "over_caution_stderr",
    "pass_rate",
    "pass_rate_by",
    "pass_rate_unambiguous",
    "phobia",
    "physical_constraint",
    "request_recommendation",
    "retention",
    "scenario_1",
    "scenario_2",
    "scenario_3",
    "scenario_4",
    "scenario_5",
    "stderr",
    "trauma",
    "truncated",
    "unclear",
]
