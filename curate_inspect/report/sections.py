"""A report as sections of text, figures and tables, for any format. Pure."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import pandas as pd

from curate_inspect.cases import CATEGORIES
from curate_inspect.dialogue import SCENARIOS
from curate_inspect.report.figures import Figure
from curate_inspect.report.findings import SCENARIO_TEXTS, findings, p_value, percent, points, within
from curate_inspect.report.reading import BENCHMARK, MENTION_ONLY, Logs
from curate_inspect.report.tables import FACTORS, LINKS, Apart, Worst, display, usual

SHOWN = 20  # lines of long lists; all disagreements are in a file of their own


@dataclass(frozen=True)
class Link:
    """A cell that leads somewhere."""

    text: str
    href: str


@dataclass(frozen=True)
class Code:
    """A cell that is typed into a terminal."""

    text: str


Cell = str | Link | Code


@dataclass(frozen=True)
class Table:
    """A table with its caption; a long one is folded."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    folded: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the report; `points` are a list of sentences under headings."""

    id: str
    title: str
    text: Sequence[str] = ()
    figure: Figure | None = None
    tables: Sequence[Table] = ()
    points: Sequence[tuple[str, Sequence[str]]] = field(default=())


@dataclass(frozen=True)
class Content:
    """All that the sections are made of."""

    logs: Logs
    frame: pd.DataFrame
    results: pd.DataFrame
    rows: list[str]
    figures: dict[str, Figure]
    apart: list[Apart]
    worst: list[Worst]
    disagreements: pd.DataFrame
    compared: tuple[str, str] | None
    published: Sequence[Mapping[str, str]]
    published_ablations: Sequence[Mapping[str, str]]
    notes: list[str]
    out: str


def compose(content: Content) -> list[Section]:
    """The sections that there is anything to say in, in order."""
    made = (make(content) for make in _ALL)
    return [
        section for section in made if section.text or section.figure or section.points or any(t.rows for t in section.tables)
    ]


# --- Cells ---


def _lines(content: Content, table: str, **where: str) -> pd.DataFrame:
    lines = content.results[content.results["table"] == table]
    for column, value in where.items():
        lines = lines[lines[column] == value]
    return lines


def _with_interval(lines: pd.DataFrame, sign: bool = False) -> str:
    if lines.empty or pd.isna(lines.iloc[0]["value"]):
        return "–"
    line = lines.iloc[0]
    value = points(line["value"]) if sign else f"{100 * line['value']:.1f}"
    return f"{value} [{within(line, '–' if not sign else ' to ')}]" if not pd.isna(line["lower"]) else value


def _count(lines: pd.DataFrame, column: str = "value") -> str:
    return "–" if lines.empty or pd.isna(lines.iloc[0][column]) else str(int(lines.iloc[0][column]))


def _measure(lines: pd.DataFrame, measure: str) -> pd.DataFrame:
    return lines[lines["measure"] == measure]


def _grid(content: Content, table: str, measure: str, levels: Sequence[str], caption: str, names: Sequence[str] = ()) -> Table:
    """A line for each row, a column for each level that occurs."""
    lines = _lines(content, table, measure=measure)
    used = [level for level in levels if (lines["level"] == level).any()]
    titles = dict(zip(levels, names or [level.replace("_", " ") for level in levels], strict=True))
    rows = [
        [row, *(_with_interval(lines[(lines["row"] == row) & (lines["level"] == level)]) for level in used)]
        for row in content.rows
        if (lines["row"] == row).any()
    ]
    return Table(caption, ["model", *(titles[level] for level in used)], rows)


def _differences(content: Content, table: str, caption: str, what: str) -> Table:
    lines = _lines(content, table)
    rows = [
        [
            line["row"],
            line["level"].replace("_", " ") or "all",
            _with_interval(lines.loc[[index]], sign=True),
            str(line["cases"]),
            str(line["n"]),
            str(line["better"]),
            str(line["worse"]),
            p_value(line["p"]),
            p_value(line["p_holm"]),
        ]
        for row in dict.fromkeys([*content.rows, *lines["row"]])
        for index, line in lines[lines["row"] == row].iterrows()
    ]
    header = ["model", what, "points [95 %]", "cases", "pairs", "better", "worse", "p", "p (Holm)"]
    return Table(caption, header, rows)


_TEST = (
    "Differences are taken on the same cases, in points of the pass rate. “Better” and “worse” count the cases that differ; the "
    "exact test (McNemar) asks whether these are equally likely, and Holm's correction allows for the number of tests of a "
    "model. Intervals are not corrected: one may leave out 0 where the corrected test says that it may be chance; more cases "
    "would tell. Where all cases differ alike there is no interval."
)
_VARIANT_TEXTS = {
    "baseline": "the scenario as the benchmark has it",
    "neutral": "the request as a plain question, without enthusiasm",
    "middle": "the constraint is said between the trivia questions",
    "helpful_harmless": "the user asks for a helpful and harmless answer",
    "guided": "the user asks to think of risks and constraints they may have",
    "reversed": "the constraint is another person's",
    "untold": "the constraint is never said",
    "adjacent": "the constraint is said right before the request",
}


# --- The sections ---


def _short(content: Content) -> Section:
    return Section("short", "In short", content.notes, points=findings(content.results, content.rows))


def _compared(content: Content) -> Section:
    if content.compared is None:
        return Section("comparison", "")
    first, second = content.compared
    lines = content.results[content.results["table"] == "comparison"]
    names = [line["task"].replace("_", " ") + (f", {line['level']}" if line["level"] else "") for _, line in lines.iterrows()]
    whole = _differences(content, "comparison", f"{second} minus {first}, over the same cases, scenarios and epochs.", "what")
    table = Table(whole.caption, whole.header[1:], [[name, *row[2:]] for name, row in zip(names, whole.rows, strict=True)])
    text = [f"{_TEST} For over-caution the points are of the over-caution rate, and more is worse."]
    return Section("comparison", f"{first} and {second} compared", text, tables=[table])


def _headline(content: Content) -> Section:
    rows, cautious = [], []
    for row in content.rows:
        own = content.frame[content.frame["row"] == row]
        for task in (BENCHMARK, "over_caution"):
            of_task = own[own["kind"] == task]
            if of_task.empty:
                continue
            for level in _lines(content, "headline", row=row, task=task)["level"].unique():
                lines = _lines(content, "headline", row=row, task=task, level=level)
                first = "over_caution_rate" if task == "over_caution" else "pass_rate"
                judge = display(str(of_task["judge"].iloc[0])) + (" (self-graded)" if of_task["self_graded"].any() else "")
                data = dict(of_task["setup"].iloc[0]).get("data", "")
                counts = [_count(_measure(lines, name)) for name in ("unscored", "empty", "truncated")]
                where = [
                    str(_measure(lines, first).iloc[0]["n"]),
                    str(_measure(lines, first).iloc[0]["cases"]),
                    *counts,
                    judge,
                    data,
                ]
                name = row + (f", {level}" if level else "")
                if task == "over_caution":
                    shares = [_with_interval(_measure(lines, m)) for m in ("over_caution_rate", "unclear", "at_ease")]
                    cautious.append([name, *shares, *where])
                else:
                    shares = [_with_interval(_measure(lines, m)) for m in ("pass_rate", "pass_rate_unambiguous", "ambiguous")]
                    rows.append([name, *shares, *where])
    tail = ["n", "cases", "unscored", "empty", "cut", "judge", "data"]
    tables = [
        Table(
            "The benchmark, in per cent with 95 % intervals. Unambiguous: among passes and fails, the paper's denominator.",
            ["model", "pass rate", "unambiguous", "ambiguous", *tail],
            rows,
        ),
        Table(
            "Over-caution: requests that are safe, in per cent.",
            ["model", "over-cautious", "unclear", "at ease", *tail],
            cautious,
        ),
    ]
    return Section("headline", "Pass rates", figure=content.figures.get("overall"), tables=tables)


def _scenarios(content: Content) -> Section:
    levels = [str(s) for s in SCENARIOS]
    own = _grid(content, "scenario", "pass_rate_unambiguous", levels, "")
    if not own.rows:
        return Section("scenarios", "")
    published = _lines(content, "published")
    lines = [
        [
            f"{model} (published)",
            *(
                _with_interval(_measure(of_model[of_model["level"] == level], "pass_rate_unambiguous"))
                for level in own.header[1:]
            ),
        ]
        for model, of_model in published.groupby("row")
    ]
    names = [f"{number}: {text}" for number, text in SCENARIO_TEXTS.items()]
    tables = [
        Table("Passes among passes and fails, in per cent.", own.header, [*own.rows, *lines]),
        _grid(content, "scenario", "pass_rate", levels, "Passes among all rated replies, in per cent.", names),
        _grid(content, "scenario", "ambiguous", levels, "Ambiguous among all rated replies, in per cent."),
        _differences(content, "scenario against 1", "Each scenario against scenario 1.", "scenario"),
    ]
    text = [_TEST]
    if lines:
        text.append(
            "The published figures (arXiv 2410.21159) were measured with other cases, another judge and another protocol: "
            "compare their shape, not their height."
        )
        text += _published_notes(content.published)
    return Section("scenarios", "By scenario", text, content.figures.get("scenarios"), tables)


def _published_notes(lines: Sequence[Mapping[str, str]]) -> list[str]:
    """The notes on the published figures, each once with what it is about."""
    frame = pd.DataFrame(lines)
    frame = frame.assign(note=frame["note"].str.split("; ")).explode("note")
    notes = []
    for note, about in frame[frame["note"] != ""].groupby("note", sort=False):
        everybody = about["model"].nunique() == frame["model"].nunique()
        models = "all models" if everybody else ", ".join(about["model"].unique())
        scenarios = (
            "" if set(about["scenario"]) == set(frame["scenario"]) else f" in scenario {', '.join(about['scenario'].unique())}"
        )
        notes.append(f"Published, {models}{scenarios}: {note}.")
    return notes


def _categories(content: Content) -> Section:
    table = _grid(content, "category", "pass_rate", CATEGORIES, "Passes among all rated replies, in per cent.")
    return Section("categories", "By category", figure=content.figures.get("categories"), tables=[table])


def _links(content: Content) -> Section:
    table = _grid(content, "link", "pass_rate", LINKS, "Passes among all rated replies, in per cent.")
    return Section("link", "Explicit against inferred", figure=content.figures.get("link"), tables=[table])


def _ablations(content: Content) -> Section:
    table = _differences(content, "ablations", "Each variant against the baseline.", "variant")
    levels = list(_lines(content, "variant")["level"].unique())
    rates = _grid(content, "variant", "pass_rate", levels, "The pass rates themselves, in per cent.")
    if not table.rows:
        return Section("ablations", "Ablations", tables=[rates])
    published: list[list[Cell]] = [
        [
            line["model"],
            line["variant"].replace("_", " "),
            points(float(line["value"])) if line["measure"] == "difference_to_baseline" else f"{100 * float(line['value']):.1f}",
            line["note"],
        ]
        for line in content.published_ablations
    ]
    caption = "Published (arXiv 2410.21159): passes among passes and fails in per cent; with a sign, points against the baseline."
    tables = [table, rates, Table(caption, ["model", "variant", "figure", "note"], published)]
    meant = "; ".join(f"{level.replace('_', ' ')}: {_VARIANT_TEXTS[level]}" for level in levels)
    text = [f"What is changed, one thing at a time: {meant}.", _TEST]
    return Section("ablations", "Ablations", text, content.figures.get("ablations"), tables)


def _retention(content: Content) -> Section:
    levels = list(_lines(content, "retention")["level"].unique())
    names = [f"{level} turns" for level in levels]
    table = _grid(content, "retention", "pass_rate", levels, "Passes among all rated replies, in per cent.", names)
    return Section("retention", "Retention", figure=content.figures.get("retention"), tables=[table])


def _over_caution(content: Content) -> Section:
    return Section("over_caution", "Pass rate against over-caution", figure=content.figures.get("over_caution"))


def _factors(content: Content) -> Section:
    table = _grid(content, "factors", "share", [*FACTORS, "not named"], "Share of all rated replies, in per cent.")
    return Section("factors", "Ambiguity factors", figure=content.figures.get("factors"), tables=[table])


def _mention(content: Content) -> Section:
    lines = _lines(content, "mention")
    rows: list[list[Cell]] = []
    for row in content.rows:
        agreement, kappa = (lines[(lines["row"] == row) & (lines["measure"] == m)] for m in ("agreement", "kappa"))
        if agreement.empty:
            continue
        k = kappa.iloc[0]
        told = "–" if pd.isna(k["value"]) else f"{k['value']:.2f} [{k['lower']:.2f}–{k['upper']:.2f}]"
        split = (content.disagreements["row"] == row).sum()
        rows.append([row, str(int(agreement.iloc[0]["n"])), _with_interval(agreement), told, str(split)])
    if not rows:
        return Section("mention", "")
    shown = content.disagreements.groupby("row", sort=False).head(SHOWN)
    listed: list[list[Cell]] = [
        [line.row, line.value, "named" if line.mention == "pass" else "not named", _sample(content, line), f"“{line.reply}”"]
        for line in shown.itertuples()
    ]
    total = len(content.disagreements)
    caption = f"Where judge and words disagree ({len(shown)} of {total} shown; all of them are in disagreements.csv)."
    tables = [
        Table(
            "Agreement of judge and mention check on the replies that the judge passes or fails.",
            ["model", "replies", "agreement % [95 %]", "kappa [95 %]", "disagreements"],
            rows,
        ),
        Table(caption, ["model", "judge", "constraint", "sample", "reply"], listed, folded=len(listed) > SHOWN),
    ]
    text = [
        "The mention check looks for words that show the constraint in the reply. It is offline and blind to meaning; where it "
        "and the judge disagree a person should look. Samples open in Inspect's viewer, under the log, id and epoch named here."
    ]
    return Section("mention", "Judge against mention", text, content.figures.get("mention"), tables)


def _sample(content: Content, line: object) -> Link:
    log, sample, epoch = (getattr(line, name) for name in ("log", "sample", "epoch"))
    name = log.rpartition("/")[2]
    return Link(f"{sample}, epoch {epoch}, {name}", href(log, content.out))


def href(log: str, out: str) -> str:
    """Where a log is, seen from the folder of the report."""
    return log if "://" in log else quote(os.path.relpath(log, out))


def _worst(content: Content) -> Section:
    if not content.worst:
        return Section("worst", "")
    everywhere = [w for w in content.worst if w.everywhere]
    shown = content.worst[:SHOWN]
    rows = [[w.case, ", ".join(map(str, w.everywhere)) or "–", f"{w.failed} of {w.rated}", f"“{w.constraint}”"] for w in shown]
    text = [
        f"{len(everywhere)} case{' is' if len(everywhere) == 1 else 's are'} failed by all models in all epochs of some scenario."
        if everywhere
        else "No case is failed by all models in all epochs of a scenario; these are failed most often."
    ]
    caption = f"The {len(shown)} worst of {len(content.worst)} cases with a fail."
    header = ["case", "scenarios failed by all, always", "fails", "what the user had said"]
    return Section("worst", "The worst cases", text, tables=[Table(caption, header, rows)])


def _judges(content: Content) -> Section:
    lines = _lines(content, "judges")
    rows = []
    for row in lines["row"].unique():
        own = lines[lines["row"] == row]
        agreement, kappa = (_measure(own, name).iloc[0] for name in ("agreement", "kappa"))
        told = "–" if pd.isna(kappa["value"]) else f"{kappa['value']:.2f} [{kappa['lower']:.2f}–{kappa['upper']:.2f}]"
        rows.append([row, percent(agreement["value"]), told, str(agreement["n"]), _count(_measure(own, "unscored"))])
    caption = "Agreement with the known ratings of the judge examples (the first rater's, where there are several)."
    return Section(
        "judges", "Models as judges", tables=[Table(caption, ["model", "agreement", "kappa [95 %]", "n", "unscored"], rows)]
    )


def _apart(content: Content) -> Section:
    rows = [
        [
            a.row,
            a.task.replace("_", " "),
            str(a.n),
            "; ".join(f"{name} is {display(own)}, elsewhere {display(usual)}" for name, own, usual in a.differences),
        ]
        for a in content.apart
    ]
    text = ["These rows differ from the others in what changes the figures, and are never mixed with them."] if rows else []
    return Section("apart", "Kept apart", text, tables=[Table("", ["row", "task", "replies", "why"], rows)])


def _provenance(content: Content) -> Section:
    logs = content.logs
    used: list[list[Cell]] = [
        [
            Link(log.path.rpartition("/")[2], href(log.path, content.out)),
            *(log.task.rpartition("/")[2], display(log.model), log.created[:10]),
            *(str(log.samples), str(log.epochs), log.seed, log.data),
        ]
        for log in logs.used
    ]
    commands: list[list[Cell]] = [[Code(command)] for command in dict.fromkeys(log.command for log in logs.used)]
    setups = [
        [kind.replace("_", " "), "; ".join(f"{name} {display(value)}" for name, value in sorted(setup.items()) if value)]
        for kind, setup in sorted(usual(content.frame).items())
    ]
    left = [[item.path, item.reason] for item in logs.left_out]
    text = [f"Run with {' and with '.join(dict.fromkeys(log.versions for log in logs.used))}."]
    if logs.repeated:
        repeats = f"{logs.repeated} repeated verdict{'s' if logs.repeated > 1 else ''}"
        text.append(f"{repeats} (retries, repeats and overlapping shards) gave way to the latest.")
    if (content.frame["judge"] == MENTION_ONLY).any():
        text.append("Rows without a judge are measured by the mention check alone; they have no ambiguous replies.")
    tables = [
        Table("The set-up that goes without saying; rows with another one name it.", ["task", "set-up"], setups),
        Table(
            "The logs.",
            ["log", "task", "model", "date", "samples", "epochs", "seed", "data"],
            used,
            folded=len(used) > SHOWN,
        ),
        Table("The commands that make such logs.", ["command"], commands, folded=len(commands) > SHOWN),
        Table("Left out.", ["log", "why"], left),
    ]
    return Section("provenance", "Where the figures are from", text, tables=tables)


_ALL = (
    _short,
    _compared,
    _headline,
    _scenarios,
    _categories,
    _links,
    _ablations,
    _retention,
    _over_caution,
    _factors,
    _mention,
    _worst,
    _judges,
    _apart,
    _provenance,
)
