"""Models × tasks with Inspect Flow: one command that can be given again until everything is there.

    pip install inspect-flow uv
    flow run examples/flow.py --dry-run
    flow run examples/flow.py

`log_dir` may be a bucket (`s3://…`). The report reads it as it is: `curate-inspect report logs/flow`.
"""

from inspect_flow import FlowDefaults, FlowSpec, FlowTask, tasks_matrix

FlowSpec(
    log_dir="logs/flow",
    defaults=FlowDefaults(task=FlowTask(model_roles={"grader": "openai/gpt-4.1-2025-04-14"})),
    tasks=tasks_matrix(
        task=["curate_inspect/curate", "curate_inspect/ablations", "curate_inspect/over_caution"],
        args=[{"per_category": 20}],
        model=["openai/gpt-4o", "anthropic/claude-opus-4-5-20251101"],
    ),
)
