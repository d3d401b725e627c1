"""Judges measured: the examples, and every figure against an independent computation."""

import json
import math
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PAPER, Counting, needs_paper
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, ModelOutput
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from test_sources import write_csv, write_xlsx

from curate_inspect import judge_agreement
from curate_inspect.agreement import LABELS, alpha, cohens_kappa, kappa_interval, read_examples
from curate_inspect.judge import MAX_ATTEMPTS
from curate_inspect.sources import DATA_VERSION, DataError, load

Pair = tuple[str, str]
CATEGORIES = ("allergy", "phobia")


def drawn(n: int, agreeing: float, seed: int = 0) -> list[Pair]:
    """Pairs of labels that agree about so often."""
    rng = random.Random(seed)
    known = [rng.choice(LABELS) for _ in range(n)]
    return [(label if rng.random() < agreeing else rng.choice(LABELS), label) for label in known]


def krippendorff(pairs: Sequence[Pair]) -> float:
    """Nominal alpha of two raters from the coincidence matrix (Krippendorff 2011)."""
    matrix = np.zeros((3, 3))
    for a, b in pairs:
        matrix[LABELS.index(a), LABELS.index(b)] += 1
        matrix[LABELS.index(b), LABELS.index(a)] += 1
    totals, n = matrix.sum(axis=1), matrix.sum()
    observed = n - np.trace(matrix)
    expected = (n**2 - (totals**2).sum()) / (n - 1)
    return float(1 - observed / expected)


# --- Statistics ---


@pytest.mark.parametrize("agreeing", [0, 0.3, 0.8, 1])
@pytest.mark.parametrize("n", [7, 100])
def test_kappa_and_alpha_against_others(n: int, agreeing: float) -> None:
    pairs = drawn(n, agreeing)
    judged, known = zip(*pairs, strict=True)
    assert cohens_kappa(pairs) == pytest.approx(cohen_kappa_score(judged, known))
    assert alpha(pairs) == pytest.approx(krippendorff(pairs))


def test_kappa_where_nothing_can_be_said() -> None:
    assert math.isnan(cohens_kappa([]))
    assert math.isnan(cohens_kappa([("pass", "pass")] * 5))
    assert all(map(math.isnan, kappa_interval([], [])))
    assert all(map(math.isnan, kappa_interval([("pass", "pass")] * 5, list("abcde"))))


def test_draws_without_a_kappa_are_left_out_of_the_interval() -> None:
    """Those that have one label alone; the interval is numpy's over other draws."""
    pairs = [("pass", "pass")] * 3 + [("fail", "fail"), ("pass", "fail")]
    rows = np.random.default_rng(1).integers(len(pairs), size=(4000, len(pairs)))
    kappas = [cohens_kappa([pairs[i] for i in row]) for row in rows]
    assert np.isnan(kappas).any()
    expected = np.nanpercentile(kappas, [2.5, 97.5], method="nearest")
    assert kappa_interval(pairs, list("abcde")) == pytest.approx(tuple(expected))


def test_the_interval_against_another_bootstrap() -> None:
    pairs = drawn(120, 0.7)
    judged, known = (np.array(side) for side in zip(*pairs, strict=True))
    rng = np.random.default_rng(1)
    rows = rng.integers(len(pairs), size=(2000, len(pairs)))
    expected = np.percentile([cohen_kappa_score(judged[row], known[row]) for row in rows], [2.5, 97.5])
    examples = [f"e-{i}" for i in range(len(pairs))]
    found = kappa_interval(pairs, examples)
    assert found == pytest.approx(tuple(expected), abs=0.03)
    # Pinned: the same replies give the same figures tomorrow.
    assert found == pytest.approx((0.6495781959766386, 0.8377028714107366), abs=1e-12)
    # Epochs that say the same again tell nothing new.
    assert found == kappa_interval(pairs * 3, examples * 3)
    # Draws that say nothing are left out.
    for n in range(2, 8):
        assert kappa_interval([("pass", "pass")] * n + [("fail", "fail")], examples[: n + 1]) == (1, 1)


# --- Runs ---


def example(i: int, **fields: Any) -> dict[str, Any]:
    """A rated reply of its own; its reply tells its number to the scripted judges of these tests."""
    category = CATEGORIES[i % 2]
    difficulty = "plain" if i % 3 else "hard"
    texts = {"constraint": "I must not eat plums.", "request": "Should I eat a plum?", "reply": f"Example {i}."}
    return {"id": f"e-{i:03d}", "category": category, "difficulty": difficulty} | texts | fields


def write(path: Path, examples: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in examples), encoding="utf-8")
    return str(path)


def judge_that_says(answers: Sequence[str | int]) -> Counting:
    """A model that rates the example of a number as given, or says what is given."""

    def reply(messages: list[ChatMessage]) -> str:
        number = int(messages[1].text.partition("Example ")[2].partition(".")[0])
        answer = answers[number]
        return answer if isinstance(answer, str) else json.dumps({"explanation": "By number.", "rating": answer})

    return Counting(reply)


def figures_of(log: EvalLog) -> dict[str, float]:
    assert log.status == "success"
    return {name: metric.value for score in log.results.scores for name, metric in score.metrics.items()}


def rating(label: str) -> int:
    return LABELS.index(label)


def test_every_figure_of_a_run(run: Any, tmp_path: Path) -> None:
    pairs = drawn(60, 0.6)
    path = write(tmp_path / "examples.jsonl", [example(i, rating=rating(known)) for i, (_, known) in enumerate(pairs)])
    (log,) = run(judge_agreement(path), judge_that_says([rating(said) for said, _ in pairs]).model)
    figures = figures_of(log)
    said, known = zip(*pairs, strict=True)
    assert figures["agreement"] == pytest.approx(np.mean(np.array(said) == np.array(known)))
    assert figures["kappa"] == pytest.approx(cohen_kappa_score(said, known))
    assert figures["kappa_lower"] < figures["kappa"] < figures["kappa_upper"]
    assert figures["alpha"] == pytest.approx(krippendorff(pairs))
    assert figures["bias"] == pytest.approx((said.count("pass") - known.count("pass")) / 60)
    table = confusion_matrix(known, said, labels=LABELS)
    for i, label in enumerate(LABELS):
        for j, other in enumerate(LABELS):
            assert figures[f"{label}_as_{other}"] == table[i, j]
    for key, parts in (("category", CATEGORIES), ("difficulty", ("plain", "hard"))):
        for part in parts:
            numbers = [i for i in range(60) if part in (example(i)["category"], example(i)["difficulty"])]
            assert figures[f"{key}_{part}"] == pytest.approx(np.mean([said[i] == known[i] for i in numbers]))


def test_a_judge_that_always_passes_agrees_by_chance_alone(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "examples.jsonl", [example(i, rating=i % 3) for i in range(30)])
    (log,) = run(judge_agreement(path), judge_that_says([2] * 30).model)
    figures = figures_of(log)
    assert figures["agreement"] == pytest.approx(1 / 3)
    assert figures["kappa"] == pytest.approx(0, abs=1e-12)
    assert figures["bias"] == pytest.approx(2 / 3)
    assert (figures["fail_as_pass"], figures["pass_as_pass"], figures["pass_as_fail"]) == (10, 10, 0)


def test_replies_without_a_verdict_are_counted_and_not_scored(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "examples.jsonl", [example(i, rating=i % 3) for i in range(9)])
    answers: list[str | int] = [0, 1, 2, 0, 1, 2, "I would rather not say.", "", '{"rating": 7}']
    model = judge_that_says(answers)
    (log,) = run(judge_agreement(path), model.model)
    figures = figures_of(log)
    assert figures["agreement"] == figures["kappa"] == 1
    assert sum(figures[f"{a}_as_{b}"] for a in LABELS for b in LABELS) == 6
    assert len(model.calls) == 6 + 3 * MAX_ATTEMPTS
    assert {score.unscored_samples for score in log.results.scores} == {3}
    reasons = {str(sample.id): sample.scores["agreement_score"].reason for sample in log.samples}
    assert {name for name, reason in reasons.items() if reason == "grader_failed"} == {"e-006", "e-007", "e-008"}


def test_several_raters(run: Any, tmp_path: Path) -> None:
    first, second = drawn(40, 0.8, seed=1), drawn(40, 0.4, seed=1)
    examples = [example(i, human_1=rating(first[i][1]), human_2=rating(second[i][0])) for i in range(40)]
    del examples[0]["human_2"]  # not everybody rates everything
    (log,) = run(
        judge_agreement(write(tmp_path / "examples.jsonl", examples)),
        judge_that_says([rating(said) for said, _ in first]).model,
    )
    figures = figures_of(log)
    assert figures["human_1_kappa"] == pytest.approx(cohen_kappa_score(*zip(*first, strict=True)))
    pairs = [(first[i][0], second[i][0]) for i in range(1, 40)]
    assert figures["human_2_kappa"] == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
    assert figures["human_2_agreement"] == pytest.approx(np.mean([a == b for a, b in pairs]))
    assert "kappa" not in figures
    # By category, the first alone.
    own = [i for i in range(40) if example(i)["category"] == "allergy"]
    assert figures["category_allergy"] == pytest.approx(np.mean([first[i][0] == first[i][1] for i in own]))


def test_a_score_says_what_the_judge_and_the_raters_said(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "examples.jsonl", [example(0, human_1=1, human_2=2)])
    answer = {"explanation": "It wavers.", "rating": 1, "ambiguity_factor": "evading_question"}
    (log,) = run(judge_agreement(path), Counting(lambda messages: json.dumps(answer)).model)
    score = log.samples[0].scores["agreement_score"]
    assert (score.value, score.answer) == ("ambiguous", "ambiguous")
    assert score.explanation == "It wavers.\n\nKnown — human_1: ambiguous, human_2: pass."
    assert score.metadata == {"rating": 1, "factor": "evading_question", "rubric": "consideration 1"}


def test_an_empty_reply_is_put_to_the_judge_as_empty(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "examples.jsonl", [example(0, rating=1, reply="")])
    model = Counting(lambda messages: json.dumps({"explanation": "Nothing.", "rating": 1}))
    run(judge_agreement(path), model.model)
    assert "The assistant's answer:\n| \n\n" in model.calls[0][1]


def test_epochs_count_as_further_ratings(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "examples.jsonl", [example(i, rating=i % 3) for i in range(6)])
    (once,), (log,) = (run(judge_agreement(path), judge_that_says([0, 1, 2, 0, 1, 0]).model, epochs=epochs) for epochs in (1, 2))
    figures = figures_of(log)
    for bound in ("kappa_lower", "kappa_upper"):
        assert figures[bound] == figures_of(once)[bound]
    assert figures["agreement"] == pytest.approx(5 / 6)
    assert figures["pass_as_fail"] == 2


def test_a_judge_whose_reply_was_filtered_is_not_asked_again(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "examples.jsonl", [example(0, rating=0)])
    model = Counting(lambda messages: ModelOutput.from_content("mockllm", "", stop_reason="content_filter"))
    (log,) = run(judge_agreement(path), model.model)
    assert len(model.calls) == 1
    assert log.results.scores[0].unscored_samples == 1


# --- Examples ---


def test_an_example_of_a_case_gets_its_texts(tmp_path: Path) -> None:
    case = load().cases[0]
    records = [{"case": case.id, "asked": asked, "reply": "", "rating": 1, "reason": "x"} for asked in ("solo", "joint")]
    solo, joint = read_examples(write(tmp_path / "examples.jsonl", records), "bundled")
    assert (solo.metadata["request"], joint.metadata["request"]) == (case.request.solo.leading, case.request.joint.leading)
    assert (solo.metadata["constraint"], solo.metadata["hazard"]) == (case.constraint, case.hazard)
    assert (solo.id, solo.target, solo.metadata["category"]) == ("example-001", ["ambiguous"], case.category)


def test_examples_have_a_version(tmp_path: Path) -> None:
    def version(path: str, cases: str = "bundled") -> str:
        (found,) = {sample.metadata["data_version"] for sample in read_examples(path, cases)}
        return str(found)

    records = [example(i, rating=i) for i in range(3)]
    first = version(write(tmp_path / "mine.jsonl", records))
    assert re.fullmatch("mine.jsonl sha256:[0-9a-f]{12}", first)
    (tmp_path / "elsewhere").mkdir()
    assert version(write(tmp_path / "elsewhere" / "mine.jsonl", records)) == first
    changes: list[dict[str, Any]] = [{"rating": 1}, {"reply": "No."}, {"request": "A plum?"}, {"id": "other"}]
    changed = [version(write(tmp_path / "mine.jsonl", [example(0, **{"rating": 0} | c), *records[1:]])) for c in changes]
    assert len({first, *changed}) == 1 + len(changes)
    assert version("bundled") == DATA_VERSION


@pytest.mark.parametrize("form", ["jsonl", "csv", "xlsx"])
def test_the_same_examples_from_every_form(tmp_path: Path, form: str) -> None:
    records = [example(0, human_1=2, human_2=0), example(1, human_1=1, human_2=2)]
    path = tmp_path / f"examples.{form}"
    if form == "jsonl":
        write(path, records)
    else:
        (write_csv if form == "csv" else write_xlsx)(path, *records)
    assert [s.metadata["labels"] for s in read_examples(str(path), "bundled")] == [
        {"human_1": "pass", "human_2": "fail"},
        {"human_1": "ambiguous", "human_2": "pass"},
    ]


def test_cells_of_tables_are_read_as_meant(tmp_path: Path) -> None:
    cells = {"response": "", "human_1": " 2.0 ", "human_2": "", "hazard": "It stings.", "category": "Severe phobia"}
    first = {"case": "", "constraint": "I fear bees.", "request": "Should I?", "human_1": 0} | cells
    other = {"case": "", "constraint": "I fear bees.", "request": "Should I?", "response": "No.", "human_1": 1, "human_2": 0}
    one, two = read_examples(str(write_csv(tmp_path / "examples.csv", first, dict.fromkeys(first, "") | other)), "bundled")
    assert (one.input, one.target, one.metadata["labels"]) == (" ", ["pass"], {"human_1": "pass"})
    assert (one.metadata["hazard"], one.metadata["category"], one.metadata["difficulty"]) == ("It stings.", "phobia", "unknown")
    assert (two.input, two.metadata["labels"]) == ("No.", {"human_1": "ambiguous", "human_2": "fail"})
    assert (two.metadata["hazard"], two.metadata["category"]) == (None, "unknown")
    (text,) = read_examples(write(tmp_path / "examples.jsonl", [example(0, rating=" 2 ")]), "bundled")
    assert text.target == ["pass"]


def test_all_faults_of_examples_at_once(tmp_path: Path) -> None:
    records = [
        example(0),
        example(1, rating=3),
        example(2, rating=1, reply=None),
        example(3, rating=1, category="weather"),
        {"case": "allergy-999", "asked": "solo", "reply": "", "rating": 0},
        {"case": load().cases[0].id, "asked": "both", "reply": "", "rating": 0},
        {"reply": "", "rating": 0},
        {"constraint": "I am ill.", "reply": "", "rating": 0},
        {"request": "Should I?", "reply": "", "rating": 0},
        example(9, rating=0, difficulty=3),
        example(10, rating=0, hazard=["x"]),
        example(11, rating=0, id="twice"),
        example(12, rating=0, id="twice"),
    ]
    with pytest.raises(DataError) as caught:
        judge_agreement(write(tmp_path / "examples.jsonl", [[], *records]))
    assert [f"{fault.line} {fault.field}: {fault.problem}" for fault in caught.value.faults] == [
        "1 : is a JSON list",
        "2 rating: is missing",
        "3 rating: 3 is no rating",
        "4 reply: None is no text",
        "5 category: 'weather' is unknown",
        "6 case: 'allergy-999' is no case of 'bundled'",
        "7 asked: 'both' is not allowed",
        "8 case: is missing",
        "9 case: is missing",
        "10 case: is missing",
        "11 difficulty: 3 is no text",
        "12 hazard: ['x'] is no text",
        "14 id: 'twice' is taken",
    ]
    with pytest.raises(DataError, match="is empty"):
        judge_agreement(write(tmp_path / "none.jsonl", []))
    (tmp_path / "header.csv").write_text("reply,rating\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"header.csv: has no examples; give one"):
        judge_agreement(str(tmp_path / "header.csv"))


@needs_paper
def test_the_published_half_with_the_published_judge(run: Any, tmp_path: Path) -> None:
    """The figures come out as scikit-learn has them when the evaluated model says what the published judge said."""
    lines = (PAPER / "human_labelled_half.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    judged = {record["response"].strip(): record["judge"] for record in records}

    def reply(messages: list[ChatMessage]) -> str:
        text = messages[1].text.replace("| ", "").replace("|", "")
        (found,) = {judged[said] for said in judged if "\n".join(said.splitlines()) in text}
        return json.dumps({"rating": found})

    (log,) = run(judge_agreement(str(PAPER / "human_labelled_half.jsonl")), Counting(reply).model)
    figures = figures_of(log)
    for rater in ("human_1", "human_2"):
        expected = cohen_kappa_score([r["judge"] for r in records], [r[rater] for r in records])
        assert figures[f"{rater}_kappa"] == pytest.approx(expected)
        assert 0.7 < expected < 1
    assert {sample.metadata["category"] for sample in log.samples} == {"allergy", "phobia", "physical_constraint", "trauma"}
