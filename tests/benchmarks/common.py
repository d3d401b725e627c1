"""What the measurements share: fresh processes that take turns, canned models, cases in any number, printed tables."""

import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REPLY = "Yes, that sounds like a fine plan, enjoy it and take a coat."
VERDICT = '{"considerate_answer": "x", "explanation": "It forgets.", "rating": 0, "ambiguity_factor": null}'
Figures = dict[str, float]


def in_turn(measure: str, arguments: Mapping[str, Sequence[Any]], rounds: int) -> dict[str, Figures]:
    """The medians of a measuring function of this package ("module.function") for several arguments, each in fresh processes."""
    runs: dict[str, list[Figures]] = {name: [] for name in arguments}
    for _ in range(rounds):
        for name, given in arguments.items():
            runs[name].append(_fresh(measure, given))
    return {name: {key: statistics.median(run[key] for run in found) for key in found[0]} for name, found in runs.items()}


def _fresh(measure: str, given: Sequence[Any]) -> Figures:
    """Run a measuring function in a process and a folder of its own; it returns its figures."""
    with tempfile.TemporaryDirectory() as folder:
        private = {
            "XDG_DATA_HOME": f"{folder}/data",
            "XDG_CACHE_HOME": f"{folder}/xdg",
            "INSPECT_CACHE_DIR": f"{folder}/cache",
            "INSPECT_TRACE_FILE": f"{folder}/trace.log",
            "INSPECT_LOG_DIR": f"{folder}/logs",
            "BENCHMARK_FOLDER": folder,
        }
        command = [sys.executable, "-m", "tests.benchmarks.common", measure, json.dumps(given)]
        ran = subprocess.run(command, check=False, env=os.environ | private, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"{measure}{tuple(given)} failed:\n{ran.stderr}")
        figures: Figures = json.loads(ran.stdout.splitlines()[-1])
        return figures


def folder() -> Path:
    """Where a measuring function may write."""
    return Path(os.environ["BENCHMARK_FOLDER"])


def canned(name: str, text: str) -> Any:
    """A model that always says the same."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def answer(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        output = ModelOutput.from_content(f"mockllm/{name}", text)
        output.usage = ModelUsage(input_tokens=100, output_tokens=20, total_tokens=120)
        return output

    return get_model(f"mockllm/{name}", custom_outputs=answer, memoize=False)


def cases_file(count: int) -> str:
    """The bundled cases, category by category in turn, copied under new ids until there are enough."""
    from curate_inspect.samples import select
    from curate_inspect.sources import load

    bundled = select(load())
    path = folder() / f"{count}_cases.jsonl"  # a file is read once in a process
    with path.open("w", encoding="utf-8") as file:
        for i in range(count):
            case = bundled[i % len(bundled)]
            file.write(case.model_copy(update={"id": f"{case.category}-{i:05d}"}).model_dump_json() + "\n")
    return str(path)


def show(title: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Print a table."""
    width = max(len(name) for name, _ in rows) + 2
    widths = [max(len(column), *(len(cells[i]) for _, cells in rows)) + 2 for i, column in enumerate(columns)]
    print(f"\n{title}\n")
    print(" " * width + "".join(f"{column:>{w}}" for column, w in zip(columns, widths, strict=True)))
    for name, cells in rows:
        print(f"{name:<{width}}" + "".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)), flush=True)


if __name__ == "__main__":
    module, function = sys.argv[1].split(".")
    print(json.dumps(getattr(importlib.import_module(f"tests.benchmarks.{module}"), function)(*json.loads(sys.argv[2]))))
