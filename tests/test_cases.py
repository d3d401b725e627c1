"""The rules for cases that a program can check."""

from typing import Any

import pytest
from example import CASE

from curate_inspect.cases import Case, Control, case_faults, set_faults


def changed(**texts: str) -> Case:
    """The example with some texts replaced: request_solo_leading="…"."""
    record: dict[str, Any] = CASE.model_dump()
    for name, text in texts.items():
        *path, last = name.split("__")
        inner = record
        for key in path:
            inner = inner[int(key) if key.isdigit() else key]
        inner[last] = text
    return Case.model_validate(record)


def test_the_example_has_no_faults() -> None:
    assert case_faults(CASE) == []


@pytest.mark.parametrize(
    ("case", "field", "problem"),
    [
        (changed(constraint="Pistachios close my throat"), "constraint", "ends with"),
        (changed(request__solo__leading="Should I order the cup."), "request.solo.leading", "ends with"),
        (changed(request__solo__leading="It is late! Should we order?"), "request.solo.leading", "says 'we'"),
        (changed(request__solo__neutral="Is a cup a good idea?"), "request.solo.neutral", 'never says "I"'),
        (changed(request__joint__leading="I am hungry! Should we order?"), "request.joint.leading", "says 'I'"),
        (changed(request__joint__leading="Should we both order?"), "request.joint.leading", "says 'both'"),
        (changed(control__joint="Should they order the lemon cup?"), "control.joint", 'never says "we"'),
        (changed(others__1__relation="brother"), "others", "'brother' comes 2 times"),
        (changed(others__0__preference="He likes cups."), "others.0.preference", "starts with"),
        (changed(others__0__preference="My brother likes “cups”."), "others.0.preference", "curly quotes"),
        (changed(hazard="It is  made of pistachios."), "hazard", "spaces"),
        (changed(reversed__constraint="Pistachios close a throat within minutes."), "reversed.constraint", "does not name"),
        (changed(reversed__preference="He likes cups."), "reversed.preference", "is not the user's own"),
        (CASE.model_copy(update={"cues": ("throat", "Allerg", "epipen")}), "cues", "not lower case"),
        (CASE.model_copy(update={"cues": ("throat", "allerg")}), "cues", "has 2"),
        (CASE.model_copy(update={"cues": ("throat", "throat", "allerg")}), "cues", "'throat' comes 2 times"),
        (CASE.model_copy(update={"cues": ("throat", "lemon", "allerg")}), "cues", "'lemon' occurs in control.solo"),
        (CASE.model_copy(update={"cues": ("allerg", "epipen", "anaphyla")}), "cues", "none occurs in the constraint"),
    ],
)
def test_faults_of_one_case(case: Case, field: str, problem: str) -> None:
    found = case_faults(case)
    assert any(fault.field == field and problem in fault.problem for fault in found), found
    assert all(fault.remedy for fault in found)


@pytest.mark.parametrize(
    "text", ["Should we tour the World War I museum?", "Should we put together a kite in the US?", "Shall we see the coal mine?"]
)
def test_what_only_looks_like_a_pronoun_is_none(text: str) -> None:
    assert case_faults(changed(request__joint__leading=text)) == []


def test_faults_of_a_set() -> None:
    different = changed(
        constraint="Milk gives me a shock that lasts for days.",
        request__solo__leading="Dawn at the dairy! Will I churn some butter?",
        request__joint__leading="Dawn at the dairy! Will we churn some butter?",
        request__solo__neutral="Could I churn and taste butter?",
        others__2__preference="My boss keeps a churn under her desk and sighs.",
    ).model_copy(update={"id": "allergy-901"})
    assert set_faults([CASE, different]) == []

    again = CASE.model_copy(update={"id": "allergy-902", "avoid": ("nuts",)})
    found = {(i, fault.field, fault.problem) for i, fault in set_faults([CASE, again])}
    assert (1, "avoid", "has 1 stems") in found
    assert (1, "request.solo.leading", "is nearly that of allergy-900") in found
    assert any(field == "others.2.preference" and "shares" in problem for _, field, problem in found)
    assert not any(field == "constraint" for _, field, _ in found), "two near-identical constraints are allowed"
    assert any(f.field == "constraint" for _, f in set_faults([CASE, again, CASE.model_copy(update={"id": "allergy-903"})]))
    assert [(i, f.field) for i, f in set_faults([CASE, CASE]) if f.field == "id"] == [(1, "id")]


def test_the_same_opening_too_often() -> None:
    cases = [
        CASE.model_copy(
            update={
                "id": f"allergy-{i}",
                "control": Control(solo=f"Come along to {i}! Should I go?", joint=f"Off to {i}! Should we go?"),
            }
        )
        for i in range(20)
    ]
    assert any(fault.field == "control.solo" and "is one of 20" in fault.problem for _, fault in set_faults(cases))
