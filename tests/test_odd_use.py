"""Odd but legal use of Inspect's options: what must hold all the same."""

import json
import os
import subprocess
import sys
from collections import Counter as Counts
from pathlib import Path

import pytest
from conftest import Counting, metrics_of
from example import CASE
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from inspect_ai.model import (
    BatchConfig,
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    get_model,
)
from openai_server import Server, deadline

from curate_inspect import curate, judge_agreement, over_caution, retention, scenario_1

Values = dict[tuple[str, int], str]


def values(log: EvalLog, scorer: str = "curate_judge") -> Values:
    assert log.status == "success", log.error
    return {(str(s.id), s.epoch): s.scores[scorer].value for s in log.samples}


@pytest.fixture(scope="module")
def kept() -> Values:
    return {}


@pytest.fixture
def whole(run, kept: Values) -> Values:
    """The values of a run without any options; made once."""
    if not kept:
        kept.update(values(run(curate(per_category=1), "curate/forgetful")[0]))
    return kept


# --- Which samples, how often, in which order ---


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"limit": 7}, 7),
        ({"limit": (2, 5)}, 3),
        ({"sample_id": "allergy-*"}, 5),
        ({"sample_id": ["*.s3", "trauma-001.s1"]}, 5),
        ({"sample_shuffle": 3}, 20),
        ({"sample_shuffle": True, "limit": 6}, 6),
        ({"max_samples": 1}, 20),
    ],
    ids=str,
)
def test_a_part_or_another_order_is_scored_as_the_whole(run, whole: Values, options, count: int) -> None:
    part = values(run(curate(per_category=1), "curate/forgetful", **options)[0])
    assert len(part) == count
    assert part.items() <= whole.items()


def test_one_sample_at_a_time_costs_no_more(run) -> None:
    model = Counting()
    run(curate(per_category=1), model.model, max_samples=1)
    assert len(model.calls) == 13 * 4


def test_five_epochs_of_a_part(run, whole: Values) -> None:
    (log,) = run(curate(per_category=1), "curate/forgetful", epochs=5, limit=6)
    found = values(log)
    assert Counts(epoch for _, epoch in found) == dict.fromkeys(range(1, 6), 6)
    assert {key: value for key, value in found.items() if key[1] == 1}.items() <= whole.items()
    assert metrics_of(log)["pass_rate"] == pytest.approx(list(found.values()).count("pass") / 30)


# --- Limits ---


@pytest.mark.parametrize(("limit", "cut"), [({"message_limit": 11}, 16), ({"token_limit": 7}, 4)], ids=str)
def test_conversations_that_a_limit_cuts_are_unscored_and_counted(run, limit, cut: int) -> None:
    model = Counting()  # two tokens a call; whoever is first in a case makes five calls, the others two
    (log,) = run(curate(per_category=1), model.model, max_samples=1, **limit)
    assert log.status == "success"
    stopped = [sample for sample in log.samples if sample.limit]
    assert len(stopped) == cut
    for name in ("curate_judge", "constraint_mention"):
        assert all(s.scores[name].reason == "no_response" for s in stopped)
        (score,) = [score for score in log.results.scores if score.name == name]
        assert (score.scored_samples, score.unscored_samples) == (20 - cut, cut)


# --- Models ---


def test_models_of_one_call_and_of_one_process_are_apart(run, whole: Values) -> None:
    logs = run(curate(per_category=1), ["curate/forgetful", "curate/agreeable"])
    logs += run(curate(per_category=1), "curate/agreeable") + run(curate(per_category=1), "curate/forgetful")
    together = [values(log) for log in logs]
    assert together[0] == together[3] == whole
    assert together[1] == together[2] != whole


def test_models_share_no_replies(run) -> None:
    def named(name: str):
        def answer(input, tools, tool_choice, config) -> ModelOutput:
            calls[name] += 1
            output = ModelOutput.from_content("mockllm", f"{name} says {calls[name]}")
            output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
            return output

        return get_model(f"mockllm/{name}", custom_outputs=answer, memoize=False)

    calls: Counts[str] = Counts()
    logs = run(curate(per_category=1), [named("one"), named("two")])
    assert calls == {"one": 13 * 4, "two": 13 * 4}
    for name, log in zip(("one", "two"), logs, strict=True):
        assert all(m.text.startswith(f"{name} says") for s in log.samples for m in s.messages if m.role == "assistant")


def test_a_system_prompt_of_the_run_opens_every_conversation_and_is_not_shared_with_runs_without(run) -> None:
    model, grader = Counting(), Counting(lambda messages: json.dumps({"rating": 2}))
    run(scenario_1(per_category=1), model.model)
    before = len(model.calls)
    roles = {"grader": grader.model}
    (log,) = run(scenario_1(per_category=1), model.model, model_roles=roles, system_message="Answer in one word.")
    assert len(model.calls) == 2 * before
    assert {call[0] for call in model.calls[before:]} == {"Answer in one word."}
    assert not any("one word" in text for call in grader.calls for text in call)
    assert set(values(log).values()) == {"pass"}


def test_reasoning_is_neither_judged_nor_taken_for_a_mention(run) -> None:
    def thinking(messages) -> ModelOutput:
        content = [ContentReasoning(reasoning=f"Remember: {messages[0].text}"), ContentText(text="Yes, go.")]
        return ModelOutput.from_message(ChatMessageAssistant(content=content))

    model, grader = Counting(thinking), Counting(lambda messages: json.dumps({"rating": 0}))
    (log,) = run(scenario_1(per_category=1), model.model, model_roles={"grader": grader.model})
    assert set(values(log, "constraint_mention").values()) == {"fail"}
    assert len(grader.calls) == 4
    assert not any("Remember" in text for call in grader.calls for text in call)
    assert all(isinstance(s.messages[-1].content[0], ContentReasoning) for s in log.samples), "the log keeps it"


# --- A grader that answers in batches ---


@pytest.mark.server
def test_a_grader_in_batch_mode_gives_the_same_scores(run, whole: Values) -> None:
    """As from `--model-role 'grader={model: …, batch: true}'`."""
    with Server() as server, deadline(120):
        config = GenerateConfig(batch=BatchConfig(tick=0.1, send_delay=0.1))
        local = {"base_url": server.url, "api_key": "none", "responses_api": False, "memoize": False}
        grader = get_model("openai/judge", config=config, **local)
        (log,) = run(curate(per_category=1), "curate/forgetful", model_roles={"grader": grader})
        assert values(log) == whole
        assert server.calls["judge"] == 20
        assert 1 <= server.calls["batch"] <= 20


# --- A file of one's own ---


@pytest.fixture
def own(tmp_path: Path) -> str:
    cases = [CASE.model_copy(update={"id": f"allergy-{900 + i}"}) for i in range(4)]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(case.model_dump_json() + "\n" for case in cases), encoding="utf-8")
    return str(path)


def test_over_caution_and_retention_of_ones_own_cases_with_epochs_and_a_limit(run, own: str) -> None:
    tasks = [over_caution(cases=own), retention(cases=own, trivia_turns=[0, 5])]
    controls, kept = run(tasks, "curate/cautious", epochs=3, limit=3)
    for log, scorer, value in ((controls, "over_caution_judge", "over_cautious"), (kept, "curate_judge", "pass")):
        found = values(log, scorer)
        assert Counts(epoch for _, epoch in found) == {1: 3, 2: 3, 3: 3}
        assert set(found.values()) == {value}
    assert metrics_of(controls, "over_caution_judge")["over_caution_rate"] == 1
    assert metrics_of(kept)["pass_rate"] == 1


def test_judge_agreement_of_ones_own_examples_with_epochs_and_a_limit(run, own: str, tmp_path: Path) -> None:
    replies = [("No, your throat would close.", 2), ("Yes, do it!", 0), ("Yes, do!", 2), ("No, your throat.", 2)]
    lines = [{"case": "allergy-900", "asked": "solo", "reply": reply, "rating": rating} for reply, rating in replies]
    examples = tmp_path / "examples.jsonl"
    examples.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (log,) = run(judge_agreement(examples=str(examples), cases=own), "curate/judge", model_roles={}, epochs=3, limit=3)
    assert Counts(sample.epoch for sample in log.samples) == {1: 3, 2: 3, 3: 3}
    assert metrics_of(log, "agreement_score")["agreement"] == pytest.approx(2 / 3)


# --- Another async backend ---


@pytest.mark.server
def test_trio_gives_the_same_scores(whole: Values, tmp_path: Path) -> None:
    pytest.importorskip("trio")
    command = [sys.executable, "-m", "inspect_ai", "eval", "curate_inspect/curate", "-T", "per_category=1"]
    command += ["--model", "curate/forgetful", "--model-role", "grader=curate/judge", "--log-dir", str(tmp_path / "trio")]
    environment = os.environ | {"INSPECT_ASYNC_BACKEND": "trio", "INSPECT_CACHE_DIR": str(tmp_path / "another")}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=120)
    (info,) = list_eval_logs(str(tmp_path / "trio"))
    assert values(read_eval_log(info)) == whole
