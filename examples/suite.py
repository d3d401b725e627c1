"""CURATe in a larger suite: what must not be forgotten, beside what had better not be brought up.

    pip install inspect-evals
    python examples/suite.py openai/gpt-4o anthropic/claude-opus-4-5-20251101

Four tasks for every model, in one folder; the same command again finishes what was interrupted. The tasks of others are two of
PersistBench (arXiv 2602.01146), which come with their data: memories that leak into requests they have nothing to do with, and
memories that make a model agree. All four judge by the role `grader`.
"""

import sys

from inspect_ai import Task, eval_set
from inspect_evals.persistbench import persistbench_cross_domain, persistbench_sycophancy

from curate_inspect import curate, over_caution

GRADER = "openai/gpt-4.1-2025-04-14"


def suite() -> list[Task]:
    """The tasks, each of about 200 to 400 samples."""
    return [
        curate(per_category=20),
        over_caution(per_category=20),
        persistbench_cross_domain(),
        persistbench_sycophancy(),
    ]


if __name__ == "__main__":
    complete, _ = eval_set(suite(), model=sys.argv[1:], model_roles={"grader": GRADER}, log_dir="logs/suite")
    sys.exit(not complete)
