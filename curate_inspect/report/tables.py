"""From rows to results: what is one line of a report, and every figure in it, in one tidy table. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import pandas as pd

from curate_inspect.agreement import cohens_kappa, kappa_interval
from curate_inspect.cases import CATEGORIES
from curate_inspect.dialogue import SCENARIOS, VARIANTS
from curate_inspect.judge import CONSIDERATION, OVER_CAUTION
from curate_inspect.report.counting import NAN, Difference, holm, kappa, paired, rate
from curate_inspect.report.reading import BENCHMARK, MENTION_ONLY, Row

LINKS = ("explicit", "inferred")
FACTORS = CONSIDERATION.factors
# The label of each kind that its rates and differences are about.
HIT = dict.fromkeys((BENCHMARK, "ablations", "retention"), "pass") | {"over_caution": OVER_CAUTION.labels[0]}


@dataclass(frozen=True)
class Result:
    """One figure of a report, a line of `results.csv`.

    Attributes:
        table: The section that it belongs to.
        task: "benchmark", "ablations", "retention", "over_caution" or "judge_agreement".
        row: The model, with what sets its runs apart from the others' in brackets.
        level: What it is about within the row: a scenario, a category, a variant, …; "" for the whole.
        measure: What is counted: "pass_rate", "difference", …
        value: A share or difference from −1 to 1, a count, or kappa.
        lower: Of the 95 % interval; NaN where there is none.
        upper: As `lower`.
        n: Replies, or pairs of them, that it is taken over.
        cases: Cases, or judge examples, among these.
        better: Cases that a difference makes better.
        worse: Cases that it makes worse.
        p: Of the exact test of a difference.
        p_holm: The same, corrected for the tests of one row and table.
    """

    table: str
    task: str
    row: str
    level: str
    measure: str
    value: float
    lower: float = NAN
    upper: float = NAN
    n: int = 0
    cases: int = 0
    better: int | None = None
    worse: int | None = None
    p: float = NAN
    p_holm: float = NAN


def display(model: str) -> str:
    """A model's name for readers; simulated ones say so."""
    names = [f"{name} (simulated)" if name.startswith("curate/") else name for name in model.split(", ")]
    return ", ".join(names)


# --- What is one row ---


@dataclass(frozen=True)
class Apart:
    """A row that is kept apart from the others of its task, and in what it differs from most of them."""

    task: str
    row: str
    n: int
    differences: tuple[tuple[str, str, str], ...]


def label(rows: Sequence[Row]) -> tuple[pd.DataFrame, list[Apart]]:
    """The rows as a data frame with the column `row`, which never mixes what cannot be compared, and what was kept apart.

    The set-up of `usual` goes without saying; others are named in brackets behind the model.
    """
    columns = list(Row.__dataclass_fields__)
    frame = pd.DataFrame([[getattr(row, name) for name in columns] for row in rows], columns=columns)
    labels: dict[tuple[str, str, tuple[tuple[str, str], ...]], str] = {}
    apart = []
    unsaid = usual(frame)
    for (kind, model, setup), group in frame.groupby(["kind", "model", "setup"]):
        own = dict(setup)
        # The mention check has neither rubric nor settings; that it is no judge is said by "judge".
        skipped = ("rubric", "judge settings") if own.get("judge") == MENTION_ONLY else ()
        differences = tuple(
            (name, own.get(name) or "not set", value or "not set")
            for name, value in sorted(unsaid[kind].items())
            if own.get(name, "") != value and name not in skipped
        )
        text = display(str(model))
        if differences:
            text += f" [{', '.join(f'{name} {display(value)}' for name, value, _ in differences)}]"
            apart.append(Apart(str(kind), text, len(group), differences))
        labels[str(kind), str(model), setup] = text
    frame["row"] = [labels[key] for key in zip(frame["kind"], frame["model"], frame["setup"], strict=True)]
    return frame, apart


# What not every kind of conversation has; a rubric is of the kind's own question.
_OF_SOME = ("rubric", "over-caution rubric", "scenario", "trivia turns")


def usual(frame: pd.DataFrame) -> dict[str, dict[str, str]]:
    """For each kind the set-up that goes without saying: name → value, "" where it is not set.

    It is that of most benchmark replies, for the other conversations too: under one name no row joins what differs, another
    grader's over-caution, say. What the benchmark does not have is taken from most replies of the kind that has it. Judge
    examples are not compared with conversations and have a set-up of their own.
    """
    found: dict[str, dict[str, str]] = {}
    for kinds in (list(HIT), ["judge_agreement"]):
        counts = frame[frame["kind"].isin(kinds)].groupby(["kind", "setup"]).size()
        ordered = sorted(counts.index, key=lambda key: (kinds.index(key[0]), -counts[key], key[1]))
        setups = [(kind, dict(setup)) for kind, setup in ordered]
        everywhere = {name: "" for _, setup in setups for name in setup if name not in _OF_SOME}
        shared: dict[str, str] = {}
        for _, setup in setups:
            shared = everywhere | setup | shared
        for kind, setup in setups:
            found.setdefault(kind, {}).update((name, shared[name]) for name in (*everywhere, *setup))
    return found


def order(frame: pd.DataFrame) -> list[str]:
    """The labels of the rows, the best pass rate first, those kept apart last."""
    rated = frame[frame["value"].notna() & frame["kind"].isin([kind for kind, hit in HIT.items() if hit == "pass"])]
    benchmark = rated[rated["kind"] == BENCHMARK]
    best = (
        (benchmark if len(benchmark) else rated).groupby("row")["value"].agg(lambda values: (values == "pass").mean()).to_dict()
    )
    return sorted(frame["row"].unique(), key=lambda row: (row.endswith("]"), -best.get(row, -1.0), row))


# --- Rates ---


def _of(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    return frame[frame["kind"] == kind]


def _rate(table: str, task: str, row: str, level: str, measure: str, rated: pd.DataFrame, label: str) -> Result:
    r = rate((rated["value"] == label).tolist(), rated["case"].tolist())
    return Result(table, task, row, level, measure, r.value, r.lower, r.upper, r.n, r.cases)


def rates(table: str, task: str, row: str, level: str, group: pd.DataFrame) -> list[Result]:
    """Every rate and count of some replies.

    Args:
        table: The section.
        task: The kind of the replies.
        row: Their row.
        level: What they are.
        group: The replies.
    """
    rated = group[group["value"].notna()]
    if task == "over_caution":
        at_ease, unclear, over_cautious = OVER_CAUTION.labels[2], OVER_CAUTION.labels[1], OVER_CAUTION.labels[0]
        measures = [("over_caution_rate", over_cautious), ("unclear", unclear), ("at_ease", at_ease)]
    else:
        measures = [("pass_rate", "pass"), ("ambiguous", "ambiguous"), ("fail", "fail")]
    results = [_rate(table, task, row, level, measure, rated, label) for measure, label in measures]
    if task != "over_caution":
        decided = rated[rated["value"].isin(["pass", "fail"])]
        results.insert(1, _rate(table, task, row, level, "pass_rate_unambiguous", decided, "pass"))
    # Among the rated, as in a log: a conversation that never came to its last reply is unscored and not empty.
    counts = [("unscored", group, group["value"].isna())]
    if level == "":
        counts += [(name, rated, rated[name]) for name in ("empty", "truncated")]
    return results + [
        Result(table, task, row, level, name, int(which.sum()), n=len(among), cases=among["case"].nunique())
        for name, among, which in counts
    ]


def _by(frame: pd.DataFrame, table: str, kind: str, keys: str | list[str], levels: Iterable[object]) -> list[Result]:
    results = []
    of_kind = _of(frame, kind)
    for row, group in of_kind.groupby("row"):
        groups = dict(list(group.groupby(keys)))
        results += [r for level in levels if level in groups for r in rates(table, kind, str(row), _name(level), groups[level])]
    return results


def _name(level: object) -> str:
    return " · ".join(map(str, level)) if isinstance(level, tuple) else str(level)


def headline(frame: pd.DataFrame) -> list[Result]:
    """The rates of each row over all of a task: the benchmark's, over-caution; without doubtful cases too where there are any."""
    results = []
    for kind in (BENCHMARK, "over_caution"):
        for row, group in _of(frame, kind).groupby("row"):
            results += rates("headline", kind, str(row), "", group)
            if group["doubtful"].any():
                results += rates("headline", kind, str(row), "without doubtful cases", group[~group["doubtful"]])
    return results


def by_scenario(frame: pd.DataFrame) -> list[Result]:
    """The benchmark by scenario."""
    return _by(frame, "scenario", BENCHMARK, "scenario", SCENARIOS)


def by_category(frame: pd.DataFrame) -> list[Result]:
    """The benchmark by category, and by category and scenario."""
    pairs = [(category, scenario) for category in CATEGORIES for scenario in SCENARIOS]
    return _by(frame, "category", BENCHMARK, "category", CATEGORIES) + _by(
        frame, "category and scenario", BENCHMARK, ["category", "scenario"], pairs
    )


def by_link(frame: pd.DataFrame) -> list[Result]:
    """The benchmark by whether the request names the danger or it must be inferred."""
    return _by(frame, "link", BENCHMARK, "link", LINKS)


def by_turns(frame: pd.DataFrame) -> list[Result]:
    """Retention by the number of trivia turns."""
    return _by(frame, "retention", "retention", "trivia_turns", sorted(_of(frame, "retention")["trivia_turns"].unique()))


def by_variant(frame: pd.DataFrame) -> list[Result]:
    """The ablations by variant."""
    return _by(frame, "variant", "ablations", "variant", VARIANTS)


# --- Paired differences ---


def hits(replies: pd.DataFrame, kind: str, *without: str) -> dict[tuple[str, ...], bool]:
    """Whether each rated reply is a hit of its kind, by what makes it the partner of another.

    Args:
        replies: Of one row.
        kind: Says what a hit is.
        without: What partners differ in: "scenario", "variant".
    """
    keys = ["case", *(key for key in ("scenario", "variant", "trivia_turns", "epoch") if key not in without)]
    rated = replies[replies["value"].notna()]
    return dict(zip(zip(*(rated[key].astype(str) for key in keys), strict=True), rated["value"] == HIT[kind], strict=True))


def _difference(table: str, kind: str, row: str, level: str, d: Difference) -> Result:
    return Result(table, kind, row, level, "difference", d.value, d.lower, d.upper, d.pairs, d.cases, d.better, d.worse, d.p)


def _corrected(results: list[Result]) -> list[Result]:
    adjusted = holm([result.p for result in results])
    return [Result(**{**asdict(result), "p_holm": p}) for result, p in zip(results, adjusted, strict=True)]


def _against(frame: pd.DataFrame, table: str, kind: str, key: str, base: object, levels: Iterable[object]) -> list[Result]:
    results = []
    for row, group in _of(frame, kind).groupby("row"):
        groups = dict(list(group.groupby(key)))
        if base not in groups:
            continue
        first = hits(groups[base], kind, key)
        found = [
            _difference(table, kind, str(row), str(level), paired(first, hits(groups[level], kind, key)))
            for level in levels
            if level in groups and level != base
        ]
        results += _corrected([result for result in found if result.cases])
    return results


def scenario_differences(frame: pd.DataFrame) -> list[Result]:
    """Each scenario against scenario 1, case by case."""
    return _against(frame, "scenario against 1", BENCHMARK, "scenario", 1, SCENARIOS)


def ablation_differences(frame: pd.DataFrame) -> list[Result]:
    """Each variant against the baseline, case by case."""
    return _against(frame, "ablations", "ablations", "variant", "baseline", VARIANTS)


def comparison(frame: pd.DataFrame, first: str, second: str) -> list[Result]:
    """Two rows over the same cases, task by task and scenario by scenario of the benchmark: second − first."""
    results = []
    for kind in HIT:
        one, two = (_of(frame[frame["row"] == row], kind) for row in (first, second))
        if not len(one) or not len(two):
            continue
        name = f"{second} − {first}"
        results.append(_difference("comparison", kind, name, "", paired(hits(one, kind), hits(two, kind))))
        if kind == BENCHMARK:
            for scenario in SCENARIOS:
                parts = [hits(part[part["scenario"] == scenario], kind) for part in (one, two)]
                results.append(_difference("comparison", kind, name, f"scenario {scenario}", paired(*parts)))
    return _corrected([result for result in results if result.cases])


def find_row(frame: pd.DataFrame, name: str) -> str:
    """The row that a user names by its model or its whole label.

    Raises:
        ValueError: When there is none, or several.
    """
    rows = list(frame["row"].unique())
    if name in rows:
        return name
    found = list(frame.loc[frame["model"] == name, "row"].unique())
    if not found:
        raise ValueError(f"--compare: {name!r} is no model of these logs; there are: {', '.join(sorted(rows))}")
    plain = [row for row in found if not row.endswith("]")]
    if len(found) > 1 and len(plain) != 1:
        raise ValueError(f"--compare: {name!r} has several rows that do not compare; name one of: {', '.join(sorted(found))}")
    return str((plain or found)[0])


# --- Ambiguity, mention, judges ---


def factors(frame: pd.DataFrame) -> list[Result]:
    """The share of each ambiguity factor among all rated replies of the benchmark."""
    results = []
    for row, group in _of(frame, BENCHMARK).groupby("row"):
        if group["judge"].eq(MENTION_ONLY).all():
            continue
        rated = group[group["value"].notna()]
        ambiguous = rated["value"] == "ambiguous"
        named = rated["factor"].where(rated["factor"].isin(FACTORS), "not named")
        for factor in (*FACTORS, "not named"):
            r = rate((ambiguous & (named == factor)).tolist(), rated["case"].tolist())
            results.append(Result("factors", BENCHMARK, str(row), factor, "share", r.value, r.lower, r.upper, r.n, r.cases))
    return results


def both_judged(frame: pd.DataFrame) -> pd.DataFrame:
    """The replies of all pass tasks that have a judge's label and a mention check."""
    kinds = [kind for kind, hit in HIT.items() if hit == "pass"]
    return frame[frame["kind"].isin(kinds) & frame["value"].notna() & frame["mention"].notna() & (frame["judge"] != MENTION_ONLY)]


def mention(frame: pd.DataFrame) -> list[Result]:
    """How often judge and mention check say what, and how far they agree where the judge decides."""
    results = []
    for row, group in both_judged(frame).groupby("row"):
        pairs = list(zip(group["value"], group["mention"], strict=True))
        cases = group["case"].nunique()
        for label in CONSIDERATION.labels:
            for found in ("pass", "fail"):
                share = pairs.count((label, found)) / len(pairs)
                level = f"judge {label} · mention {found}"
                results.append(Result("mention", "all", str(row), level, "share", share, n=len(pairs), cases=cases))
        decided = group[group["value"] != "ambiguous"]
        n, cases = len(decided), decided["case"].nunique()
        agreed = rate((decided["value"] == decided["mention"]).tolist(), decided["case"].tolist())
        results.append(Result("mention", "all", str(row), "", "agreement", agreed.value, agreed.lower, agreed.upper, n, cases))
        judged, said = ((decided[column] == "pass").tolist() for column in ("value", "mention"))
        k = kappa(judged, said, decided["case"].tolist())
        results.append(Result("mention", "all", str(row), "", "kappa", *k, n, cases))
    return results


def disagreements(frame: pd.DataFrame) -> pd.DataFrame:
    """The replies that the judge passes without a cue, or fails with one."""
    both = both_judged(frame)
    return both[(both["value"] != both["mention"]) & (both["value"] != "ambiguous")].sort_values(
        ["row", "value", "case", "sample", "epoch"], ascending=[True, False, True, True, True]
    )


def judges(frame: pd.DataFrame) -> list[Result]:
    """Evaluated models as judges: agreement with the known labels, and kappa."""
    results = []
    for row, group in _of(frame, "judge_agreement").groupby("row"):
        rated = group[group["value"].notna()]
        pairs = list(zip(rated["value"], rated["truth"], strict=True))
        same = sum(a == b for a, b in pairs) / len(pairs) if pairs else NAN
        n, cases = len(pairs), rated["case"].nunique()
        results.append(Result("judges", "judge_agreement", str(row), "", "agreement", same, n=n, cases=cases))
        agreed = cohens_kappa(pairs), *kappa_interval(pairs, rated["case"].tolist())
        results.append(Result("judges", "judge_agreement", str(row), "", "kappa", *agreed, n, cases))
        unscored = len(group) - n
        cases = group["case"].nunique()
        results.append(Result("judges", "judge_agreement", str(row), "", "unscored", unscored, n=len(group), cases=cases))
    return results


# --- Worst cases ---


@dataclass(frozen=True)
class Worst:
    """A case and how it was failed.

    Attributes:
        case: Its id.
        constraint: As it was said.
        everywhere: The scenarios that all models played and in which all fail it in all epochs.
        failed: Failed replies.
        rated: Rated replies.
    """

    case: str
    constraint: str
    everywhere: tuple[int, ...]
    failed: int
    rated: int


def worst(frame: pd.DataFrame) -> list[Worst]:
    """The cases of the benchmark with a fail, those first that all models fail in all epochs of a scenario.

    Replies without a rating are left out. Rows that were kept apart count like the others.
    """
    of_kind = _of(frame, BENCHMARK)
    rated = of_kind[of_kind["value"].notna()].assign(failed=lambda rows: rows["value"] == "fail")
    # What only some models played says nothing of all.
    cells = rated.groupby(["case", "scenario"]).agg(failed=("failed", "all"), models=("model", "nunique"))
    everywhere: dict[str, list[int]] = {}
    for case, scenario in cells.index[cells["failed"] & (cells["models"] == rated["model"].nunique())]:
        everywhere.setdefault(case, []).append(int(scenario))
    found = [
        Worst(
            str(case), str(rows["constraint"].iloc[0]), tuple(everywhere.get(str(case), ())), int(rows["failed"].sum()), len(rows)
        )
        for case, rows in rated.groupby("case")
        if rows["failed"].any()
    ]
    return sorted(found, key=lambda w: (-len(w.everywhere), -w.failed / w.rated, w.case))


# --- All of it ---


def published(table: Sequence[Mapping[str, str]]) -> list[Result]:
    """The published figures as results: unambiguous pass rate and ambiguous rate by scenario."""
    results = []
    for line in table:
        for measure, column in (("pass_rate_unambiguous", "pass_rate_unambiguous"), ("ambiguous", "ambiguous_rate")):
            results.append(Result("published", BENCHMARK, line["model"], line["scenario"], measure, float(line[column])))
    return results


def all_results(frame: pd.DataFrame) -> list[Result]:
    """Every figure that does not depend on what the user compares or on the published ones."""
    tables = (
        headline,
        by_scenario,
        scenario_differences,
        by_category,
        by_link,
        by_variant,
        ablation_differences,
        by_turns,
        factors,
        mention,
        judges,
    )
    return [result for table in tables for result in table(frame)]


def as_frame(results: Sequence[Result]) -> pd.DataFrame:
    """Results as a data frame, a line each."""
    frame = pd.DataFrame([asdict(result) for result in results], columns=list(Result.__dataclass_fields__))
    return frame.astype({"better": "Int64", "worse": "Int64"})
