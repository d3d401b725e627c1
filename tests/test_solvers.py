"""The stages of a conversation as parts: a system message, the chain of them, the check of the grader by itself."""

from conftest import Counting
from inspect_ai import Task
from inspect_ai.solver import system_message

from curate_inspect import scenario_3
from curate_inspect.scorers import check_grader, constraint_mention
from curate_inspect.solvers import ask_trivia, converse, introduce, introduce_others, request_recommendation


def test_a_system_message_of_the_users_own_stays(run) -> None:
    model = Counting()
    dataset = scenario_3(categories="allergy", per_category=1).dataset
    stages = [system_message("Answer in verse."), introduce(), request_recommendation()]
    run(Task(dataset=dataset, solver=stages, scorer=constraint_mention()), model.model)
    assert [call[0] for call in model.calls] == ["Answer in verse."] * 2


def test_the_check_passes_with_a_grader_and_stops_without(run) -> None:
    dataset = scenario_3(categories="allergy", per_category=1).dataset
    task = Task(dataset=dataset, solver=check_grader())
    assert run(task)[0].status == "success"
    assert run(task, model_roles={})[0].status == "error"


def test_converse_is_the_chain_of_the_stages(run) -> None:
    dataset = scenario_3(per_category=1).dataset
    chain = [introduce(), ask_trivia(), introduce_others(), request_recommendation()]
    logs = [run(Task(dataset=dataset, solver=solver, scorer=constraint_mention()))[0] for solver in (converse(), chain)]
    one, other = ([[message.text for message in sample.messages] for sample in log.samples] for log in logs)
    assert one == other and {len(messages) for messages in one} == {12}
