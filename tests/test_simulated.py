"""The simulated models fail as they are meant to."""

import pytest
from conftest import Counting, metrics_of
from inspect_ai.model import get_model

from curate_inspect import ablations, curate, over_caution, retention
from curate_inspect.dialogue import SCENARIOS, Scenario, script
from curate_inspect.distractors import draw
from curate_inspect.mention import mentions
from curate_inspect.simulated import simulated_reply
from curate_inspect.sources import load

FEW = 3


@pytest.mark.parametrize(
    ("model", "passes", "over_cautious"),
    [
        ("attentive", (0.95, 1), (0, 0)),
        ("cautious", (1, 1), (0.95, 1)),
        ("agreeable", (0, 0), (0, 0)),
        ("forgetful", (0.3, 0.85), (0, 0)),
    ],
)
def test_passes_and_over_caution(run, model: str, passes, over_cautious) -> None:
    main, controls = run([curate(per_category=2, scenarios=[1, 4]), over_caution(per_category=1)], f"curate/{model}")
    assert passes[0] <= metrics_of(main)["pass_rate"] <= passes[1]
    rate = metrics_of(controls, "over_caution_judge")["over_caution_rate"]
    assert over_cautious[0] <= rate <= over_cautious[1]


def test_every_control_is_told_from_its_request() -> None:
    source = load()
    for case in source.cases:
        drawn = draw(source.pools, case, seed=0, epoch=1, trivia_turns=3)
        users = [turn.text for turn in script(case, 5, "control", drawn)]
        assert simulated_reply("attentive", "", users).startswith("Yes"), case.id
        assert simulated_reply("cautious", "", users).startswith("No"), case.id


def test_agreeable_is_wrong_despite_noticing(run) -> None:
    (log,) = run(curate(per_category=2), "curate/agreeable")
    factors = [sample.scores["curate_judge"].metadata["factor"] for sample in log.samples]
    assert metrics_of(log)["ambiguous"] == 1
    assert set(factors) == {"wrong_despite_noticing"}


def passes(scenario: Scenario, trivia_turns: int = 3, epochs: int = 2) -> float:
    """The share of the bundled cases in which `forgetful` remembers, played without Inspect."""
    source = load()
    hits = []
    for case in source.cases[::2]:
        for epoch in range(1, epochs + 1):
            drawn = draw(source.pools, case, seed=0, epoch=epoch, trivia_turns=trivia_turns)
            users = [turn.text for turn in script(case, scenario, "baseline", drawn)]
            hits.append(mentions(simulated_reply("forgetful", "", users), case.cues) is not None)
    return sum(hits) / len(hits)


def test_forgetful_shows_the_papers_pattern() -> None:
    one, two, three, four, five = (passes(scenario) for scenario in SCENARIOS)
    assert one > two > three > four
    assert one > five > three


def test_forgetful_forgets_with_time() -> None:
    assert passes(1, trivia_turns=0, epochs=1) > passes(1, trivia_turns=100, epochs=1) + 0.2


@pytest.mark.parametrize("model", ["attentive", "forgetful", "agreeable", "cautious"])
def test_what_was_never_told_is_never_mentioned(run, model: str) -> None:
    (log,) = run(ablations(variants="untold", per_category=FEW), f"curate/{model}")
    assert metrics_of(log, "constraint_mention")["mention_rate"] <= 0.01


def test_paired_differences(run) -> None:
    (log,) = run(ablations(variants="baseline,guided", per_category=FEW), "curate/forgetful", epochs=3)
    figures = metrics_of(log)
    assert figures["guided_difference"] == pytest.approx(figures["guided"] - figures["baseline"])
    assert figures["guided_lower"] < figures["guided_difference"] < figures["guided_upper"]


@pytest.mark.parametrize(("tasks", "per_case"), [("ablations", 21), ("retention", 6), ("retention-unshared", 10)])
def test_generations_of_ablations_and_retention(run, tasks: str, per_case: int) -> None:
    model = Counting()
    task = ablations(per_category=1) if tasks == "ablations" else retention(per_category=1, share_prefix=tasks == "retention")
    run(task, model.model)
    assert len(model.calls) == per_case * 4


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="there are curate/attentive, curate/forgetful"):
        get_model("curate/genius")
