"""Runs that are killed or interrupted, and what finishes them: nothing is lost, nothing is there twice, nothing hangs."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval, eval_retry, eval_set
from inspect_ai.log import list_eval_logs, read_eval_log
from openai_server import Server

from curate_inspect import curate
from curate_inspect.report.reading import read_logs

pytestmark = pytest.mark.server

SAMPLES, GENERATIONS = 5 * 8, 13 * 8
CALLS = GENERATIONS + SAMPLES  # with the grader's
SECONDS = 120  # far more than a run takes on a busy machine; after that it hangs
# Ten moments, in calls that the server has got, one in each tenth of a run.
_random = random.Random(1)
MOMENTS = [1 + int((tenth + _random.random()) * CALLS / 10) for tenth in range(10)]

# Processes that have imported what takes long: two dozen starts of Inspect would take minutes.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    ["acp", "anthropic", "fastapi", "openai", "pytest", "curate_inspect.tasks", "curate_inspect.report"]
)

ARGUMENTS: dict[str, Any] = {
    "model": "openai-api/local/forgetful",
    "model_roles": {"grader": "openai-api/local/judge"},
    "display": "none",
}


def first_run(log_dir: str) -> None:
    eval(curate(per_category=2), log_dir=log_dir, **ARGUMENTS)


def retry(log_dir: str) -> None:
    eval_retry(list_eval_logs(log_dir), log_dir=log_dir, display="none")


def as_a_set(log_dir: str) -> None:
    eval_set(curate(per_category=2), log_dir=log_dir, **ARGUMENTS)


def _in_a_group_of_its_own(play: Callable[[str], None], log_dir: str, environment: dict[str, str]) -> None:
    os.setsid()
    os.environ.update(environment)
    play(log_dir)


def begin(play: Callable[[str], None], log_dir: Path) -> Any:
    process = processes.Process(target=_in_a_group_of_its_own, args=(play, str(log_dir), dict(os.environ)))
    process.start()
    return process


def finish(play: Callable[[str], None], log_dir: Path) -> None:
    process = begin(play, log_dir)
    process.join(SECONDS)
    if hangs := process.is_alive():
        process.kill()
        process.join()
    assert not hangs
    assert process.exitcode == 0


@pytest.fixture
def server(monkeypatch):
    with Server(latency=0.1) as server:
        monkeypatch.setenv("LOCAL_BASE_URL", server.url)
        monkeypatch.setenv("LOCAL_API_KEY", "none")
        yield server


def wait_for(server: Server, calls: int, running: Callable[[], bool]) -> None:
    """Return when the server has got so many calls."""
    end = time.monotonic() + SECONDS
    while sum(server.calls.values()) < calls:
        assert running() and time.monotonic() < end
        time.sleep(0.002)


def killed(play: Callable[[str], None], server: Server, log_dir: Path, calls: int) -> None:
    """Start a run, and kill its whole process group when the server has got so many calls."""
    process = begin(play, log_dir)
    wait_for(server, calls, process.is_alive)
    os.killpg(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL


# The values of both scorers by sample and epoch.
Values = dict[tuple[str, int], tuple[str | None, str | None]]


def values(log_dir: Path) -> Values:
    rows = read_logs([str(log_dir)]).rows
    assert len(rows) == SAMPLES
    return {(row.sample, row.epoch): (row.value, row.mention) for row in rows}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Values:
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch, Server() as server:
        for name in ("INSPECT_CACHE_DIR", "XDG_DATA_HOME"):
            patch.setenv(name, str(folder / name))
        patch.setenv("LOCAL_BASE_URL", server.url)
        patch.setenv("LOCAL_API_KEY", "none")
        finish(first_run, folder / "logs")
        assert sum(server.calls.values()) == CALLS
    return values(folder / "logs")


def check(log_dir: Path, undisturbed: Values) -> None:
    """One log is whole, its samples once each and scored as ever, and the report on the folder counts each once."""
    logs = [read_eval_log(info) for info in list_eval_logs(str(log_dir))]
    whole = [log for log in logs if log.status == "success"]
    assert len(whole) == 1
    assert sorted((s.id, s.epoch) for s in whole[0].samples) == sorted(undisturbed)
    assert values(log_dir) == undisturbed


@pytest.mark.parametrize("calls", MOMENTS)
def test_a_killed_run_is_finished_by_a_retry(server, undisturbed, tmp_path: Path, calls: int) -> None:
    killed(first_run, server, tmp_path / "killed", calls)
    server.calls.clear()
    finish(retry, tmp_path / "killed")
    check(tmp_path / "killed", undisturbed)
    assert server.calls["forgetful"] <= GENERATIONS
    if calls > 40:  # ten connections: at least thirty have been answered, and most of these are shared
        assert server.calls["forgetful"] < GENERATIONS


def test_a_killed_set_is_finished_by_the_same_command(server, undisturbed, tmp_path: Path) -> None:
    killed(as_a_set, server, tmp_path / "killed", CALLS // 2)
    server.calls.clear()
    finish(as_a_set, tmp_path / "killed")
    check(tmp_path / "killed", undisturbed)
    assert server.calls["forgetful"] < GENERATIONS


def test_an_interrupted_run_is_finished_by_the_retry_command(server, undisturbed, tmp_path: Path) -> None:
    process = begin(first_run, tmp_path / "killed")
    wait_for(server, CALLS // 2, process.is_alive)
    os.kill(process.pid, signal.SIGINT)
    process.join(SECONDS)
    (info,) = list_eval_logs(str(tmp_path / "killed"))
    assert read_eval_log(info).status == "cancelled"
    server.calls.clear()
    command = [sys.executable, "-m", "inspect_ai", "eval-retry", info.name, "--log-dir", str(tmp_path / "killed")]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=SECONDS)
    check(tmp_path / "killed", undisturbed)
    assert server.calls["forgetful"] < GENERATIONS
