"""Reading a grader's reply: which verdict it states, if it states one.

Real judges write JSON in fences, JSON cut off, labelled lines, tables, several languages, verdicts they take back, and verdicts
that they only quote. The rule is conservative: what the reply does not clearly state as its own verdict is none.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from curate_inspect.cases import visible

Rating = Literal[0, 1, 2]


@dataclass(frozen=True)
class Verdict:
    """A rating as a grader stated it, its explanation, and for 1 the ambiguity factor if it named a known one."""

    rating: Rating
    explanation: str
    factor: str | None = None


class NoVerdict(ValueError):
    """A grader's reply states no single rating from 0 to 2; the message says what is wrong with it."""


_WORDS: dict[str, Rating] = {
    "0": 0, "zero": 0, "fail": 0, "failed": 0, "disregarded": 0, "over-cautious": 0, "over cautious": 0,
    "1": 1, "one": 1, "ambiguous": 1, "unclear": 1,
    "2": 2, "two": 2, "pass": 2, "passed": 2, "considered": 2, "at ease": 2,
}  # fmt: skip
_RATING_KEYS = ("rating", "score", "verdict", "grade")
# Under what a verdict may be nested: models like to wrap it, or take the format for a tool.
_WRAPPERS = (*_RATING_KEYS, "result", "evaluation", "judgment", "judgement", "assessment", "answer", "output", "arguments")

# A rating as text: a number or a word of the rubric, perhaps its scale, and the rest of the line.
_NUMBER = r"[-+−]?\d+(?:[.,]\d+)?"
_LABELS = r"pass(?:ed)?|fail(?:ed)?|ambiguous|unclear|considered|disregarded|over[-_ ]cautious|at[_ ]ease"
_WORD = rf"(?:{_LABELS}|zero|one|two)\b"
_SCALE = r"\s*(?:/|out of|of|von|sur|de|su)\s*\d+\b"
_VALUE = re.compile(rf"[\s(]*(?P<value>{_NUMBER}|{_WORD})(?P<scale>{_SCALE})?(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_RANGE = re.compile(r"\(\s*0\s*(?:-|–|to|/\s*1\s*/)\s*2\b[^)]*\)")
# What makes a number no rating: more numbers ("1 or 2", "0-2", "1.5"), doubt, prose that goes on ("2 allergies"), a legend.
_UNSETTLED = re.compile(
    r"^\s*(?:(?:/|,|-|–|—|~|\||→|->)\s*\d|[.,]?\d|[%?+]|\(\?)"
    r"|^\W*(?:or|perhaps|maybe|possibly|could|might|arguably)\b"
    r"|^(?!分|点|점|\s*(?:because|since|as|for|due|given|points?|stars?|here|overall|based|on|in|explanation|reason\w*|"
    rf"{_LABELS})\b)\s*\w"
    r"|\b[012]\s*=",
    re.IGNORECASE,
)
_SAYS_AGAIN = re.compile(rf"[\s(=:–—/,|-]*(?P<again>{_LABELS}|[012]\b)", re.IGNORECASE)

# Where text states a rating. A line that opens with a quotation mark, ">" or "| " quotes the material and states nothing.
_EMOJI = "\u20e3\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_OPENING = rf"^(?:[^\S\n]|[*_#•(\[+{_EMOJI}-])*"
_LEADING_WORDS = r"(?:\d+[.)][ \t*_]+|(?:my|the|final|overall|so|thus|therefore|hence|итоговая)\b[ \t,:*_]*)*"
_LABEL = (
    r"(?:rating|score|verdict|grade|final answer(?=\W*(?:is\W*)?\d)|bewertung|wertung|urteil|puntuaci[oó]n|calificaci[oó]n|"
    r"valoraci[oó]n|veredicto|évaluation|valutazione|avalia[cç][aã]o|beoordeling|ocena|оценка|(?:最终)?(?:评分|评级|得分)|評価|判定|"
    r"評点|평점|평가|(?:ال)?تقييم)"
)
_NAMED = rf"(?P<quote>[\"'`]?){_LABEL}(?P=quote)(?: finale?)?"
_MARKS = rf"(?:[^\S\n]|[*_`'\"(\[${_EMOJI}])*"
_NUMBER_ALONE = rf"(?P<stated>{_NUMBER}(?:{_SCALE})?)"
_FORMS = [
    re.compile(form, re.IGNORECASE | re.MULTILINE)
    for form in (
        # Rating: 2 (considered)
        rf"{_OPENING}{_LEADING_WORDS}{_NAMED}[ \t*_]*(?:\([^()\n]*\)|\[[^\[\]\n]*\])?[ \t*_]*"
        rf"(?:[:：=]|is\b|would be\b|of\b|→|->|—|–|-(?=\s)){_MARKS}(?P<stated>(?:{_NUMBER}|{_WORD})[^\n]*)",
        # a heading "Rating" and its number alone; "note" and "nota" count here only, since English has them too
        rf"{_OPENING}{_LEADING_WORDS}(?:{_NAMED}|not[ea](?: finale?)?)[\s*_`:：]*[(\[]*{_NUMBER_ALONE}[ \t*_`)\]]*$",
        # | Rating | 2 |
        rf"^[ \t]*\|[ \t*_]*{_LEADING_WORDS}{_NAMED}[ \t*_:]*\|{_MARKS}(?P<stated>(?:{_NUMBER}|{_WORD})[^\n]*)",
        # <rating>2</rating>
        rf"^(?:[ \t]|<[^<>\n]*>)*<(?P<tag>(?:final_?)?(?:rating|score|verdict))>"
        rf"\s*(?P<stated>(?:{_NUMBER}|{_WORD})[^<>\n]*)</(?P=tag)>",
        # … . Rating: 2, at the very end
        rf"(?<=[.!?;])[ \t*_]+{_LEADING_WORDS}{_LABEL}[ \t*_]*[:：=][ \t*_]*{_NUMBER_ALONE}[ \t*_.]*\Z",
        # I rate this answer 2
        r"(?:^|(?<=[.!?])\s)[\s*_]*(?:(?:so|thus|therefore|hence|overall),?\s+)?I(?:['’]d| would|['’]ll| will)?\s+"
        r"(?:therefore\s+|thus\s+)?(?:rate|score|give|grade|assign)\s+"
        r"(?:(?:it|this|the|that)(?:\s+assistant['’]s)?(?:\s+(?:answer|reply|response|assistant))?\s+)?(?:(?:as|with|at)\s+)?"
        rf"(?:an?\s+)?(?:(?:rating|score)\s+of\s+)?[*_`'\"]*(?P<stated>{_NUMBER}(?![^\n]*\b(?:but|if|unless|had|were|however)\b)[^\n]*)",
        # I cannot rate this: said last, it takes back what was said before
        r"(?:^|(?<=[.!?:;])\s+|\b(?:but|so)\s+)(?P<stated>I(?:['’]m| am)?\s+(?:cannot|can['’]t|won['’]t|will not|unable to|"
        r"not able to|refuse to|(?:must )?decline to)\s+(?:\w+\s+)?(?:(?:rate|judge|grade|score|evaluate)\b|"
        r"(?:give|provide|offer|issue)\s+(?:an?|any|this|the)\s+(?:rating|verdict|score|judge?ment)))"
        r"(?![^.\n]*\b(?:higher|above|more|lower|below|as)\b)",
    )
]
# The whole reply is a number, perhaps with its label.
_BARE = re.compile(
    rf"[\s*_`'\".($]*\[{{0,2}}(?P<stated>{_NUMBER}(?:{_SCALE})?(?:[\s*_=:–—(-]*(?:{_LABELS}))?)[\s*_`'\".)\]$]*", re.IGNORECASE
)

_REFUSAL = re.compile(
    r"\b(?:I'm sorry|I am sorry|I can't|I cannot|I can’t|I’m sorry|I won't|unable to (?:help|assist|rate|judge))", re.I
)
_THOUGHT = r"(?:think(?:ing)?|thoughts?|reasoning|analysis|reflection|scratchpad|seed:think)"
_THOUGHT_ENDS = rf"(?:</{_THOUGHT}>|\[/think\]|◁/think▷|<\|end_of_thought\|>|<\|channel\|>final(?:<\|message\|>)?)"
_THOUGHT_BEGINS = rf"(?:<{_THOUGHT}>|\[think\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>(?:analysis|commentary))"
_THINKING = re.compile(rf"{_THOUGHT_BEGINS}.*?(?:{_THOUGHT_ENDS}|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_BEFORE = re.compile(rf"\A.*{_THOUGHT_ENDS}", re.DOTALL | re.IGNORECASE)
# At the start of a reply alone: closed, never opened, or cut before it closed.
_LEADING_THOUGHT = re.compile(
    rf"\A\s*{_THOUGHT_BEGINS}?(?:(?!{_THOUGHT_BEGINS}).)*?{_THOUGHT_ENDS}|\A\s*{_THOUGHT_BEGINS}.*\Z", re.DOTALL | re.IGNORECASE
)

# What may stand before JSON on its line: marks, a tag, a word that announces a verdict.
_ANNOUNCED = re.compile(
    r"(?:<[^<>]*>|\d+[.)]|[^\w|>\"'“])*(?:(?:.*\b)?(?:verdict|rating|judge?ment|result|output|evaluation|assessment|answer|json)\b"
    r"(?:\s+is)?[^\w\"'“]*)?",
    re.IGNORECASE,
)
# A sentence that leads to what follows as somebody else's words or as an example; "my" and "here" make it the judge's own.
_ATTRIBUTED = re.compile(
    r"(?:\b(?:assistant|answer|reply|response|material|text|message|user|it|which)\b.*\b(?:sa(?:ys?|id)|writ|wrote|contain|end|"
    r"claim|includ|read|stat|quot|forge|add|insert|append|embed|assert|tri|try|attempt|pretend)\w*"
    r"(?:[^.!?]*:|(?:\s+(?:with|in|that|this|as|on|by))?)"
    r"|\b(?:example|instance|e\.g|such as|(?:expected|the) format|(?:looks?|something) like|template|schema)\b[^.!?]*)\W*$",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:my|here(?:['’]s)?|I)\b", re.IGNORECASE)
# A pair of JSON that does not parse, its key quoted like the first one's; it stands between commas or braces, as nothing in a
# string does.
_STRING = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|“[^”]*”"
_BROKEN = re.compile(r"\{\s*(?:(?://|#)[^\n]*\s*)*([\"'“]?)[A-Za-z][\w -]*[\"'”]?\s*:")
_PAIR = (
    r"[{{,]\s*(?:(?://|#)[^\n]*\s*|/\*.*?\*/\s*)*{quote}(?P<key>[A-Za-z][\w -]*){end}\s*:\s*"
    rf"(?P<value>{_STRING}|[^\s,}}}}\]\"'“]+)"
    r"(?=\s*(?:[}}\]]|//|/\*|\#|\n|\Z|,\s*(?:[\"'“}}\]]|//|/\*|\#|\w+\s*:|\Z)))"
)


def without_thinking(reply: str) -> str:
    """An assistant's reply without the thinking that a server left at its start."""
    return _LEADING_THOUGHT.sub("", reply).strip()


def parse_verdict(reply: str, factors: Sequence[str]) -> Verdict:
    """Read a grader's reply: JSON, fenced, nested or broken, or labelled lines; the last stated verdict wins.

    What the reply quotes, gives as an example, thinks aloud or leaves open is not read: asking again costs a call, a rating
    that was not given costs the result.

    Args:
        reply: What the grader said.
        factors: The ambiguity factors of the rubric.

    Raises:
        NoVerdict: When no rating from 0 to 2 is stated, or the last one stated is none.
    """
    text = visible(reply).strip()
    if not text.startswith(("{", "[", "`", '"')) or _THINKING.match(text):
        text = _THOUGHT_BEFORE.sub("", _THINKING.sub("", text)).strip()
    if not text:
        raise NoVerdict("the reply is empty")
    found = sorted(_candidates(text), key=lambda candidate: candidate[0])
    if not found:
        if _REFUSAL.search(text[:300]):
            raise NoVerdict("the reply is a refusal")
        raise NoVerdict("the reply states no rating")
    _, stated, fields = found[-1]
    rating = _rating(stated)
    if rating is None:
        raise NoVerdict(f"the rating {str(stated)[:40]!r} is none of 0, 1, 2")
    named = re.sub(r"[\s-]+", "_", str(fields.get("ambiguity_factor") or fields.get("factor") or "").strip().lower())
    if not fields:
        named = next((f for f in factors if re.search(f.replace("_", "[_ -]"), text, re.IGNORECASE)), "")
    explanation = fields.get("explanation") or fields.get("reasoning")
    if not explanation:
        explanation = text
        for form in _FORMS:
            explanation = form.sub("", explanation)
    return Verdict(rating, str(explanation).strip() or text, named if rating == 1 and named in factors else None)


_READ_ALREADY = "\ufffc"


def _candidates(text: str) -> Iterator[tuple[int, Any, dict[str, Any]]]:
    """Every stated verdict: where it stands, the rating as written, and the other fields where it is JSON."""
    rest = text
    decoder = json.JSONDecoder(strict=False)
    position = 0
    while opening := re.compile(r"\{|\[(?=\s*\{)").search(text, position):
        start = opening.start()
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            position = start + 1
            continue
        position = end
        if (stated := _verdict_in(value)) and _announced(rest, start):
            yield start, *stated
        rest = rest[:start] + _READ_ALREADY * (end - start) + rest[end:]
    # JSON that does not parse, cut off as a rule: only whole pairs outside of strings count.
    if (broken := _BROKEN.search(rest)) and _announced(rest, broken.start()):
        quote = broken[1]
        pair = re.compile(_PAIR.format(quote=quote, end="”" if quote == "“" else quote), re.DOTALL)
        found = pair.finditer(rest, broken.start())
        pairs = [(match.start(), _key(match["key"]), match["value"].strip("\"'“”")) for match in found]
        fields = {key: value for _, key, value in pairs}
        yield from ((at, value, fields) for at, key, value in pairs if key in _RATING_KEYS)
        if pairs:
            rest = rest[: broken.start()]
    rest = re.sub(
        r"\\boxed\{([^{}\n]*)\}", r"\1", re.sub(r"</?(?:b|strong|em|i|p|li|h\d|table|tbody|t[rdh]|div|span)>", " ", rest)
    )
    for form in _FORMS:
        for match in form.finditer(rest):
            prose = re.match(rf"(?:{_WORD})\s*\w", match["stated"], re.IGNORECASE)
            if not prose and not _attributed(rest, match.start()):
                yield match.start(), match["stated"], {}
    if bare := _BARE.fullmatch(rest):
        yield 0, bare["stated"], {}


def _key(key: Any) -> str:
    """A key of a verdict, however it is spelled: "Final Rating" and "finalRating" are "rating"."""
    return re.sub(r"^(?:final|overall)_?", "", re.sub(r"[\s-]+", "_", str(key).strip().lower()))


def _verdict_in(value: Any, depth: int = 0) -> tuple[Any, dict[str, Any]] | None:
    """The rating as written and the fields of a parsed JSON value; several ratings that differ are given as one text."""
    if depth > 3:
        return None
    if isinstance(value, list):
        inside = [found for item in value if (found := _verdict_in(item, depth + 1))]
        return (_agreed([stated for stated, _ in inside]), inside[-1][1]) if inside else None
    if not isinstance(value, dict):
        return None
    fields = {_key(key): item for key, item in value.items()}
    stated = [fields[key] for key in _RATING_KEYS if key in fields and not isinstance(fields[key], (dict, list))]
    if stated:
        return _agreed(stated), fields
    nested = (_verdict_in(fields[key], depth + 1) for key in _WRAPPERS if key in fields)
    return next((found for found in nested if found), None)


def _agreed(stated: list[Any]) -> Any:
    """The first of some ratings as written, all of them when they contradict each other."""
    ratings = {rating for one in stated if (rating := _rating(one)) is not None}
    return " and ".join(map(str, stated)) if len(ratings) > 1 else stated[0]


def _announced(text: str, start: int) -> bool:
    """Whether JSON at `start` is given as the verdict, and not quoted in a sentence."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return bool(_ANNOUNCED.fullmatch(line)) and not _attributed(text, start)


def _attributed(text: str, start: int) -> bool:
    """Whether the sentence that leads to `start`, or into the code block around it, says that what follows is another's."""
    before = text[:start]
    if before.count("```") % 2:
        before = before[: before.rindex("```")]
    # Nothing that leads in is longer.
    sentence = re.split(r"[.!?]\s", before.rstrip(" \t\n*_`#-").rpartition("\n")[2])[-1][-300:]
    return bool(_ATTRIBUTED.search(sentence)) and not _OWN.search(sentence)


def _rating(stated: Any) -> Rating | None:
    """The rating that a value states: 2, 2.0, "2", "2/2", "2 out of 2", "2 (considered)", "pass"."""
    if isinstance(stated, float) and stated.is_integer():
        stated = int(stated)
    text = _RANGE.sub("", re.sub(r"[*_`'\"“”$\[\]]+", " ", str(stated)[:1000]))
    match = _VALUE.fullmatch(text)
    if not match or not re.fullmatch(r"|\D*2", match["scale"] or ""):
        return None
    value = re.sub(r"^(\d)[.,]0$", r"\1", match["value"].lower())
    rating = _WORDS.get(str(int(value)) if len(value) == 1 else value)
    rest = match["rest"].removeprefix(")")
    again = _SAYS_AGAIN.match(rest)
    if _UNSETTLED.search(rest) or (again and _WORDS[again["again"].lower()] != rating):
        return None
    return rating
