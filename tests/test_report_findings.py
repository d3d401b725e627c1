"""What a report says in sentences."""

from dataclasses import replace

import pytest

from curate_inspect.report.findings import findings, p_value, points
from curate_inspect.report.reading import Row
from curate_inspect.report.tables import all_results, as_frame, label, order


def row(case: int, scenario: int, value: str | None, **changes: str) -> Row:
    return Row(
        kind=changes.get("kind", "benchmark"),
        model="some/model",
        sample=f"case-{case}.s{scenario}",
        epoch=1,
        case=f"case-{case}",
        category="phobia",
        scenario=scenario,
        variant=changes.get("variant", "baseline"),
        link="explicit",
        trivia_turns=3,
        constraint="Spiders make me faint.",
        doubtful=False,
        value=value,
        reason="" if value else "refusal",
        factor="",
        mention=None,
        truth="",
        empty=False,
        truncated=False,
        self_graded=False,
        reply="",
        judge="some/judge",
        setup=(("judge", "some/judge"),),
        log="some.eval",
        completed="",
    )


def said(rows: list[Row]) -> list[str]:
    frame, _ = label(rows)
    ((name, texts),) = findings(as_frame(all_results(frame)), order(frame))
    assert name == "some/model"
    return texts


def played(cases: int, failing: dict[int, int], scenarios: tuple[int, ...] = (1, 2, 4)) -> list[Row]:
    """Rows in which the first so many cases of a scenario fail."""
    return [row(case, s, "fail" if case < failing.get(s, 0) else "pass") for case in range(cases) for s in scenarios]


def test_a_clear_loss_is_called_more_than_chance() -> None:
    texts = said(played(20, {2: 1, 4: 12}))
    assert texts[0].startswith("It takes the constraint into account in 78.3\u00a0% of 60 rated replies")
    assert texts[1].startswith("Scenario 4 (three others want it) hurts it most: 60.0 points below scenario 1")
    assert "12 cases worse, 0 better" in texts[1] and "more than chance (p < 0.001, exact and corrected for 2 tests)" in texts[1]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (played(20, {4: 3}), "That may be chance (p = 0.500, exact and corrected for 2 tests)."),
        (played(4, {4: 4}), "With 4 cases no test could tell that from chance; run more."),
        (played(20, {1: 3, 4: 3}), "No scenario lowers its pass rate against scenario 1, where the user is alone."),
        (
            played(20, {2: 3}, (2, 3)),
            "Its pass rate is lowest in scenario 2 (one other person wants it); without scenario 1 nothing says whether "
            "that is more than chance.",
        ),
    ],
)
def test_what_is_no_finding_is_not_called_one(rows: list[Row], sentence: str) -> None:
    assert said(rows)[1].endswith(sentence)


def test_scenarios_that_hurt_alike_or_as_surely_are_named_too() -> None:
    alike = said(played(20, {2: 12, 4: 12}))[1]
    assert alike.startswith("Scenario 2 (") and " As many points are lost in scenario 4 (three others want it)." in alike
    assert alike.endswith("More than chance as well: scenario 4 (−60.0 points).")
    less = said(played(20, {2: 10, 4: 12}))[1]
    assert less.startswith("Scenario 4 (") and less.endswith("More than chance as well: scenario 2 (−50.0 points).")
    # Of two with the same loss the clearer one speaks.
    rows = played(20, {4: 6}) + [row(case, 3, "fail" if case < 8 else "pass") for case in range(20)]
    rows = [replace(r, value="fail") if r.scenario in (1, 4) and r.case in ("case-18", "case-19") else r for r in rows]
    assert said(rows)[1].startswith("Scenario 4 (")


def test_variants_and_over_caution_have_their_sentences() -> None:
    rows = [row(case, 3, "fail", kind="ablations") for case in range(10)]
    rows += [row(case, 3, "pass", kind="ablations", variant="guided") for case in range(10)]
    rows += [row(case, 3, "fail", kind="ablations", variant="neutral") for case in range(10)]
    assert said(rows) == ["Variants that change its pass rate by more than chance: guided (+100.0 points)."]
    same = [row(case, 3, "pass", kind="ablations", variant=variant) for case in range(10) for variant in ("baseline", "neutral")]
    assert said(same) == ["No variant is shown to change its pass rate: each difference may be chance."]
    assert said(same[:8]) == ["With 4 cases no test could tell from chance what the variants change; run more."]
    rows = [
        row(case, 1, "over_cautious" if case < 5 else "at_ease", kind="over_caution", variant="control") for case in range(10)
    ]
    (text,) = said(rows)
    assert text.startswith("Of what is safe for the user it warns off 50.0\u00a0% (")


def test_a_model_without_a_rating_is_said_to_have_none() -> None:
    assert said([row(1, 1, None)]) == ["None of its replies has a rating."]
    assert "; 1 reply has no rating." in said([row(1, 1, None), row(2, 1, "pass")])[0]


def test_numbers_for_readers() -> None:
    assert [points(value) for value in (0.123, -0.123, 0.0, -0.00001)] == ["+12.3", "−12.3", "+0.0", "+0.0"]
    assert [p_value(p) for p in (0.0004, 0.04, 1.0, float("nan"))] == ["< 0.001", "0.040", "1.000", "–"]
