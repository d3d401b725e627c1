"""Runs over real connections: a second way to a model, and what becomes of provider faults."""

import pytest
from conftest import metrics_of
from inspect_ai import eval_retry
from inspect_ai.model import GenerateConfig, get_model
from openai_server import BROKEN, SILENT, TRANSIENT, Server, deadline
from tenacity import wait_none

from curate_inspect import allergy, curate

pytestmark = pytest.mark.server


@pytest.fixture
def over(run, monkeypatch):
    """Run a task against a server, model and grader both, and return the log."""

    def over(server: Server, task, model: str = "forgetful", sdk_retries: int = 3, **kwargs):
        timeout = GenerateConfig(attempt_timeout=kwargs.get("attempt_timeout"))  # roles do not inherit it
        monkeypatch.setenv("LOCAL_BASE_URL", server.url)
        monkeypatch.setenv("LOCAL_API_KEY", "none")
        # The SDK retries within a second or two; Inspect, when that is used up, after three at least.
        # Kept models would go on talking to the server before.
        models = [
            get_model(f"openai-api/local/{name}", config=timeout, memoize=False, max_retries=sdk_retries)
            for name in (model, "judge")
        ]
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


@pytest.fixture(scope="module")
def kept() -> dict[tuple[str, int], tuple[str, str]]:
    return {}


@pytest.fixture
def undisturbed(run, kept) -> dict[tuple[str, int], tuple[str, str]]:
    """What the last replies are, and how they are judged, where nothing goes wrong; made once."""
    if not kept:
        (log,) = run(allergy(per_category=2), "curate/forgetful")
        kept.update({(s.id, s.epoch): (s.output.completion, s.scores["curate_judge"].value) for s in log.samples})
    return kept


KINDS = (*TRANSIENT, *BROKEN, *SILENT)
# What a sample's error says that such a fault has stopped.
ERRORS = {
    "429": "RateLimitError",
    "500": "InternalServerError",
    "503": "InternalServerError",
    "dropped": "APIConnectionError",
    "slow": "AttemptTimeoutError",
    "malformed": "JSONDecodeError",
    "no_choices": "NoChoices",
}


@pytest.fixture
def soon(monkeypatch) -> None:
    """Inspect asks again at once instead of after seconds."""
    monkeypatch.setattr("inspect_ai.model._retry.wait_exponential_jitter", lambda **kwargs: wait_none())


@pytest.mark.parametrize("once", [True, False], ids=["once", "for ever"])
@pytest.mark.parametrize(
    ("kinds", "models"),
    [((kind,), (model,)) for kind in KINDS for model in ("forgetful", "judge")] + [(KINDS, ())],
    ids=lambda names: names[0] if len(names) == 1 else "all",
)
def test_faults_lose_and_invent_nothing(over, soon, undisturbed, kinds, models, once: bool) -> None:
    """A fifth of the calls fails; what is scored is scored as ever, and the rest says why it is not."""
    options = {"max_retries": 1, "attempt_timeout": 2 if "slow" in kinds else None, "fail_on_error": False}
    # By this seed the faults hit first, middle and last turns, verdicts, and seven of the ten conversations.
    with Server(rate=0.2, kinds=kinds, once=once, models=models, seed=97) as server, deadline(120):
        log = over(server, allergy(per_category=2), sdk_retries=0, retry_on_error=2 if once else None, **options)
        assert server.injected
    assert log.status == "success"
    assert {(s.id, s.epoch) for s in log.samples} == set(undisturbed)
    scored = errors = 0
    for sample in log.samples:
        if sample.error:
            errors += 1
            assert any(ERRORS[kind] in sample.error.message for kind in kinds if kind in ERRORS)
            continue
        score = sample.scores["curate_judge"]
        if score.value != score.value:
            assert score.reason and score.explanation
            continue
        scored += 1
        reply, value = undisturbed[sample.id, sample.epoch]
        assert score.value == value or sample.output.completion != reply
        assert sample.output.completion == reply or ({*kinds} & {*SILENT} and models != ("judge",))
    (judge,) = (s for s in log.results.scores if s.name == "curate_judge")
    assert scored > 0
    assert (judge.scored_samples, judge.scored_samples + judge.unscored_samples + errors) == (scored, len(undisturbed))
    if once:
        assert not errors
    if once and not {*kinds} & {*SILENT}:
        assert scored == len(undisturbed)


def test_a_grader_that_never_answers_ends_by_its_own_timeout(run, soon, monkeypatch) -> None:
    """As from `--model-role 'grader={model: …, attempt_timeout: 1}'`; `--max-retries` of the run holds for it too."""
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    with Server(rate=1, kinds=("slow",), once=False) as server, deadline(60):
        monkeypatch.setenv("LOCAL_BASE_URL", server.url)
        impatient = GenerateConfig(attempt_timeout=1)
        grader = get_model("openai-api/local/judge", config=impatient, memoize=False, max_retries=0)
        task = allergy(per_category=1, scenarios=1)
        (log,) = run(task, "curate/forgetful", model_roles={"grader": grader}, max_retries=1, fail_on_error=False)
        assert server.calls["judge"] == 2
    assert "AttemptTimeoutError" in log.samples[0].error.message


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


def test_an_answer_without_a_reply_says_so(over, soon) -> None:
    with Server(rate=1, kinds=("no_choices",), once=False, models=("forgetful",)) as server:
        log = over(server, allergy(per_category=1, scenarios=1), fail_on_error=False)
    assert "choices" in log.samples[0].error.message
