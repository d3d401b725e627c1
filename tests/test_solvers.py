"""The stages of a conversation as parts: a system message, the chain of them, the check of the grader."""

from conftest import Counting
from inspect_ai import Task
from inspect_ai.solver import system_message

from curate_inspect import scenario_3
from curate_inspect.scorers import constraint_mention
from curate_inspect.solvers import ask_trivia, converse, introduce, introduce_others, request_recommendation


def test_a_system_message_of_the_users_own_stays(run) -> None:
    model = Counting()
    dataset = scenario_3(categories="allergy", per_category=1).dataset
    stages = [system_message("Answer in verse."), introduce(), request_recommendation()]
    run(Task(dataset=dataset, solver=stages, scorer=constraint_mention()), model.model)
    assert [call[0] for call in model.calls] == ["Answer in verse."] * 2


def test_a_grader_that_is_needed_is_asked_for_before_the_first_token(run) -> None:
    dataset = scenario_3(categories="allergy", per_category=1).dataset
    task = Task(dataset=dataset, solver=introduce(needs_grader=True))
    model = Counting()
    assert run(task, model.model)[0].status == "success" and len(model.calls) == 1
    (log,) = run(task, model.model, model_roles={})
    assert log.status == "error" and "There is no grader" in log.error.message and len(model.calls) == 1


def test_converse_is_the_chain_of_the_stages(run) -> None:
    dataset = scenario_3(per_category=1).dataset
    chain = [introduce(), ask_trivia(), introduce_others(), request_recommendation()]
    logs = [run(Task(dataset=dataset, solver=solver, scorer=constraint_mention()))[0] for solver in (converse(), chain)]
    one, other = ([[message.text for message in sample.messages] for sample in log.samples] for log in logs)
    assert one == other and {len(messages) for messages in one} == {12}
