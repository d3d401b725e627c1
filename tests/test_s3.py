"""Runs that write their logs to a bucket, against moto's server: the report on them is the report on local logs."""

import subprocess
import sys
from pathlib import Path

import pytest
from inspect_ai.log import list_eval_logs

from curate_inspect.cli import main

pytestmark = pytest.mark.server


def inspect_eval(log_dir: str, folder: Path) -> None:
    command = [sys.executable, "-m", "inspect_ai", "eval", "curate_inspect/curate", "-T", "per_category=1"]
    command += ["--model", "curate/forgetful", "--model-role", "grader=curate/judge", "--log-dir", log_dir, "--display", "none"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)


@pytest.mark.usefixtures("bucket")
def test_a_run_in_a_bucket_is_reported_as_a_local_one(tmp_path: Path) -> None:
    inspect_eval("s3://runs/study", tmp_path)
    inspect_eval(str(tmp_path / "study"), tmp_path)
    (info,) = list_eval_logs("s3://runs/study")
    assert info.name.startswith("s3://runs/study/")
    for logs, out in (("s3://runs/study", "remote"), (str(tmp_path / "study"), "local")):
        assert main(["report", logs, "--out", str(tmp_path / out)]) == 0
    remote, local = ((tmp_path / out / "results.csv").read_text(encoding="utf-8") for out in ("remote", "local"))
    assert remote == local
    assert (tmp_path / "remote" / "report.html").stat().st_size > 100_000
