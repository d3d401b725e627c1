"""How many generations a run costs, counted with a provider that counts; what failures and later runs make of shared replies."""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import anyio
import pytest
from conftest import Counting
from inspect_ai import eval_retry, score, task_with
from inspect_ai.analysis import messages_df
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import ChatMessage, GenerateConfig, ModelOutput, ModelUsage, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver, use_tools
from inspect_ai.tool import Tool, think, tool

from curate_inspect import curate, retention, scenario_1, scenario_2, scenario_3, scenario_4, scenario_5
from curate_inspect.dialogue import SCENARIOS
from curate_inspect.scorers import constraint_mention
from curate_inspect.simulated import SimulatedAPI
from curate_inspect.wording import ANSWER_FIRST, NO_REPLY

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


def test_links_lead_to_the_constraint_wherever_it_is_shown(run) -> None:
    """In a model call of the sample's own, or in what records a shared turn; also in a later score."""
    (log,) = run(curate(per_category=1), Counting().model)
    log = read_eval_log(log.location, resolve_attachments=True)
    for sample in log.samples or []:
        link = _link(sample)
        shown = {event.uuid: str(event.data) for event in sample.events if event.event == "info"}
        asked = {m.id: m.text for event in sample.events if event.event == "model" for m in event.input}
        assert sample.metadata["constraint"] in {"event": shown, "message": asked}[link["type"]][link["id"]]
        assert (link["type"] == "message") == str(sample.id).endswith(".s1"), "scenario 1 is played first"
    later = score(log, constraint_mention(), action="overwrite", display="none")
    assert [_link(sample) for sample in later.samples or []] == [_link(sample) for sample in log.samples or []]


def _link(sample: EvalSample) -> dict[str, str]:
    return (sample.scores or {})["constraint_mention"].metadata["scanner_references"][0]


def test_stored_answers_are_told_of(run) -> None:
    (log,) = run(retention(per_category=1, categories="allergy", trivia_turns=[0, 10]))
    told = {s.id: [e.data for e in s.events if e.event == "info" and "stored" in str(e.data)] for s in log.samples}
    turns = "10 trivia turns with stored answers, to be seen among the messages"
    assert told == {"allergy-001.s1.t0": [], "allergy-001.s1.t10": [turns]}


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


def test_models_of_one_name_and_runs_at_two_temperatures_share_nothing(run) -> None:
    models = Counting(), Counting()
    for model, temperature in ((models[0], 0.1), (models[0], 0.2), (models[1], 0.2)):
        before = len(model.calls)
        run(curate(per_category=1), model.model, temperature=temperature)
        assert len(model.calls) - before == 13 * CASES


def test_one_task_for_two_temperatures_at_once_shares_nothing(run) -> None:
    model = Counting()
    tasks = [task_with(curate(per_category=1), config=GenerateConfig(temperature=t)) for t in (0.1, 0.2)]
    run(tasks, model.model, max_tasks=2)
    assert len(model.calls) == 2 * 13 * CASES


def test_a_turn_limit_is_the_same_for_all_scenarios(run) -> None:
    (log,) = run(curate(per_category=1), turn_limit=4)
    assert {(sample.limit.type, sample.scores["curate_judge"].reason) for sample in log.samples} == {("turn", "no_response")}


def test_conversations_with_tools_have_the_same_turns(run) -> None:
    @tool
    def look_up() -> Tool:
        async def execute(topic: str) -> str:
            """Look something up.

            Args:
                topic: What to look up.
            """
            return f"Nothing is known of {topic}."

        return execute

    def answer(messages: list[ChatMessage]) -> str | ModelOutput:
        if messages[-1].role == "tool":
            return "I looked it up."
        return ModelOutput.for_tool_call("mockllm", "look_up", {"topic": str(len(messages))})

    model = Counting(answer)
    task = curate(per_category=1, scorer="mention")
    (log,) = run(task_with(task, setup=use_tools(look_up())), model.model)
    assert log.status == "success"
    for case in {sample.metadata["case"] for sample in log.samples}:
        beginnings = {
            tuple((message.role, message.text) for message in sample.messages[:16])
            for sample in log.samples
            if sample.metadata["case"] == case
        }
        assert len(beginnings) == 1 and [role for role, _ in min(beginnings)] == ["user", "assistant", "tool", "assistant"] * 4
    assert len(model.calls) == 2 * 13 * CASES


def test_a_reply_with_tools_is_not_shared_with_conversations_without(run) -> None:
    @solver
    def tools_in_scenario_1() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.metadata["scenario"] == 1:
                state.tools = [think()]
            return state

        return solve

    def answer(input: Any, tools: list[Any], tool_choice: Any, config: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm", f"With {len(tools)} tools.")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    model = get_model("mockllm/tools", custom_outputs=answer, memoize=False)
    (log,) = run(task_with(curate(per_category=1, scorer="mention"), setup=tools_in_scenario_1()), model)
    for sample in log.samples:
        count = int(sample.metadata["scenario"] == 1)
        assert {m.text for m in sample.messages if m.role == "assistant"} == {f"With {count} tools."}


def test_messages_of_different_conversations_have_different_ids(run) -> None:
    """Inspect's dataframes would drop those that seem to be the same, be they equal or filled in."""
    model = Counting(lambda messages: "" if len(messages) == 1 else f"Reply {len(messages)}.")
    (log,) = run(curate(per_category=1, scorer="mention"), model.model)
    said = Counter(message.text for sample in log.samples for message in sample.messages)
    frame = messages_df(log.location)
    # The frame has the empty replies too, as they came.
    assert Counter(frame["content"]) == said + Counter({"": CASES})
    assert said[NO_REPLY] == len(log.samples)


def test_a_filtered_introduction_is_shared_too(run) -> None:
    def answer(messages: list[ChatMessage]) -> str | ModelOutput:
        return ModelOutput.from_content("mockllm", "", stop_reason="content_filter") if len(messages) == 1 else "Fine."

    model = Counting(answer)
    run(curate(per_category=1, scorer="mention"), model.model)
    assert len(model.calls) == 13 * CASES


# --- Failures ---


@pytest.mark.parametrize("turn", [1, 3], ids=["introduction", "trivia"])
def test_a_failed_generation_fails_nobody_who_waits_for_it(run, turn: int) -> None:
    asked: Counter[tuple[str, ...]] = Counter()

    async def answer(input, tools, tool_choice, config) -> ModelOutput:
        users = tuple(message.text for message in input if message.role == "user")
        asked[users] += 1
        first = asked[users] == 1
        await anyio.sleep(0.05)  # so that the others have come, and wait
        if first and len(users) == turn:
            raise RuntimeError("the provider is gone")
        output = ModelOutput.from_content("mockllm", "Fine.")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    model = get_model("mockllm/failing", custom_outputs=answer, memoize=False)
    (log,) = run(curate(per_category=1), model, max_samples=20, max_connections=20, fail_on_error=False)
    errors = [sample for sample in log.samples if sample.error]
    assert sorted(sample.metadata["case"] for sample in errors) == sorted({s.metadata["case"] for s in log.samples})
    assert all("the provider is gone" in sample.error.message for sample in errors)
    assert all(sample.scores for sample in log.samples if not sample.error)
    assert [count for users, count in asked.items() if len(users) == turn] == [2] * CASES
    assert {count for users, count in asked.items() if len(users) != turn} == {1}


def test_a_retry_reuses_what_was_generated(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SimulatedAPI.generate
    asked: Counter[bool] = Counter()  # final requests, and other turns
    down = True

    async def failing(self, input, *args, **kwargs):
        if self.model_name == "judge":
            return await whole(self, input, *args, **kwargs)
        final = input[-1].text.endswith(ANSWER_FIRST)
        asked[final] += 1
        if final and down:
            raise RuntimeError("the provider is gone")
        return await whole(self, input, *args, **kwargs)

    monkeypatch.setattr(SimulatedAPI, "generate", failing)
    (log,) = run(curate(per_category=1), fail_on_error=False)
    assert all(sample.error for sample in log.samples)
    assert asked == {True: 5 * CASES, False: 8 * CASES}
    down = False
    (again,) = eval_retry(log, log_dir=str(tmp_path / "logs"), display="none")
    assert not any(sample.error for sample in again.samples)
    assert asked == {True: 2 * 5 * CASES, False: 8 * CASES}


# --- Replicates ---


def test_a_later_run_repeats_the_shared_replies_and_one_with_another_seed_does_not(run) -> None:
    model = Counting()
    replies, calls = [], []
    for arguments in ({}, {}, {"seed": 1}, {"share_prefix": False}):
        before = len(model.calls)
        (log,) = run(curate(per_category=1, **arguments), model.model)
        calls.append(len(model.calls) - before)
        replies.append(_replies(log))
    assert calls == [13 * CASES, 5 * CASES, 13 * CASES, 29 * CASES]
    for case, of_scenarios in replies[0].items():
        again, reseeded, unshared = ([set(r[:-1]) for r in other[case]] for other in replies[1:])
        shared = [set(r[:-1]) for r in of_scenarios]
        assert again == shared
        assert not any(map(set.intersection, reseeded, shared))
        assert not any(map(set.intersection, unshared, shared))
        assert not {r[-1] for r in of_scenarios} & {r[-1] for r in replies[1][case]}
