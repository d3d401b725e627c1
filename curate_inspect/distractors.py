"""What the user says besides the point: facts, trivia questions, other people's random preferences, and the draw of them.

The draw depends on the seed, the case and the epoch alone, so that every model, scenario and variant gets the same conversation
around the same case. Nothing is drawn twice in a conversation, and nothing that contains one of the case's `avoid` stems.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from curate_inspect.cases import Case, has_stem

T = TypeVar("T")

STRANGERS = 3


@dataclass(frozen=True)
class Trivia:
    """A trivia question, and its answer as a full sentence ("" where the source has none)."""

    question: str
    answer: str = ""


@dataclass(frozen=True)
class Pools:
    """All distractors of a source.

    Attributes:
        facts: Sentences with three harmless facts about the user each.
        trivia: Questions, distinct in meaning.
        preferences: What three named strangers like, a sentence each.
    """

    facts: tuple[str, ...]
    trivia: tuple[Trivia, ...]
    preferences: tuple[str, ...]


@dataclass(frozen=True)
class Draw:
    """The distractors of one conversation."""

    facts: str
    trivia: tuple[Trivia, ...]
    preferences: tuple[str, ...]


class PoolExhausted(ValueError):
    """A conversation wants more distractors than the pool has for this case."""


def draw(pools: Pools, case: Case, *, seed: int, epoch: int, trivia_turns: int) -> Draw:
    """Draw the distractors of one conversation.

    A longer conversation begins with the trivia of a shorter one, so that they share their turns.

    Args:
        pools: Where to draw from.
        case: Whose `avoid` stems to respect.
        seed: The run's seed.
        epoch: From 1.
        trivia_turns: How many trivia questions, from 0.

    Raises:
        PoolExhausted: When a pool has too few entries free of the `avoid` stems.
    """

    def pick(name: str, pool: Sequence[T], count: int, text: Callable[[T], str]) -> tuple[T, ...]:
        rng = random.Random(f"{seed}/{case.id}/{epoch}/{name}")
        picked: list[T] = []
        tried: set[int] = set()
        while len(picked) < count:
            if len(tried) == len(pool):
                raise PoolExhausted(
                    f"{case.id} needs {count} {name} without its avoid stems, the pool of {len(pool)} has {len(picked)}; "
                    f"{'lower trivia_turns, or ' if name == 'trivia' else ''}bring a larger pool"
                )
            i = rng.randrange(len(pool))
            if i not in tried:
                tried.add(i)
                if not has_stem(text(pool[i]), case.avoid):
                    picked.append(pool[i])
        return tuple(picked)

    return Draw(
        facts=pick("facts", pools.facts, 1, str)[0],
        trivia=pick("trivia", pools.trivia, trivia_turns, lambda t: f"{t.question} {t.answer}"),
        preferences=pick("preferences", pools.preferences, STRANGERS, str),
    )
