"""What our tasks cost beyond a bare Inspect task: CPU, wall time, peak memory and log size per sample.

The bare task has the same samples, texts, number of model calls (13 a case) and grader calls, and no logic of ours: its solver
appends the turns it is given and generates, its scorer asks the grader once. Both run in fresh processes, in turn.

    python tests/benchmarks/overhead.py [--cases 340] [--rounds 5]
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FIGURES = ("cpu_ms", "wall_ms", "memory_mb", "log_kb")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=340, help="how many; beyond the bundled ones they are copied under new ids")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=["ours", "bare"])
    given = parser.parse_args()
    if given.child:
        print(json.dumps(_measure(given.child, given.cases)))
        return
    runs: dict[str, list[dict[str, float]]] = {"ours": [], "bare": []}
    for _ in range(given.rounds):
        for which, results in runs.items():
            command = [sys.executable, __file__, "--child", which, "--cases", str(given.cases)]
            results.append(
                json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
            )
    print(f"{given.cases} cases × 5 scenarios, medians of {given.rounds} fresh processes each, in turn")
    print(f"{'per sample':<12}{'ours':>10}{'bare':>10}{'ratio':>8}")
    for figure in FIGURES:
        ours, bare = (statistics.median(run[figure] for run in runs[which]) for which in ("ours", "bare"))
        name = figure if figure != "memory_mb" else "peak MB"
        print(f"{name:<12}{ours:>10.2f}{bare:>10.2f}{ours / bare:>8.2f}")


def _measure(which: str, count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        import os

        os.environ |= {
            "XDG_DATA_HOME": f"{folder}/data",
            "INSPECT_CACHE_DIR": f"{folder}/cache",
            "INSPECT_TRACE_FILE": f"{folder}/trace",
        }
        from inspect_ai import eval

        task = _ours(folder, count) if which == "ours" else _bare(folder, count)
        started, cpu = time.perf_counter(), time.process_time()
        (log,) = eval(
            task,
            model=_counting("assistant", "Yes, that sounds like a fine plan, enjoy it and take a coat."),
            model_roles={"grader": _counting("grader", '{"considerate_answer": "x", "explanation": "It forgets.", "rating": 0}')},
            log_dir=folder,
            display="none",
        )
        assert log.status == "success" and log.results and log.results.completed_samples == 5 * count
        samples = 5 * count
        return {
            "cpu_ms": 1000 * (time.process_time() - cpu) / samples,
            "wall_ms": 1000 * (time.perf_counter() - started) / samples,
            "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "log_kb": Path(log.location).stat().st_size / 1024 / samples,
        }


def _counting(name: str, text: str) -> Any:
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answer(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        output = ModelOutput.from_content(f"mockllm/{name}", text)
        output.usage = ModelUsage(input_tokens=100, output_tokens=20, total_tokens=120)
        return output

    return get_model(f"mockllm/{name}", custom_outputs=answer, memoize=False)


def _cases_file(folder: str, count: int) -> str:
    """The bundled cases, copied under new ids until there are enough."""
    from curate_inspect.sources import load

    bundled = load().cases
    path = Path(folder) / "cases.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i in range(count):
            case = bundled[i % len(bundled)]
            file.write(case.model_copy(update={"id": f"{case.category}-{i:05d}"}).model_dump_json() + "\n")
    return str(path)


def _ours(folder: str, count: int) -> Any:
    from curate_inspect import curate

    return curate(cases=_cases_file(folder, count))


def _bare(folder: str, count: int) -> Any:
    """The same conversations as a plain list of turns, the same number of generations, one grader call."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, get_model
    from inspect_ai.scorer import Score, mean, scorer, stderr
    from inspect_ai.solver import solver

    from curate_inspect.dialogue import SCENARIOS, script
    from curate_inspect.distractors import draw
    from curate_inspect.judge import CONSIDERATION, question
    from curate_inspect.sources import load

    source = load(_cases_file(folder, count))
    scripts: dict[str, list[str]] = {}
    samples = []
    for scenario in SCENARIOS:
        for case in source.cases:
            drawn = draw(source.pools, case, seed=0, epoch=1, trivia_turns=3)
            turns = [turn.text for turn in script(case, scenario, "baseline", drawn)]
            name = f"{case.id}.s{scenario}"
            scripts[name] = turns
            samples.append(Sample(id=name, input=turns[-1], target=case.hazard or "", metadata={"case": case.id}))
    prompts = {
        name: question(CONSIDERATION, turns[0], turns[-1], turns[-1], "Yes." * 20)[1].text for name, turns in scripts.items()
    }

    @solver
    def converse() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            state.messages = []
            for text in scripts[str(state.sample_id)]:
                state.messages.append(ChatMessageUser(content=text))
                state = await generate(state)
            return state

        return solve

    @scorer(metrics=[mean(), stderr()])
    def graded() -> Any:
        async def score(state: Any, target: Any) -> Score:
            prompt = [ChatMessageSystem(content=CONSIDERATION.text), ChatMessageUser(content=prompts[str(state.sample_id)])]
            output = await get_model(role="grader").generate(prompt)
            return Score(value=float("2" in output.completion), explanation=output.completion)

        return score

    return Task(dataset=MemoryDataset(samples), solver=converse(), scorer=graded())


if __name__ == "__main__":
    main()
