"""What the tests share: a provider that counts and can be scripted, runs without traces, paths of the published files."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task, eval
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessage, GenerateConfig, Model, ModelOutput, ModelUsage, get_model

SHARED = Path(__file__).parent.parent.parent / "shared"
PAPER = SHARED / "paper"

needs_paper = pytest.mark.skipif(not PAPER.is_dir(), reason="the published files do not lie beside this checkout")


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inspect's cache, traces and views of a test stay in its folder, and no key of the machine is used."""
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("INSPECT_TRACE_FILE", str(tmp_path / "trace.log"))
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "INSPECT_EVAL_MODEL", "INSPECT_LOG_DIR"):
        monkeypatch.delenv(key, raising=False)


class Counting:
    """A model that records what it is asked; `reply` maps the messages to what it says."""

    def __init__(self, reply: Callable[[list[ChatMessage]], str | ModelOutput] | None = None) -> None:
        self.calls: list[list[str]] = []
        self._reply = reply or (lambda messages: f"reply {len(self.calls)}")
        self.model: Model = get_model("mockllm/counting", custom_outputs=self._answer, memoize=False)

    def _answer(self, input: list[ChatMessage], tools: Any, tool_choice: Any, config: GenerateConfig) -> ModelOutput:
        self.calls.append([message.text for message in input])
        answer = self._reply(input)
        output = answer if isinstance(answer, ModelOutput) else ModelOutput.from_content("mockllm", answer)
        # Without usage Inspect would download a tokenizer.
        output.usage = output.usage or ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., list[EvalLog]]:
    """Run tasks with simulated models and return their logs; keywords go to `inspect_ai.eval`."""

    def run(tasks: Task | list[Task], model: str | Model = "curate/attentive", **kwargs: Any) -> list[EvalLog]:
        kwargs.setdefault("model_roles", {"grader": "curate/judge"})
        return eval(tasks, model=model, log_dir=str(tmp_path / "logs"), display="none", **kwargs)

    return run


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An S3 client whose bucket "runs" is served on this machine."""
    boto3, s3fs = pytest.importorskip("boto3"), pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.client("s3")
    client.create_bucket(Bucket="runs")
    yield client
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()  # it would ask this server again in the next test


def metrics_of(log: EvalLog, scorer: str = "curate_judge") -> dict[str, float]:
    """The metrics of one scorer of a log."""
    assert log.results is not None
    (score,) = [score for score in log.results.scores if score.name == scorer]
    return {name: metric.value for name, metric in score.metrics.items()}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests measured (`record_property`), also where they ran in another process."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties if report.when == "call" else []:
            terminalreporter.write_line(f"{name}: {value}")
