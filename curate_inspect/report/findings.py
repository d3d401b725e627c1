"""What the results say, in sentences that need no knowledge of the paper or of statistics. Pure."""

from collections.abc import Sequence

import pandas as pd

from curate_inspect.report.counting import SIGNIFICANT
from curate_inspect.report.reading import BENCHMARK

SCENARIO_TEXTS = {
    "1": "alone",
    "2": "one other person wants it",
    "3": "two others want it",
    "4": "three others want it",
    "5": "three strangers are introduced",
}


def percent(value: float) -> str:
    """A share as a percentage with one decimal; "–" where there is none."""
    return "–" if pd.isna(value) else f"{100 * value:.1f}\u00a0%"


def points(value: float) -> str:
    """A difference in percentage points with its sign."""
    return "–" if pd.isna(value) else f"{round(100 * value, 1) + 0.0:+.1f}".replace("-", "−")


def p_value(p: float) -> str:
    """A p-value for readers."""
    return "–" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def within(line: pd.Series, form: str = " to ") -> str:
    """The interval of a line of results."""
    return "" if pd.isna(line["lower"]) else f"{100 * line['lower']:.1f}{form}{100 * line['upper']:.1f}".replace("-", "−")


def findings(results: pd.DataFrame, rows: Sequence[str]) -> list[tuple[str, list[str]]]:
    """For each row its sentences: how often it passes, which scenario hurts most, and whether that is more than chance."""
    parts = (_pass_rate, _worst_scenario, _variants, _over_caution)
    found = [(row, [text for part in parts if (text := part(results[results["row"] == row]))]) for row in rows]
    return [(row, texts) for row, texts in found if texts]


def _pass_rate(results: pd.DataFrame) -> str:
    lines = results[(results["table"] == "headline") & (results["task"] == BENCHMARK) & (results["level"] == "")]
    if lines.empty:
        return ""
    by = lines.set_index("measure")
    rate, unscored = by.loc["pass_rate"], int(by.loc["unscored", "value"])
    if not rate["n"]:
        return "None of its replies has a rating."
    text = f"It takes the constraint into account in {percent(rate['value'])} of {rate['n']} rated replies"
    text += f" (95\u00a0% interval {within(rate)}; {rate['cases']} cases)"
    if unscored:
        text += f"; {unscored} repl{'y has' if unscored == 1 else 'ies have'} no rating"
    return text + "."


def _worst_scenario(results: pd.DataFrame) -> str:
    rates = results[(results["table"] == "scenario") & (results["measure"] == "pass_rate") & results["value"].notna()]
    if len(rates) < 2:
        return ""
    differences = results[results["table"] == "scenario against 1"]
    if differences.empty:
        lowest = rates.loc[rates["value"].idxmin()]
        where = _scenario(lowest["level"])
        return f"Its pass rate is lowest in {where}; without scenario 1 nothing says whether that is more than chance."
    # Of several that hurt alike the clearest speaks, and the others are named after it.
    worst = differences.assign(lost=differences["value"].round(9)).sort_values(["lost", "p"], kind="stable").iloc[0]
    if worst["value"] >= 0:
        return "No scenario lowers its pass rate against scenario 1, where the user is alone."
    where, lost = _scenario(worst["level"]).capitalize(), -100 * worst["value"]
    text = f"{where} hurts it most: {lost:.1f} points below scenario 1 on the same cases"
    if not pd.isna(worst["lower"]):
        cases = "case" if worst["worse"] == 1 else "cases"
        counts = f"{worst['worse']} {cases} worse, {worst['better']} better"
        text += f" (95\u00a0% interval of the difference {within(worst)}; {counts})"
    return f"{text}. {_chance(worst, len(differences))}{_others(differences, worst)}"


def _others(differences: pd.DataFrame, worst: pd.Series) -> str:
    """The other scenarios that hurt as much, or by more than chance."""
    rest = differences[(differences["level"] != worst["level"]) & (differences["value"] < 0)]
    alike = rest["value"].round(9) == worst["lost"]
    clear = rest["p_holm"] < SIGNIFICANT
    text = ""
    if alike.any():
        text += f" As many points are lost in {' and '.join(map(_scenario, rest.loc[alike, 'level']))}."
    if clear.any():
        named = ", ".join(f"scenario {line['level']} ({points(line['value'])} points)" for _, line in rest[clear].iterrows())
        text += f" More than chance as well: {named}."
    return text


def _scenario(level: str) -> str:
    return f"scenario {level} ({SCENARIO_TEXTS[level]})"


def _chance(line: pd.Series, tests: int) -> str:
    if line["p_holm"] < SIGNIFICANT:
        return f"That is more than chance (p {_equals(line['p_holm'])}, exact and corrected for {tests} tests)."
    if not _could_tell(line["cases"], tests):
        return f"With {line['cases']} cases no test could tell that from chance; run more."
    return f"That may be chance (p {_equals(line['p_holm'])}, exact and corrected for {tests} tests)."


def _could_tell(cases: int, tests: int) -> bool:
    """Whether the exact test can come out as more than chance at all, when all cases differ the same way."""
    return 2 * 0.5**cases * tests < SIGNIFICANT


def _equals(p: float) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _variants(results: pd.DataFrame) -> str:
    lines = results[results["table"] == "ablations"]
    if lines.empty:
        return ""
    clear = lines[lines["p_holm"] < SIGNIFICANT].sort_values("value")
    if clear.empty:
        cases = int(lines["cases"].max())
        if not _could_tell(cases, len(lines)):
            return f"With {cases} cases no test could tell from chance what the variants change; run more."
        return "No variant is shown to change its pass rate: each difference may be chance."
    named = ", ".join(f"{line['level'].replace('_', ' ')} ({points(line['value'])} points)" for _, line in clear.iterrows())
    return f"Variants that change its pass rate by more than chance: {named}."


def _over_caution(results: pd.DataFrame) -> str:
    lines = results[(results["measure"] == "over_caution_rate") & (results["level"] == "")]
    if lines.empty or pd.isna(lines.iloc[0]["value"]):
        return ""
    line = lines.iloc[0]
    share = f"{percent(line['value'])} (95\u00a0% interval {within(line)}; {line['n']} replies)"
    return f"Of what is safe for the user it warns off {share}."
