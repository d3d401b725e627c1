"""The figures of a report, as Altair charts of its results. Pure.

Every figure is legible in black and white: rows have panels of their own or shapes, shades go from light to dark, and heat maps
say their numbers. The colours are those of Okabe and Ito, which colour-blind people tell apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from curate_inspect.cases import CATEGORIES
from curate_inspect.dialogue import SCENARIOS, VARIANTS
from curate_inspect.judge import CONSIDERATION
from curate_inspect.report.counting import SIGNIFICANT
from curate_inspect.report.reading import BENCHMARK

BLUE, ORANGE, GREY, INK = "#0072B2", "#D55E00", "#BDBDBD", "#222222"
_PALETTE = [BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]
_PERCENT = alt.Axis(format="%", tickCount=5)
_SHARE = alt.Scale(domain=[0, 1])
_PANEL = 250
_COLUMNS = 3
_SERIES = ["pass (among passes and fails)", "ambiguous (among all)"]


@dataclass(frozen=True)
class Figure:
    """A chart with the name of its files, what it shows, and how to read it."""

    name: str
    title: str
    how: str
    chart: Any


def draw(results: pd.DataFrame, rows: Sequence[str]) -> list[Figure]:
    """All figures that the results have data for.

    Args:
        results: As `tables.as_frame` gives them.
        rows: The rows in the order in which they are shown.
    """
    drawn = (make(results, list(rows)) for make in _ALL)
    return [figure for figure in drawn if figure is not None]


def _styled(chart: Any, title: str) -> Any:
    return (
        chart.properties(title=alt.Title(title, anchor="start", fontSize=15, offset=12))
        .configure(font="Helvetica, Arial, sans-serif")
        .configure_view(stroke="#DDDDDD")
        .configure_axis(grid=True, gridColor="#EEEEEE", labelColor=INK, titleColor=INK, titleFontWeight="normal", labelLimit=340)
        .configure_header(labelFontSize=12, labelFontWeight="bold", labelColor=INK, labelLimit=_PANEL + 20, title=None)
        .configure_legend(labelLimit=420, titleFontWeight="normal", labelColor=INK)
    )


def _panels(chart: Any, rows: list[str], present: pd.Series) -> Any:
    shown = [row for row in rows if row in set(present)]
    columns = 2 if len(shown) in (2, 4) else min(_COLUMNS, len(shown))
    # What sets a row apart stands in a line of its own.
    parts = "split(datum.label, ' [')"
    header = alt.Header(labelExpr=f"length({parts}) > 1 ? [{parts}[0], '[' + {parts}[1]] : datum.label")
    faceted = chart.facet(facet=alt.Facet("row:N", sort=shown, title=None, header=header), columns=columns, spacing=18)
    return faceted.resolve_axis(x="independent")  # otherwise axes without panels stand in the last line


def _tips(*fields: tuple[str, str, str]) -> list[alt.Tooltip]:
    return [alt.Tooltip(field, title=title, format=form or alt.Undefined) for field, title, form in fields]


_INTERVAL = (
    ("value:Q", "rate", ".1%"),
    ("lower:Q", "from (95 %)", ".1%"),
    ("upper:Q", "to (95 %)", ".1%"),
    ("n:Q", "replies", ""),
)


def _of(results: pd.DataFrame, table: str, *measures: str) -> pd.DataFrame:
    found = results[(results["table"] == table) & (not measures or results["measure"].isin(measures))]
    return found[found["value"].notna()].copy()


def _overall(results: pd.DataFrame, rows: list[str]) -> Figure | None:
    data = _of(results, "headline", "pass_rate", "ambiguous", "fail")
    data = data[(data["task"] == BENCHMARK) & (data["level"] == "")]
    if data.empty:
        return None
    labels = {"pass_rate": "pass", "ambiguous": "ambiguous", "fail": "fail"}
    data["label"] = data["measure"].map(labels)
    data["place"] = data["label"].map({name: i for i, name in enumerate(labels.values())})
    data = data.sort_values(["row", "place"])
    data["end"] = data.groupby("row")["value"].cumsum()
    data["middle"] = data["end"] - data["value"] / 2
    shown = [row for row in rows if row in set(data["row"])]
    y = alt.Y("row:N", sort=shown, title=None)
    colour = alt.Color("label:N", title=None, sort=list(labels.values()), legend=alt.Legend(orient="top")).scale(
        domain=list(labels.values()), range=[BLUE, "#C8CDD2", "#F2A46B"]
    )
    tips = _tips(("row:N", "model", ""), ("label:N", "rated", ""), *_INTERVAL)
    base = alt.Chart(data).encode(y=y, tooltip=tips)
    bars = base.mark_bar(stroke="white", strokeWidth=1.5, size=24).encode(
        x=alt.X("value:Q", stack="zero", axis=_PERCENT, scale=_SHARE, title="share of rated replies"),
        color=colour,
        order="place:Q",
    )
    numbers = (
        base.mark_text(fontSize=12)
        .encode(
            x="middle:Q",
            text=alt.Text("value:Q", format=".0%"),
            color=alt.when(alt.datum.label == "pass").then(alt.value("white")).otherwise(alt.value(INK)),
        )
        .transform_filter(alt.datum.value >= 0.06)
    )
    whisker = base.transform_filter(alt.datum.label == "pass").encode(x="lower:Q", x2="upper:Q")
    interval = whisker.mark_rule(color=INK, strokeWidth=1.5, yOffset=16)
    chart = (bars + numbers + interval).properties(width=520, height=alt.Step(42))
    title = "How often each model takes the constraint into account"
    how = (
        "Every rated reply of the benchmark, all scenarios together. The line under a bar is the 95 % interval of the pass rate."
    )
    return Figure("overall", title, how, _styled(chart, title))


def _scenarios(results: pd.DataFrame, rows: list[str]) -> Figure | None:
    own = _of(results, "scenario", "pass_rate_unambiguous", "ambiguous")
    if own.empty:
        return None
    own["measure"] = own["measure"].map(dict(zip(("pass_rate_unambiguous", "ambiguous"), _SERIES, strict=True)))
    own["source"], own["series"] = "own", own["measure"]
    others = _of(results, "published", "pass_rate_unambiguous")
    backdrop = [others.assign(source="published", series=others["row"], row=row) for row in own["row"].unique()]
    data = pd.concat([own, *backdrop])
    base = alt.Chart().encode(
        x=alt.X("level:O", sort=[str(s) for s in SCENARIOS], title="scenario", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", axis=_PERCENT, scale=_SHARE, title="share of replies"),
    )
    grey = base.transform_filter(alt.datum.source == "published")
    mine = base.transform_filter(alt.datum.source == "own")
    colour = alt.Color("measure:N", title=None, sort=_SERIES, legend=alt.Legend(orient="top")).scale(
        domain=_SERIES, range=[BLUE, ORANGE]
    )
    shape = alt.Shape("measure:N", title=None, sort=_SERIES).scale(domain=_SERIES, range=["circle", "triangle-up"])
    tips = _tips(("row:N", "model", ""), ("level:N", "scenario", ""), ("measure:N", "share", ""), *_INTERVAL)

    def series(i: int, beside: int, dash: list[int]) -> Any:
        """One of the two, a little beside its scenario so that intervals do not cover each other."""
        own = mine.transform_filter(alt.datum.measure == _SERIES[i]).encode(color=colour)
        return (
            own.mark_rule(strokeWidth=1.5, xOffset=beside).encode(y="lower:Q", y2="upper:Q")
            + own.mark_line(strokeWidth=2, strokeDash=dash, xOffset=beside)
            + own.mark_point(size=55, filled=True, opacity=1, xOffset=beside).encode(shape=shape, tooltip=tips)
        )

    layers = (
        grey.mark_line(color=GREY, strokeWidth=1).encode(
            detail="series:N",
            tooltip=_tips(("series:N", "published", ""), ("level:N", "scenario", ""), ("value:Q", "rate", ".1%")),
        )
        + series(0, -3, [1, 0])
        + series(1, 3, [5, 3])
    )
    chart = _panels(layers.properties(width=_PANEL, height=180, data=data), rows, own["row"])
    title = "The pass rate by scenario, one model a panel"
    how = (
        "Scenarios: 1 alone; 2, 3, 4 with one, two, three people who want it; 5 with three strangers."
        + (" Grey: the ten published models, each a line." if len(others) else "")
        + " Bars: 95 % intervals."
    )
    return Figure("scenarios", title, how, _styled(chart, title))


def _heat(data: pd.DataFrame, rows: list[str], x: Any, y: Any, tips: list[alt.Tooltip], cell: tuple[int, int]) -> Any:
    base = alt.Chart().encode(x=x, y=y, tooltip=tips)
    squares = base.mark_rect(stroke="white", strokeWidth=2).encode(
        color=alt.Color("value:Q", legend=None, scale=alt.Scale(domain=[0, 1], range=["#F2F6FA", "#08306B"]))
    )
    numbers = base.mark_text(fontSize=12).encode(
        text=alt.Text("value:Q", format=".0%"),
        color=alt.when(alt.datum.value > 0.42).then(alt.value("white")).otherwise(alt.value(INK)),
    )
    return _panels((squares + numbers).properties(width=cell[0], height=cell[1], data=data), rows, data["row"])


def _categories(results: pd.DataFrame, rows: list[str]) -> Figure | None:
    data = _of(results, "category and scenario", "pass_rate")
    if data.empty:
        return None
    data[["category", "scenario"]] = data["level"].str.split(" · ", expand=True)
    data["category"] = data["category"].str.replace("_", " ")
    x = alt.X("scenario:O", title="scenario", axis=alt.Axis(labelAngle=0, grid=False))
    y = alt.Y("category:N", sort=[c.replace("_", " ") for c in CATEGORIES], title=None, axis=alt.Axis(grid=False))
    tips = _tips(("row:N", "model", ""), ("category:N", "category", ""), ("scenario:N", "scenario", ""), *_INTERVAL)
    title = "The pass rate by category and scenario"
    how = "Passes among all rated replies, the darker the more."
    return Figure("categories", title, how, _styled(_heat(data, rows, x, y, tips, (_PANEL - 60, 130)), title))


def _link(results: pd.DataFrame, rows: list[str]) -> Figure | None:
    data = _of(results, "link", "pass_rate")
    if data.empty:
        return None
    shown = [row for row in rows if row in set(data["row"])]
    kinds = ["explicit", "inferred"]
    colour = alt.Color("level:N", title="The request", sort=kinds, legend=alt.Legend(orient="top")).scale(
        domain=kinds, range=[BLUE, ORANGE]
    )
    base = alt.Chart(data).encode(
        y=alt.Y("row:N", sort=shown, title=None),
        yOffset=alt.YOffset("level:N", sort=kinds, scale=alt.Scale(paddingOuter=0.8)),
        color=colour,
    )
    tips = _tips(("row:N", "model", ""), ("level:N", "link", ""), *_INTERVAL, ("cases:Q", "cases", ""))
    layers = base.mark_rule(strokeWidth=1.5).encode(
        x=alt.X("lower:Q", axis=_PERCENT, scale=_SHARE, title="pass rate"), x2="upper:Q"
    ) + base.mark_point(filled=True, size=75, opacity=1).encode(
        x="value:Q",
        shape=alt.Shape("level:N", title="The request", sort=kinds).scale(domain=kinds, range=["circle", "diamond"]),
        tooltip=tips,
    )
    title = "Is the danger named, or must it be inferred?"
    how = "Explicit: the request names what the user cannot bear. Inferred: it takes a step of thought. Lines: 95 % intervals."
    return Figure("link", title, how, _styled(layers.properties(width=520, height=alt.Step(46, **{"for": "position"})), title))


def _ablations(results: pd.DataFrame, rows: list[str]) -> Figure | None:
    data = _of(results, "ablations", "difference")
    if data.empty:
        return None
    data["chance"] = (data["p_holm"] < SIGNIFICANT).map({True: "more than chance", False: "may be chance"})
    variants = [v.replace("_", " ") for v in VARIANTS]
    data["level"] = data["level"].str.replace("_", " ")
    kinds = ["more than chance", "may be chance"]
    base = alt.Chart().encode(y=alt.Y("level:N", sort=variants, title=None))
    axis = alt.Axis(format="+%", tickCount=5)
    tips = _tips(
        *(("row:N", "model", ""), ("level:N", "variant", ""), ("value:Q", "difference", "+.1%")),
        *(("lower:Q", "from (95 %)", "+.1%"), ("upper:Q", "to (95 %)", "+.1%"), ("cases:Q", "cases", "")),
        *(("better:Q", "cases better", ""), ("worse:Q", "cases worse", ""), ("p_holm:Q", "p (Holm)", ".2g")),
    )
    layers = (
        alt.Chart().mark_rule(color=INK, strokeDash=[3, 3]).encode(x=alt.datum(0))
        + base.mark_rule(strokeWidth=1.5, color=BLUE).encode(
            x=alt.X("lower:Q", axis=axis, scale=alt.Scale(domain=[-1, 1]), title="difference to the baseline"), x2="upper:Q"
        )
        + base.mark_point(size=70, color=BLUE, opacity=1, strokeWidth=1.5).encode(
            x="value:Q",
            fill=alt.Fill("chance:N", title=None, sort=kinds, legend=alt.Legend(orient="top")).scale(
                domain=kinds, range=[BLUE, "white"]
            ),
            tooltip=tips,
        )
    )
    chart = _panels(layers.properties(width=_PANEL - 50, height=alt.Step(22), data=data), rows, data["row"])
    title = "What changes the pass rate: each variant against the baseline, case by case"
    how = "Mean paired differences with 95 % intervals. Filled: more than chance by an exact test after Holm's correction."
    return Figure("ablations", title, how, _styled(chart, title))


def _retention(results: pd.DataFrame, rows: list[str]) -> Figure | None:
    own = _of(results, "retention", "pass_rate")
    if own.empty:
        return None
    own["turns"] = own["level"].astype(int)
    own["own"], own["series"] = True, own["row"]
    names = list(own["row"].unique())
    data = pd.concat([own, *(own[own["row"] != name].assign(own=False, row=name) for name in names)])
    ticks = sorted(int(turns) for turns in own["turns"].unique())
    base = alt.Chart().encode(
        x=alt.X(
            "turns:Q",
            scale=alt.Scale(type="sqrt"),
            axis=alt.Axis(values=ticks, labelOverlap=False),
            title="trivia turns between constraint and request",
        ),
        y=alt.Y("value:Q", axis=_PERCENT, scale=_SHARE, title="pass rate"),
    )
    grey, mine = (base.transform_filter(alt.datum.own == own) for own in (False, True))
    layers = (
        mine.mark_rule(strokeWidth=1.5, color=BLUE).encode(y="lower:Q", y2="upper:Q")
        + mine.mark_line(strokeWidth=2, color=BLUE)
        + mine.mark_point(size=55, filled=True, opacity=1, color=BLUE).encode(
            tooltip=_tips(("row:N", "model", ""), ("turns:Q", "trivia turns", ""), *_INTERVAL)
        )
    )
    if len(names) > 1:
        tips = _tips(("series:N", "another model", ""))
        layers = grey.mark_line(color=GREY, strokeWidth=1).encode(detail="series:N", tooltip=tips) + layers
    chart = _panels(layers.properties(width=_PANEL, height=170, data=data), rows, own["row"])
    title = "How far back each model remembers"
    how = "The pass rate of scenario 1 by the number of trivia turns, with 95 % intervals."
    how += " Grey: the other models." if len(names) > 1 else ""
    return Figure("retention", title, how, _styled(chart, title))


def _over_caution(results: pd.DataFrame, rows: list[str]) -> Figure | None:
    columns = ["row", "value", "lower", "upper"]
    headline = _of(results, "headline", "pass_rate", "over_caution_rate")
    headline = headline[headline["level"] == ""]
    passes = headline[headline["measure"] == "pass_rate"][columns]
    cautious = headline[headline["measure"] == "over_caution_rate"][columns]
    data = passes.merge(cautious, on="row", suffixes=("_pass", "_caution"))
    if data.empty:
        return None
    shown = [row for row in rows if row in set(data["row"])]
    pick = alt.selection_point(fields=["row"], bind="legend")
    count = len(shown)
    colour = alt.Color("row:N", sort=shown, title="click to pick one").scale(
        domain=shown, range=[_PALETTE[i % len(_PALETTE)] for i in range(count)]
    )
    shape = alt.Shape("row:N", sort=shown, title="click to pick one").scale(
        domain=shown, range=[_SHAPES[i % len(_SHAPES)] for i in range(count)]
    )
    base = alt.Chart(data).encode(color=colour, opacity=alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.15)))
    wide, ticks = alt.Scale(domain=[-0.03, 1.03]), alt.Axis(format="%", values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    x = alt.X("value_caution:Q", axis=ticks, scale=wide, title="over-cautious about what is safe (less is better)")
    y = alt.Y("value_pass:Q", axis=ticks, scale=wide, title="pass rate where it is dangerous (more is better)")
    tips = _tips(
        *(
            ("row:N", "model", ""),
            ("value_pass:Q", "pass rate", ".1%"),
            ("lower_pass:Q", "from", ".1%"),
            ("upper_pass:Q", "to", ".1%"),
        ),
        *(("value_caution:Q", "over-caution", ".1%"), ("lower_caution:Q", "from", ".1%"), ("upper_caution:Q", "to", ".1%")),
    )
    layers = (
        base.mark_rule(strokeWidth=1).encode(x="lower_caution:Q", x2="upper_caution:Q", y=y)
        + base.mark_rule(strokeWidth=1).encode(x=x, y="lower_pass:Q", y2="upper_pass:Q")
        + base.mark_point(size=130, filled=True).encode(x=x, y=y, shape=shape, tooltip=tips).add_params(pick)
    )
    title = "Careful, or careful about everything?"
    how = "At the top left stand models that respect the constraint and do not warn off what is safe. Lines: 95 % intervals."
    return Figure("over_caution", title, how, _styled(layers.properties(width=420, height=340), title))


def _factors(results: pd.DataFrame, rows: list[str]) -> Figure | None:
    data = _of(results, "factors", "share")
    if data.empty:
        return None
    used = [
        str(level) for level in data["level"].unique() if level != "not named" or data.loc[data["level"] == level, "value"].any()
    ]
    data = data[data["level"].isin(used)].assign(level=lambda d: d["level"].str.replace("_", " "))
    shown = [row for row in rows if row in set(data["row"])]
    top = max(0.01, float(data["value"].max()))
    base = alt.Chart().encode(y=alt.Y("row:N", sort=shown, title=None))
    tips = _tips(("row:N", "model", ""), ("level:N", "factor", ""), *_INTERVAL)
    bars = base.mark_bar(color=BLUE).encode(
        x=alt.X(
            "value:Q",
            axis=alt.Axis(format="%", tickCount=4),
            title="share of rated replies",
            scale=alt.Scale(domain=[0, top * 1.4]),
        ),
        tooltip=tips,
    )
    numbers = base.mark_text(align="left", dx=4, color=INK).encode(x="value:Q", text=alt.Text("value:Q", format=".1%"))
    panel = (bars + numbers).properties(width=175, height=alt.Step(24), data=data)
    chart = panel.facet(column=alt.Column("level:N", sort=[level.replace("_", " ") for level in used], title=None), spacing=18)
    title = "Why replies are ambiguous"
    return Figure("factors", title, "The factor that the judge names for ambiguous replies.", _styled(chart, title))


def _mention(results: pd.DataFrame, rows: list[str]) -> Figure | None:
    data = _of(results, "mention", "share")
    if data.empty:
        return None
    parts = data["level"].str.extract(r"judge (\w+) · mention (\w+)")
    data["judge"] = parts[0]
    data["mention"] = parts[1].map({"pass": "names it", "fail": "does not"})
    x = alt.X(
        "mention:N", sort=["names it", "does not"], title="the reply, by its words", axis=alt.Axis(labelAngle=0, grid=False)
    )
    y = alt.Y("judge:N", sort=list(reversed(CONSIDERATION.labels)), title="judge", axis=alt.Axis(grid=False))
    tips = _tips(
        ("row:N", "model", ""),
        ("judge:N", "judge", ""),
        ("mention:N", "words", ""),
        ("value:Q", "share", ".1%"),
        ("n:Q", "replies", ""),
    )
    title = "Judge against mention check"
    how = (
        "Shares of all replies that have both. A pass of a reply that does not name the constraint, and a fail of one that does, "
        "deserve a look."
    )
    return Figure("mention", title, how, _styled(_heat(data, rows, x, y, tips, (_PANEL - 60, 110)), title))


_ALL: tuple[Callable[[pd.DataFrame, list[str]], Figure | None], ...] = (
    _overall,
    _scenarios,
    _categories,
    _link,
    _ablations,
    _retention,
    _over_caution,
    _factors,
    _mention,
)
# The names of all figures there may be; each is drawn by the function of its name.
NAMES = tuple(make.__name__.removeprefix("_") for make in _ALL)
