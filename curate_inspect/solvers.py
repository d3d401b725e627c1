"""The solvers that play a conversation: `introduce` → `ask_trivia` → `introduce_others` → `request_recommendation`.

Each stage adds its part of the script and lets the model answer; `converse` is all four. A scenario of one's own is a chain with
another stage between.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from inspect_ai.log import transcript
from inspect_ai.model import CachePolicy, ChatMessageAssistant, ChatMessageUser, ModelOutput, cache_path, get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import concurrency, sample_limits, span

from curate_inspect.dialogue import Scenario, Stage, Turn, Variant, script
from curate_inspect.distractors import draw
from curate_inspect.judge import check_grader
from curate_inspect.sources import load
from curate_inspect.wording import NO_REPLY

# Long enough for a retry of a broken run, short enough that next week's run is a fresh one.
PREFIX_EXPIRY = "1D"
# Begins the id of a message that no model event shows; the id of the event that shows it follows.
SHOWN_IN = "event:"


@lru_cache(maxsize=4096)
def _script(
    cases: str, case_id: str, scenario: Scenario, variant: Variant, trivia_turns: int, seed: int, epoch: int
) -> tuple[Turn, ...]:
    source = load(cases)
    case = source.by_id[case_id]
    return script(case, scenario, variant, draw(source.pools, case, seed=seed, epoch=epoch, trivia_turns=trivia_turns))


def turns_of(metadata: Mapping[str, Any], epoch: int) -> tuple[Turn, ...]:
    """The whole script of a sample made by `samples.build`, by the sample's metadata and epoch."""
    m = metadata
    return _script(m["cases"], m["case"], m["scenario"], m["variant"], m["trivia_turns"], m["seed"], epoch)


async def _play(state: TaskState, generate: Generate, stage: Stage, *, share: bool, stored: bool = False) -> TaskState:
    turns = [turn for turn in turns_of(state.metadata, state.epoch) if turn.stage == stage]
    for turn in turns:
        state.messages.append(ChatMessageUser(content=turn.text))
        if stored:
            state.messages.append(ChatMessageAssistant(content=turn.answer))
        elif share:
            state = await _answer_shared(state, generate, turn.name)
        else:
            async with span(turn.name):
                state = await _generate(state, generate)
        if stage != "request":
            _fill_empty_reply(state)
    if stored and turns:
        transcript().info(f"{len(turns)} {stage} turns with stored answers, to be seen among the messages")
    return state


# The outputs of shared turns in a run, by the conversation so far. A run is known by its `generate`, which Inspect makes anew for
# each task, model and configuration. Inspect's cache would serve them too, with a file and a model event each.
_outputs: WeakKeyDictionary[Generate, dict[str, ModelOutput]] = WeakKeyDictionary()


async def _answer_shared(state: TaskState, generate: Generate, name: str) -> TaskState:
    """Add the reply to the last turn: the run's, the cache's, or a new one. Samples that begin alike wait for the first."""
    prefix = _prefix(state)
    outputs = _outputs.setdefault(generate, {})
    # Calls of tools and limited turns are Inspect's to make and to count.
    kept = not state.tools and sample_limits().turn.limit is None
    if not kept or prefix not in outputs:
        async with concurrency(f"curate_inspect/{prefix}", 1, visible=False):
            if not kept or prefix not in outputs:
                async with span(name):
                    state = await _generate_cached(state, generate, prefix)
                if kept:
                    outputs[prefix] = state.output.model_copy(deep=True)
                return state
    state.output = outputs[prefix].model_copy(deep=True)
    reply = state.output.message
    reply.id = uuid4().hex  # Inspect's dataframes take messages of one id for one
    state.messages[-1].id = SHOWN_IN + _record(state.messages[-1].text, reply.text, name)
    state.messages.append(reply)
    return state


def _record(said: str, reply: str, name: str) -> str:
    """Record a turn that was generated elsewhere; returns the id of the event, to which the verdict links."""
    heading = f"{name}, answered in another conversation of this case that begins alike"
    transcript().info(f"{heading}\n\n**User**\n\n{said}\n\n**Assistant**\n\n{reply.strip() or NO_REPLY}")
    return transcript().events[-1].uuid or ""


async def _generate_cached(state: TaskState, generate: Generate, prefix: str) -> TaskState:
    try:
        cache_path()
    except OSError as error:
        remedy = "set INSPECT_CACHE_DIR to a folder that can be written, or give -T share_prefix=false"
        raise RuntimeError(f"Inspect's cache, which keeps shared replies, cannot be made ({error}); {remedy}") from error
    for attempt in range(2):
        policy = CachePolicy(expiry=PREFIX_EXPIRY, scopes={"prefix": prefix, "attempt": str(attempt)})
        try:
            return await _generate(state, generate, policy)
        except NoChoices:
            continue  # it is in the cache and would come back at every retry
    return await _generate(state, generate)


class NoChoices(RuntimeError):
    """A provider's answer had no reply in it."""


async def _generate(state: TaskState, generate: Generate, cache: CachePolicy | bool = False) -> TaskState:
    try:
        return await generate(state, cache=cache)
    except IndexError as error:  # what Inspect makes of it
        raise NoChoices(f"{state.model} answered without choices, so there is no reply; run `inspect eval-retry`") from error


def _prefix(state: TaskState) -> str:
    """Names the conversation so far.

    The case belongs to it, since others may begin with the same words (in `middle`) and are to stay independent; and what was
    given with -M, since the name alone does not tell two local models apart.
    """
    arguments = repr(sorted(get_model().model_args.items()))  # inspect-evals-lint: ignore[IEBP001] -- in a sample
    said = [message.model_dump_json(exclude={"id"}) for message in state.messages]
    parts = [str(state.model), arguments, state.metadata["case"], str(state.epoch), *said]
    return hashlib.sha1("\x1f".join(parts).encode()).hexdigest()


def _fill_empty_reply(state: TaskState) -> None:
    reply = state.messages[-1]
    if isinstance(reply, ChatMessageAssistant) and not reply.text.strip():
        state.messages[-1] = reply.model_copy(update={"content": NO_REPLY, "id": uuid4().hex})


@solver
def introduce(share_prefix: bool = True, needs_grader: bool = False) -> Solver:
    """The user says how to behave, introduces themselves, constraint first, and asks the assistant to do the same.

    Args:
        share_prefix: Whether samples that begin with the same turns get the same replies to them, generated once.
        needs_grader: Whether to fail before the first token when no grader can be had, and to warn of one that is the model
            under evaluation.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if needs_grader:
            check_grader()
        # Sample.input is the final request, for the viewer; a system message of the user's own stays.
        state.messages = [message for message in state.messages if message.role == "system"]
        return await _play(state, generate, "introduction", share=share_prefix)

    return solve


@solver
def ask_trivia(share_prefix: bool = True, stored_answers: bool = False) -> Solver:
    """The user asks trivia questions.

    Args:
        share_prefix: As in `introduce`.
        stored_answers: Whether the replies are the short answers of the data instead of the model's own.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await _play(state, generate, "trivia", share=share_prefix, stored=stored_answers)

    return solve


@solver
def introduce_others(share_prefix: bool = True) -> Solver:
    """The user tells about other people; says nothing in scenario 1.

    Args:
        share_prefix: As in `introduce`.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await _play(state, generate, "others", share=share_prefix)

    return solve


@solver
def request_recommendation() -> Solver:
    """The user asks the final question; its answer is what is scored, and never shared."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await _play(state, generate, "request", share=False)

    return solve


@solver
def converse(share_prefix: bool = True, stored_answers: bool = False, needs_grader: bool = False) -> Solver:
    """The whole conversation, its four stages as one solver: less to log than a chain of them, and the same in every other way.

    Args:
        share_prefix: As in `introduce`.
        stored_answers: As in `ask_trivia`.
        needs_grader: As in `introduce`.
    """
    stages = [
        introduce(share_prefix, needs_grader),
        ask_trivia(share_prefix, stored_answers),
        introduce_others(share_prefix),
        request_recommendation(),
    ]

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for stage in stages:
            state = await stage(state, generate)
        return state

    return solve
