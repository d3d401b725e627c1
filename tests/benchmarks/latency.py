"""Wall time against a server that takes its time: a study as a whole, and what sharing turns spares with a slow provider."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from tests.benchmarks.common import Figures, folder, in_turn, show
from tests.benchmarks.overhead import bare

PER_CATEGORY = 10  # 40 cases in five scenarios
NAME, GRADER = "forgetful", "judge"


def table() -> None:
    """Print both comparisons; the study played call after call takes five minutes."""
    fast = {"curate, 720": ("shared", 0.2, 100), "a bare task, 1,360": ("bare", 0.2, 100)}
    found = in_turn("latency.study", fast, rounds=3)
    serial = in_turn("latency.one_after_the_other", {"serial": (0.2,)}, rounds=1)["serial"]["s"]
    rows = [("one call after the other, 1,360 calls", [f"{serial:.1f}", "1", ""])]
    for name, figures in found.items():
        ratio, cpu = serial / figures["s"], figures["cpu_s"] / figures["s"]
        rows.append((f"{name} calls, 100 connections", [f"{figures['s']:.1f}", f"1 / {ratio:.0f}", f"{cpu:.2f}"]))
    title = "40 cases × 5 scenarios, a server that answers after 0.2 s"
    show(title, ("s", "ratio", "of it, client at work"), rows)
    found = in_turn("latency.study", {"shared": ("shared", 1.0, 20), "unshared": ("unshared", 1.0, 20)}, rounds=1)
    shared, unshared = found["shared"]["s"], found["unshared"]["s"]
    title = "The same with 20 connections to a server that answers after 1 s"
    show(
        title, ("s", "ratio"), [("unshared", [f"{unshared:.1f}", "1"]), ("shared", [f"{shared:.1f}", f"{shared / unshared:.2f}"])]
    )


def study(which: str, latency: float, connections: int) -> Figures:
    """Run `curate`, shared or unshared, or the bare task; the first run of a process, which imports the providers, is another."""
    from inspect_ai import eval
    from inspect_ai.model import get_model

    from curate_inspect import curate

    def run(url: str, each: int) -> Figures:
        models = [get_model(f"openai-api/local/{name}", base_url=url, api_key="none", memoize=False) for name in (NAME, GRADER)]
        task = bare(4 * each) if which == "bare" else curate(per_category=each, share_prefix=which == "shared", seed=each)
        started, cpu = time.perf_counter(), time.process_time()
        (log,) = eval(
            task,
            model=models[0],
            model_roles={"grader": models[1]},
            max_connections=connections,
            max_samples=2 * connections,
            log_dir=str(folder()),
            display="none",
        )
        figures = {"s": time.perf_counter() - started, "cpu_s": time.process_time() - cpu}
        assert log.status == "success" and log.results and log.results.completed_samples == 20 * each
        return figures

    with _server(0) as url:
        run(url, 1)
    with _server(latency) as url:
        return run(url, PER_CATEGORY)


def one_after_the_other(latency: float) -> Figures:
    """The same turns and verdicts as the published scripts ask for them: every turn of every conversation, one call at a time."""
    import httpx

    from curate_inspect import curate
    from curate_inspect.judge import CONSIDERATION, question
    from curate_inspect.solvers import turns_of

    def ask(client: httpx.Client, model: str, messages: list[dict[str, str]]) -> str:
        answer = client.post("chat/completions", json={"model": model, "messages": messages})
        text: str = answer.json()["choices"][0]["message"]["content"]
        return text

    samples = curate(per_category=PER_CATEGORY).dataset
    with _server(latency) as url, httpx.Client(base_url=url, timeout=60) as client:
        started = time.perf_counter()
        for sample in samples:
            messages: list[dict[str, str]] = []
            for turn in turns_of(sample.metadata or {}, 1):
                messages.append({"role": "user", "content": turn.text})
                messages.append({"role": "assistant", "content": ask(client, NAME, messages)})
            asked = question(
                CONSIDERATION, (sample.metadata or {})["constraint"], None, str(sample.input), messages[-1]["content"]
            )
            ask(client, GRADER, [{"role": message.role, "content": message.text} for message in asked])
        return {"s": time.perf_counter() - started}


@contextmanager
def _server(latency: float) -> Iterator[str]:
    """The address of a server in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(latency, theirs), daemon=True)
    process.start()
    yield ours.recv()
    ours.send("stop")
    process.join()


def _serve(latency: float, pipe: Connection) -> None:
    from curate_inspect.sources import load
    from tests.openai_server import Server

    load()  # the simulated models know the cases
    with Server(latency=latency) as server:
        pipe.send(server.url)
        pipe.recv()
