"""CPU, wall time, peak memory and log size of `curate` against a bare Inspect task.

The bare task plays the same turns as a plain list and asks the grader once, with no logic of ours: no draw, no sharing,
no parser, no second scorer.
"""

import resource
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.common import REPLY, VERDICT, Figures, canned, cases_file, folder, in_turn, show

NAMES = {
    "cpu_ms": "CPU, ms a sample",
    "wall_ms": "wall time, ms a sample",
    "memory_mb": "peak memory, MB",
    "log_kb": "log, kB a sample",
}


def table(cases: int = 340, rounds: int = 5) -> None:
    """Print the figures of `curate`, as it is and with as many calls as the bare task, and their ratios to it."""
    tasks = {"curate": ("shared", cases), "unshared": ("unshared", cases), "bare task": ("bare", cases)}
    found = in_turn("overhead.measure", tasks, rounds)
    rows = []
    for key, name in NAMES.items():
        shared, unshared, bare = (figures[key] for figures in found.values())
        rows.append((name, [f"{shared:.2f}", f"{unshared:.2f}", f"{bare:.2f}", f"{shared / bare:.2f}", f"{unshared / bare:.2f}"]))
    title = f"Overhead: {cases} cases × 5 scenarios, canned replies, medians of {rounds} fresh processes each, in turn"
    show(title, (*tasks, "curate / bare", "unshared / bare"), rows)


def measure(which: str, cases: int) -> Figures:
    """Run one of the three over so many cases."""
    from inspect_ai import eval

    from curate_inspect import curate

    task = bare(cases) if which == "bare" else curate(cases=cases_file(cases), share_prefix=which == "shared")
    started, cpu = time.perf_counter(), time.process_time()
    models = canned("assistant", REPLY), canned("grader", VERDICT)
    (log,) = eval(task, model=models[0], model_roles={"grader": models[1]}, log_dir=str(folder()), display="none")
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    samples = 5 * cases
    assert log.status == "success" and log.results and log.results.completed_samples == samples
    return {
        "cpu_ms": 1000 * cpu / samples,
        "wall_ms": 1000 * wall / samples,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "log_kb": Path(log.location).stat().st_size / 1024 / samples,
    }


def bare(cases: int) -> Any:
    """A task with the same samples, texts and grader calls, and no logic of ours."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, get_model
    from inspect_ai.scorer import Score, mean, scorer, stderr
    from inspect_ai.solver import solver

    from curate_inspect.dialogue import SCENARIOS, script
    from curate_inspect.distractors import draw
    from curate_inspect.judge import CONSIDERATION, question
    from curate_inspect.sources import load

    source = load(cases_file(cases))
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
    def play() -> Any:
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

    return Task(dataset=MemoryDataset(samples), solver=play(), scorer=graded())
