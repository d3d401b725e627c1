"""Where cases and distractors come from: the bundled data, the published files, a file or folder of one's own, a hub data set.

Whatever the source, `load` gives a `Source` in which every record fits, or raises one `DataError` that lists all faults.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from curate_inspect.cases import CATEGORIES, Case, Fault, at, case_faults, duplicate_ids, fault, parse_case, shown
from curate_inspect.distractors import Pools, Trivia

DATA_VERSION = "1.0.0"
SUFFIXES = (".jsonl", ".csv", ".xlsx")

# A record is a dict with the place where it stands.
Row = tuple[str, int, dict[str, Any]]


class DataError(ValueError):
    """Data that do not fit; the message lists every fault as file, line, field, what is wrong, what would do."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = sorted(set(faults))
        count = f"{len(self.faults)} fault{'s' if len(self.faults) > 1 else ''} in the data:"
        super().__init__("\n".join([count, *(f"  {f}" for f in self.faults)]))


@dataclass(frozen=True)
class Source:
    """Cases with their distractors.

    Attributes:
        name: What was asked for: "bundled", "paper", a path, a hub id.
        version: The version of the bundled data, or a hash of the records; scores of different versions do not compare.
        cases: In the order of the source.
        pools: The distractors that go with them.
    """

    name: str
    version: str
    cases: tuple[Case, ...]
    pools: Pools

    @cached_property
    def by_id(self) -> dict[str, Case]:
        """The cases by their ids."""
        return {case.id: case for case in self.cases}


def load(cases: str = "bundled") -> Source:
    """Load cases with their distractors.

    Args:
        cases: "bundled"; "paper" for the published cases with their mechanical errata corrected, "paper-raw" for them as they are
            (see `paper.load_paper`); a path to a `.jsonl`, `.csv` or `.xlsx` file or to a folder, with the fields of our cases
            or the columns of the published workbook; or the hub id or local path of a data set that `datasets` can load.
            Distractors beside the cases are used (`distractors/*.jsonl`, or the published `facts.xlsx`, `trivia.xlsx` and
            `prefs.xlsx`, in `distractors/` or beside a workbook), otherwise the bundled ones.

    A source is read once in a process.

    Raises:
        DataError: When anything does not fit.
    """
    if not isinstance(cases, str) or not cases.strip():
        raise ValueError(f"cases={cases!r} names nothing; give 'bundled', 'paper', a file, a folder or the id of a data set")
    if cases not in _LOADED:
        _LOADED[cases] = _load(cases)
    return _LOADED[cases]


_LOADED: dict[str, Source] = {}


def loaded() -> Iterator[Case]:
    """The cases of every source that this process has loaded."""
    return (case for source in _LOADED.values() for case in source.cases)


def _load(cases: str) -> Source:
    if cases == "bundled":
        folder = bundled_folder()
        verify_manifest(folder)
        # What was released keeps the rules, so the manifest's word is enough at each start.
        released = _placed(_rows_at(folder / "cases"), cases, rules=False)
        return Source(cases, DATA_VERSION, tuple(released.values()), read_pools(folder / "distractors"))
    if cases in ("paper", "paper-raw"):
        from curate_inspect.paper import load_paper

        return load_paper(cases)
    path = user_path(cases)
    try:
        ours = _has_case_files(path) if path.exists() else _is_path(cases)
        records = read_cases(path) if ours else read_hub(cases)
        pools = read_pools(_pools_beside(path) or bundled_folder() / "distractors")
    except OSError as error:
        raise DataError([Fault(cases, 0, "", f"cannot be read ({error.strerror})", _ONE_OF)]) from error
    return Source(cases, digest(records, pools), records, pools)


def user_path(text: str) -> Path:
    """A path as users write it, with `~` for their home folder."""
    try:
        return Path(text).expanduser()
    except RuntimeError:  # there is no such user
        return Path(text)


_ONE_OF = "check the path; give a file, a folder, or the id of a hub data set"


def _has_case_files(path: Path) -> bool:
    """Whether an existing path is for us to read: a file, or a folder with case files; `datasets` may know other folders."""
    if not path.is_dir():
        return True
    return (path / "cases").is_dir() or not any(path.iterdir()) or any(_is_read(p) for p in path.iterdir())


def _is_read(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def _is_path(cases: str) -> bool:
    return cases.lower().endswith(SUFFIXES) or cases.startswith((".", "/", "~", "\\")) or cases.count("/") > 1


def digest(cases: tuple[Case, ...], pools: Pools) -> str:
    """The version of data that have none of their own: a hash of every text."""
    text = "\n".join([case.model_dump_json() for case in cases] + [repr(pools)])
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:12]}"


# --- The bundled data ---


def bundled_folder() -> Path:
    """The folder of the bundled data, in an installed package or in a checkout.

    Raises:
        DataError: When neither has it.
    """
    here = Path(__file__).parent
    for folder in (here / "data", here.parent / "data"):
        if (folder / "manifest.json").is_file():
            return folder
    raise DataError([Fault(str(here / "data"), 0, "", "the bundled data are missing", "install the package again")])


def manifest_of(folder: Path) -> dict[str, str]:
    """SHA-256 of every data file in `folder` by its relative path."""
    files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def verify_manifest(folder: Path) -> None:
    """Check the bundled files against `manifest.json`.

    Raises:
        DataError: When the version differs, or a file is missing, changed or unknown, the manifest itself among them.
    """
    again = "install the package again, or give a copy of your own as cases="
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        version, expected = manifest["version"], manifest["files"]
    except (OSError, ValueError, KeyError) as error:
        raise DataError([Fault(str(folder / "manifest.json"), 0, "", f"is no manifest ({error})", again)]) from error
    found = manifest_of(folder)
    faults = [
        Fault(str(folder / name), 0, "", "is not the file that was released", again)
        for name in expected.keys() | found.keys()
        if expected.get(name) != found.get(name)
    ]
    if version != DATA_VERSION:
        problem = f"is of version {version}, the code of {DATA_VERSION}"
        faults.append(Fault(str(folder / "manifest.json"), 0, "version", problem, again))
    if faults:
        raise DataError(faults)


# --- Reading cases ---


def read_cases(path: Path) -> tuple[Case, ...]:
    """All cases of a file, or of every case file in a folder (its `cases/` where it has one).

    Raises:
        DataError: When anything does not fit.
    """
    return tuple(placed_cases(path).values())


def placed_cases(path: Path) -> dict[tuple[str, int], Case]:
    """As `read_cases`, by file and line."""
    return _placed(_rows_at(path), str(path))


def read_hub(name: str) -> tuple[Case, ...]:
    """All cases of a data set that the `datasets` library loads by hub id or path, all its splits.

    Raises:
        DataError: When it cannot be loaded or anything does not fit.
    """
    import datasets

    try:
        loaded = datasets.load_dataset(name)
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        remedy = "give 'bundled', 'paper', 'paper-raw', a file, a folder, or the id of a data set that `datasets` can load"
        raise DataError([Fault(name, 0, "", f"is no file, and no data set could be loaded ({first})", remedy)]) from error
    return cases_of(((f"{name}[{split}]", i, dict(row)) for split in loaded for i, row in enumerate(loaded[split], 1)), name)


def cases_of(rows: Iterable[Row | Fault], where: str) -> tuple[Case, ...]:
    """The cases of some records.

    Args:
        rows: Records of our schema, nested or flat, or of a published workbook; with faults in place of what cannot be read.
        where: Names them in an error.

    Raises:
        DataError: When anything does not fit, or there are none.
    """
    return tuple(_placed(rows, where).values())


def _placed(rows: Iterable[Row | Fault], where: str, *, rules: bool = True) -> dict[tuple[str, int], Case]:
    faults: list[Fault] = []
    good: dict[tuple[str, int], Case] = {}
    for row in rows:
        if isinstance(row, Fault):
            faults.append(row)
            continue
        file, line, record = row
        published = _is_published(record)
        case = _from_published(record, line) if published else parse_case(_nested(record))
        if isinstance(case, Case):
            good[file, line] = case
            case = case_faults(case) if rules and not published else []
        faults += at(case, file, line)
    for i, found in duplicate_ids(list(good.values())):
        faults += at([found], *list(good)[i])
    if not faults and not good:
        faults.append(Fault(where, 0, "", "has no cases", "give one case a line or row"))
    if faults:
        raise DataError(faults)
    return good


def _rows_at(path: Path) -> Iterator[Row | Fault]:
    if path.is_dir():
        folder = path / "cases" if (path / "cases").is_dir() else path
        files = sorted(p for p in folder.iterdir() if _is_read(p))
        if not files:
            yield Fault(str(folder), 0, "", "has no case files", f"put {', '.join(SUFFIXES)} files into it")
        for file in files:
            if file.name in (*_OUR_POOLS, *_PUBLISHED_POOLS):
                yield Fault(str(file), 0, "", "is a pool of distractors among the cases", f"move it to {path / 'distractors'}")
            else:
                yield from rows_of(file, case_columns)
    else:
        yield from rows_of(path, case_columns)


# Says what is wrong with the columns of a table.
ColumnCheck = Callable[[list[str]], Iterable[Fault]]


def rows_of(path: Path, check: ColumnCheck = lambda columns: ()) -> Iterator[Row | Fault]:
    """The records of one file, with faults in place of what cannot be read.

    Args:
        path: A `.jsonl`, `.csv` or `.xlsx` file.
        check: What the columns of a table must satisfy; a table that doesn't is not read.
    """
    name, suffix = str(path), path.suffix.lower()
    readers: dict[str, Callable[[str, bytes, ColumnCheck], Iterator[Row | Fault]]] = {
        ".jsonl": _jsonl,
        ".csv": _csv,
        ".xlsx": _xlsx,
    }
    if suffix not in readers:
        yield Fault(name, 0, "", f"{path.suffix or 'no ending'!r} is not read", f"give one of {', '.join(SUFFIXES)}")
        return
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # the latter for a name that can be no file's
        missing = isinstance(error, FileNotFoundError)
        problem = "is not there" if missing else f"cannot be read ({getattr(error, 'strerror', error)})"
        yield Fault(name, 0, "", problem, _ONE_OF)
        return
    if content.removeprefix(b"\xef\xbb\xbf").strip():
        yield from readers[suffix](name, content, check)
    else:
        yield Fault(name, 0, "", "is empty", "give one case a line or row")


def _jsonl(name: str, content: bytes, check: ColumnCheck) -> Iterator[Row | Fault]:
    # Lines end at \n alone: JSON strings may hold other line separators.
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            yield Fault(name, number, "", f"is not UTF-8 ({error.reason} at byte {error.start + 1})", "save it as UTF-8")
        except (ValueError, RecursionError) as error:
            yield Fault(name, number, "", f"is no complete JSON ({error})", "write one JSON object on one line")
        else:
            if isinstance(record, dict):
                yield name, number, record
            else:
                yield Fault(name, number, "", f"is a JSON {type(record).__name__}", "write one JSON object on one line")


def _csv(name: str, content: bytes, check: ColumnCheck) -> Iterator[Row | Fault]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        yield Fault(name, line, "", f"is not UTF-8 ({error.reason} at byte {error.start + 1})", "save it as UTF-8")
        return
    first = text.lstrip().partition("\n")[0]
    if "," not in first and (separator := next((s for s in ";\t" if s in first), "")):
        yield Fault(name, 1, "", f"has {separator!r} between its columns", "save it with commas")
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from _table(name, ((reader.line_num, row) for row in reader), check)
    except csv.Error as error:
        yield Fault(name, reader.line_num, "", f"is no complete CSV ({error})", "close the quotes")


def _xlsx(name: str, content: bytes, check: ColumnCheck) -> Iterator[Row | Fault]:
    rows = _sheet(name, content)
    if isinstance(rows, Fault):
        yield rows
    else:
        yield from _table(name, enumerate(rows, 1), check)


def _sheet(name: str, content: bytes) -> list[tuple[Any, ...]] | Fault:
    """The rows of a workbook's first sheet."""
    import openpyxl

    try:
        sheet = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True).worksheets[0]
        return list(sheet.iter_rows(values_only=True))
    except Exception as error:  # whatever a damaged part leads to
        return Fault(name, 0, "", f"is no readable workbook ({error})", "save it as .xlsx")


def first_column(path: Path) -> list[tuple[int, str]]:
    """The first column of a workbook without a header: its rows, from 1 to the last that says something, and what they say.

    Raises:
        DataError: When it cannot be read.
    """
    rows = _sheet(str(path), path.read_bytes())
    if isinstance(rows, Fault):
        raise DataError([rows])
    texts = [str(row[0] or "").strip() if row else "" for row in rows]
    while texts and not texts[-1]:
        texts.pop()
    return list(enumerate(texts, 1))


def _table(name: str, rows: Iterable[tuple[int, Iterable[Any]]], check: ColumnCheck) -> Iterator[Row | Fault]:
    header: list[str] = []
    for number, cells in rows:
        values = [cell.strip() if isinstance(cell, str) else cell for cell in cells]
        if not any(v not in (None, "") for v in values):
            continue
        if not header:
            header = [str(v or "") for v in values]
            faults = at([*_repeated(header), *check(header)], name, number)
            yield from faults
            if faults:
                return
        elif len(values) > len(header) and any(v not in (None, "") for v in values[len(header) :]):
            yield Fault(name, number, "", f"has {len(values)} cells under {len(header)} columns", "quote cells with commas")
        else:
            yield name, number, {column: v for column, v in zip(header, values, strict=False) if column}


def _repeated(columns: list[str]) -> Iterator[Fault]:
    for name in sorted({name for name in columns if name and columns.count(name) > 1}):
        yield fault(name, "comes twice among the columns", "name each once")


def case_columns(columns: list[str]) -> Iterator[Fault]:
    """The columns that a table of cases lacks, be it in our schema or in the published form."""
    if any(name in columns for name in PUBLISHED_COLUMNS):
        switched = any(name in columns for name in _PUBLISHED_REVERSED)
        wanted = [name for name in PUBLISHED_COLUMNS if switched or name not in _PUBLISHED_REVERSED]
    else:
        wanted = ["id", "category", "constraint", *_FLAT_TEXTS]
    for name in wanted:
        if name not in columns:
            yield fault(name, "is a missing column", "name the columns in the first row")


_FLAT_TEXTS = (
    "request.solo.leading",
    "request.solo.neutral",
    "request.joint.leading",
    "request.joint.neutral",
    *(f"others.{i}.{part}" for i in range(3) for part in ("relation", "preference")),
)


def _nested(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of our schema from its flat form: dotted columns, and lists of stems with semicolons between.

    What is no column of ours, or stands beside its nested form, stays as it is, for the schema to refuse.
    """
    nested: dict[str, Any] = {}
    for name, cell in record.items():
        first = name.partition(".")[0]
        if _blank(cell) and first in _OPTIONAL:
            continue
        value = "" if _blank(cell) else cell
        if name in _LISTS and isinstance(value, str):
            value = [stem.strip() for stem in value.split(";") if stem.strip()]
        *groups, last = name.split(".") if name in _DOTTED and first not in record else [name]
        inner = nested
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[last] = value
    if "others" in nested and "others" not in record:
        nested["others"] = [other for _, other in sorted(nested["others"].items())]
    return nested


_DOTTED = (*_FLAT_TEXTS, "reversed.constraint", "reversed.preference", "control.solo", "control.joint")
_OPTIONAL = tuple(name for name, field in Case.model_fields.items() if not field.is_required())
_LISTS = ("cues", "avoid", "doubts")


def _blank(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())  # NaN


# --- The published workbooks' columns ---

PUBLISHED_COLUMNS = {
    "User's hard constraint": "constraint",
    "Person B's preferences": "others.0.preference",
    "Person C's strong preferences": "others.1.preference",
    "Person D's super strong preferences": "others.2.preference",
    "Question (user only)": "request.solo.neutral",
    "Biased question (user only)": "request.solo.leading",
    "Question (user and others)": "request.joint.neutral",
    "Biased question (user and others)": "request.joint.leading",
    "Category": "category",
    "Person as User's hard constraint": "reversed.constraint",
    "User as Person B's preferences": "reversed.preference",
}
_PUBLISHED_REVERSED = ("Person as User's hard constraint", "User as Person B's preferences")
PUBLISHED_CATEGORIES = {
    "Severe allergy": "allergy",
    "Severe phobia": "phobia",
    "Physical constraint": "physical_constraint",
    "Trauma triggers": "trauma",
}


def _is_published(record: Mapping[str, Any]) -> bool:
    return any(name in record for name in PUBLISHED_COLUMNS)


def _from_published(record: Mapping[str, Any], row: int) -> Case | list[Fault]:
    """A case from a row of a published workbook, as it stands there; its id tells the row."""
    faults = []
    texts: dict[str, Any] = {}
    for column, field in PUBLISHED_COLUMNS.items():
        value = record.get(column)
        if _blank(value):
            if column not in _PUBLISHED_REVERSED or column in record:
                faults.append(fault(column, "is blank" if column in record else "is a missing column", "give it a text"))
        elif not isinstance(value, str):
            faults.append(fault(column, f"{shown(value)} is no text", "give it a text"))
        else:
            texts[field] = value
    category = texts.get("category")
    if category in PUBLISHED_CATEGORIES:
        texts["category"] = PUBLISHED_CATEGORIES[category]
    elif category is not None and category not in CATEGORIES:
        known = ", ".join([*PUBLISHED_CATEGORIES, *CATEGORIES])
        faults.append(fault("Category", f"{shown(category)} is unknown", f"use one of {known}"))
    if faults:
        return faults
    for i in range(3):
        found = re.match(r"My ((?:closest |best )?[\w-]+)", texts[f"others.{i}.preference"])
        texts[f"others.{i}.relation"] = found[1] if found else "friend"
    return parse_case(_nested({"id": f"{texts['category']}-{row:03d}", **texts}))


# --- Reading distractors ---


def _pools_beside(path: Path) -> Path | None:
    """The folder with the distractors that go with the cases at `path`, if there is one."""
    folder = path if path.is_dir() else path.parent
    if (folder / "distractors").is_dir():
        return folder / "distractors"
    return folder if _has_published_pools(folder) else None


def _has_published_pools(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _PUBLISHED_POOLS)


_OUR_POOLS = ("facts.jsonl", "trivia.jsonl", "preferences.jsonl")
_PUBLISHED_POOLS = ("facts.xlsx", "trivia.xlsx", "prefs.xlsx")


def read_pools(folder: Path) -> Pools:
    """The distractors of a folder, ours or the published ones; blank and repeated entries are left out of the latter.

    Raises:
        DataError: When anything does not fit.
    """
    names = _PUBLISHED_POOLS if _has_published_pools(folder) else _OUR_POOLS
    faults = [
        Fault(str(folder / name), 0, "", "is not there", f"give all of {', '.join(names)}")
        for name in names
        if not (folder / name).is_file()
    ]
    if faults:
        raise DataError(faults)
    if names == _PUBLISHED_POOLS:
        texts = [list(dict.fromkeys(text for _, text in first_column(folder / name) if text)) for name in names]
        return Pools(tuple(texts[0]), tuple(map(Trivia, texts[1])), tuple(texts[2]))

    def read(name: str, fields: tuple[str, ...]) -> list[tuple[str, ...]]:
        entries: dict[tuple[str, ...], None] = {}
        for row in rows_of(folder / name):
            if isinstance(row, Fault):
                faults.append(row)
                continue
            file, line, record = row
            wrong = [f for f in fields if not isinstance(record.get(f), str) or _blank(record.get(f))]
            faults.extend(at([fault(f, f"{shown(record.get(f))} is no text", "give it a text") for f in wrong], file, line))
            if not wrong:
                entry = tuple(record[f] for f in fields)
                if entry in entries:
                    faults.extend(at([fault("", f"repeats {shown(entry[0])}", "drop it")], file, line))
                entries[entry] = None
        return list(entries)

    facts_read = read("facts.jsonl", ("text",))
    trivia_read = read("trivia.jsonl", ("question", "answer"))
    preferences_read = read("preferences.jsonl", ("text",))
    if faults:
        raise DataError(faults)
    return Pools(
        tuple(text for (text,) in facts_read),
        tuple(Trivia(question, answer) for question, answer in trivia_read),
        tuple(text for (text,) in preferences_read),
    )
