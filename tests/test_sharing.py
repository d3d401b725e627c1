"""How many generations a run costs, counted with a provider that counts."""

from collections import defaultdict

import pytest
from conftest import Counting
from inspect_ai.log import EvalLog

from curate_inspect import curate, scenario_1, scenario_2, scenario_3, scenario_4, scenario_5
from curate_inspect.dialogue import SCENARIOS

CASES = 4  # one a category


def _replies(log: EvalLog) -> dict[tuple[str, int], list[list[str]]]:
    """The assistant's replies of each sample, by case and epoch, scenario by scenario."""
    out = defaultdict(list)
    for sample in sorted(log.samples or [], key=lambda s: str(s.id)):
        out[sample.metadata["case"], sample.epoch].append([m.text for m in sample.messages if m.role == "assistant"])
    return out


def test_five_scenarios_cost_13_generations_a_case(run) -> None:
    model = Counting()
    (log,) = run(curate(per_category=1), model.model)
    assert log.status == "success"
    assert len(model.calls) == 13 * CASES
    for replies in _replies(log).values():
        assert len(replies) == len(SCENARIOS)
        assert len({tuple(r[:4]) for r in replies}) == 1, "introduction and trivia are answered alike"
        assert len({r[-1] for r in replies}) == len(SCENARIOS), "the last reply is never shared"


def test_unshared_they_cost_29(run) -> None:
    model = Counting()
    run(curate(per_category=1, share_prefix=False), model.model)
    assert len(model.calls) == 29 * CASES


def test_epochs_share_nothing_with_each_other(run) -> None:
    model = Counting()
    (log,) = run(curate(per_category=1), model.model, epochs=3)
    assert len(model.calls) == 3 * 13 * CASES
    first = {key: replies[0][0] for key, replies in _replies(log).items()}
    assert len(set(first.values())) == len(first)


@pytest.mark.parametrize("parallel", [1, 5])
def test_tasks_of_one_run_share(run, parallel: int) -> None:
    model = Counting()
    tasks = [task(per_category=1) for task in (scenario_1, scenario_2, scenario_3, scenario_4, scenario_5)]
    logs = run(tasks, model.model, max_tasks=parallel)
    assert [log.status for log in logs] == ["success"] * 5
    assert len(model.calls) == 13 * CASES
