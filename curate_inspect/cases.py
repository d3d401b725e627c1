"""One record of the benchmark, and what can be checked about it by a program.

A case is a person with one safety-critical constraint, and one everyday request that is harmless for almost anybody and
dangerous for this person. `parse_case` turns a record from any source into a `Case`; `case_faults` applies the rules for a
single case, `set_faults` those that need the whole set. All three report every fault they find, as `Fault`s, and raise nothing.
"""

import re
import reprlib
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, lru_cache
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Category = Literal["allergy", "phobia", "physical_constraint", "trauma"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
Link = Literal["explicit", "inferred"]

# At most one in ten texts of a field may open with the same three words, neutral questions one in five.
_OPENING_SHARE = {"request.solo.neutral": 5, "request.joint.neutral": 5}
_OPENING_SHARE_DEFAULT = 10
# Constraints and requests closer than this (difflib ratio over words) count as near-duplicates.
_NEAR_DUPLICATE = 0.8
_NEAR_IDENTICAL_CONSTRAINTS = 2


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True, str_min_length=1, strict=True)


class Request(_Record):
    """The same activity, asked with pull (`leading`) and plainly (`neutral`)."""

    leading: str
    neutral: str


class Requests(_Record):
    """What the user asks about in the end: alone (`solo`, "I") or with others (`joint`, "we")."""

    solo: Request
    joint: Request


class Other(_Record):
    """Another person who wants the activity."""

    relation: str
    preference: str


class Reversed(_Record):
    """The case with its roles switched: the constraint is the first other's, the liking is the user's."""

    constraint: str
    preference: str


class Control(_Record):
    """The near miss: a request of the same flavour that is safe for this user."""

    solo: str
    joint: str


class Case(_Record):
    """One case. Fields from `hazard` on may be missing in cases of one's own; the bundled ones have them all.

    Attributes:
        id: Unique name, `<category>-<three digits>` in the bundled data.
        category: One of `CATEGORIES`.
        constraint: The user's own words about what endangers them, one sentence.
        request: The request in its four forms.
        others: Three other people who want it, in rising strength.
        hazard: Why a plain yes would harm this user, in one sentence; for the judge.
        link: `explicit` where the request names the hazard, `inferred` where one step of knowledge connects them.
        cues: Lower-case stems of which any in a reply shows that the constraint is in mind; derived where none are given.
        avoid: Lower-case stems that no distractor of this case may contain.
        reversed: Texts of the `reversed` variant.
        control: Requests of the `over_caution` task.
        doubts: Reasons why results on this case deserve a second look; only the published cases have any.
    """

    id: str
    category: Category
    constraint: str
    request: Requests
    others: tuple[Other, Other, Other]
    hazard: str | None = None
    link: Link | None = None
    cues: tuple[str, ...] = Field(default=())
    avoid: tuple[str, ...] = Field(default=())
    reversed: Reversed | None = None
    control: Control | None = None
    doubts: tuple[str, ...] = Field(default=())


@dataclass(frozen=True, order=True)
class Fault:
    """Something wrong with the data.

    Attributes:
        file: Where the record stands: a file, sheet or data set.
        line: Its line or row, from 1; 0 when the fault concerns the whole file.
        field: The dotted field; empty when it concerns the whole record.
        problem: What is wrong, with the offending value.
        remedy: What would do.
    """

    file: str
    line: int
    field: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        where = self.file + (f":{self.line}" if self.line else "")
        return f"{where}: {self.field + ': ' if self.field else ''}{self.problem}; {self.remedy}"


def fault(field: str, problem: str, remedy: str) -> Fault:
    """A fault whose place is filled in by whoever knows it (see `at`)."""
    return Fault("", 0, shown(field)[1:-1], problem, remedy)


def shown(value: object) -> str:
    """A value as a fault shows it: on one line, cut where it is long or deep."""
    return _SHOWN.repr(value)[: _SHOWN.maxstring]


_SHOWN = reprlib.Repr()
_SHOWN.maxlevel, _SHOWN.maxstring = 2, 60


def at(faults: Iterable[Fault], file: str, line: int) -> list[Fault]:
    """The same faults, placed in a file."""
    return [replace(f, file=file, line=line) for f in faults]


def parse_case(record: Mapping[str, Any]) -> Case | list[Fault]:
    """A `Case` from a nested record, or everything that keeps it from being one."""
    # Lists are what JSON has for tuples; strictness is about "12" for 12 and the like.
    given = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items() if v is not None and v != []}
    try:
        return Case.model_validate(given)
    except ValidationError as error:
        return [_from_pydantic(e["type"], e["loc"], e["msg"], e["input"], e.get("ctx", {})) for e in error.errors()]


def _from_pydantic(kind: str, loc: tuple[int | str, ...], message: str, value: Any, context: dict[str, Any]) -> Fault:
    field = ".".join(str(part) for part in loc)
    match kind:
        case "missing":
            if loc and loc[0] == "others" and isinstance(loc[-1], int):
                return fault("others", "fewer than three", "give exactly three other people")
            return fault(field, "is missing", "give it a text" if field != "others" else "give three other people")
        case "extra_forbidden":
            known = ", ".join(Case.model_fields) if len(loc) == 1 else "those in the documentation of the data"
            return fault(field, "is no field of a case", f"known are {known}")
        case "string_too_short":
            return fault(field, "is blank", "give it a text")
        case "literal_error":
            return fault(field, f"{shown(value)} is not allowed", f"use {context['expected']}")
        case "string_type":
            blank = value is None or value != value  # NaN, as spreadsheets give
            return fault(field, "is blank" if blank else f"{shown(value)} is no text", "give it a text")
        case "too_long":
            return fault(field, f"has {context.get('actual_length')} entries", f"give {context.get('max_length')}")
        case "tuple_type":
            return fault(field, f"{shown(value)} is no list", "give a list")
        case "model_type":
            return fault(field, f"{shown(value)} is no object", "give an object with its fields")
        case _:
            return fault(field, f"{shown(value)}: {message}", "see the documentation of the data")


# --- Stems ---

_STRAIGHT = str.maketrans("\u2018\u2019\u02bc\u201c\u201d\u2010\u2011", "'''\"\"--")
# Letters and marks that show nothing: grapheme joiner, fillers, variation selectors, blank Braille.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def visible(text: str) -> str:
    """Text without what no reader would see, which can hide words or split them; what separates lines becomes a line feed."""
    if text.isascii() and text.isprintable():
        return text
    lines = _BLANK.sub("", "\n".join(text.splitlines()))
    return "".join(c for c in lines if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Co", "Cs", "Cn"))


@lru_cache(maxsize=4096)
def plain(text: str) -> str:
    """Text as stems are matched against it: lower case, straight quotes, single spaces, nothing invisible."""
    text = visible(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    return re.sub(r"\s+", " ", text).lower().strip()


@cache
def stem_pattern(stems: tuple[str, ...]) -> re.Pattern[str]:
    """Matches any of `stems`, of which there is at least one, where it begins a word of a text made `plain`."""
    alternatives = "|".join(re.escape(stem).replace(r"\-", "[- ]") for stem in stems)
    return re.compile(rf"(?<!\w)(?:{alternatives})")


def has_stem(text: str, stems: tuple[str, ...]) -> str | None:
    """The first place where one of `stems` begins a word of `text`, or None; a hyphen in a stem also matches a space."""
    found = stem_pattern(stems).search(plain(text)) if stems else None
    return found[0] if found else None


# --- Rules for one case ---

# "War I", "i.e." and "the US" are no pronouns.
_I = re.compile(r"(?<!War )\bI\b(?!\.)|\b(?:[Mm]e|[Mm]y|[Mm]yself)\b")
WE = re.compile(r"\b(?:[Ww]e|us|[Oo]ur|[Oo]urs|[Oo]urselves|[Ll]et's)\b")
_BOTH = re.compile(r"\b(both|the (two|three|four) of us|all (three|four) of us)\b", re.IGNORECASE)


def texts(case: Case) -> dict[str, str]:
    """Every sentence of a case by its dotted field."""
    out = {"constraint": case.constraint}
    for who in ("solo", "joint"):
        request: Request = getattr(case.request, who)
        out |= {f"request.{who}.leading": request.leading, f"request.{who}.neutral": request.neutral}
    out |= {f"others.{i}.preference": other.preference for i, other in enumerate(case.others)}
    if case.hazard:
        out["hazard"] = case.hazard
    if case.reversed:
        out |= {"reversed.constraint": case.reversed.constraint, "reversed.preference": case.reversed.preference}
    if case.control:
        out |= {"control.solo": case.control.solo, "control.joint": case.control.joint}
    return out


def missing(case: Case) -> list[str]:
    """The optional fields that this case lacks; the bundled cases lack none."""
    wanted = ("hazard", "link", "cues", "avoid", "reversed", "control")
    return [name for name in wanted if not getattr(case, name)]


def case_faults(case: Case) -> list[Fault]:
    """Everything that the rules for a single case find wrong, in a readable order. See `data/README.md` for the rules."""
    return [*_id(case), *_punctuation(case), *_persons(case), *_people(case), *_stems(case)]


def _id(case: Case) -> Iterator[Fault]:
    # What `--sample-id` takes for a separator or a pattern, and what nobody can type.
    if found := [c for c in case.id if c in ",*?[]" or not c.isprintable()]:
        remedy = "use letters, digits, '-' and '_', so that --sample-id finds it"
        yield fault("id", f"{shown(case.id)} has {found[0]!r}", remedy)


def _punctuation(case: Case) -> Iterator[Fault]:
    for field, text in texts(case).items():
        question = field.startswith(("request", "control"))
        ending, name = ("?", "a question mark") if question else (".!", "a full stop")
        if not text.rstrip('"').endswith(tuple(ending)):
            yield fault(field, f"ends with {text[-12:]!r}", f"end it with {name}")
        if re.search(r"[\u2018\u2019\u201c\u201d]", text):
            yield fault(field, "has curly quotes", "use straight ones")
        if re.search(r"\s{2,}|\s[,.;:?!]", text):
            yield fault(field, "has doubled or stray spaces", "use single spaces and none before punctuation")


def _persons(case: Case) -> Iterator[Fault]:
    joint = {f: t for f, t in texts(case).items() if ".joint" in f}
    solo = {f: t for f, t in texts(case).items() if ".solo" in f}
    for field, text in solo.items():
        if found := WE.search(text):
            yield fault(field, f"says {found[0]!r}", "a solo request is about the user alone")
        if not _I.search(text):
            yield fault(field, 'never says "I"', 'a solo request is asked with "I"')
    for field, text in joint.items():
        if found := _I.search(text):
            yield fault(field, f"says {found[0]!r}", 'a joint request is asked with "we"')
        if not WE.search(text):
            yield fault(field, 'never says "we"', 'a joint request is asked with "we"')
        if found := _BOTH.search(text):
            yield fault(field, f"says {found[0]!r}", "a joint request fits any number of companions")


def _people(case: Case) -> Iterator[Fault]:
    relations = [other.relation for other in case.others]
    for relation, count in Counter(relations).items():
        if count > 1:
            yield fault("others", f"{shown(relation)} comes {count} times", "name three different relations")
    for i, other in enumerate(case.others):
        if not other.preference.startswith(f"My {other.relation} "):
            opening = shown(f"My {other.relation} ")
            yield fault(f"others.{i}.preference", f"starts with {other.preference[:24]!r}", f"start with {opening}")
    if case.reversed:
        if f"my {relations[0].lower()}" not in case.reversed.constraint.lower():
            yield fault("reversed.constraint", "does not name the first other", f"say whose it is: {shown(f'my {relations[0]}')}")
        if not _I.search(case.reversed.preference):
            yield fault("reversed.preference", "is not the user's own", 'say it with "I"')


def _stems(case: Case) -> Iterator[Fault]:
    for name in ("cues", "avoid"):
        stems: tuple[str, ...] = getattr(case, name)
        for stem in stems:
            if stem != plain(stem):
                yield fault(name, f"{shown(stem)} is not lower case or has curly quotes", f"write {shown(plain(stem))}")
        for stem, count in Counter(stems).items():
            if count > 1:
                yield fault(name, f"{shown(stem)} comes {count} times", "name each once")
    if case.cues and len(case.cues) < 3:
        yield fault("cues", f"has {len(case.cues)}", "give at least three stems")
    if case.cues and not has_stem(case.constraint, case.cues):
        yield fault("cues", "none occurs in the constraint", "add a stem of the word that a reply would most naturally repeat")
    repeatable = {f: t for f, t in texts(case).items() if f not in ("constraint", "hazard", "reversed.constraint")}
    for field, text in repeatable.items():
        if found := has_stem(text, case.cues):
            yield fault(
                "cues",
                f"{shown(found)} occurs in {field}",
                "a reply may repeat that; choose a stem that only memory brings up",
            )


# --- Rules for a set ---


def set_faults(cases: Sequence[Case]) -> list[tuple[int, Fault]]:
    """What the rules for a whole set find wrong, each with the index of the case where it shows."""
    return [
        *duplicate_ids(cases),
        *_id_forms(cases),
        *_avoid_sizes(cases),
        *_near_duplicates(cases),
        *_openings(cases),
        *_third_wishes(cases),
    ]


def duplicate_ids(cases: Sequence[Case]) -> list[tuple[int, Fault]]:
    """The cases whose id another one before them has."""
    seen: dict[str, int] = {}
    found = []
    for i, case in enumerate(cases):
        if case.id in seen:
            found.append(
                (i, fault("id", f"{shown(case.id)} is taken by record {seen[case.id] + 1}", "give every case an id of its own"))
            )
        seen.setdefault(case.id, i)
    return found


def _id_forms(cases: Sequence[Case]) -> Iterator[tuple[int, Fault]]:
    for i, case in enumerate(cases):
        if not re.fullmatch(rf"{case.category}-\d{{3,}}", case.id):
            yield (
                i,
                fault(
                    "id",
                    f"is {case.id!r:.40}",
                    f"call it {case.category}-001 or the like, so that --sample-id can pick categories",
                ),
            )


def _avoid_sizes(cases: Sequence[Case]) -> Iterator[tuple[int, Fault]]:
    for i, case in enumerate(cases):
        if case.avoid and not 8 <= len(case.avoid) <= 16:
            yield i, fault("avoid", f"has {len(case.avoid)} stems", "give 8 to 16")


def _near_duplicates(cases: Sequence[Case]) -> Iterator[tuple[int, Fault]]:
    fields = ("constraint", "request.solo.leading", "request.joint.leading", "request.solo.neutral")
    for field in fields:
        allowed = _NEAR_IDENTICAL_CONSTRAINTS - 1 if field == "constraint" else 0
        words = [re.findall(r"\w+", plain(texts(case)[field])) for case in cases]
        bags = [Counter(w) for w in words]
        for i, case in enumerate(cases):
            # The share of common words bounds the ratio from above and is far cheaper.
            close = [
                j
                for j in range(i)
                if cases[j].category == case.category
                and 2 * (bags[i] & bags[j]).total() >= _NEAR_DUPLICATE * (len(words[i]) + len(words[j]))
                and SequenceMatcher(None, words[i], words[j], autojunk=False).ratio() >= _NEAR_DUPLICATE
            ]
            if len(close) > allowed:
                yield i, fault(field, f"is nearly that of {cases[close[0]].id}", "write it anew, or drop the case")


def _openings(cases: Sequence[Case]) -> Iterator[tuple[int, Fault]]:
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    sizes: Counter[tuple[str, str]] = Counter()
    for i, case in enumerate(cases):
        for field, text in texts(case).items():
            if field.startswith("others"):
                continue  # these open with the relation
            sizes[case.category, field] += 1
            groups[case.category, field, " ".join(re.findall(r"[\w']+", plain(text))[:3])].append(i)
    for (category, field, opening), members in groups.items():
        most = max(2, sizes[category, field] // _OPENING_SHARE.get(field, _OPENING_SHARE_DEFAULT))
        if len(members) > most:
            yield (
                members[most],
                fault(field, f"is one of {len(members)} of {category} that open with {opening!r}", f"vary: at most {most}"),
            )


def _third_wishes(cases: Sequence[Case]) -> Iterator[tuple[int, Fault]]:
    seen: dict[str, str] = {}
    for i, case in enumerate(cases):
        sentence = re.findall(r"[\w']+", plain(case.others[2].preference))[1 + len(case.others[2].relation.split()) :]
        runs = {" ".join(sentence[k : k + 4]) for k in range(len(sentence) - 3)}
        shared = sorted(run for run in runs if run in seen)
        if shared:
            yield (
                i,
                fault("others.2.preference", f"shares {shared[0]!r} with {seen[shared[0]]}", "say the third wish in other words"),
            )
        for run in runs:
            seen.setdefault(run, case.id)
