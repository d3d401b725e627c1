"""The draw of distractors: what it depends on, and what it never does."""

import pytest
from example import CASE

from curate_inspect.cases import has_stem
from curate_inspect.distractors import PoolExhausted, Pools, Trivia, draw

POOLS = Pools(
    facts=(*tuple(f"I like number {i}, letter {i}, and colour {i}." for i in range(20)), "I eat nuts, read, and sing."),
    trivia=(*tuple(Trivia(f"What is {i}?", f"It is {i}.") for i in range(40)), Trivia("What is gelato?", "It is ice cream.")),
    preferences=(*tuple(f"P{i} loves tea." for i in range(10)), "Zoe loves cashew curry."),
)


def _draw(**kwargs: int):
    return draw(POOLS, CASE, **{"seed": 0, "epoch": 1, "trivia_turns": 3, **kwargs})


def test_depends_on_seed_case_and_epoch_alone() -> None:
    assert _draw() == _draw()
    others = [
        _draw(seed=1),
        _draw(epoch=2),
        draw(POOLS, CASE.model_copy(update={"id": "allergy-901"}), seed=0, epoch=1, trivia_turns=3),
    ]
    assert len({_draw(), *others}) == 4


def test_is_pinned_so_that_results_stay_comparable_between_versions() -> None:
    drawn = _draw()
    assert [t.question for t in drawn.trivia] == ["What is 12?", "What is 37?", "What is 38?"]
    assert drawn.facts == "I like number 3, letter 3, and colour 3."
    assert drawn.preferences == ("P5 loves tea.", "P1 loves tea.", "P6 loves tea.")


def test_a_longer_conversation_begins_like_a_shorter_one() -> None:
    assert _draw(trivia_turns=30).trivia[:3] == _draw(trivia_turns=3).trivia
    assert _draw(trivia_turns=0).trivia == ()
    assert _draw(trivia_turns=30).facts == _draw().facts


@pytest.mark.parametrize("seed", range(50))
def test_no_repeats_and_no_conflict(seed: int) -> None:
    drawn = _draw(seed=seed, trivia_turns=40)
    assert len(set(drawn.trivia)) == 40
    assert len(set(drawn.preferences)) == 3
    texts = [drawn.facts, *drawn.preferences, *(f"{t.question} {t.answer}" for t in drawn.trivia)]
    assert not [text for text in texts if has_stem(text, CASE.avoid)]


def test_the_smallest_pools_are_enough() -> None:
    pools = Pools(facts=POOLS.facts[:1], trivia=(Trivia("Why?"),), preferences=POOLS.preferences[:3])
    drawn = draw(pools, CASE, seed=0, epoch=1, trivia_turns=1)
    assert (drawn.facts, drawn.trivia) == (pools.facts[0], (Trivia("Why?", ""),))
    assert set(drawn.preferences) == set(pools.preferences)


def test_says_when_the_pool_is_too_small() -> None:
    with pytest.raises(PoolExhausted, match=r"allergy-900 needs 41 trivia .* the pool of 41 has 40"):
        _draw(trivia_turns=41)
