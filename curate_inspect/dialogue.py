"""From a case to what the user says, turn by turn. Pure: no model, no framework, no file.

The protocol follows section 3 of the paper (arXiv 2410.21159) with one instruction for every scenario; "Where it
differs from the published protocol" in `docs/protocol.md` lists the differences.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from curate_inspect.cases import Case
from curate_inspect.distractors import Draw
from curate_inspect.wording import ABOUT_ME, ABOUT_YOU, ANSWER_FIRST, COMPANIONS, GUIDED, HELPFUL_HARMLESS, INSTRUCTION

Scenario = Literal[1, 2, 3, 4, 5]
SCENARIOS: tuple[Scenario, ...] = get_args(Scenario)
Variant = Literal["baseline", "neutral", "middle", "helpful_harmless", "guided", "reversed", "untold", "adjacent", "control"]
# What `ablations` offers; `control` belongs to `over_caution`.
VARIANTS: tuple[Variant, ...] = tuple(v for v in get_args(Variant) if v != "control")
PAPER_VARIANTS: tuple[Variant, ...] = VARIANTS[:6]
Stage = Literal["introduction", "trivia", "others", "request"]

# How many people with conflicting wishes a scenario has; scenario 5 has strangers instead.
CONFLICTING = {1: 0, 2: 1, 3: 2, 4: 3, 5: 0}
# After which trivia question the `middle` variant tells the constraint.
MIDDLE = 2


@dataclass(frozen=True)
class Turn:
    """One message of the user.

    Attributes:
        stage: The part of the protocol that it belongs to.
        name: What the viewer calls it.
        text: What the user says.
        answer: The stored reply to a trivia question, "" where there is none.
    """

    stage: Stage
    name: str
    text: str
    answer: str = ""


def inapplicable(case: Case, scenario: Scenario, variant: Variant, trivia_turns: int) -> str | None:
    """Why this conversation cannot be held, or None when it can."""
    if variant == "middle" and trivia_turns < MIDDLE:
        return f"the variant 'middle' needs at least {MIDDLE} trivia turns, not {trivia_turns}"
    if variant == "reversed" and CONFLICTING[scenario] == 0:
        return f"the variant 'reversed' needs another person with a wish, and scenario {scenario} has none; use 2, 3 or 4"
    if variant == "reversed" and not case.reversed:
        return f"{case.id} has no texts for the variant 'reversed'; give it `reversed`, see data/README.md"
    if variant == "control" and CONFLICTING[scenario]:
        return f"controls are asked without others who want the request itself; use scenario 1 or 5, not {scenario}"
    if variant == "control" and not case.control:
        return f"{case.id} has no control requests; give it `control`, see data/README.md"
    return None


def told_constraint(case: Case, variant: Variant) -> str:
    """The constraint in the words in which this variant says it, or leaves it unsaid."""
    return case.reversed.constraint if variant == "reversed" and case.reversed else case.constraint


def request(case: Case, scenario: Scenario, variant: Variant) -> str:
    """The final question, without the sentences around it."""
    alone = scenario == 1
    if variant == "control" and case.control:
        return case.control.solo if alone else case.control.joint
    form = case.request.solo if alone else case.request.joint
    return form.neutral if variant == "neutral" else form.leading


def script(case: Case, scenario: Scenario, variant: Variant, drawn: Draw) -> tuple[Turn, ...]:
    """All that the user says in one conversation, in order.

    Args:
        case: The case; it must have the texts that the variant needs (see `inapplicable`).
        scenario: 1 alone; 2, 3, 4 with that many minus one people who want it; 5 with three strangers.
        variant: What differs from the baseline.
        drawn: The distractors of this conversation.
    """
    constraint = case.constraint
    wishes = [other.preference for other in case.others[: CONFLICTING[scenario]]]
    if variant == "reversed" and case.reversed:
        constraint, wishes[0] = case.reversed.preference, case.reversed.constraint

    background = f"{ABOUT_ME} {constraint} {drawn.facts}"
    if variant in ("untold", "adjacent"):
        background = f"{ABOUT_ME} {drawn.facts}"
    introduction = f"{INSTRUCTION} {background} {ABOUT_YOU}"
    questions = [trivia.question for trivia in drawn.trivia]
    if variant == "middle":
        introduction = f"{INSTRUCTION} {ABOUT_YOU}"
        questions[MIDDLE - 1] += f" {background}"

    before_request = {"helpful_harmless": HELPFUL_HARMLESS, "guided": GUIDED, "adjacent": constraint}.get(variant)
    final = " ".join(filter(None, [before_request, request(case, scenario, variant), ANSWER_FIRST]))

    people = list(drawn.preferences) if scenario == 5 else wishes
    turns = [Turn("introduction", "introduction", introduction)]
    turns += [
        Turn("trivia", f"trivia {i}", question, trivia.answer)
        for i, (question, trivia) in enumerate(zip(questions, drawn.trivia, strict=True), 1)
    ]
    if people:
        turns.append(Turn("others", "others", " ".join([COMPANIONS, *people])))
    return (*turns, Turn("request", "request", final))
