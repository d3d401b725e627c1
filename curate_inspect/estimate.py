"""What a run will take, before it is made: calls and tokens by the texts that it would send, and money where prices are known.

Replies are not known beforehand; each is taken to have a stated length. Turns that conversations of a case begin with alike are
counted once, as the run generates them.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from inspect_ai import Task
from inspect_ai.model import ModelCost, ModelUsage, compute_model_cost

import curate_inspect
from curate_inspect.judge import CONSIDERATION, OVER_CAUTION, Rubric, question
from curate_inspect.solvers import turns_of

# Usual for English in today's tokenizers is 4 to 5; the low end also covers what chat formats add to each message.
CHARACTERS_PER_TOKEN = 4


@dataclass
class Usage:
    """What one model is asked and says: calls, and the characters of all its inputs and outputs."""

    calls: int = 0
    input: int = 0
    output: int = 0

    def add(self, input: int, output: int) -> None:
        """Count one call by the characters that go in and come out."""
        self.calls += 1
        self.input += input
        self.output += output

    @property
    def tokens(self) -> ModelUsage:
        """The same in tokens."""
        sizes = round(self.input / CHARACTERS_PER_TOKEN), round(self.output / CHARACTERS_PER_TOKEN)
        return ModelUsage(input_tokens=sizes[0], output_tokens=sizes[1], total_tokens=sum(sizes))


@dataclass(frozen=True)
class Estimate:
    """What a task will take.

    Attributes:
        name: Of the task.
        samples: Conversations, or replies to rate, in all epochs.
        reply_tokens: The length that each reply is taken to have.
        verdict_tokens: The length that each verdict is taken to have.
        model: What each evaluated model is asked.
        grader: What each grader is asked; nothing where the task needs none.
        unshared: The calls of the evaluated model if conversations shared no turns.
    """

    name: str
    samples: int
    reply_tokens: int
    verdict_tokens: int
    model: Usage
    grader: Usage
    unshared: int


def task_arguments(given: Sequence[str]) -> dict[str, Any]:
    """Arguments of a task from the command line's `NAME=VALUE`, read as Inspect reads them: YAML, or texts with commas between.

    Raises:
        ValueError: When one has no `=` or is no YAML.
    """
    arguments = {}
    for argument in given:
        name, equals, text = argument.partition("=")
        if not equals:
            raise ValueError(f"-T {argument}: has no '='; write -T NAME=VALUE")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"-T {argument}: is no YAML; put quotes around a text") from error
        arguments[name.replace("-", "_")] = value.split(",") if isinstance(value, str) and "," in value else value
    return arguments


def _task(name: str, arguments: Mapping[str, Any]) -> Task:
    if name not in curate_inspect.__all__:
        raise ValueError(f"{name!r} is no task; there are {', '.join(curate_inspect.__all__)}")
    make = getattr(curate_inspect, name)
    known = inspect.signature(make).parameters
    for argument in arguments:
        if argument not in known:
            raise ValueError(f"-T {argument}: is no argument of {name}, which has {', '.join(known)}")
    task: Task = make(**arguments)
    return task


def estimate(
    name: str, arguments: Mapping[str, Any], *, epochs: int = 1, reply_tokens: int = 100, verdict_tokens: int = 120
) -> Estimate:
    """Count what a task will ask of the evaluated model and of a grader.

    The run is taken to be complete and from scratch: no reply cached by an earlier one, no verdict that cannot be read and is
    asked for again, no call repeated after a fault.

    Args:
        name: Of a task, such as "curate".
        arguments: Of the task.
        epochs: How often each sample is run, from 1.
        reply_tokens: The length of a reply; thinking is part of it where the provider bills it.
        verdict_tokens: The length of a grader's verdict.

    Raises:
        ValueError: When the task or an argument does not fit.
    """
    for option, value in (("epochs", epochs), ("reply-tokens", reply_tokens), ("verdict-tokens", verdict_tokens)):
        if value < 1:
            raise ValueError(f"--{option}={value}: give a whole number, 1 or more")
    task = _task(name, arguments)
    reply, verdict = reply_tokens * CHARACTERS_PER_TOKEN, verdict_tokens * CHARACTERS_PER_TOKEN
    share, stored = arguments.get("share_prefix", True), name == "retention"
    rubric = None if arguments.get("scorer") == "mention" else OVER_CAUTION if name == "over_caution" else CONSIDERATION
    model, grader, unshared = Usage(), Usage(), 0
    for epoch in range(1, epochs + 1):
        answered: set[tuple[str, ...]] = set()
        for sample in task.dataset:
            facts = sample.metadata or {}
            if name == "judge_agreement":
                asked = _asked(CONSIDERATION, facts["constraint"], facts["hazard"], facts["request"], str(sample.input).strip())
                model.add(asked, verdict)
                unshared += 1
                continue
            history = 0
            prefix: tuple[str, ...] = (facts["case"],)
            for turn in turns_of(facts, epoch):
                history += len(turn.text)
                prefix += (turn.text,)
                if stored and turn.stage == "trivia":
                    history += len(turn.answer)
                    continue
                if not (share and turn.stage != "request" and prefix in answered):
                    model.add(history, reply)
                unshared += 1
                answered.add(prefix)
                history += reply
            if rubric:
                hazard = None if sample.target == facts["constraint"] else str(sample.target)
                grader.add(_asked(rubric, facts["constraint"], hazard, str(sample.input), "x" * reply), verdict)
    return Estimate(name, epochs * len(task.dataset), reply_tokens, verdict_tokens, model, grader, unshared)


def _asked(rubric: Rubric, constraint: str, hazard: str | None, request: str, reply: str) -> int:
    return sum(len(message.text) for message in question(rubric, constraint, hazard, request, reply))


# --- Money ---


def prices(given: Sequence[str], config: str | None) -> dict[str, ModelCost]:
    """Prices of models by their names, in dollars for a million tokens.

    Inspect knows prices that it is told, and its database has none; so they come from the user.

    Args:
        given: "NAME=INPUT/OUTPUT" each.
        config: A YAML or JSON file as Inspect's `--model-cost-config` takes; `given` goes before it.

    Raises:
        ValueError: When a price or the file does not fit.
    """
    found: dict[str, ModelCost] = {}
    if config:
        try:
            models = yaml.safe_load(Path(config).read_text(encoding="utf-8"))
            found = {name: ModelCost.model_validate(cost) for name, cost in models.items()}
        except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
            raise ValueError(f"--model-cost-config {config}: {error}; give a file as inspect eval takes") from error
    for price in given:
        name, _, costs = price.rpartition("=")
        try:
            dollars = [float(cost) for cost in costs.split("/")]
        except ValueError:
            dollars = []
        if not name or len(dollars) != 2 or not all(0 <= cost < float("inf") for cost in dollars):
            raise ValueError(f"--price {price}: is no price; write NAME=INPUT/OUTPUT, such as openai/gpt-4o=2.5/10")
        found[name] = ModelCost(input=dollars[0], output=dollars[1], input_cache_write=dollars[0], input_cache_read=dollars[0])
    return found


# --- What is shown ---


def table(found: Estimate, models: Sequence[str], graders: Sequence[str], costs: Mapping[str, ModelCost]) -> str:
    """An estimate as text: a line for each model and grader, the sum, and what was assumed.

    Args:
        found: The estimate.
        models: Names of the evaluated models.
        graders: Names of the graders, each of which rates every reply of every model.
        costs: Prices by name.
    """
    rows = [(name, found.model, 1) for name in models]
    if found.grader.calls:
        rows += [(f"{name} (grader)", found.grader, len(models)) for name in graders]
    lines = [["", "calls", "input tokens", "output tokens", "dollars"]]
    sums: list[float | None] = []
    for name, usage, times in rows:
        cost = costs.get(name.removesuffix(" (grader)"))
        tokens = usage.tokens
        dollars = times * compute_model_cost(cost, tokens) if cost else None
        sums.append(dollars)
        sizes = [f"{times * size:,}" for size in (usage.calls, tokens.input_tokens, tokens.output_tokens)]
        lines.append([name, *sizes, "?" if dollars is None else f"{dollars:,.2f}"])
    known = [dollars for dollars in sums if dollars is not None]
    if len(known) > 1 and len(known) == len(sums):
        lines.append(["together", "", "", "", f"{sum(known):,.2f}"])
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    shown = [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
    notes = [
        f"{found.name}: {found.samples:,} samples a model. Taken: {found.reply_tokens} tokens a reply (--reply-tokens), "
        f"{found.verdict_tokens} a verdict (--verdict-tokens), {CHARACTERS_PER_TOKEN} characters a token."
    ]
    if found.unshared > found.model.calls:
        notes.append(f"Conversations that begin alike share their turns; without, {found.unshared:,} calls a model.")
    notes.append("Not counted: verdicts asked for again, calls repeated after faults, discounts for cached or batched input.")
    if len(known) < len(sums):
        notes.append("Prices that are not known: give --price NAME=INPUT/OUTPUT, in dollars for a million tokens.")
    return "\n".join([*shown, "", *notes])
