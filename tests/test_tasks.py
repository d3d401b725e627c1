"""The tasks: what they contain, what they refuse, and that they run to the end as a user would run them."""

from pathlib import Path

import pytest
import yaml
from conftest import PAPER, metrics_of, needs_paper
from inspect_ai import Task

import curate_inspect
from curate_inspect import (
    ablations,
    allergy,
    curate,
    over_caution,
    phobia,
    physical_constraint,
    retention,
    scenario_1,
    scenario_2,
    scenario_5,
    trauma,
)
from curate_inspect.cases import CATEGORIES
from curate_inspect.sources import load

CATEGORY_TASKS = (allergy, phobia, physical_constraint, trauma)


def ids(task: Task) -> list[str]:
    return [str(sample.id) for sample in task.dataset]


def test_every_task_is_exported() -> None:
    assert set(curate_inspect.__all__) == {
        *("curate", "allergy", "phobia", "physical_constraint", "trauma"),
        *(f"scenario_{i}" for i in range(1, 6)),
        *("ablations", "over_caution", "retention", "judge_agreement"),
    }


def test_ids_and_order() -> None:
    """Scenario by scenario, the categories interleaved within, so that shared turns are ready when they are wanted."""
    names = ids(curate(per_category=2))
    assert len(names) == len(set(names)) == 2 * 4 * 5
    assert [name.split("-")[0] for name in names[:8]] == [*CATEGORIES, *CATEGORIES]
    assert [name.rpartition(".")[2] for name in names] == [f"s{i}" for i in range(1, 6) for _ in range(8)]


@pytest.mark.parametrize("task", CATEGORY_TASKS)
def test_a_category_has_all_its_cases_in_all_scenarios(task) -> None:
    count = sum(case.category == task.__name__ for case in load().cases)
    assert len(ids(task())) == 5 * count
    assert all(name.startswith(task.__name__) for name in ids(task()))


def test_a_sample_says_what_the_viewer_and_the_scorers_need() -> None:
    sample = next(iter(scenario_2(per_category=1).dataset))
    case = load().by_id[sample.metadata["case"]]
    assert sample.input == case.request.joint.leading
    assert sample.target == case.hazard
    assert sample.metadata["constraint"] == case.constraint
    assert sample.metadata["data_version"] == load().version
    assert (sample.metadata["scenario"], sample.metadata["variant"], sample.metadata["seed"]) == (2, "baseline", 0)


def test_ablations_add_variants_to_the_ids() -> None:
    names = ids(ablations(per_category=1, variants="baseline,guided,untold"))
    assert [name.partition(".")[2] for name in names[::4]] == ["s3", "s3.guided", "s3.untold"]
    assert len(ids(ablations(per_category=1))) == 6 * 4


def test_retention_adds_the_number_of_turns_to_the_ids() -> None:
    assert [name.partition(".")[2] for name in ids(retention(per_category=1))[::4]] == [f"s1.t{n}" for n in (0, 3, 10, 30, 100)]


def test_variants_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="scenario 5 has none"):
        ablations(scenario=5)
    with pytest.raises(ValueError, match="at least 2 trivia turns"):
        ablations(trivia_turns=1)


def test_values_as_the_command_line_gives_them() -> None:
    assert ids(curate(per_category=1, scenarios="1,5", categories="trauma")) == ids(
        curate(per_category=1, scenarios=[1, 5], categories=["trauma"])
    )


def test_a_run_with_epochs_is_scored_whole(run) -> None:
    (log,) = run(curate(per_category=2), "curate/forgetful", epochs=3)
    assert log.status == "success"
    assert log.results.total_samples == log.results.completed_samples == 3 * 2 * 4 * 5
    figures = metrics_of(log)
    samples = [sample.scores["curate_judge"].value for sample in log.samples]
    assert figures["pass_rate"] == pytest.approx(samples.count("pass") / len(samples))
    assert figures["pass_rate"] + figures["ambiguous"] + figures["fail"] == pytest.approx(1)
    for scenario in range(1, 6):
        of_scenario = [s.scores["curate_judge"].value for s in log.samples if s.metadata["scenario"] == scenario]
        assert figures[f"scenario_{scenario}"] == pytest.approx(of_scenario.count("pass") / len(of_scenario))
    for category in CATEGORIES:
        assert category in figures


def test_mention_alone_needs_no_grader(run) -> None:
    (log,) = run(scenario_1(per_category=1, scorer="mention"), model_roles={})
    assert log.status == "success"
    assert [score.name for score in log.results.scores] == ["constraint_mention"]
    assert metrics_of(log, "constraint_mention")["mention_rate"] == 1


def test_distractors_are_the_same_for_every_model_scenario_and_variant_and_new_in_each_epoch(run) -> None:
    logs = run(scenario_5(per_category=1), "curate/attentive", epochs=2) + run(
        scenario_5(per_category=1), "curate/cautious", epochs=2
    )
    logs += run(ablations(per_category=1, scenario=4, variants="guided"), epochs=2)
    trivia = {}
    for log in logs:
        for sample in log.samples:
            users = [m.text for m in sample.messages if m.role == "user"]
            key = sample.metadata["case"], sample.epoch
            assert trivia.setdefault(key, users[1:4]) == users[1:4]
    assert len(set(map(tuple, trivia.values()))) == len(trivia) == 8


@needs_paper
@pytest.mark.parametrize("workbook", ["inputs.xlsx", "inputs_80.xlsx"])
def test_the_published_workbooks_run(run, workbook: str) -> None:
    (log,) = run(curate(cases=str(PAPER / workbook), per_category=3), "curate/forgetful")
    assert log.status == "success"
    assert log.results.completed_samples == 3 * 4 * 5
    assert not any("nan" in m.text.split() for s in log.samples for m in s.messages)


@needs_paper
def test_reversed_on_the_published_workbooks() -> None:
    assert len(ablations(cases=str(PAPER / "inputs_80.xlsx"), variants="baseline,reversed").dataset) == 160
    with pytest.raises(ValueError, match="has no texts for the variant 'reversed'"):
        ablations(cases=str(PAPER / "inputs.xlsx"))
    with pytest.raises(ValueError, match="trivia without answers"):
        retention(cases=str(PAPER / "inputs.xlsx"))


def test_no_judge_is_told_the_hazard_of_another_request_or_person() -> None:
    for sample in [*over_caution(per_category=2).dataset, *ablations(per_category=2, variants="reversed").dataset]:
        assert sample.target == sample.metadata["constraint"]


def test_the_listing_has_the_sizes_of_the_tasks() -> None:
    listing = yaml.safe_load((Path(curate_inspect.__file__).parent / "eval.yaml").read_text(encoding="utf-8"))
    sizes = {entry["name"]: entry["dataset_samples"] for entry in listing["tasks"]}
    assert sizes == {name: len(getattr(curate_inspect, name)().dataset) for name in curate_inspect.__all__}


def test_over_caution_asks_the_controls() -> None:
    for sample in over_caution(per_category=1).dataset:
        case = load().by_id[sample.metadata["case"]]
        assert sample.input == (case.control.solo if sample.metadata["scenario"] == 1 else case.control.joint)


def test_numbers_from_the_command_line() -> None:
    """Inspect gives several numbers after one another as texts."""
    for given in (["0", "3"], "0,3", [0, 3]):
        ids = [sample.id for sample in retention(per_category=1, categories="allergy", trivia_turns=given).dataset]
        assert ids == ["allergy-001.s1.t0", "allergy-001.s1.t3"]
