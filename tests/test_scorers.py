"""The scorers on conversations that end in every way, the setup check, and scoring a log again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Counting, metrics_of
from inspect_ai import eval_retry, score
from inspect_ai.log import read_eval_log
from inspect_ai.model import GenerateConfig, ModelOutput, get_model
from inspect_ai.solver import chain, generate, user_message

from curate_inspect import allergy, curate, over_caution, scenario_1
from curate_inspect.dialogue import SCENARIOS
from curate_inspect.scorers import constraint_mention, curate_judge, over_caution_judge
from curate_inspect.simulated import SimulatedAPI
from curate_inspect.wording import ANSWER_FIRST, NO_REPLY


def output(text: str, stop_reason: str = "stop") -> ModelOutput:
    return ModelOutput.from_content("mockllm", text, stop_reason=stop_reason)


def one_sample(run, last: ModelOutput, early: ModelOutput | None = None, **kwargs):
    """A sample of scenario 1 in which the model's last reply, and the ones before, are given."""
    model = Counting(lambda messages: last if messages[-1].text.endswith(ANSWER_FIRST) else early or "Fine.")
    (log,) = run(scenario_1(categories="allergy", per_category=1), model.model, **kwargs)
    assert log.status == "success", log.error
    return log.samples[0], model, log


def test_an_empty_last_reply_is_ambiguous_without_a_judge(run) -> None:
    sample, _, log = one_sample(run, output("  \n"))
    judged = sample.scores["curate_judge"]
    assert (judged.value, judged.metadata["factor"], judged.metadata["attempts"]) == ("ambiguous", "evading_question", 0)
    assert metrics_of(log)["empty"] == 1
    assert "curate/judge" not in log.stats.model_usage
    assert sample.scores["constraint_mention"].value == "fail"


def test_no_room_for_a_reply_says_nothing_about_the_model(run) -> None:
    sample, _, log = one_sample(run, output("", "max_tokens"))
    for name in ("curate_judge", "constraint_mention"):
        assert sample.scores[name].reason == "no_response"
        assert "--max-tokens" in sample.scores[name].explanation
    assert [s.unscored_samples for s in log.results.scores] == [1, 1]


def test_a_cut_reply_is_judged_as_it_stands_and_counted(run) -> None:
    sample, _, log = one_sample(run, output("No, because of your allergy, I would", "max_tokens"))
    assert sample.scores["curate_judge"].metadata["truncated"]
    assert metrics_of(log)["truncated"] == 1


def test_thinking_is_kept_from_the_judge(run) -> None:
    grader = Counting(lambda messages: json.dumps({"rating": 0}))
    sample, _, _ = one_sample(run, output("<think>Her allergy!</think>Yes, go."), model_roles={"grader": grader.model})
    assert sample.scores["curate_judge"].answer == "Yes, go."
    assert not any("Her allergy!" in text for call in grader.calls for text in call)
    assert sample.scores["constraint_mention"].value == "fail"


@pytest.mark.parametrize(
    "thinking",
    [
        "◁think▷Her allergy!◁/think▷",
        "<thought>Her allergy!</thought>",
        "<|channel|>analysis Her allergy!<|channel|>final<|message|>",
    ],
)
def test_thinking_in_the_marks_of_other_servers(run, thinking: str) -> None:
    sample, _, _ = one_sample(run, output(f"{thinking}Yes, go."))
    assert [score.value for score in sample.scores.values()] == ["fail", "fail"]
    assert sample.scores["curate_judge"].answer == "Yes, go."


def test_an_error_text_in_place_of_a_reply_says_nothing_about_the_model(run) -> None:
    sample, _, _ = one_sample(run, output("The model's context is 8192 tokens, you have an allergy to 9000.", "model_length"))
    for found in sample.scores.values():
        assert found.reason == "no_response" and "context" in found.explanation
        assert not found.metadata["empty"]


def test_what_the_provider_filtered_is_no_answer(run) -> None:
    sample, _, log = one_sample(run, output("Your prompt about an allergy was flagged.", "content_filter"))
    judged = sample.scores["curate_judge"]
    assert (judged.value, judged.metadata["factor"], judged.metadata["attempts"]) == ("ambiguous", "evading_question", 0)
    assert sample.scores["constraint_mention"].value == "fail"
    assert metrics_of(log)["empty"] == 1


def test_a_stage_after_the_request_is_told_as_the_reason(run) -> None:
    task = scenario_1(categories="allergy", per_category=1)
    task.solver = chain(task.solver, user_message("Are you sure?"), generate())
    (log,) = run(task)
    for found in log.samples[0].scores.values():
        assert found.reason == "no_response" and "request_recommendation" in found.explanation


def test_the_settings_of_a_grader_are_in_its_scores(run) -> None:
    graders = [
        get_model("curate/judge", config=GenerateConfig(temperature=0.3, max_retries=2)),
        get_model("curate/judge", config=GenerateConfig(max_retries=1)),
    ]
    for grader, expected in zip(graders, ("temperature=0.3", None), strict=True):
        sample, _, _ = one_sample(run, output("Yes."), model_roles={"grader": grader})
        assert sample.scores["curate_judge"].metadata.get("grader_config") == expected


def test_empty_replies_on_the_way_are_filled_and_counted(run) -> None:
    sample, model, _ = one_sample(run, output("No, because of your allergy."), early=output(""))
    assert [m.text for m in sample.messages if m.role == "assistant"][:-1] == [NO_REPLY] * 4
    assert all(text for call in model.calls for text in call)
    assert sample.scores["curate_judge"].metadata["empty_earlier"] == 4


@pytest.mark.parametrize("limit", [{"message_limit": 5}, {"token_limit": 5}])
def test_a_conversation_stopped_by_a_limit_is_unscored(run, limit) -> None:
    sample, _, _ = one_sample(run, output("No."), **limit)
    assert sample.limit is not None
    assert sample.scores["curate_judge"].reason == "no_response"
    assert "stopped before the last reply" in sample.scores["curate_judge"].explanation


def test_the_verdict_links_to_the_constraint_and_the_reply(run) -> None:
    (log,) = run(scenario_1(per_category=1))
    for sample in log.samples:
        judged = sample.scores["curate_judge"]
        first, last = judged.metadata["scanner_references"]
        by_id = {message.id: message.text for message in sample.messages}
        assert sample.metadata["constraint"] in by_id[first["id"]]
        assert by_id[last["id"]] == sample.messages[-1].text
        assert judged.explanation.endswith(f"Constraint: {first['cite']}. Reply: {last['cite']}.")
        assert judged.metadata["grader"] == "curate/judge" and judged.metadata["rubric"] == "consideration 1"


def test_the_runs_settings_do_not_reach_a_grader_that_is_the_model_itself(run) -> None:
    seen: list[GenerateConfig] = []

    def answer(input, tools, tool_choice, config):
        made = output(json.dumps({"rating": 2}))
        made.usage = Counting().model.api.outputs(input, tools, tool_choice, config).usage
        if input[0].role == "system" and "rate the answer" in input[0].text:
            seen.append(config)
        return made

    model = get_model("mockllm/self", custom_outputs=answer, memoize=False)
    (log,) = run(
        scenario_1(categories="allergy", per_category=1),
        model,
        model_roles={"grader": model},
        max_tokens=5,
        temperature=1.0,
        stop_seqs=["."],
        system_message="Be brief.",
    )
    assert log.status == "success"
    assert [(c.max_tokens, c.temperature, c.stop_seqs, c.system_message) for c in seen] == [(None, 0.0, None, None)]


def test_scores_can_be_made_later_and_anew(run, tmp_path: Path) -> None:
    (log,) = run(curate(per_category=1), "curate/forgetful", score=False)
    assert not log.samples[0].scores
    scored = score(
        read_eval_log(log.location), [curate_judge(), constraint_mention()], model_roles={"grader": get_model("curate/judge")}
    )
    (whole,) = run(curate(per_category=1), "curate/forgetful")
    assert metrics_of(scored) == metrics_of(whole)


def test_the_command_line_regrades_a_log(run, tmp_path: Path) -> None:
    (log,) = run(scenario_1(per_category=1), "curate/forgetful")
    command = [sys.executable, "-m", "inspect_ai", "score", log.location, "--scorer", "curate_inspect/curate_judge"]
    command += ["--model-role", "grader=curate/judge", "--action", "append", "--output-file", str(tmp_path / "again.eval")]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, timeout=120)
    again = read_eval_log(str(tmp_path / "again.eval"))
    assert len(again.results.scores) == 3
    assert {s.scores["curate_judge"].value for s in again.samples} == {s.scores["curate_judge"].value for s in log.samples}


def test_an_interrupted_run_is_finished_by_a_retry(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    whole = SimulatedAPI.generate

    async def failing(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == 40:
            raise RuntimeError("the provider is gone")
        return await whole(*args, **kwargs)

    monkeypatch.setattr(SimulatedAPI, "generate", failing)
    (log,) = run(allergy(per_category=3))
    assert log.status == "error"
    (again,) = eval_retry(log, log_dir=str(tmp_path / "logs"), display="none")
    assert again.status == "success", again.error
    assert len({(s.id, s.epoch) for s in again.samples}) == len(again.samples) == 3 * len(SCENARIOS)
    assert calls < 40 + 54, "what was answered before is not asked again"


def test_over_caution_uses_the_same_machinery(run) -> None:
    (log,) = run(over_caution(per_category=1), "curate/cautious")
    for sample in log.samples:
        judged = sample.scores[over_caution_judge.__name__]
        assert judged.value == "over_cautious"
        assert judged.metadata["rubric"] == "over_caution 1"
