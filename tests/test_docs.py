"""The documentation is true: examples and figures are computed anew, and every command and code block is run.

`python tests/test_docs.py` writes the examples that are made by the package.
"""

import io
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from inspect import signature
from itertools import groupby, takewhile
from pathlib import Path

import pytest
import yaml
from inspect_ai._cli.main import inspect as inspect_command
from inspect_ai.log import list_eval_logs, read_eval_log

import curate_inspect
from curate_inspect import cli, judge
from curate_inspect.dialogue import SCENARIOS, VARIANTS, Scenario, Turn, Variant, script
from curate_inspect.distractors import draw
from curate_inspect.estimate import estimate
from curate_inspect.judge import CONSIDERATION, question
from curate_inspect.report.sections import _VARIANT_TEXTS
from curate_inspect.sources import load
from curate_inspect.tasks import VERSION

ROOT = Path(__file__).parent.parent
CASE = "allergy-074"
REPLY = "Yes, go for it! The light will be wonderful. Do keep your pens at hand, though."

# --- What the package makes ---


def said(scenario: Scenario, variant: Variant = "baseline") -> tuple[Turn, ...]:
    case = load().by_id[CASE]
    return script(case, scenario, variant, draw(load().pools, case, seed=0, epoch=1, trivia_turns=3))


def listed(turns: tuple[Turn, ...], base: tuple[Turn, ...] = (), name: str = "") -> str:
    """Turns by their numbers; those that are as in `base` are only named."""
    lines = []
    for known, group in groupby(enumerate(turns, 1), key=lambda item: item[1] in base[item[0] - 1 : item[0]]):
        numbered = list(group)
        first, last = numbered[0][0], numbered[-1][0]
        if known:
            lines.append(f"- {first if first == last else f'{first}–{last}'}: as in {name}")
        else:
            lines += [f"- {i}, {turn.name}: “{turn.text}”" for i, turn in numbered]
    return "\n".join(lines)


def conversations() -> str:
    """All scenarios and variants of one case, written out."""
    alone, base = said(1), said(3)
    parts = [
        "## One case, written out",
        f"Case `{CASE}`, seed 0, epoch 1, three trivia turns. Each message of the user has its number.",
        f"### Scenario 1\n\n{listed(alone)}",
    ]
    parts += [f"### Scenario {n}\n\n{listed(said(n), alone, 'scenario 1')}" for n in SCENARIOS[1:]]
    parts += [f"### `{name}`, on scenario 3\n\n{listed(said(3, name), base, 'scenario 3')}" for name in VARIANTS[1:]]
    parts += [f"### The control, in scenario {n}\n\n{listed(said(n, 'control'), said(n), f'scenario {n}')}" for n in (1, 5)]
    return "\n\n".join(parts)


def judge_prompt() -> str:
    """What a grader is asked about one reply."""
    case = load().by_id[CASE]
    system, user = question(CONSIDERATION, case.constraint, case.hazard, case.request.joint.leading, REPLY)
    parts = [f"The system message, rubric {CONSIDERATION.version}:", system.text, "The user message:", user.text]
    return "\n\n".join(f"```text\n{part}\n```" if i % 2 else part for i, part in enumerate(parts))


MADE = {"docs/protocol.md": conversations, "docs/judge.md": judge_prompt}
_MADE = re.compile(r"(<!-- made by: python tests/test_docs.py -->\n).*(<!-- end -->)", re.DOTALL)


def with_examples(name: str) -> tuple[str, str]:
    """A document as it is, and as it should be."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return text, _MADE.sub(lambda match: f"{match[1]}\n{MADE[name]()}\n\n{match[2]}", text)


@pytest.mark.parametrize("name", MADE)
def test_examples_are_what_the_package_makes(name: str) -> None:
    text, made = with_examples(name)
    assert _MADE.search(text)
    assert text == made, "run: python tests/test_docs.py"


# --- What the documents say ---

# Those of examples/README.md are run by test_examples.py.
DOCUMENTS = sorted(str(path.relative_to(ROOT)) for pattern in ("*.md", "docs/*.md", "tests/*.md") for path in ROOT.glob(pattern))
# Every model that the documents name, and the simulated one that takes its place.
SIMULATED = {
    "openai/gpt-4o": "curate/forgetful",
    "anthropic/claude-opus-4-5-20251101": "curate/attentive",
    "openai/gpt-4.1-2025-04-14": "curate/judge",
    "anthropic/claude-sonnet-4-5-20250929": "curate/judge",
    "google/gemini-2.5-pro": "curate/judge",
}
REAL = re.compile(r"\b(?:openai|anthropic|google|mistral|grok|together|openrouter|hf|vllm|sglang|ollama|llama-cpp-python)/[\w.]")


@dataclass(frozen=True)
class Block:
    """A code block: its language ("" when indented), its text, and what a text block right after it shows."""

    line: int
    language: str
    text: str
    shows: str = ""


_FENCED = re.compile(r"^```(\w*)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n(?:\n(?= {4}))?)+")
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")


def blocks(text: str) -> list[Block]:
    """The code blocks of a document, in order."""
    found: list[tuple[int, int, str, str]] = [(*match.span(), match[1], match[2]) for match in _FENCED.finditer(text)]
    prose = _FENCED.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)
    found += [(*match.span(), "", re.sub(r"^ {4}", "", match[0], flags=re.MULTILINE)) for match in _INDENTED.finditer(prose)]
    found.sort()
    made: list[Block] = []
    for i, (start, end, language, body) in enumerate(found):
        after = found[i + 1] if i + 1 < len(found) else None
        shows = after[3] if after and after[2] == "text" and not text[end : after[0]].strip() else ""
        made.append(Block(text.count("\n", 0, start) + 1, language, body, shows))
    return made


def spans(text: str) -> list[str]:
    """The inline code of a document, each on one line."""
    prose = _INDENTED.sub("", _FENCED.sub("", text))
    return [" ".join(span.split()) for span in _SPAN.findall(prose)]


def simulated(text: str) -> str:
    """A command or code with the models that it names replaced."""
    for name, substitute in SIMULATED.items():
        text = re.sub(rf"{re.escape(name)}(?![\w.-])", substitute, text)
    assert not REAL.search(text), f"{text}: names a model that has no simulated one in SIMULATED"
    return text


def commands(text: str) -> Iterator[str]:
    """Every command of a document, with the models replaced: those of its blocks, then those within its text.

    A command that the text only calls by its name is asked for its help.
    """
    for block in blocks(text):
        if block.language == "":
            for line in block.text.replace("\\\n", " ").splitlines():
                yield from (simulated(command.strip()) for command in line.split(" && ") if command.strip())
    for span in spans(text):
        if PROGRAMS.fullmatch(span.split()[0]) and (" " in span or span == "pytest"):
            name = re.fullmatch(r"(inspect|curate-inspect) [a-z-]+", span)
            yield from ([f"{span} --help"] if name else map(simulated, span.split(" && ")))


# --- Running them ---


def run_inspect(words: list[str]) -> None:
    """Run a command of Inspect in this process, two samples a task, and look at the logs, since it exits with 0 either way."""
    for name in (word.removeprefix("curate_inspect/") for word in words if word.startswith("curate_inspect/")):
        given = {words[i + 1].partition("=")[0] for i, word in enumerate(words) if word == "-T"}
        assert name not in curate_inspect.__all__ or given <= set(signature(getattr(curate_inspect, name)).parameters)
    if words[1] in ("eval", "eval-set") and not {"--limit", "--sample-id"} & set(words):
        words += ["--limit", "2"]
    if "--sample-id" in words:
        words += ["-T", "per_category=1"]
    before = {info.name for info in list_eval_logs("logs")} if Path("logs").is_dir() else set()
    inspect_command.main(words[1:], standalone_mode=False, auto_envvar_prefix="INSPECT")
    made = [read_eval_log(info) for info in list_eval_logs("logs") if info.name not in before]
    assert made or words[1] not in ("eval", "eval-set"), "no log was written"
    for log in made:
        assert log.status == "success", log.error
        assert "--no-score" in words or (log.results and all(not score.unscored_samples for score in log.results.scores))


def run_ours(words: list[str]) -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        assert cli.main(words[1:]) == 0
    assert out.getvalue().strip()


def run_help(words: list[str]) -> None:
    with redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as stopped:
        cli.main(words[1:]) if words[0] == "curate-inspect" else inspect_command.main(words[1:])
    assert stopped.value.code == 0


def run_uv(words: list[str]) -> None:
    """`uv run` sets up an environment with some extras and runs a command in it; this one has them all."""
    rest = words[2:]
    while rest[0] == "--extra":
        assert rest[1] in _project()["optional-dependencies"], rest[1]
        rest = rest[2:]
    run(shlex.join(rest))


def has_extras(words: list[str]) -> None:
    """Installing is not done again; the extras that are asked for must be there."""
    for name in (name for word in words for match in re.findall(r"\[([\w,-]+)\]$", word) for name in match.split(",")):
        assert name in _project()["optional-dependencies"], name


def has_files(words: list[str]) -> None:
    """Every file that is named exists."""
    for word in words[1:]:
        if word.endswith(".py") or word.startswith((".ci/", "tests/")):
            assert (ROOT / word).exists(), word


def nothing(words: list[str]) -> None:
    """There is nothing to look at."""


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# Which commands there are, and what is done for each; the first pattern that fits counts.
RUN: dict[str, Callable[[list[str]], None]] = {
    r"(inspect|curate-inspect) [a-z-]+ --help": run_help,
    r"inspect (eval|eval-set|eval-retry|score|list) .*": run_inspect,
    r"curate-inspect (check|estimate|report)( .*)?": run_ours,
    r"uv run .*": run_uv,
}
# Those that are not run, with the reason, and what is looked at instead.
NOT_RUN: dict[str, tuple[str, Callable[[list[str]], None]]] = {
    r"uv run": ("is only named", nothing),
    r"inspect view": ("serves until it is stopped; test_viewer.py starts it", nothing),
    r"curate-inspect fetch": ("downloads; test_paper.py runs it against a server of its own", nothing),
    r"(export )?[A-Z_]+=\S*": ("sets a key or a path of the user's", nothing),
    r"(python3? -m venv|\.) \S+": ("sets up an environment, as .ci/run does", nothing),
    r"pip install .*": ("installs, as .ci/run does", has_extras),
    r"pre-commit .*": ("sets up tools of the developer's machine", nothing),
    r"python -m build.*": ("builds, as .ci/run does", nothing),
    r"pytest.*": ("would run this test again", has_files),
    r"apt-get install \w+": ("installs, as .ci/run does", nothing),
    r"bash \.ci/\w+": ("would run this test again", has_files),
    r"python -m tests\.benchmarks.*": ("measures for minutes", nothing),
    r"python examples/\S+\.py.*": ("is run by test_examples.py", has_files),
    r"python (tools|tests)/\S+\.py.*": ("writes into the checkout", has_files),
}
PROGRAMS = re.compile(r"inspect|curate-inspect|uv|pip|python3?|pytest|bash|export|pre-commit|git|apt-get")


def run(command: str) -> None:
    """Run a command, or look at it where it cannot be run.

    Raises:
        AssertionError: When it is of no known kind, or fails.
    """
    if re.search(r"\bLOG\b", command):
        newest = max(list_eval_logs("logs"), key=lambda info: info.mtime or 0)
        command = re.sub(r"\bLOG\b", newest.name, command)
    for pattern, act in RUN.items():
        if re.fullmatch(pattern, command):
            return act(shlex.split(command))
    for pattern, (_, look) in NOT_RUN.items():
        if re.fullmatch(pattern, command):
            return look(shlex.split(command))
    raise AssertionError(f"{command}: is of no kind that RUN or NOT_RUN has")


@pytest.fixture
def as_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder like the checkout with a reader's own files, the default grader simulated, and nothing of this machine."""
    for name in ("data", "docs", "examples", "tests", "tools", ".ci", "pyproject.toml"):
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    cases = [json.dumps(case.model_dump(exclude_none=True, exclude_defaults=True)) for case in load().cases[:3]]
    (tmp_path / "my_cases.jsonl").write_text("\n".join(cases) + "\n", encoding="utf-8")
    rated = [{"case": case.id, "asked": "solo", "reply": "Yes, by all means.", "rating": 0} for case in load().cases[:3]]
    (tmp_path / "my_ratings.jsonl").write_text("".join(json.dumps(record) + "\n" for record in rated), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INSPECT_DISPLAY", "none")
    monkeypatch.setattr(judge, "DEFAULT_GRADER", SIMULATED[judge.DEFAULT_GRADER])


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_and_code_block_runs(name: str, as_a_reader: None) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for command in commands(text):
        try:
            run(command)
        except (Exception, SystemExit) as error:
            raise AssertionError(f"{name}: {command}: {error}") from error
    for block in blocks(text):
        where = f"{name}:{block.line}"
        if block.language == "python":
            out = io.StringIO()
            with redirect_stdout(out):
                exec(compile(simulated(block.text), where, "exec"), {"__name__": "__main__"})
            assert not block.shows or out.getvalue() == block.shows, where
        elif block.language == "json":
            json.loads(block.text)
        else:
            assert block.language in ("", "text"), f"{where}: nothing is known of {block.language!r}"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("frobnicate the logs", "is of no kind"),
        ("inspect eval curate_inspect/curate --model openai/unheard-of", "no simulated one"),
        ("inspect eval curate_inspect/scenario_1 -T scenarios=2 --model curate/forgetful", "scenario_1"),
        ("curate-inspect check nowhere.jsonl", "1 == 0"),
        ("pytest tests/test_nothing.py", "test_nothing"),
    ],
)
def test_no_command_is_passed_over(command: str, reason: str, as_a_reader: None) -> None:
    with pytest.raises(AssertionError, match=reason):
        for found in commands(f"Type:\n\n    {command}\n"):
            run(found)


def test_the_listing_has_the_version_of_the_tasks() -> None:
    listing = yaml.safe_load((ROOT / "curate_inspect" / "eval.yaml").read_text(encoding="utf-8"))
    assert listing["version"].split("-")[0] == str(VERSION)


def test_every_variant_is_told_of() -> None:
    table = (ROOT / "docs/protocol.md").read_text(encoding="utf-8").split("## The variants")[1].split("## ")[0]
    for text in (table, (ROOT / "README.md").read_text(encoding="utf-8"), curate_inspect.ablations.__doc__ or ""):
        for name in VARIANTS:
            assert f"`{name}`" in text or f'"{name}"' in text, name
    assert tuple(_VARIANT_TEXTS) == VARIANTS


def test_arguments_and_options_exist() -> None:
    """What is named within the text: arguments of tasks, options of the two commands."""
    parameters = {name for task in curate_inspect.__all__ for name in signature(getattr(curate_inspect, task)).parameters}
    out = io.StringIO()
    with redirect_stdout(out):
        for command in ("check", "estimate", "report"):
            with pytest.raises(SystemExit):
                cli.main([command, "--help"])
    options = set(re.findall(r"--[a-z][a-z-]+", out.getvalue()))
    options |= {option for command in inspect_command.commands.values() for given in command.params for option in given.opts}
    options |= {"--extra"}  # of uv
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        code = "\n".join([*spans(text), *(block.text for block in blocks(text) if block.language == "")])
        assert set(re.findall(r"-T (\w+)", code)) <= parameters, name
        assert set(re.findall(r"(?<!\S)--[a-z][a-z-]+", code)) <= options, name


def test_links_lead_somewhere() -> None:
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", _FENCED.sub("", text)):
            assert target.startswith("https://") or (ROOT / name).parent.joinpath(target).exists(), f"{name}: {target}"


# --- Figures ---


def rows_with_tasks(name: str) -> dict[str, list[str]]:
    """The first table of a document whose header has `samples`: task → cells."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|") and "samples" in line)
    rows = [line.strip("| ").split(" | ") for line in takewhile(lambda line: line.startswith("|"), lines[start + 2 :])]
    return {
        task: cells for cells in rows for task in re.findall(r"`(\w+)`", " ".join(cells[:2])) if task in curate_inspect.__all__
    }


def test_costs_are_what_the_tasks_take() -> None:
    shown = rows_with_tasks("docs/cost.md")
    for task, cells in shown.items():
        found = estimate(task, {})
        figures = [found.samples, found.model.calls, found.unshared, found.model.tokens.input_tokens]
        figures += [found.grader.calls, found.grader.tokens.input_tokens]
        assert cells[1:] == [f"{figure:,}" for figure in figures], task
    readme = rows_with_tasks("README.md")
    assert set(readme) >= set(shown)
    for task in shown.keys() & readme.keys() - {"judge_agreement"}:
        samples, calls = shown[task][1:3]
        assert samples in readme[task][2] and calls in readme[task][3], task


@pytest.mark.server
def test_the_first_command_ends_as_shown(tmp_path: Path) -> None:
    """The whole first run in a process of its own, as a newcomer starts it."""
    first = blocks((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    (shown,) = [block.text for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")) if block.language == "text"]
    command = first.text.strip().removeprefix("uv run ")
    done = subprocess.run(
        [*shlex.split(command), "--display", "plain"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    said, expected = ("\n".join(" ".join(line.split()) for line in text.splitlines()) for text in (done.stdout, shown))
    assert expected in said


if __name__ == "__main__":
    for name in MADE:
        (ROOT / name).write_text(with_examples(name)[1], encoding="utf-8")
