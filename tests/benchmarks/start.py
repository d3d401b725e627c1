"""Cold start: the first sample of a fresh process, and what importing costs."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.common import Figures, folder, in_turn, show

BARE = """\
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes


@task
def bare():
    return Task(dataset=MemoryDataset([Sample(input="Hello?", target="Yes")]), scorer=includes())
"""
TASKS = {"ours": ["curate_inspect/scenario_1", "-T", "scorer=mention"], "bare": ["bare.py"]}


def table(rounds: int = 7) -> None:
    """Print the times of both starts and both imports."""
    starts = in_turn("start.evaluate", {"ours": ("ours",), "bare": ("bare",)}, rounds)
    imports = in_turn("start.load", {"ours": ("curate_inspect._registry",), "bare": ("inspect_ai",)}, rounds)
    rows = []
    for name, found in (("inspect eval, one sample", starts), ("import", imports)):
        ours, bare = found["ours"]["s"], found["bare"]["s"]
        rows.append((name, [f"{ours:.2f}", f"{bare:.2f}", f"{ours / bare:.3f}", f"{ours - bare:+.2f}"]))
    show(f"Cold start, s, medians of {rounds} fresh processes each, in turn", ("ours", "bare", "ratio", "difference"), rows)


def evaluate(which: str) -> Figures:
    """`inspect eval` of one sample on the command line, the model behind a server on this machine."""
    from inspect_ai.log import list_eval_logs, read_eval_log

    from curate_inspect.sources import load
    from tests.openai_server import Server

    load()  # the server's simulated model knows the cases
    (folder() / "bare.py").write_text(BARE, encoding="utf-8")
    command = [Path(sys.executable).with_name("inspect"), "eval", *TASKS[which], "--model", "openai-api/local/forgetful"]
    command += ["--limit", "1", "--display", "none"]
    with Server() as server:
        environment = os.environ | {"LOCAL_BASE_URL": server.url, "LOCAL_API_KEY": "none"}
        started = time.perf_counter()
        subprocess.run(command, cwd=folder(), env=environment, check=True, capture_output=True)
        seconds = time.perf_counter() - started
    (log,) = list_eval_logs(str(folder() / "logs"))
    assert read_eval_log(log, header_only=True).status == "success"
    return {"s": seconds}


def load(module: str) -> Figures:
    """Import a module."""
    started = time.perf_counter()
    __import__(module)
    return {"s": time.perf_counter() - started}
