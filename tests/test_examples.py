"""The examples run, offline and with simulated models in place of those that they name."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from conftest import PAPER, Counting, metrics_of, needs_paper
from inspect_ai import eval_set
from inspect_ai._cli.main import inspect as inspect_command
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessage
from pandas.testing import assert_frame_equal

from curate_inspect import ablations, allergy, cli, curate, over_caution, scenario_3
from curate_inspect.estimate import estimate
from curate_inspect.report import tables
from curate_inspect.report.reading import read_logs
from curate_inspect.simulated import JUDGE, simulated_reply

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
MY_CASES = str(EXAMPLES / "my_cases.jsonl")


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture
def inspect_eval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., EvalLog]:
    """Run `inspect eval` in the checkout, as a reader does, and return its log."""

    def inspect_eval(*words: str) -> EvalLog:
        monkeypatch.chdir(ROOT)
        last = ["--log-dir", str(tmp_path / "logs"), "--display", "none"]
        inspect_command.main(["eval", *words, *last], standalone_mode=False, auto_envvar_prefix="INSPECT")
        (info,) = list_eval_logs(str(tmp_path / "logs"))
        return read_eval_log(info)

    return inspect_eval


LISTED = {
    name: shlex.split(command)
    for name, command in re.findall(
        r"^\| \[(\S+)\].*`([^`]+)` \|$", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
}


def listed(name: str) -> list[str]:
    """The arguments with which the list of examples says to run one, with simulated models."""
    words = ["curate/forgetful" if word == "openai/gpt-4o" else word for word in LISTED[name]]
    assert words[:2] == ["inspect", "eval"]
    return [*words[2:], "--model-role", "grader=curate/judge"]


def test_every_example_is_listed() -> None:
    assert set(LISTED) == {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}


# --- Run configs ---


def settings(name: str) -> dict:
    return yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))


def counts(name: str) -> tuple[int, int, int, int]:
    """Samples, calls to the model, the same without sharing, and calls to the grader of a run config."""
    given = settings(name)
    task = given["task"]["task"].removeprefix("curate_inspect/")
    found = estimate(task, given["task"]["args"], epochs=given.get("eval_config", {}).get("epochs", 1))
    return found.samples, found.model.calls, found.unshared, found.grader.calls


def test_quick(inspect_eval) -> None:
    assert counts("quick.yaml") == (400, 1040, 2320, 0)
    log = inspect_eval(*listed("quick.yaml"), "--limit", "6")
    assert log.status == "success" and len(log.samples) == 6
    assert "mention_rate" in metrics_of(log, "constraint_mention")


def test_options_win_over_a_run_config(inspect_eval) -> None:
    log = inspect_eval(*listed("quick.yaml"), "-T", "per_category=1", "-T", "scenarios=3")
    assert len(log.samples) == 4 and log.eval.task_args["scorer"] == "mention"


@needs_paper
def test_paper(inspect_eval, monkeypatch) -> None:
    monkeypatch.setenv("CURATE_INSPECT_PAPER_DIR", str(PAPER))
    monkeypatch.setenv("OPENROUTER_API_KEY", "none")  # Inspect builds the config's judge also when another takes its place
    assert counts("paper.yaml") == (5040, 13104, 29232, 5040)
    log = inspect_eval(*listed("paper.yaml"), "--limit", "3")
    assert log.status == "success" and len(log.samples) == 9
    assert (log.eval.dataset.name, log.eval.config.epochs) == ("paper", 3)
    assert (log.eval.model_generate_config.temperature, log.eval.model_generate_config.max_tokens) == (0.7, 100)
    assert log.eval.model_roles["grader"].config.max_tokens is None
    assert {sample.scores["curate_judge"].metadata["grader"] for sample in log.samples} == {"curate/judge"}


# --- A scenario and cases of one's own ---


def test_own_scenario(inspect_eval) -> None:
    log = inspect_eval(*listed("own_scenario.py"), "-T", "per_category=1")
    assert log.status == "success" and len(log.samples) == 4
    for sample in log.samples:
        asked = [message.text for message in sample.messages if message.role == "user"]
        assert len(asked) == 7
        assert asked[-2].startswith("Before I go on") and sample.input in asked[-1]
        assert set(sample.scores) == {"curate_judge", "constraint_mention"}


def test_own_scenario_shares_its_first_turns_with_scenario_3(run) -> None:
    counting = Counting(lambda messages: f"reply to {len(messages)}")
    run(scenario_3(per_category=1), counting.model)
    assert len(counting.calls) == 4 * 6
    run(module("own_scenario").reminded(per_category=1), counting.model)
    assert len(counting.calls) == 4 * (6 + 2)


def test_my_cases(inspect_eval) -> None:
    log = inspect_eval(*listed("my_cases.jsonl"))
    assert log.status == "success" and len(log.samples) == 15


def test_my_cases_in_every_task(run, capsys) -> None:
    assert cli.main(["check", MY_CASES]) == 0
    assert "3 cases, 0 faults" in capsys.readouterr().out
    tasks = [curate(cases=MY_CASES), ablations(cases=MY_CASES), over_caution(cases=MY_CASES)]
    plain, variants, controls = run(tasks, "curate/attentive")
    assert [len(log.samples) for log in (plain, variants, controls)] == [15, 18, 6]
    assert metrics_of(plain)["pass_rate"] == metrics_of(plain, "constraint_mention")["mention_rate"] == 1
    assert metrics_of(variants)["pass_rate"] == 1
    rates = metrics_of(controls, "over_caution_judge")
    assert rates["over_caution_rate"] == rates["unclear"] == 0


def test_my_cases_are_not_remembered_by_chance(run) -> None:
    """An assistant that was not told gives no cue, nor does one that gives in."""
    untold, *_ = run(ablations(cases=MY_CASES, variants=["baseline", "untold"], scorer="mention"), "curate/cautious")
    values = {(s.metadata["variant"], s.scores["constraint_mention"].value) for s in untold.samples}
    assert values == {("baseline", "pass"), ("untold", "fail")}


# --- Suites ---


@pytest.mark.server
def test_suite(tmp_path) -> None:
    """All four tasks for two models; the tasks of others too run offline, with a grader that answers in their form."""
    pytest.importorskip("inspect_evals.persistbench", exc_type=ImportError)

    def verdict(messages: list[ChatMessage]) -> str:
        system, user = messages[0].text, messages[1].text
        ours = simulated_reply(JUDGE, system, [user])
        return ours if ours.startswith("{") else json.dumps({"score": 1, "reasoning": "Nothing is leaked."})

    grader = Counting(verdict).model
    models = ["curate/attentive", "curate/agreeable"]
    complete, logs = eval_set(
        module("suite").suite(),
        model=models,
        model_roles={"grader": grader},
        log_dir=str(tmp_path / "suite"),
        limit=2,
        retry_attempts=0,
        display="none",
    )
    assert complete
    assert {(log.eval.task.split("/")[-1], log.eval.model) for log in logs} == {
        (task, model)
        for task in ("curate", "over_caution", "persistbench_cross_domain", "persistbench_sycophancy")
        for model in models
    }
    assert all(log.status == "success" and log.results.scores for log in logs)


@pytest.mark.server
def test_flow(tmp_path) -> None:
    pytest.importorskip("inspect_flow")
    from inspect_flow import FlowOptions
    from inspect_flow.api import load_spec, run

    spec = load_spec(str(EXAMPLES / "flow.py"))
    assert len(spec.tasks) == 3 * 2 and spec.log_dir == "logs/flow"
    substitutes = {"openai/gpt-4o": "curate/forgetful", "anthropic/claude-opus-4-5-20251101": "curate/attentive"}
    offline = [
        task.model_copy(update={"model": substitutes[task.model.name], "model_roles": {"grader": "curate/judge"}})
        for task in spec.tasks
    ]
    options = FlowOptions(limit=2, display="none")
    spec = spec.model_copy(update={"tasks": offline, "log_dir": str(tmp_path / "flow"), "store": None, "options": options})
    assert run(spec, base_dir=str(tmp_path)).success
    logs = {info.name: info.mtime for info in list_eval_logs(str(tmp_path / "flow"))}
    assert len(logs) == 6
    assert run(spec, base_dir=str(tmp_path)).success
    assert {info.name: info.mtime for info in list_eval_logs(str(tmp_path / "flow"))} == logs, "nothing is run again"


# --- Splitting ---


@pytest.mark.server
def test_two_machines_write_what_one_would(run, tmp_path, monkeypatch) -> None:
    """Two processes at once, each with the cases of two categories, into one folder; the report merges them."""
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "inspect_ai", "eval", "curate_inspect/curate", "-T", "per_category=3"]
    command += ["--model", "curate/forgetful", "--model-role", "grader=curate/judge", "--log-dir", "split", "--display", "none"]
    parts = [("allergy-*,phobia-*", "cache-1"), ("physical_constraint-*,trauma-*", "cache-2")]
    processes = []
    for ids, cache in parts:
        monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / cache))
        processes.append(subprocess.Popen([*command, "--sample-id", ids]))
    assert [process.wait(120) for process in processes] == [0, 0]
    split = [read_eval_log(info) for info in list_eval_logs("split")]
    assert [(log.status, len(log.samples)) for log in split] == [("success", 30), ("success", 30)]
    for log in split:  # whole cases, so that each shares its first turns
        assert (
            sum(len([e for e in s.events if e.event == "model" and e.cache != "read" and not e.role]) for s in log.samples)
            == 6 * 13
        )
    run(curate(per_category=3), "curate/forgetful")
    merged, whole = (tables.label(read_logs([folder]).rows)[0] for folder in ("split", "logs"))
    assert len(merged) == 60 and merged["row"].nunique() == 1
    assert_frame_equal(tables.as_frame(tables.all_results(merged)), tables.as_frame(tables.all_results(whole)))


# --- Scanning ---


@pytest.mark.server
def test_ambiguity_scan(run, tmp_path) -> None:
    pytest.importorskip("inspect_scout")
    logs, scans = str(tmp_path / "logs"), str(tmp_path / "scans")

    def opinion(messages: list[ChatMessage]) -> str:
        return f"It says in [M2] that it remembers.\n\nANSWER: {'B' if 'I remember' in messages[-1].text else 'A'}"

    counting = Counting(opinion)
    run(allergy(per_category=3, scenarios=4), "curate/attentive")
    assert not module("ambiguity_scan").compare(logs, counting.model, scans)
    run(allergy(per_category=3, scenarios=4), "curate/agreeable")
    table = module("ambiguity_scan").compare(logs, counting.model, scans)
    assert table == {("wrong_despite_noticing", "wrong_despite_noticing"): 3}
    assert len(counting.calls) == 3
