"""Runs over real connections: a second way to a model, and what becomes of provider faults."""

import pytest
from conftest import metrics_of
from inspect_ai import eval_retry
from inspect_ai.model import get_model
from openai_server import BROKEN, SILENT, TRANSIENT, Server

from curate_inspect import allergy, curate

pytestmark = pytest.mark.server


@pytest.fixture
def over(run, monkeypatch):
    """Run a task against a server, model and grader both, and return the log."""

    def over(server: Server, task, model: str = "forgetful", sdk_retries: int = 3, **kwargs):
        monkeypatch.setenv("LOCAL_BASE_URL", server.url)
        monkeypatch.setenv("LOCAL_API_KEY", "none")
        # The SDK retries within a second or two; Inspect, when that is used up, after three at least.
        # Kept models would go on talking to the server before.
        models = [get_model(f"openai-api/local/{name}", memoize=False, max_retries=sdk_retries) for name in (model, "judge")]
        (log,) = run(task, models[0], model_roles={"grader": models[1]}, **kwargs)
        return log

    return over


def by_sample(log, scorer: str = "curate_judge"):
    return {(s.id, s.epoch): s.scores[scorer].value for s in log.samples if s.scores and scorer in s.scores}


def test_the_same_scores_as_offline(run, over) -> None:
    with Server() as server:
        log = over(server, curate(per_category=1))
        assert server.calls == {"forgetful": 13 * 4, "judge": 5 * 4}
    (offline,) = run(curate(per_category=1), "curate/forgetful")
    assert by_sample(log) == by_sample(offline)
    assert metrics_of(log) == metrics_of(offline)


@pytest.mark.parametrize("models", [("forgetful",), ("judge",), ()])
def test_transient_faults_leave_no_trace(over, models) -> None:
    with Server() as server:
        good = over(server, allergy(per_category=3))
    with Server(rate=0.2, kinds=TRANSIENT, models=models) as server:
        log = over(server, allergy(per_category=3))
        assert sum(server.injected.values()) > 0
    assert log.status == "success"
    assert by_sample(log) == by_sample(good)


def test_transient_faults_for_ever_end_with_a_reason(over) -> None:
    with Server(rate=0.2, kinds=("500",), once=False) as server:
        log = over(server, allergy(per_category=2), sdk_retries=0, max_retries=1, fail_on_error=False)
    assert log.status == "success"
    errors = [s for s in log.samples if s.error]
    assert errors and not [s.error.message for s in errors if "InternalServerError" not in s.error.message]
    assert len(by_sample(log)) + len(errors) == len(log.samples) == 10


def test_broken_answers_are_errors_that_a_retry_mends(over, tmp_path) -> None:
    with Server(rate=0.2, kinds=BROKEN) as server:
        log = over(server, allergy(per_category=2), fail_on_error=False)
        assert sum(server.injected.values()) > 0
        errors = [sample for sample in log.samples if sample.error]
        assert errors and len(by_sample(log)) + len(errors) == 10
        for _ in range(10):
            if not any(sample.error for sample in log.samples):
                break
            (log,) = eval_retry(log, log_dir=str(tmp_path / "logs"), display="none", fail_on_error=False)
    assert len(by_sample(log)) == 10
    assert not any(sample.error for sample in log.samples)


@pytest.mark.parametrize("models", [("forgetful",), ("judge",)])
def test_silent_faults_are_scored_or_unscored_with_a_reason(over, models) -> None:
    with Server(rate=0.2, kinds=SILENT, once=False, models=models) as server:
        log = over(server, allergy(per_category=4))
        assert sum(server.injected.values()) > 0
    assert log.status == "success"
    for sample in log.samples:
        score = sample.scores["curate_judge"]
        unscored = score.value != score.value
        assert score.value in ("pass", "ambiguous", "fail") or (unscored and score.reason and score.explanation)
    judge = next(s for s in log.results.scores if s.name == "curate_judge")
    assert judge.scored_samples + judge.unscored_samples == 20
