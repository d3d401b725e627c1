"""From logs to rows: which logs there are, which of them can be reported, and one row for each verdict on a reply.

Sample summaries are read rather than whole samples: they have the verdicts and are fifteen times as fast.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from inspect_ai.log import (
    EvalLog,
    EvalLogInfo,
    EvalSampleSummary,
    effective_generate_config,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
)
from inspect_ai.model import GenerateConfig

from curate_inspect.judge import OPERATIONAL

BENCHMARK = "benchmark"
# What is reported together: the category and scenario tasks play the same conversations as `curate`.
KINDS = {
    **dict.fromkeys(("curate", "allergy", "phobia", "physical_constraint", "trauma"), BENCHMARK),
    **{f"scenario_{i}": BENCHMARK for i in range(1, 6)},
    "ablations": "ablations",
    "retention": "retention",
    "over_caution": "over_caution",
    "judge_agreement": "judge_agreement",
}
MENTION_ONLY = "none (mention check)"
QUOTED = 220  # characters of a reply that are kept for quotation
_JUDGES = re.compile(r"(curate_judge|over_caution_judge|agreement_score)\d*")
_MENTION = "constraint_mention"


@dataclass(frozen=True)
class Row:
    """One verdict on one last reply, or the want of one.

    Attributes:
        kind: What is reported together: "benchmark", "ablations", "retention", "over_caution", "judge_agreement".
        model: The evaluated model.
        sample: The sample's id.
        epoch: From 1.
        case: The id of the case; the sample's own id for judge examples.
        category: Of the case.
        scenario: 1–5, 0 for judge examples.
        variant: As in `ablations`.
        link: "explicit", "inferred" or "unknown".
        trivia_turns: Between constraint and request.
        constraint: As it was said.
        doubtful: Whether the case is one of those that the data mark as doubtful.
        value: The label; None when unscored.
        reason: Why it is unscored, "" when it is scored.
        factor: The ambiguity factor, "" when there is none.
        mention: "pass" or "fail" by the mention check; None when there was none.
        truth: The known label of a judge example, "" otherwise.
        empty: Whether the last reply was empty.
        truncated: Whether it was cut by a token limit.
        self_graded: Whether the grader is the evaluated model.
        reply: The beginning of the last reply.
        judge: The grader, or `MENTION_ONLY`.
        setup: What must be equal for two rows to be compared: name → value.
        log: Where the log is.
        completed: When the sample was completed.
    """

    kind: str
    model: str
    sample: str
    epoch: int
    case: str
    category: str
    scenario: int
    variant: str
    link: str
    trivia_turns: int
    constraint: str
    doubtful: bool
    value: str | None
    reason: str
    factor: str
    mention: str | None
    truth: str
    empty: bool
    truncated: bool
    self_graded: bool
    reply: str
    judge: str
    setup: tuple[tuple[str, str], ...]
    log: str
    completed: str


@dataclass(frozen=True)
class UsedLog:
    """A log that is in the report, for its provenance."""

    path: str
    task: str
    model: str
    created: str
    samples: int
    epochs: int
    seed: str
    data: str
    command: str
    versions: str


@dataclass(frozen=True)
class LeftOut:
    """A log that is not in the report, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Logs:
    """All that was read; `rows` are merged, so that no reply comes twice."""

    rows: tuple[Row, ...]
    used: tuple[UsedLog, ...]
    left_out: tuple[LeftOut, ...]
    repeated: int


def read_logs(paths: Sequence[str], progress: Callable[[str], None] = lambda text: None) -> Logs:
    """Read and merge any number of logs.

    Args:
        paths: Log files and folders of logs, local or as `s3://…`.
        progress: Is told what is being read.

    Raises:
        ValueError: When nothing can be reported; the message says what was found and what to do.
    """
    found, left_out = find_logs(paths)
    rows: list[Row] = []
    used: list[UsedLog] = []
    unusable: list[tuple[str, EvalLog, str]] = []
    finished: set[str] = set()
    for number, path in enumerate(found, 1):
        progress(f"reading log {number} of {len(found)}: {path}")
        try:
            if "://" not in path and not Path(path).stat().st_size:
                left_out.append(LeftOut(path, "is empty"))
                continue
            header = read_eval_log(path, header_only=True)
            if reason := _unusable(header):
                unusable.append((path, header, reason))
                continue
            summaries = read_eval_log_sample_summaries(path)
            of_log = rows_of(path, header, summaries)
        except Exception as error:  # whatever is in a file, the other logs are reported
            left_out.append(_unreadable(path, error))
            continue
        if not of_log:
            left_out.append(LeftOut(path, "has no samples"))
            continue
        rows += of_log
        used.append(_used(path, header, len(summaries)))
        finished.add(header.eval.task_id)
    for path, header, reason in unusable:
        remedy = "; `inspect eval-retry` finishes it"
        if header.eval.task_id in finished:
            remedy = "; the retry that finished it is in the report"
        left_out.append(LeftOut(path, reason + ("" if _is_foreign(header) else remedy)))
    if not used:
        raise ValueError(_nothing(paths, left_out))
    merged = merge(rows)
    return Logs(merged, tuple(used), tuple(left_out), len(rows) - len(merged))


def _nothing(paths: Sequence[str], left_out: Sequence[LeftOut]) -> str:
    where = ", ".join(paths)
    if not left_out:
        return f"no logs in {where}: run `inspect eval curate_inspect/curate --model …` first, or name its log folder"
    reasons = "".join(f"\n  {item.path}: {item.reason}" for item in left_out)
    return f"no log in {where} can be reported; run `inspect eval curate_inspect/curate --model …`, or see to these:{reasons}"


def find_logs(paths: Sequence[str]) -> tuple[list[str], list[LeftOut]]:
    """The log files that some paths name, each once, oldest first as far as their names tell; and what is not there."""
    found: dict[str, None] = {}
    left_out = []
    for path in paths:
        try:
            names = _expand(path)
        except Exception as error:
            left_out.append(_unreadable(path, error))
            continue
        if names is None:
            left_out.append(LeftOut(path, "is not there; check the path"))
        found |= dict.fromkeys(names or [])
    return sorted(found, key=lambda path: (path.rpartition("/")[2], path)), left_out


def _expand(path: str) -> list[str] | None:
    if "://" in path:
        return [path] if path.endswith((".eval", ".json")) else [info.name for info in list_eval_logs(path)]
    local = Path(path).expanduser()
    if local.is_dir():
        return [_local(info) for info in list_eval_logs(str(local))]
    return [str(local.resolve())] if local.exists() else None


def _local(info: EvalLogInfo) -> str:
    path = unquote(urlparse(info.name).path) if info.name.startswith("file:") else info.name
    return str(Path(path).resolve())


def _unreadable(path: str, error: Exception) -> LeftOut:
    first = (str(error).splitlines() or [""])[0]
    return LeftOut(path, f"cannot be read ({type(error).__name__}{f': {first:.120}' if first else ''})")


def _unusable(header: EvalLog) -> str:
    """Why a log is left out, "" when it is not."""
    if _is_foreign(header):
        return f"is of the task {header.eval.task!r}, which is none of curate_inspect"
    if header.status != "success":
        return {"started": "is of a run that goes on or broke off", "cancelled": "was cancelled"}.get(
            header.status, "ended in an error"
        )
    return "has samples that were invalidated" if header.invalidated else ""


def _is_foreign(header: EvalLog) -> bool:
    package, _, name = (header.eval.task_registry_name or header.eval.task).rpartition("/")
    return name not in KINDS or package not in ("", "curate_inspect")


def _used(path: str, header: EvalLog, samples: int) -> UsedLog:
    spec = header.eval
    options = [f"-T {name}={_argument(value)}" for name, value in spec.task_args_passed.items()]
    options += [f"-M {name}={_argument(value)}" for name, value in spec.model_args.items()]
    if spec.model_base_url:
        options.append(f"--model-base-url {_argument(spec.model_base_url)}")
    if spec.solver:
        options.append(f"--solver {_argument(spec.solver)}")
        options += [f"-S {name}={_argument(value)}" for name, value in (spec.solver_args_passed or {}).items()]
    roles = spec.model_roles or {}
    for role, bound in roles.items():
        names = ",".join(config.model for config in (bound if isinstance(bound, list) else [bound]))
        options.append(f"--model-role {role}={names}")
    options += [f"--{name.replace('_', '-')} {_argument(value)}" for name, value in _said(_config(header)).items()]
    epochs = spec.config.epochs or 1
    if epochs > 1:
        options.append(f"--epochs {epochs}")
    if spec.config.sample_id is not None:
        options.append(f"--sample-id {_argument(spec.config.sample_id)}")
    if spec.config.limit is not None:
        limit = spec.config.limit
        # On the command line a range counts from 1 and includes its end.
        options.append(f"--limit {limit if isinstance(limit, int) else f'{limit[0] + 1}-{limit[1]}'}")
    return UsedLog(
        path=path,
        task=spec.task,
        model=spec.model,
        created=spec.created,
        samples=samples,
        epochs=epochs,
        seed=str(spec.task_args.get("seed", "")),
        data=f"{spec.dataset.name or ''} {(spec.metadata or {}).get('data_version', '')}".strip(),
        command=" ".join([f"inspect eval {spec.task} --model {spec.model}", *options]),
        versions=", ".join(f"{name} {version}" for name, version in spec.packages.items()),
    )


def _argument(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if re.fullmatch(r"[\w.,:/+@-]+", text) else "'" + text.replace("'", "'\\''") + "'"


# --- Rows ---


@dataclass(frozen=True)
class Judge:
    """Who judged: the grader, or `MENTION_ONLY`; the rubric; and the settings of the grader's role, "" for none."""

    grader: str
    rubric: str
    settings: str


def rows_of(path: str, header: EvalLog, summaries: Sequence[EvalSampleSummary]) -> list[Row]:
    """The rows of a log: for each sample one for each of the log's judges, whether it gave a verdict or not."""
    judges = judges_of(header, summaries)
    settings = _settings(header)
    return [row for summary in summaries for row in _rows_of_sample(path, header, summary, judges, settings)]


def _rows_of_sample(
    path: str, header: EvalLog, summary: EvalSampleSummary, judges: dict[str, Judge], settings: dict[str, str]
) -> list[Row]:
    scores = summary.scores or {}
    mention = scores.get(_MENTION)
    m = summary.metadata
    name = (header.eval.task_registry_name or header.eval.task).rpartition("/")[2]
    kind = KINDS[name]
    rows = []
    for scorer, judge in judges.items():
        score = scores.get(scorer)
        facts = (score.metadata or {}) if score else {}
        value = score.value if score else None
        scored = isinstance(value, str)
        reason = "" if scored else str((score and score.reason) or (summary.error and "error") or summary.limit or "not scored")
        truth = summary.target if isinstance(summary.target, str) else (summary.target or [""])[0]
        rows.append(
            Row(
                kind=kind,
                model=header.eval.model,
                sample=str(summary.id),
                epoch=summary.epoch,
                case=str(m.get("case", summary.id)),
                category=str(m.get("category", "unknown")),
                scenario=int(m.get("scenario", 0)),
                variant=str(m.get("variant", "baseline")),
                link=str(m.get("link", "unknown")),
                trivia_turns=int(m.get("trivia_turns", 0)),
                constraint=str(m.get("constraint", "")),
                doubtful=bool(m.get("doubts")),
                value=str(value) if scored else None,
                reason=reason,
                factor=str(facts.get("factor") or ""),
                mention=str(mention.value) if mention and isinstance(mention.value, str) else None,
                truth=truth if kind == "judge_agreement" else "",
                empty=bool(facts.get("empty")),
                truncated=bool(facts.get("truncated")),
                self_graded=bool(facts.get("self_graded")),
                reply=_beginning((score.answer if score and scorer != _MENTION else "") or ""),
                judge="" if kind == "judge_agreement" else judge.grader,
                setup=_setup(settings, kind, m, judge),
                log=path,
                completed=str(summary.completed_at or ""),
            )
        )
    return rows


def judges_of(header: EvalLog, summaries: Sequence[EvalSampleSummary]) -> dict[str, Judge]:
    """The scorers of a log that count as its judges, each as most of its scores describe it.

    What a single score says is not enough: those of empty replies and failed samples name no grader.
    """
    scores = [(name, score) for summary in summaries for name, score in (summary.scores or {}).items()]
    names = sorted({name for name, _ in scores if _JUDGES.fullmatch(name)})
    if not names:
        declared = [scorer.name for scorer in header.eval.scorers or []]
        names = [name for name in declared if _JUDGES.fullmatch(name)] or [name for name in declared if name == _MENTION]
    bound = (header.eval.model_roles or {}).get("grader", [])
    role = ", ".join(config.model for config in (bound if isinstance(bound, list) else [bound])) or "unknown"
    judges = {}
    for name in names:
        facts = [score.metadata or {} for other, score in scores if other == name]
        grader = MENTION_ONLY if name == _MENTION else _usual((f.get("grader") for f in facts), role)
        rubric, configured = (_usual((f.get(key) for f in facts), "") for key in ("rubric", "grader_config"))
        judges[name] = Judge(grader, rubric, configured)
    return judges


def _usual(values: Iterable[Any], default: str) -> str:
    counted = Counter(str(value) for value in values if value)
    return counted.most_common(1)[0][0] if counted else default


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= QUOTED else line[: QUOTED - 1].rstrip() + "…"


def _config(header: EvalLog) -> GenerateConfig:
    return header.plan.config.merge(effective_generate_config(header))


def _said(config: GenerateConfig) -> dict[str, Any]:
    """The settings that were made and that can change what a model says."""
    return {name: value for name, value in config.model_dump(exclude_none=True).items() if name not in OPERATIONAL}


def _settings(header: EvalLog) -> dict[str, str]:
    """What the header says about a run that must be equal for its figures to be compared."""
    spec = header.eval
    settings = {"data": str((spec.metadata or {}).get("data_version", "")), "task version": str(spec.task_version)}
    if spec.solver:
        settings["solver"] = spec.solver
    if spec.solver_args:
        settings["solver args"] = json.dumps(spec.solver_args, default=str, sort_keys=True)
    if spec.model_base_url:
        settings["base URL"] = spec.model_base_url
    if spec.model_args:
        settings["model args"] = json.dumps(spec.model_args, default=str, sort_keys=True)
    for name, value in _said(_config(header)).items():
        settings["sampling seed" if name == "seed" else name.replace("_", " ")] = json.dumps(value, default=str)
    return settings


def _setup(settings: dict[str, str], kind: str, metadata: dict[str, Any], judge: Judge) -> tuple[tuple[str, str], ...]:
    setup = settings | {"data": str(metadata.get("data_version") or settings["data"])}
    # Over-caution has a question of its own, which is no other version of the first.
    setup["over-caution rubric" if kind == "over_caution" else "rubric"] = judge.rubric
    if kind != "judge_agreement":
        setup |= {"judge": judge.grader, "judge settings": judge.settings, "seed": str(metadata.get("seed", ""))}
        if kind != "retention":  # there the turns are what is compared
            setup["trivia turns"] = str(metadata.get("trivia_turns", ""))
    if kind == "ablations":  # the benchmark is compared scenario by scenario
        setup["scenario"] = str(metadata.get("scenario", ""))
    return tuple(sorted(setup.items()))


# --- Merging ---


def merge(rows: Iterable[Row]) -> tuple[Row, ...]:
    """One row for each reply: of repeats with the same setup the latest, a scored one before one without a score."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = (row.kind, row.model, row.sample, row.trivia_turns, row.epoch, row.setup)
        other = best.get(key)
        if other is None or (row.value is not None, row.completed) >= (other.value is not None, other.completed):
            best[key] = row
    return tuple(sorted(best.values(), key=lambda row: (row.kind, row.model, row.setup, row.sample, row.trivia_turns, row.epoch)))
