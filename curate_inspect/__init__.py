"""CURATe for Inspect AI: does an assistant respect, turns later, what it was told about its user's safety?"""

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

__all__ = [
    "ablations",
    "allergy",
    "curate",
    "judge_agreement",
    "over_caution",
    "phobia",
    "physical_constraint",
    "retention",
    "scenario_1",
    "scenario_2",
    "scenario_3",
    "scenario_4",
    "scenario_5",
    "trauma",
]
