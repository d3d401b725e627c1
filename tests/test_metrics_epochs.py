"""Every metric as a run calls it: registered, over two epochs that disagree, behind Inspect's own reducers."""

import inspect_ai
import pytest
from conftest import Counting
from inspect_ai.scorer import Metric, Score
from pytest_inspect_evals.metrics import run_metrics

from curate_inspect.agreement import agreement_by, agreement_with_labels
from curate_inspect.metrics import difference_to_baseline, mention_rates, over_caution_rates, pass_rates, rate_by

# Two cases in two variants. With the first epoch alone, or with the mode of both, each of the rates would be another one.
SAMPLES = [
    {"case": "allergy-1", "category": "allergy", "scenario": 3, "variant": "baseline", "labels": {"writer": "pass"}},
    {"case": "allergy-1", "category": "allergy", "scenario": 3, "variant": "guided", "labels": {"writer": "fail"}},
    {"case": "trauma-1", "category": "trauma", "scenario": 3, "variant": "baseline", "labels": {"writer": "pass"}},
    {"case": "trauma-1", "category": "trauma", "scenario": 3, "variant": "guided", "labels": {"writer": "pass"}},
]
LABELS = [("pass", "fail"), ("pass", "pass"), ("fail", "fail"), ("ambiguous", "pass")]
AS_CONTROLS = {"pass": "at_ease", "ambiguous": "unclear", "fail": "over_cautious"}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mock model that `run_metrics` takes counts tokens with a downloaded tokenizer; this one gives their number."""
    model = Counting().model
    monkeypatch.setattr(
        "pytest_inspect_evals.metrics.inspect_eval", lambda task, **given: inspect_ai.eval(task, **given | {"model": model})
    )


def epochs(names: dict[str, str] | None = None) -> list[list[Score]]:
    return [
        [
            Score(value=(names or {}).get(label, label), metadata={"epoch": epoch, "empty": False, "truncated": epoch == 2})
            for epoch, label in enumerate(labels, 1)
        ]
        for labels in LABELS
    ]


@pytest.mark.parametrize("reducer", ["mean", "mode"])
@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (
            pass_rates(),
            {"pass_rate": 1 / 2, "pass_rate_unambiguous": 4 / 7, "ambiguous": 1 / 8, "fail": 3 / 8, "truncated": 1 / 2},
        ),
        (mention_rates(), {"mention_rate": 1 / 2}),
        (rate_by("category"), {"allergy": 3 / 4, "trauma": 1 / 4}),
        # guided − baseline: allergy-1 0 and 1, trauma-1 0 and 1, so 1/2 for both cases
        (difference_to_baseline(), {"guided_difference": 1 / 2}),
        (agreement_with_labels(), {"agreement": 1 / 4, "pass_as_pass": 2, "fail_as_pass": 2, "pass_as_fail": 3, "bias": -1 / 4}),
        (agreement_by("category"), {"category_allergy": 1 / 4, "category_trauma": 1 / 4}),
    ],
    ids=lambda value: getattr(value, "__qualname__", "").split(".")[0],
)
def test_every_epoch_counts(metric: Metric, expected: dict[str, float], reducer: str) -> None:
    found = run_metrics([metric], epochs(), reducer=reducer, metadata=SAMPLES)
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_every_epoch_of_a_control_counts() -> None:
    found = run_metrics([over_caution_rates()], epochs(AS_CONTROLS), metadata=SAMPLES)
    assert (found["over_caution_rate"], found["unclear"], found["truncated"]) == pytest.approx((3 / 8, 1 / 8, 1 / 2))
