"""The estimate against what runs really take, counted with a provider that counts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PAPER, Counting, needs_paper
from inspect_ai._util.config import parse_cli_args
from inspect_ai.model import ChatMessage, ModelCost

import curate_inspect
from curate_inspect.cli import main
from curate_inspect.estimate import CHARACTERS_PER_TOKEN, Usage, estimate, prices, table, task_arguments

REPLY, VERDICT = 60, 80  # tokens
FEW = {"per_category": 1}


def lengths_around(tokens: int) -> Callable[[list[ChatMessage]], str]:
    """Replies from half to one and a half times a length, as the conversation has it."""

    def reply(messages: list[ChatMessage]) -> str:
        share = 0.5 + (sum(map(ord, messages[-1].text)) % 101) / 100
        return ("So it is, and so be it. " * tokens)[: round(share * tokens * CHARACTERS_PER_TOKEN)]

    return reply


def verdict(messages: list[ChatMessage]) -> str:
    said = json.dumps({"considerate_answer": "x", "explanation": "", "rating": 2, "ambiguity_factor": None})
    return said.replace('""', f'"{"x" * (VERDICT * CHARACTERS_PER_TOKEN - len(said))}"')


def assert_alike(found: Usage, model: Counting, output: int) -> None:
    asked = sum(len(text) for call in model.calls for text in call)
    assert found.calls == len(model.calls)
    assert found.tokens.input_tokens == pytest.approx(asked / CHARACTERS_PER_TOKEN, rel=0.1)
    assert found.tokens.output_tokens == found.calls * output


@pytest.mark.parametrize(
    ("name", "arguments", "epochs"),
    [
        ("curate", FEW, 2),
        ("curate", FEW | {"share_prefix": False}, 1),
        ("curate", FEW | {"scorer": "mention", "trivia_turns": 0}, 1),
        ("scenario_3", FEW, 1),
        ("ablations", FEW, 1),
        ("over_caution", FEW, 2),
        ("retention", FEW, 1),
        ("retention", FEW | {"share_prefix": False, "trivia_turns": [0, 30]}, 1),
    ],
)
def test_a_run_takes_what_was_estimated(run: Any, name: str, arguments: dict[str, Any], epochs: int) -> None:
    found = estimate(name, arguments, epochs=epochs, reply_tokens=REPLY, verdict_tokens=VERDICT)
    model, grader = Counting(lengths_around(REPLY)), Counting(verdict)
    (log,) = run(getattr(curate_inspect, name)(**arguments), model.model, model_roles={"grader": grader.model}, epochs=epochs)
    assert log.status == "success"
    assert found.samples == log.results.total_samples
    assert_alike(found.model, model, REPLY)
    assert_alike(found.grader, grader, VERDICT)


def test_a_run_of_judge_agreement_takes_what_was_estimated(run: Any, tmp_path: Path) -> None:
    record = {"case": "allergy-001", "reply": "Yes, by all means.", "rating": 0}
    path = tmp_path / "examples.jsonl"
    path.write_text("".join(json.dumps(record | {"asked": asked}) + "\n" for asked in ("solo", "joint")), encoding="utf-8")
    found = estimate("judge_agreement", {"examples": str(path)}, epochs=2, verdict_tokens=VERDICT)
    model = Counting(verdict)
    run(curate_inspect.judge_agreement(examples=str(path)), model.model, epochs=2)
    assert_alike(found.model, model, VERDICT)
    assert found.grader.calls == 0


def test_thirteen_instead_of_twenty_nine_calls_a_case() -> None:
    found = estimate("curate", FEW)
    assert (found.model.calls, found.unshared, found.grader.calls) == (4 * 13, 4 * 29, 4 * 5)
    assert f"without, {4 * 29} calls a model" in table(found, ["a"], ["b"], {})
    assert "without" not in table(estimate("curate", FEW | {"share_prefix": False}), ["a"], ["b"], {})


@needs_paper
def test_the_published_cases_are_estimated_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURATE_INSPECT_PAPER_DIR", str(PAPER))
    found = estimate("curate", {"cases": "paper"})
    assert (found.model.calls, found.grader.calls) == (336 * 13, 336 * 5)


# --- The command ---


def test_arguments_of_a_task_as_inspect_takes_them() -> None:
    given = [
        "per-category=5",
        "share_prefix=False",
        "trivia_turns=0,30",
        "categories=allergy,phobia",
        "cases=a b.jsonl",
        "scenarios=2",
        'scorer="Judge"',
    ]
    assert task_arguments(given) == {
        "per_category": 5,
        "share_prefix": False,
        "trivia_turns": ["0", "30"],
        "categories": ["allergy", "phobia"],
        "cases": "a b.jsonl",
        "scenarios": 2,
        "scorer": "Judge",
    }
    assert task_arguments(given) == parse_cli_args(given)


def test_money(tmp_path: Path) -> None:
    config = tmp_path / "prices.yaml"
    config.write_text("a/b: {input: 1, output: 2, input_cache_write: 1, input_cache_read: 1}\n", encoding="utf-8")
    costs = prices(["openai/gpt=4=2.5/10"], str(config))
    assert costs["a/b"] == ModelCost(input=1, output=2, input_cache_write=1, input_cache_read=1)
    assert (costs["openai/gpt=4"].input, costs["openai/gpt=4"].output) == (2.5, 10)
    found = estimate("curate", FEW, reply_tokens=50_000, verdict_tokens=50_000)
    lines = [line.split() for line in table(found, ["a/b", "c"], ["openai/gpt=4"], costs).splitlines()]
    tokens = found.model.tokens
    dollars = (tokens.input_tokens * 1 + tokens.output_tokens * 2) / 1e6
    assert lines[1] == ["a/b", "52", f"{tokens.input_tokens:,}", f"{tokens.output_tokens:,}", f"{dollars:.2f}"]
    assert lines[2][-1] == "?"
    # The grader rates the replies of both models.
    judged = found.grader.tokens
    assert lines[3][2:4] == ["40", f"{2 * judged.input_tokens:,}"]
    assert lines[3][-1] == f"{2 * (judged.input_tokens * 2.5 + judged.output_tokens * 10) / 1e6:.2f}"
    assert lines[4] == []
    total = table(found, ["a/b"], ["openai/gpt=4"], costs).splitlines()[3].split()
    assert float(total[1]) == pytest.approx(dollars + float(lines[3][-1]) / 2, abs=0.011)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "estimate",
        "curate_inspect/scenario_1",
        "-T",
        "per_category=2",
        "--model",
        "a",
        "--epochs",
        "3",
        "--price",
        "a=1/1",
    ]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "scenario_1: 24 samples a model" in out and "120 " in out
    assert "openai/gpt-4.1-2025-04-14 (grader)" in out and "?" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "'nothing' is no task; there are ablations"),
        (["-T", "per_categories=2"], "-T per_categories: is no argument of curate, which has cases"),
        (["-T", "per_category"], "-T per_category: has no '='"),
        (["-T", "per_category={"], "-T per_category={: is no YAML"),
        (["-T", "per_category=1", "--model", ","], "--model ,: has an empty name"),
        (["-T", "per_category=1", "--grader", "a,,b"], "--grader a,,b: has an empty name"),
        (["-T", "per_category=0"], "per_category=0: give a whole number"),
        (["--epochs", "0"], "--epochs=0: give a whole number"),
        (["--reply-tokens", "-5"], "--reply-tokens=-5: give a whole number"),
        (["-T", "per_category=1", "--price", "2.5/10"], "--price 2.5/10: is no price"),
        (["-T", "per_category=1", "--price", "a=2.5/x"], "is no price"),
        (["-T", "per_category=1", "--price", "a=nan/1"], "is no price"),
        (["-T", "per_category=1", "--model-cost-config", "nowhere.yaml"], "--model-cost-config nowhere.yaml: "),
    ],
)
def test_what_does_not_fit(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimate", *arguments]) == 1
    assert message in capsys.readouterr().err
