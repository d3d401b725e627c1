"""The bundled data: every rule that a program can check, over everything."""

import csv
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import SHARED

from curate_inspect.cases import CATEGORIES, case_faults, has_stem, missing, set_faults, texts
from curate_inspect.dialogue import SCENARIOS, script
from curate_inspect.distractors import draw
from curate_inspect.sources import bundled_folder, load, manifest_of, verify_manifest

CASES = load().cases
POOLS = load().pools
DATA = bundled_folder()


def test_every_case_is_complete_and_without_faults() -> None:
    assert {case.id: missing(case) for case in CASES if missing(case)} == {}
    assert [str(fault) for case in CASES for fault in case_faults(case)] == []
    assert [f"{CASES[i].id} {fault}" for i, fault in set_faults(CASES)] == []


def test_ids_are_numbered_within_their_category() -> None:
    for category in CATEGORIES:
        ids = [case.id for case in CASES if case.category == category]
        assert ids == [f"{category}-{i:03d}" for i in range(1, len(ids) + 1)]


@pytest.mark.parametrize("category", CATEGORIES)
def test_sizes_and_shares(category: str) -> None:
    cases = [case for case in CASES if case.category == category]
    assert len(cases) == 85
    assert sum(case.link == "inferred" for case in cases) >= 0.4 * len(cases)


@pytest.mark.parametrize("epochs", [range(1, 201)])
def test_no_draw_hints_at_the_constraint(epochs: range) -> None:
    """200 seeded draws of every case: no `avoid` stem, no repeat, no blank."""
    for case in CASES:
        for epoch in epochs:
            drawn = draw(POOLS, case, seed=7, epoch=epoch, trivia_turns=3)
            said = [drawn.facts, *drawn.preferences, *(trivia.question for trivia in drawn.trivia)]
            assert len(set(said)) == len(said) == 7 and all(text.strip() for text in said)
            answers = [trivia.answer for trivia in drawn.trivia]
            assert not any(has_stem(text, case.avoid) for text in said + answers), (case.id, epoch)


def test_cues_never_occur_in_the_dialogue_unless_the_constraint_is_said() -> None:
    for case in CASES:
        for epoch in range(1, 11):
            drawn = draw(POOLS, case, seed=0, epoch=epoch, trivia_turns=3)
            for scenario in SCENARIOS:
                said = " ".join(turn.text for turn in script(case, scenario, "untold", drawn))
                assert not has_stem(said, case.cues), (case.id, scenario, epoch, has_stem(said, case.cues))
            controls = " ".join(text for field, text in texts(case).items() if field.startswith("control"))
            assert not has_stem(controls, case.cues), case.id


def test_the_pools() -> None:
    assert len(POOLS.facts) >= 250 and len(POOLS.trivia) >= 700 and len(POOLS.preferences) >= 600
    assert all(re.fullmatch(r"I\b[^?]*\.", text) and text.count(",") >= 2 for text in POOLS.facts)
    assert all(trivia.question.endswith("?") and trivia.answer.endswith((".", '."')) for trivia in POOLS.trivia)
    lines = (DATA / "distractors" / "preferences.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert all(record["text"].startswith(record["name"] + " ") for record in records)
    assert max(Counter(record["name"] for record in records).values()) == 1
    questions = Counter(frozenset(re.findall(r"\w+", trivia.question.lower())) for trivia in POOLS.trivia)
    assert max(questions.values()) == 1


def test_every_case_leaves_enough_to_draw_from() -> None:
    for case in CASES:
        draw(POOLS, case, seed=0, epoch=1, trivia_turns=100)


def test_the_review_covers_every_case_and_question() -> None:
    with (DATA / "review.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    questions = ("harm", "ordinary", "not_therapeutic", "control_safe")
    assert {(row["case"], row["question"]) for row in rows} == {(case.id, question) for case in CASES for question in questions}
    for question in questions:
        counted = [(int(row["yes_count"]), int(row["readers"])) for row in rows if row["question"] == question]
        assert all(readers >= 2 and readers - yes < 2 for yes, readers in counted)
        assert sum(yes for yes, _ in counted) >= 0.98 * sum(readers for _, readers in counted)


def test_the_judge_examples() -> None:
    examples = [json.loads(line) for line in (DATA / "judge_examples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(examples) >= 160
    assert len({example["id"] for example in examples}) == len(examples)
    ids = {case.id for case in CASES}
    assert all(example["case"] in ids and example["asked"] in ("solo", "joint") for example in examples)
    ratings = Counter(example["rating"] for example in examples)
    assert set(ratings) == {0, 1, 2} and min(ratings.values()) >= 0.25 * len(examples)
    categories = Counter(example["case"].split("-")[0] for example in examples)
    assert min(categories[category] for category in CATEGORIES) >= 0.2 * len(examples)
    hard = sum(example["difficulty"] != "plain" for example in examples)
    assert 0.4 <= hard / len(examples) <= 0.6
    assert all((example["factor"] is not None) == (example["rating"] == 1) for example in examples)


def test_the_manifest_names_every_file() -> None:
    verify_manifest(DATA)
    assert set(manifest_of(DATA)) >= {f"cases/{category}.jsonl" for category in CATEGORIES}


def test_the_card_is_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    for name, count in (("cases", len(CASES)), ("facts", len(POOLS.facts)), ("trivia", len(POOLS.trivia))):
        loaded = datasets.load_dataset(str(DATA), name, split="train", cache_dir=str(tmp_path))
        assert len(loaded) == count


@pytest.mark.skipif(not SHARED.is_dir(), reason="the published files do not lie beside this checkout")
def test_nothing_repeats_the_published_wording() -> None:
    tool = SHARED / "tools" / "check_originality.py"
    result = subprocess.run([sys.executable, str(tool), str(DATA)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
