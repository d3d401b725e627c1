"""The published files of CURATe: fetched, verified, corrected by rule, and marked where results deserve a second look.

The workbooks of arXiv 2410.21159 have no licence, so they are not part of this package: they are downloaded from the authors'
repository at one fixed commit and checked by SHA-256. `data/paper_errata.csv` names each mechanical fault by file, row, field and
kind; the corrections are rules, and no published text stands in the package.
"""

import csv
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import platformdirs
from inspect_ai.util import download
from tenacity import RetryError

from curate_inspect.cases import WE, Case, Fault, at, fault, plain
from curate_inspect.distractors import Pools, Trivia
from curate_inspect.sources import (
    PUBLISHED_COLUMNS,
    DataError,
    Row,
    Source,
    bundled_folder,
    case_columns,
    cases_of,
    digest,
    first_column,
    rows_of,
    user_path,
    verify_manifest,
)

REPOSITORY = "lize-alberts/llm_prag_benchmark"
COMMIT = "47acd281a49788fbd2a242bf6bc6034527128f3c"
URL = f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}/"
RATINGS = "human_baseline_eval_comparisons.xlsx"
# SHA-256 of each file at the commit.
FILES = {
    "inputs.xlsx": "87421a53f7f7f523c7783979de0780fb30e1d5bf068c93383ebc6bbdf315ce7e",
    "inputs_80.xlsx": "398e9e238bf0b7c8e8ead37ec85024728b683d415bb7527502ef139bc9b98a2b",
    "facts.xlsx": "4277605767751ba790c5e95d4b1817ad94c4950114637fe72b63f1949fbd99ff",
    "trivia.xlsx": "624dcafbbfb7b272c4f4ea8cdb62dc44bff0b4186e84305a4dec1fb8e9307eaa",
    "prefs.xlsx": "e9e68912ffab820a5736db406711ce0fad199a56ce4322e6781e3eded730acc8",
    RATINGS: "921a380a2825c41535e0ec929db8ff9591617b41b91cae020436b0c8749981f0",
}
_CASES, _SWITCHED, *_POOLS = list(FILES)[:5]

# --- The files ---


def cache_folder() -> Path:
    """Where downloads are kept: under `CURATE_INSPECT_CACHE`, or the platform's folder for caches."""
    given = os.environ.get("CURATE_INSPECT_CACHE")
    base = user_path(given) if given else platformdirs.user_cache_path("curate_inspect")
    return base / f"paper-{COMMIT[:7]}"


def paper_files(names: Iterable[str]) -> dict[str, Path]:
    """Some of the published files, verified: from `CURATE_INSPECT_PAPER_DIR` where that is set, else from cache or network.

    Args:
        names: Any of `FILES`.

    Raises:
        DataError: When a file cannot be had or is not the published one; it says how to go on.
    """
    given = os.environ.get("CURATE_INSPECT_PAPER_DIR")
    if not given:
        return {name: _downloaded(name) for name in names}
    paths = {name: user_path(given) / name for name in names}
    faults = [found for name, path in paths.items() for found in _file_faults(name, path)]
    if faults:
        raise DataError(faults)
    return paths


def _file_faults(name: str, path: Path) -> Iterator[Fault]:
    remedy = f"put the file of {URL}{name} there, or unset CURATE_INSPECT_PAPER_DIR to download it"
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        yield Fault(str(path), 0, "", f"cannot be read ({error.strerror})", remedy)
    else:
        if found != FILES[name]:
            yield Fault(str(path), 0, "", f"is not the published file: its SHA-256 is {found}, not {FILES[name]}", remedy)


def _downloaded(name: str) -> Path:
    url, path = URL + name, cache_folder() / name
    elsewhere = 'set CURATE_INSPECT_PAPER_DIR to a folder that has the published files, or use cases="bundled"'
    try:
        # Verifies before it renames, and retries what may pass; a good copy in the cache costs no request.
        return download(url, FILES[name], path, timeout=30)
    except (httpx.HTTPError, RetryError) as error:
        cause = error.last_attempt.exception() if isinstance(error, RetryError) else error
        if isinstance(cause, httpx.HTTPStatusError):
            problem = f"the server answers {cause.response.status_code} {cause.response.reason_phrase}".rstrip()
            remedy = f"the repository may have moved; {elsewhere}"
        else:
            problem = f"cannot be downloaded ({cause or type(cause).__name__})"
            remedy = f"check the network and try again; where there is none, {elsewhere}"
    except ValueError as error:
        problem, remedy = str(error).replace(f" for {url}", ""), f"the file has changed or is damaged on its way; {elsewhere}"
    except OSError as error:
        problem = f"cannot be stored in {path.parent} ({error.strerror or error})"
        remedy = f"set CURATE_INSPECT_CACHE to a folder that can be written and has 1 MB left; or {elsewhere}"
    raise DataError([Fault(url, 0, "", problem, remedy)])


# --- Errata ---


def _article(text: str) -> str:
    text = re.sub(r"\b([Aa]) (?=(?!one|once|eu)(?:[aeioAEIO]|un(?!i)))", r"\1n ", text)
    return re.sub(r"\b([Aa])n (?=[^aeiouhAEIOUH\W])", r"\1 ", text)


# What each kind of erratum does to a text, in this order where there are several.
CORRECTIONS: dict[str, Callable[[str], str]] = {
    "doubled space": lambda text: re.sub(r"\s+", " ", text),
    "missing space": lambda text: re.sub(r"^(My partner)(?=\w)", r"\1 ", text),
    "missing subject": lambda text: f"I {text}",
    "wrong article": _article,
    "missing full stop": lambda text: f"{text}.",
}
# Kinds for which the entry is left out. Of duplicates, which differ in case or punctuation at most, the first stays.
OMISSIONS = ("blank", "duplicate")

Place = tuple[str, int, str]  # file, row, field


@cache
def errata() -> dict[Place, tuple[str, ...]]:
    """The kinds of errata by file, row (from 1, as a spreadsheet counts) and field; from `data/paper_errata.csv`.

    Fields are named as in a case; the single column of facts, trivia and preferences is `text`. Of inputs_80.xlsx only the
    switched texts are used, and the first other's preference, by which its rows are matched with those of inputs.xlsx.
    """
    found: dict[Place, list[str]] = {}
    with (bundled_folder() / "paper_errata.csv").open(encoding="utf-8", newline="") as file:
        for record in csv.DictReader(file):
            for part in record["rows"].split():
                first, _, last = part.partition("-")
                for row in range(int(first), int(last or first) + 1):
                    found.setdefault((record["file"], row, record["field"]), []).append(record["kind"])
    order = [*OMISSIONS, *CORRECTIONS]
    return {place: tuple(sorted(kinds, key=order.index)) for place, kinds in found.items()}


def correct(text: str, kinds: Iterable[str]) -> str | None:
    """A text with some kinds of errata corrected, or None where it is to be left out."""
    for kind in kinds:
        if kind in OMISSIONS:
            return None
        text = CORRECTIONS[kind](text)
    return text


# --- Doubts ---

# Rows of inputs.xlsx, found by reading each request without its constraint and each constraint beside its request. A cautious
# friend might advise anybody against it: first ascents and descents, wing suits, bulls, venom, deserts and oceans for laypeople.
DANGEROUS_FOR_ANYBODY = frozenset((45, 123, 127, 128, 138, 144, 151, 156, 166, 276, 287, 290, 292, 296, 314, 323, 337))
# A plain yes would leave this user bored, sore or indifferent rather than harmed, or nothing connects the two.
NO_CLEAR_DANGER = frozenset((6, 82, 87, 95, 105, 108, 122, 129, 130, 155, 169, 321))


def doubts(cases: Iterable[Case]) -> dict[str, tuple[str, ...]]:
    """Why results on some of the published cases deserve a second look, by the id of the case.

    Args:
        cases: The published cases; their ids end with their rows.
    """
    cases = list(cases)
    constraints = Counter(_bare(case.constraint) for case in cases)
    found = {}
    for case in cases:
        row = int(case.id.rpartition("-")[2])
        solo = f"{case.request.solo.leading} {case.request.solo.neutral}"
        checks = {
            "solo request keeps we/our/us/together": bool(WE.search(solo) or re.search(r"\b[Tt]ogether\b", solo)),
            "one relation twice": len({other.relation for other in case.others}) < len(case.others),
            "shared constraint": constraints[_bare(case.constraint)] > 1,
            "dangerous for anybody": row in DANGEROUS_FOR_ANYBODY,
            "no clear danger": row in NO_CLEAR_DANGER,
        }
        found[case.id] = tuple(name for name, doubted in checks.items() if doubted)
    return found


def _bare(text: str) -> str:
    return re.sub(r"\W+", " ", plain(text)).strip()


# --- Cases ---


def load_paper(name: str) -> Source:
    """The published cases with their distractors, the switched texts of 80 of them, and what is doubtful about each.

    Args:
        name: "paper" for the texts with their errata corrected; "paper-raw" for the texts as they are, including the blank
            preference, which the published code says as "nan".

    Raises:
        DataError: When the files cannot be had; see `paper_files`.
    """
    verify_manifest(bundled_folder())
    table = errata() if name == "paper" else {}
    files = paper_files([_CASES, _SWITCHED, *_POOLS])
    published, with_switched = (
        cases_of(_corrected(rows_of(files[file], case_columns), file, table), str(files[file])) for file in (_CASES, _SWITCHED)
    )
    switched = {_bare(case.others[0].preference): case.reversed for case in with_switched}
    doubted = doubts(published)
    cases = tuple(
        case.model_copy(update={"reversed": switched.get(_bare(case.others[0].preference)), "doubts": doubted[case.id]})
        for case in published
    )
    facts, trivia, preferences = (_pool(files[file], file, table) for file in _POOLS)
    pools = Pools(facts, tuple(Trivia(question) for question in trivia), preferences)
    return Source(name, digest(cases, pools), cases, pools)


def _corrected(rows: Iterable[Row | Fault], file: str, table: dict[Place, tuple[str, ...]]) -> Iterator[Row | Fault]:
    for row in rows:
        if isinstance(row, Fault):
            yield row
            continue
        path, number, record = row
        kinds = {column: table.get((file, number, field), ()) for column, field in PUBLISHED_COLUMNS.items()}
        yield path, number, {column: correct(text, kinds[column]) for column, text in record.items() if column in kinds}


def _pool(path: Path, file: str, table: dict[Place, tuple[str, ...]]) -> tuple[str, ...]:
    texts = (correct(text, table.get((file, row, "text"), ())) for row, text in first_column(path))
    return tuple(text or "nan" for text in texts if text is not None)


# --- Ratings by people ---

_RATER_WORDS = {"human", "humans", "rater", "annotator", "author", "expert", "person", "manual", "participant"}
_JUDGE_WORDS = {"judge", "evaluation", "eval", "evaluator", "llm", "llama", "model", "ai", "auto", "automatic", "machine"}
_REMARK_WORDS = {"explanation", "explanations", "reason", "reasons", "reasoning", "comment", "comments", "note", "notes"}
# For each of our fields the words of a header that names it, the surest first.
_HEADERS: dict[str, tuple[set[str], ...]] = {
    "constraint": ({"constraint"}, {"first", "input"}),
    "request": ({"request"}, {"last", "input"}, {"question"}),
    "reply": ({"reply"}, {"response"}, {"answer"}),
    "category": ({"category"},),
}
_WORD_RATINGS = {"fail": 0, "unclear": 1, "ambiguous": 1, "neutral": 1, "pass": 2}


def rated_replies() -> Iterator[Row | Fault]:
    """The 100 published replies that two people rated, as records that `agreement.read_examples` takes.

    Raises:
        DataError: When the file cannot be had (see `paper_files`), or its columns cannot be told.
    """
    path = paper_files([RATINGS])[RATINGS]
    return iter(as_examples(list(rows_of(path)), str(path)))


def as_examples(rows: list[Row | Fault], where: str) -> list[Row | Fault]:
    """Records with `constraint`, `request`, `reply`, `category`, `human_1` and `human_2` from a table with two people's ratings.

    Columns are recognised by the words of their headers, the two people's by words such as "human" or "rater", or else as the
    only two columns of ratings besides the judge's. Ratings from 0 to 1, as in the published results, are doubled.

    Args:
        rows: The rows of the table by their headers.
        where: Names the table in an error.

    Raises:
        DataError: When a column cannot be told; it lists the columns.
    """
    records = [row for row in rows if not isinstance(row, Fault)]
    columns = list(dict.fromkeys(column for _, _, record in records for column in record))
    words = {column: set(re.findall(r"[a-z]+", column.lower())) for column in columns}
    rated = [column for column in columns if _holds_ratings(record.get(column) for _, _, record in records)]
    people = [column for column in rated if words[column] & _RATER_WORDS]
    people = people or [column for column in rated if not words[column] & _JUDGE_WORDS]
    texts = [c for c in columns if c not in rated and not words[c] & (_REMARK_WORDS | _RATER_WORDS)]
    found = {field: _named(texts, words, wanted) for field, wanted in _HEADERS.items()}
    faults = [
        fault(field, "cannot be told from the columns", f"name one column so; there are {', '.join(map(repr, columns))}")
        for field, column in found.items()
        if column is None and field != "category"
    ]
    if len(people) != 2:
        problem = f"{len(people)} columns hold people's ratings"
        remedy = f"name two columns 'human_1' and 'human_2', with ratings 0, 1 and 2; there are {', '.join(map(repr, columns))}"
        faults.append(fault("human_1, human_2", problem, remedy))
    if faults:
        raise DataError([*at(faults, where, 0), *(row for row in rows if isinstance(row, Fault))])
    numbers = [value for _, _, r in records for c in rated if isinstance(value := _rating(r.get(c)), float)]
    scale = 2 if max(numbers, default=2) <= 1 else 1

    def example(row: Row) -> Row:
        file, line, record = row
        out = {field: record.get(column) or "" for field, column in found.items() if column}
        for i, column in enumerate(people, 1):
            rating = _rating(record.get(column))
            out[f"human_{i}"] = rating * scale if isinstance(rating, float) else rating
        return file, line, out | {"id": f"human-{line:03d}"}

    return [row if isinstance(row, Fault) else example(row) for row in rows]


def _named(columns: list[str], words: dict[str, set[str]], wanted: tuple[set[str], ...]) -> str | None:
    for needed in wanted:
        found = [column for column in columns if needed <= words[column]]
        if len(found) == 1:
            return found[0]
    return None


def _rating(value: Any) -> float | int | None:
    """A number as a float, a word's rating as an int, None for anything else."""
    text = str(value).strip().lower()
    if text in _WORD_RATINGS:
        return _WORD_RATINGS[text]
    return float(text) if text in ("0", "0.0", "0.5", "1", "1.0", "2", "2.0") else None


def _holds_ratings(values: Iterable[Any]) -> bool:
    given = [value for value in values if value not in (None, "")]
    return bool(given) and all(_rating(value) is not None for value in given)
