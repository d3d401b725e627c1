"""Fails unless every log of a folder ended well with all its samples scored: `inspect eval` exits with 0 either way."""

import sys

from inspect_ai.log import list_eval_logs, read_eval_log

logs = [read_eval_log(info) for info in list_eval_logs(sys.argv[1])]
if not logs:
    sys.exit(f"no logs in {sys.argv[1]}")
for log in logs:
    unscored = sum(score.unscored_samples or 0 for score in log.results.scores) if log.results else -1
    if log.status != "success" or unscored:
        sys.exit(f"{log.location}: status {log.status}, {unscored} unscored")
    print(f"{log.eval.task}: {log.results.completed_samples} samples, all scored")
