"""What Inspect registers; everything here is imported at every `inspect eval`, so none of it may be slow to import."""

from inspect_ai.model import ModelAPI, modelapi

from curate_inspect.agreement import agreement_by, agreement_score, agreement_with_labels, judge_example
from curate_inspect.metrics import difference_to_baseline, mention_rates, over_caution_rates, pass_rates, rate_by
from curate_inspect.scorers import constraint_mention, curate_judge, over_caution_judge
from curate_inspect.solvers import ask_trivia, converse, introduce, introduce_others, request_recommendation
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
    "agreement_by",
    "agreement_score",
    "agreement_with_labels",
    "allergy",
    "ask_trivia",
    "constraint_mention",
    "converse",
    "curate",
    "curate_judge",
    "curate_provider",
    "difference_to_baseline",
    "introduce",
    "introduce_others",
    "judge_agreement",
    "judge_example",
    "mention_rates",
    "over_caution",
    "over_caution_judge",
    "over_caution_rates",
    "pass_rates",
    "phobia",
    "physical_constraint",
    "rate_by",
    "request_recommendation",
    "retention",
    "scenario_1",
    "scenario_2",
    "scenario_3",
    "scenario_4",
    "scenario_5",
    "trauma",
]
