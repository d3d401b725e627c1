"""Bad input of every kind: one clear error before any model is called, and nothing left half-written."""

import builtins
import csv
import errno
import hashlib
import inspect
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import inspect_ai._util.download
import openpyxl
import pandas as pd
import pytest
from conftest import Counting
from example import DRAW
from hypothesis import given, settings
from hypothesis import strategies as st
from inspect_ai.log import EvalLog
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from test_sources import RECORD, flat, second

import curate_inspect
from curate_inspect import agreement, paper, sources
from curate_inspect.agreement import read_examples
from curate_inspect.cases import Case, case_faults
from curate_inspect.cli import main
from curate_inspect.dialogue import SCENARIOS, script
from curate_inspect.report import page
from curate_inspect.sources import DataError, bundled_folder, load

# --- Arguments of tasks ---

NO_NUMBERS = (True, 2.5, -1, "", [], (), {}, "many")
NO_SCENARIOS = (0, 6, True, 1.0, None, "", [], (), {}, "1,x", [1, 6], "one")
NO_FILES = ("", " ", None, 3, [], "nowhere.jsonl", "nowhere/at/all", "./notes.txt", "a\0b.jsonl", "x" * 5000 + ".csv")
BAD: dict[str, tuple[Any, ...]] = {
    "cases": NO_FILES,
    "examples": NO_FILES,
    "scenarios": NO_SCENARIOS,
    "scenario": (*NO_SCENARIOS, "1,2", [1, 2]),
    "categories": ("allergies", "Allergy", "", [], None, 1, True, ["trauma", "joy"], "trauma,"),
    "variants": ("sideways", "control", "", [], None, 1, True, ["guided", "misguided"]),
    "per_category": (*NO_NUMBERS, 0, 10_000),
    "trivia_turns": (*NO_NUMBERS, None, 5_000),
    "seed": (*NO_NUMBERS, None),
    "share_prefix": (0, 1, None, "", [], "maybe"),
    "scorer": ("vibes", "", [], None, 1, True, "judge,mention", ["judge", "mention"]),
}


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        pytest.param(name, parameter, value, id=f"{name}-{parameter}-{value!r:.20}")
        for name in curate_inspect.__all__
        for parameter in inspect.signature(getattr(curate_inspect, name)).parameters
        for value in BAD[parameter]
    ],
)
def test_arguments_that_do_not_fit(name: str, parameter: str, value: Any) -> None:
    with pytest.raises(ValueError) as caught:
        getattr(curate_inspect, name)(**{parameter: value})
    said = str(caught.value)
    if isinstance(caught.value, DataError):
        (fault,) = caught.value.faults
        assert value.strip() and Path(value).name in fault.file and fault.remedy
    else:
        assert parameter in said and (f"{parameter}={value!r}" in said or str(value) in said)
        assert any(what in said for what in ("whole number", "choose", "give", "true nor false", "has: 85 in", "lower"))


# --- Files of cases ---

ODD_TEXT = st.one_of(
    st.text(max_size=20),
    st.text("\0\x07\t\n\r\x1b\x7f\u200b\u2028\ufeff\ud800 ,;\"'.?a", max_size=12),
    st.sampled_from(["x" * 100_000, "nan", "NaN", "null", "[]", "=1+1", "#N/A", "allergy-901", "phobia"]),
)
ODD = st.one_of(
    ODD_TEXT,
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.sampled_from([[], {}, [None], [[]], [{}], {"a": {}}, ["throat", 1], [["x"]]]).map(deepcopy),
)
OURS = ["id", "category", "request", "solo", "leading", "others", "relation", "others.0.relation", "others.3.preference"]
NAMES = st.one_of(st.sampled_from([*OURS, "request.solo.leading", "User's hard constraint", "Category"]), ODD_TEXT)


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a record with each of its keys."""
    if not isinstance(value, (dict, list)):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [place for key in keys for place in places_in(value[key])]


def spoil(record: dict[str, Any], data: st.DataObject, values: st.SearchStrategy[Any] = ODD) -> dict[str, Any]:
    """The record with one to three changes anywhere in it."""
    record = json.loads(json.dumps(record))
    for _ in range(data.draw(st.integers(1, 3))):
        places = places_in(record)
        if not places:
            break
        container, key = places[data.draw(st.integers(0, len(places) - 1))]
        match data.draw(st.sampled_from(["replace", "delete", "rename", "add", "nest"])):
            case "replace":
                container[key] = data.draw(values)
            case "delete":
                del container[key]
            case "rename" if isinstance(container, dict):
                container[data.draw(NAMES)] = container.pop(key)
            case "add" if isinstance(container, dict):
                container[data.draw(NAMES)] = data.draw(values)
            case "add":
                container.append(data.draw(values))
            case "nest" if values is ODD:
                container[key] = data.draw(st.sampled_from([lambda v: [v], lambda v: {"0": v}, lambda v: [v, v]]))(container[key])
    return record


def spoil_bytes(content: bytes, data: st.DataObject) -> bytes:
    """The content as it is, with other line ends, a mark before it, cut, or with some bytes changed."""
    at = round(data.draw(st.floats(0, 1)) * len(content))
    odd = st.sampled_from(
        [b"\xff", b"\xc3", b"\0", b'"', b",", b";", b"\n", b"\r", b"{", b"[" * 2000, b"\xef\xbb\xbf", b"'", b"\\"]
    )
    match data.draw(st.sampled_from(["keep", "crlf", "mark", "cut", "insert", "replace", "blank lines", "utf-16"])):
        case "crlf":
            return content.replace(b"\n", b"\r\n")
        case "mark":
            return b"\xef\xbb\xbf" + content
        case "cut":
            return content[:at]
        case "insert":
            return content[:at] + data.draw(odd) + content[at:]
        case "replace":
            return content[:at] + data.draw(odd) + content[at + 1 :]
        case "blank lines":
            return content.replace(b"\n", b"\n \n\n")
        case "utf-16":
            return content.decode(errors="replace").encode("utf-16")
    return content


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Paths that were not used before: a source is read once in a process."""
    folder, numbers = tmp_path_factory.mktemp("spoilt"), count()
    return lambda suffix: folder / f"{next(numbers)}.{suffix}"


WHOLE_FILE = ("is empty", "has no cases", "has no examples", "is no readable workbook")


def check_faults(error: DataError, path: Path) -> None:
    assert error.faults
    for fault in error.faults:
        assert fault.file == str(path) and fault.problem and fault.remedy
        assert fault.line > 0 or fault.problem.startswith(WHOLE_FILE), fault
        assert len(str(fault).splitlines()) == 1 and len(str(fault)) < 600


def check(path: Path) -> None:
    """Either every record fits and can be played, or the error says where what is wrong."""
    try:
        source = load(str(path))
    except DataError as error:
        check_faults(error, path)
        return
    assert source.cases
    for case in source.cases:
        assert Case.model_validate(case.model_dump()) == case
        assert case_faults(case) == []
        assert all(turn.text for scenario in SCENARIOS for turn in script(case, scenario, "baseline", DRAW))


def dumped(*records: Any) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode(errors="surrogatepass")


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_jsonl_is_read_whole_or_refused(fresh: Callable[[str], Path], data: st.DataObject) -> None:
    path = fresh(data.draw(st.sampled_from(["jsonl", "JSONL"])))
    path.write_bytes(spoil_bytes(dumped(spoil(RECORD, data), second()), data))
    check(path)


TEXTS = st.one_of(ODD_TEXT, st.just("a; b; c"))
CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.floats(), st.dates(), st.times(),
    TEXTS.map(lambda text: ILLEGAL_CHARACTERS_RE.sub("", text.encode(errors="ignore").decode())[:30_000]),
)  # fmt: skip


def spoilt_table(data: st.DataObject, values: st.SearchStrategy[Any]) -> list[list[Any]]:
    """A header and two records, some of these rows spoilt."""
    header, *rows = dict.fromkeys(flat(RECORD)), flat(RECORD), flat(second())
    spoilt = [spoil(row, data, values) if data.draw(st.booleans()) else row for row in rows]
    if data.draw(st.booleans()):
        header = spoil(header, data, values)
    return [list(header), *(list(row.values()) for row in spoilt)]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_csv_is_read_whole_or_refused(fresh: Callable[[str], Path], data: st.DataObject) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=data.draw(st.sampled_from(",,,;\t"))).writerows(spoilt_table(data, TEXTS))
    path = fresh("csv")
    path.write_bytes(spoil_bytes(text.getvalue().encode(errors="surrogatepass"), data))
    check(path)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_workbook_is_read_whole_or_refused(fresh: Callable[[str], Path], data: st.DataObject) -> None:
    book = openpyxl.Workbook()
    for row in spoilt_table(data, CELLS):
        book.active.append([ILLEGAL_CHARACTERS_RE.sub("", cell) if isinstance(cell, str) else cell for cell in row])
    path = fresh("xlsx")
    book.save(path)
    content = path.read_bytes()
    if data.draw(st.booleans()):
        at = round(data.draw(st.floats(0, 1)) * len(content))  # its length depends on the time
        spoilt = [content[:at], content[:at] + content[at + 1 :], content[:at] + b"\xff" * 8 + content[at + 8 :]]
        path.write_bytes(data.draw(st.sampled_from(spoilt)))
    check(path)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_examples_are_read_whole_or_refused(fresh: Callable[[str], Path], data: st.DataObject) -> None:
    record = {"id": "a", "case": "allergy-001", "asked": "solo", "reply": "Yes.", "human_1": 0, "human_2": 1}
    other = {
        "constraint": "I am ill.",
        "request": "Should I?",
        "response": "No.",
        "rating": 2,
        "category": "trauma",
        "hazard": "x",
    }
    path = fresh("jsonl")
    path.write_bytes(spoil_bytes(dumped(spoil(record, data), spoil(other, data)), data))
    try:
        samples = read_examples(str(path), "bundled")
    except DataError as error:
        check_faults(error, path)
        return
    for sample in samples:
        texts = (sample.metadata[name] for name in ("constraint", "request", "category", "difficulty"))
        assert all(isinstance(text, str) for text in texts)
        assert sample.target and set(sample.target) <= {"pass", "ambiguous", "fail"}


# --- Folders and disks ---


@pytest.mark.parametrize("given", ["nowhere", "a file", "~nobody-of-this-name/papers"])
def test_a_folder_of_published_files_that_is_none(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CURATE_INSPECT_PAPER_DIR", given)
    for arguments in ({"cases": "paper"}, {"cases": "paper-raw"}):
        with pytest.raises(DataError) as caught:
            curate_inspect.curate(**arguments)
        assert len(caught.value.faults) == 5
        assert all("cannot be read" in f.problem and "unset CURATE_INSPECT_PAPER_DIR" in f.remedy for f in caught.value.faults)
    with pytest.raises(DataError, match="human_baseline"):
        curate_inspect.judge_agreement(examples="paper")
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


def test_a_cache_of_inspect_that_cannot_be(
    run: Callable[..., list[EvalLog]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "a file" / "below"))
    model = Counting()
    (log,) = run(curate_inspect.curate(per_category=1), model.model)
    assert log.error
    assert re.search(r"a file/below.*; set INSPECT_CACHE_DIR to a folder that can be written, or give", log.error.message)
    assert not model.calls
    (log,) = run(curate_inspect.curate(per_category=1, share_prefix=False), model.model)
    assert log.status == "success"


@pytest.fixture
def small_download(monkeypatch: pytest.MonkeyPatch) -> None:
    """One small file is all that was published, and is there without a network."""

    @contextmanager
    def stream(method: str, url: str, **kwargs: Any) -> Iterator[httpx.Response]:
        yield httpx.Response(200, content=b"published", request=httpx.Request(method, url))

    monkeypatch.setattr(httpx, "stream", stream)
    monkeypatch.setattr(paper, "FILES", {"inputs.xlsx": hashlib.sha256(b"published").hexdigest()})
    monkeypatch.delenv("CURATE_INSPECT_PAPER_DIR", raising=False)


@pytest.mark.usefixtures("small_download")
def test_a_cache_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("CURATE_INSPECT_CACHE", str(tmp_path / "a file" / "below"))
    assert main(["fetch"]) == 1
    said = capsys.readouterr().err
    assert f"cannot be stored in {paper.cache_folder()} (Not a directory); set CURATE_INSPECT_CACHE to a folder that" in said
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


@pytest.mark.usefixtures("small_download")
def test_a_disk_that_is_full_during_a_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CURATE_INSPECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(inspect_ai._util.download, "open", FullDisk, raising=False)
    assert main(["fetch"]) == 1
    assert "(No space left on device); set CURATE_INSPECT_CACHE to a folder that can be written" in capsys.readouterr().err
    assert list(paper.cache_folder().iterdir()) == []


class FullDisk(io.FileIO):
    """A file that takes half of what is written to it."""

    def write(self, content: Any) -> int:
        super().write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


OPEN = open


def report(out: Path, text: str) -> None:
    page.write(out, text, text, [], pd.DataFrame({"text": [text]}), pd.DataFrame({"text": [text]}))


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("writes", range(4))
def test_a_disk_that_is_full_during_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """Whichever write fails, an earlier report stays whole, and where there was none there is none."""
    report(tmp_path / "old", "Old.")
    old = contents(tmp_path / "old")
    assert set(old) == {"report.html", "report.md", "results.csv", "disagreements.csv"}
    for name in ("old", "new"):
        written = count()

        def opened(path: Any, mode: str = "r", *args: Any, written: Iterator[int] = written, **kwargs: Any) -> Any:
            if "w" in mode and next(written) == writes:
                return io.TextIOWrapper(FullDisk(path, "w"), encoding="utf-8", write_through=True)
            return OPEN(path, mode, *args, **kwargs)

        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
            patch.setattr(io, "open", opened)
            patch.setattr(builtins, "open", opened)
            report(tmp_path / name, "New.")
    assert contents(tmp_path / "old") == old
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("below", [".", "below", "below/that"])
def test_a_report_that_cannot_be_written_is_refused_early(tmp_path: Path, capsys: pytest.CaptureFixture[str], below: str) -> None:
    """Before any log is read: there is none."""
    (tmp_path / "a file").touch()
    out = tmp_path / "a file" / below
    assert main(["report", str(tmp_path / "no logs"), "--out", str(out)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"--out {out}: {tmp_path / 'a file'} is no folder; name another folder"
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


def test_a_report_into_a_read_only_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the system says of one; root, as whom tests may run, could write into it all the same."""
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    assert main(["report", "no logs", "--out", str(tmp_path / "out")]) == 1
    assert f"{tmp_path} cannot be written" in capsys.readouterr().err


# --- The bundled data ---


@pytest.fixture
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the bundled data in place of them."""
    shutil.copytree(bundled_folder(), tmp_path / "data")
    monkeypatch.setattr(sources, "_LOADED", {})
    monkeypatch.setattr(sources, "bundled_folder", lambda: tmp_path / "data")
    monkeypatch.setattr(agreement, "bundled_folder", lambda: tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize(
    "name", ["cases/trauma.jsonl", "distractors/facts.jsonl", "judge_examples.jsonl", "published_results.csv"]
)
def test_a_changed_byte_is_told(own_data: Path, name: str) -> None:
    content = bytearray((own_data / name).read_bytes())
    content[len(content) // 2] ^= 1
    (own_data / name).write_bytes(content)
    for make in (curate_inspect.curate, curate_inspect.judge_agreement):
        with pytest.raises(DataError) as caught:
            make()
        (fault,) = caught.value.faults
        assert (fault.file, fault.problem) == (str(own_data / name), "is not the file that was released")
    with pytest.raises(DataError, match="is not the file that was released"):
        read_examples("bundled", "nowhere.jsonl")


@pytest.mark.parametrize("name", ["extra.JSONL", "extra.csv", "extra.xlsx"])
def test_a_file_that_was_not_released_is_told(own_data: Path, name: str) -> None:
    (own_data / "cases" / name).write_bytes(b"{}")
    with pytest.raises(DataError) as caught:
        curate_inspect.curate()
    assert [fault.file for fault in caught.value.faults] == [str(own_data / "cases" / name)]


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"\xff"])
def test_a_broken_manifest_is_told(own_data: Path, content: bytes) -> None:
    (own_data / "manifest.json").write_bytes(content)
    with pytest.raises(DataError, match=r"manifest.json: is no manifest .*; install the package again"):
        curate_inspect.curate()
