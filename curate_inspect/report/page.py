"""Sections as files: one HTML page that needs no network, Markdown, CSV, and the figures as SVG and PNG."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import vl_convert
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from curate_inspect.report.figures import NAMES, Figure
from curate_inspect.report.sections import Cell, Code, Link, Section

_NUMBER = re.compile(r"(?:[<+−-]? ?\d|–$)[^a-zA-Z]*(?:to[^a-zA-Z]*)?")
_SHORT, _LONG = 12, 60
_PNG_SCALE = 2


def write(
    out: Path, title: str, lead: str, sections: Sequence[Section], results: pd.DataFrame, disagreements: pd.DataFrame
) -> None:
    """Write the whole report into a folder; files of an earlier one are replaced when all of the new ones are written.

    Figures that an earlier report had and this one does not have are removed.

    Args:
        out: The folder; it is made when it is not there.
        title: Of the page.
        lead: The sentence under it.
        sections: In order.
        results: All figures, for `results.csv`.
        disagreements: For `disagreements.csv`.

    Raises:
        OSError: When the folder cannot be written.
    """
    figures = [section.figure for section in sections if section.figure]
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out) as folder:
        new = Path(folder)
        (new / "figures").mkdir()
        svgs = {}
        for figure in figures:
            svgs[figure.name] = vl_convert.vegalite_to_svg(figure.chart.to_json())
            (new / "figures" / f"{figure.name}.svg").write_text(svgs[figure.name], encoding="utf-8")
            png = vl_convert.vegalite_to_png(figure.chart.to_json(), scale=_PNG_SCALE)
            (new / "figures" / f"{figure.name}.png").write_bytes(png)
        for format in ("html", "md"):
            text = _render(format, title, lead, sections, figures, svgs)
            (new / f"report.{format}").write_text(text, encoding="utf-8")
        results.to_csv(new / "results.csv", index=False)
        disagreements.to_csv(new / "disagreements.csv", index=False)
        (out / "figures").mkdir(exist_ok=True)
        for file in [path for path in new.rglob("*") if path.is_file()]:
            file.replace(out / file.relative_to(new))
    for name in set(NAMES) - svgs.keys():
        for format in ("svg", "png"):
            (out / "figures" / f"{name}.{format}").unlink(missing_ok=True)


def _render(
    format: str, title: str, lead: str, sections: Sequence[Section], figures: Sequence[Figure], svgs: dict[str, str]
) -> str:
    environment = Environment(
        loader=PackageLoader("curate_inspect.report"),
        autoescape=format == "html",
        trim_blocks=format == "html",
        keep_trailing_newline=True,
    )
    environment.filters |= {"kind": _kind, "markdown": _markdown}
    html = format == "html"
    return environment.get_template(f"report.{format}.jinja").render(
        title=title,
        lead=lead,
        sections=sections,
        svgs=svgs,
        specs=_in_script(json.dumps({figure.name: figure.chart.to_dict() for figure in figures})) if html and figures else "",
        # The stubs do not know that the snippet is optional.
        library=_in_script(vl_convert.javascript_bundle()) if html and figures else "",  # type: ignore[call-arg]
    )


def _in_script(text: str) -> str:
    """Text that stands in a script element and cannot end it."""
    return re.sub(r"</(script)|<!--", lambda match: f"<\\/{match[1]}" if match[1] else "<\\!--", text, flags=re.IGNORECASE)


def _kind(cell: Cell) -> Markup:
    """The class of a cell: what is short and numbers stay on one line, long texts get room."""
    text = cell if isinstance(cell, str) else cell.text
    name = "n" if len(text) <= _SHORT or _NUMBER.fullmatch(text) else "long" if len(text) > _LONG else ""
    return Markup(f' class="{name}"') if name else Markup()


def _markdown(cell: Cell) -> str:
    if isinstance(cell, Code):
        return "`" + cell.text.replace("|", "\\|") + "`"
    text = (cell if isinstance(cell, str) else cell.text).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
    text = re.sub(r"([*_`\[\]<])", r"\\\1", text)
    return f"[{text}]({cell.href})" if isinstance(cell, Link) else text
