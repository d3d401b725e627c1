"""Reading cases: every form that is accepted, and every fault that is reported."""

import csv
import json
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from conftest import PAPER, needs_paper
from example import CASE

from curate_inspect.cases import Case
from curate_inspect.cli import main
from curate_inspect.sources import DataError, bundled_folder, load, manifest_of, read_cases, verify_manifest

RECORD: dict[str, Any] = CASE.model_dump(mode="json", exclude={"doubts"})


def second(**changes: Any) -> dict[str, Any]:
    """Another good record, with some fields changed; None takes a field away."""
    record = json.loads(json.dumps(RECORD)) | {"id": "allergy-901"} | changes
    return {key: value for key, value in record.items() if value is not None}


def flat(record: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """The record as one row of a table."""
    out: dict[str, str] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            out |= flat(value, f"{prefix}{key}.")
        elif key == "others":
            for i, other in enumerate(value):
                out |= flat(other, f"others.{i}.")
        else:
            out[prefix + key] = "; ".join(value) if isinstance(value, list) else value
    return out


def write_jsonl(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


def write_csv(path: Path, *rows: dict[str, str], encoding: str = "utf-8", newline: str = "\n") -> Path:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator=newline)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_xlsx(path: Path, *rows: dict[str, Any]) -> Path:
    book = openpyxl.Workbook()
    book.active.append(list(rows[0]))
    for row in rows:
        book.active.append(list(row.values()))
    book.save(path)
    return path


def faults_of(path: Path) -> list[str]:
    with pytest.raises(DataError) as caught:
        load(str(path))
    return [str(fault).removeprefix(str(path)) for fault in caught.value.faults]


# --- What is accepted ---


@pytest.mark.parametrize("form", ["jsonl", "csv", "xlsx", "JSONL", "Csv", "XLSX"])
def test_the_same_cases_from_every_form(tmp_path: Path, form: str) -> None:
    records = [RECORD, second()]
    path = tmp_path / f"cases.{form}"
    if form.lower() == "jsonl":
        write_jsonl(path, *records)
    else:
        (write_csv if form.lower() == "csv" else write_xlsx)(path, *map(flat, records))
    assert load(str(path)).cases == (CASE, CASE.model_copy(update={"id": "allergy-901"}))


def test_a_folder_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    write_jsonl(tmp_path / "cases" / "a.jsonl", RECORD)
    write_csv(tmp_path / "cases" / "b.csv", flat(second()))
    assert [case.id for case in load(str(tmp_path)).cases] == ["allergy-900", "allergy-901"]


def test_bom_crlf_blank_lines_and_odd_separators_are_no_trouble(tmp_path: Path) -> None:
    hazard = "One line\u2028and more."
    lines = [json.dumps(RECORD), "", json.dumps(second(hazard=hazard), ensure_ascii=False)]
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert read_cases(path)[1].hazard == hazard
    table = write_csv(tmp_path / "cases.csv", flat(RECORD), encoding="utf-8-sig", newline="\r\n")
    assert read_cases(table) == (CASE,)


def test_optional_fields_may_be_missing_or_blank(tmp_path: Path) -> None:
    needed = {k: v for k, v in RECORD.items() if k in ("id", "category", "constraint", "request", "others")}
    (case,) = read_cases(write_jsonl(tmp_path / "cases.jsonl", needed))
    assert (case.hazard, case.cues, case.reversed) == (None, (), None)
    row = flat(RECORD) | {"hazard": "", "cues": "", "avoid": "", "link": "", "control.solo": "", "control.joint": ""}
    (case,) = read_cases(write_csv(tmp_path / "cases.csv", row))
    assert (case.hazard, case.cues, case.avoid, case.control) == (None, (), (), None)
    assert case.reversed == CASE.reversed


def test_the_pools_beside_the_cases_are_used(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "cases.jsonl", RECORD)
    assert load(str(tmp_path / "cases.jsonl")).pools == load("bundled").pools
    folder = tmp_path / "own"
    (folder / "distractors").mkdir(parents=True)
    write_jsonl(folder / "cases.jsonl", RECORD)
    write_jsonl(folder / "distractors" / "facts.jsonl", {"text": "I hum."})
    write_jsonl(folder / "distractors" / "trivia.jsonl", *({"question": f"{i}?", "answer": f"{i}."} for i in range(3)))
    write_jsonl(folder / "distractors" / "preferences.jsonl", *({"text": f"{name} hums."} for name in "ABC"))
    assert load(str(folder)).pools.facts == ("I hum.",)


def test_a_data_set_from_a_local_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    pytest.importorskip("datasets")
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    monkeypatch.setattr(datasets, "load_dataset", lambda name: {"train": datasets.Dataset.from_list([RECORD, second()])})
    assert [case.id for case in load("someone/cases").cases] == ["allergy-900", "allergy-901"]


def test_the_version_of_own_data_follows_their_content(tmp_path: Path) -> None:
    versions = {load(str(write_jsonl(tmp_path / f"{i}.jsonl", second(hazard=f"It is {i}.")))).version for i in range(3)}
    assert len(versions) == 3 and all(version.startswith("sha256:") for version in versions)


# --- What is reported ---


def test_all_faults_at_once_with_place_and_remedy(tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "cases.jsonl",
        second(category="allergies"),
        second(constraint=None),
        second(others=RECORD["others"][:2]),
        second(cues=12),
        second(hazard=["?"]),
        second(colour="red"),
        RECORD,
        RECORD,
    )
    with path.open("a", encoding="utf-8") as file:
        file.write('[1]\n{"id": "allergy-9')
    assert faults_of(path) == [
        ":1: category: 'allergies' is not allowed; use 'allergy', 'phobia', 'physical_constraint' or 'trauma'",
        ":2: constraint: is missing; give it a text",
        ":3: others: fewer than three; give exactly three other people",
        ":4: cues: 12 is no list; give a list",
        ":5: hazard: ('?',) is no text; give it a text",
        ":6: colour: is no field of a case; known are " + ", ".join(Case.model_fields),
        ":8: id: 'allergy-900' is taken by record 1; give every case an id of its own",
        ":9: is a JSON list; write one JSON object on one line",
        ":10: is no complete JSON (Unterminated string starting at: line 1 column 8 (char 7)); write one JSON object on one line",
    ]


def test_faults_of_tables(tmp_path: Path) -> None:
    good = flat(RECORD)
    without = {key: value for key, value in good.items() if key != "request.solo.neutral"}
    assert faults_of(write_csv(tmp_path / "missing.csv", without)) == [
        ":1: request.solo.neutral: is a missing column; name the columns in the first row"
    ]
    blank = write_xlsx(tmp_path / "blank.xlsx", good, good | {"id": "allergy-901", "constraint": float("nan")})
    assert faults_of(blank) == [":3: constraint: is blank; give it a text"]
    number = write_xlsx(tmp_path / "number.xlsx", good | {"constraint": 12})
    assert faults_of(number) == [":2: constraint: 12 is no text; give it a text"]
    unclosed = tmp_path / "unclosed.csv"
    unclosed.write_text(",".join(good) + '\n"allergy-900', encoding="utf-8")
    assert "is no complete CSV" in faults_of(unclosed)[0]
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"PK nonsense")
    assert "is no readable workbook" in faults_of(broken)[0]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("empty.jsonl", b"", "is empty"),
        ("blank.csv", b"\n\n", "is empty"),
        ("header.csv", ",".join(flat(RECORD)).encode(), "has no cases"),
        ("latin.jsonl", '{"id": "é"}'.encode("latin-1"), "is not UTF-8"),
        ("cases.txt", b"x", "'.txt' is not read"),
    ],
)
def test_unusable_files(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert any(problem in fault for fault in faults_of(tmp_path / name))


def test_workbooks_and_tables_that_are_damaged_within(tmp_path: Path) -> None:
    good = write_xlsx(tmp_path / "good.xlsx", flat(RECORD))
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(tmp_path / "cut.xlsx", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content[: len(content) // 2] if "sheet1" in name else content)
    assert "is no readable workbook" in faults_of(tmp_path / "cut.xlsx")[0]
    odd = write_csv(tmp_path / "odd.csv", flat(RECORD) | {"hazard": "One\u2028two\x85three."})
    assert read_cases(odd)[0].hazard == "One\u2028two\x85three."


def test_a_table_with_other_separators_has_one_fault(tmp_path: Path) -> None:
    for name, separator in (("a.csv", ";"), ("b.csv", "\t")):
        (tmp_path / name).write_text(separator.join(flat(RECORD)) + "\n", encoding="utf-8")
        assert faults_of(tmp_path / name) == [f":1: has {separator!r} between its columns; save it with commas"]


def test_what_only_resembles_the_schema_is_refused(tmp_path: Path) -> None:
    by_number = dict(enumerate(RECORD["others"]))
    path = write_jsonl(
        tmp_path / "cases.jsonl",
        second(others=by_number),
        second(**{"id": "allergy-902", "request.solo.leading": "Should I?"}),
        second(**{"id": "allergy-903", "others.3.relation": "niece"}),
        second(**{"id": "allergy-904", "odd\nname": 1}),
    )
    others, *unknown = faults_of(path)
    assert others.startswith(":1: others: {") and others.endswith(" is no list; give a list")
    names = ["request.solo.leading", "others.3.relation", "odd\\nname"]
    assert [fault.partition(" is no field of a case")[0] for fault in unknown] == [
        f":{line}: {name}:" for line, name in enumerate(names, 2)
    ]


@pytest.mark.parametrize("name", ["allergy,1", "allergy-*", "allergy-?", "allergy-[1]", "allergy\x07", "a\nb"])
def test_ids_that_cannot_be_picked(tmp_path: Path, name: str) -> None:
    (fault,) = faults_of(write_jsonl(tmp_path / "cases.jsonl", RECORD, second(id=name)))
    assert fault.startswith(f":2: id: {name!r} has ") and fault.endswith("so that --sample-id finds it")


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting_is_refused(tmp_path: Path, opening: str) -> None:
    """Around the depth that Python can follow, and beyond it."""
    closing = {"[": "]", '{"a":': "}"}[opening]
    deep = [f"{opening * depth}1{closing * depth}" for depth in (5, *range(700, 1000), 100_000)]
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(second(hazard=0)).replace(": 0", f": {value}") + "\n" for value in deep), encoding="utf-8")
    faults = faults_of(path)
    assert len(faults) == len(deep) and max(map(len, faults)) < 200


def test_files_and_folders_that_are_not_there(tmp_path: Path) -> None:
    assert "is not there" in faults_of(tmp_path / "nowhere.jsonl")[0]
    assert "has no case files" in faults_of(tmp_path)[0]
    (tmp_path / "folder.jsonl").mkdir()
    assert "has no case files" in faults_of(tmp_path / "folder.jsonl")[0]


def test_a_data_set_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")

    def refuse(name: str) -> None:
        raise ConnectionError("no network\nand more")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(
        DataError, match=r"nobody/cases: is no file, and no data set could be loaded \(no network\); give 'bundled', 'paper'"
    ):
        load("nobody/cases")


# --- Pools ---


@pytest.mark.parametrize("pool", ["facts.jsonl", "prefs.xlsx"])
def test_pools_among_cases_and_pools_without_their_like(tmp_path: Path, pool: str) -> None:
    write_jsonl(tmp_path / "cases.jsonl", RECORD)
    (tmp_path / pool).write_bytes(b"anything")
    assert faults_of(tmp_path)[0] == f"/{pool}: is a pool of distractors among the cases; move it to {tmp_path / 'distractors'}"
    (tmp_path / "distractors").mkdir()
    (tmp_path / pool).rename(tmp_path / "distractors" / pool)
    faults = faults_of(tmp_path)
    assert len(faults) == 2 and all("is not there; give all of facts." in fault for fault in faults)


def test_published_pools_beside_a_workbook(tmp_path: Path) -> None:
    path = write_xlsx(tmp_path / "cases.xlsx", flat(RECORD))
    names = ["facts.xlsx", "trivia.xlsx", "prefs.xlsx"]
    for name in names:
        book = openpyxl.Workbook()
        for text in (f" {name} one ", None, f"{name} two", f"{name} one"):
            book.active.append([text])
        book.save(tmp_path / name)
    pools = load(str(path)).pools
    texts = [pools.facts, tuple(trivia.question for trivia in pools.trivia), pools.preferences]
    assert texts == [(f"{name} one", f"{name} two") for name in names]
    (tmp_path / "prefs.xlsx").write_bytes(b"PK nonsense")
    (tmp_path / "cases.xlsx").rename(tmp_path / "again.xlsx")
    with pytest.raises(DataError, match=r"prefs.xlsx: is no readable workbook"):
        load(str(tmp_path / "again.xlsx"))


# --- The command ---


def test_check_says_where_the_faults_of_a_set_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_jsonl(tmp_path / "cases.jsonl", RECORD, second(avoid=["nuts"]))
    assert main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    assert f"{path}:2: avoid: has 1 stems; give 8 to 16" in out
    assert all(line.startswith(f"{path}:2: ") for line in out.splitlines()[:-1])
    assert out.splitlines()[-1].startswith("2 cases, ")
    path.unlink()
    assert main(["check", str(path)]) == 1
    assert f"{path}: is not there" in capsys.readouterr().err


# --- The bundled data ---


def test_the_manifest_is_checked(tmp_path: Path) -> None:
    verify_manifest(bundled_folder())
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "a.jsonl").write_text("{}\n", encoding="utf-8")
    manifest = {"version": load("bundled").version, "files": manifest_of(tmp_path) | {"gone.jsonl": "0"}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (tmp_path / "cases" / "a.jsonl").write_text("{} \n", encoding="utf-8")
    with pytest.raises(DataError, match="2 faults") as caught:
        verify_manifest(tmp_path)
    assert [fault.problem for fault in caught.value.faults] == ["is not the file that was released"] * 2


# --- The published workbooks ---


@needs_paper
@pytest.mark.parametrize(("name", "rows", "reversed_texts"), [("inputs.xlsx", 336, 0), ("inputs_80.xlsx", 80, 80)])
def test_the_published_workbooks(name: str, rows: int, reversed_texts: int) -> None:
    source = load(str(PAPER / name))
    assert len(source.cases) == rows
    assert {case.category for case in source.cases} == {"allergy", "phobia", "physical_constraint", "trauma"}
    assert sum(case.reversed is not None for case in source.cases) == reversed_texts
    # Duplicates and the blank preference cannot be drawn.
    assert [len(pool) for pool in (source.pools.facts, source.pools.preferences)] == [223, 599]
    assert len(source.pools.trivia) == len({trivia.question for trivia in source.pools.trivia})


@needs_paper
def test_faults_in_a_published_workbook(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(PAPER / "inputs.xlsx")
    book.active["A5"], book.active["I6"] = None, "Severe weather"
    book.save(tmp_path / "inputs.xlsx")
    assert faults_of(tmp_path / "inputs.xlsx") == [
        ":5: User's hard constraint: is blank; give it a text",
        ":6: Category: 'Severe weather' is unknown; use one of Severe allergy, Severe phobia, Physical constraint, "
        "Trauma triggers, allergy, phobia, physical_constraint, trauma",
    ]


def test_a_local_folder_that_datasets_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf")
    folder = tmp_path / "set"
    folder.mkdir()
    datasets.Dataset.from_list([RECORD, second()]).to_parquet(str(folder / "train.parquet"))
    assert load(str(folder)).cases == (CASE, CASE.model_copy(update={"id": "allergy-901"}))
