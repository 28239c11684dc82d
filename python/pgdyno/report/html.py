"""The report as one self-contained HTML page; it asks for nothing, from nowhere.

Text is in `page/` beside this module: templates, style sheet, script. plotly.js is that of the
plotly package. Without JavaScript the page lacks its charts and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from pgdyno.analysis.facts import Facts
from pgdyno.model.text import visible, visible_within
from pgdyno.report.charts import Chart, Key, Panel, charts
from pgdyno.report.charts.time_axis import ABOVE
from pgdyno.report.compose import compose
from pgdyno.report.document import Document, Figure, Flames
from pgdyno.report.flame import flame_data

_CODE = re.compile(r"`([^`]+)`")
# A browser would break the name of an option behind its hyphens, and a number before its unit.
_WHOLE = re.compile(
    r"(?<![\w-])(--[a-z][a-z-]{0,17}(?![\w-])"
    r"|(?:\d[\d.,]* (?:h|min) )?\d[\d.,]* (?:h|min|[mµn]?s|(?:[KMGTP]i)?B(?:/s)?)(?!\w))"
)
# plotly.js: (function(…) {…} (…, () => {…})); the last is the function.
_ONE_FUNCTION = re.compile(r"(: this, )(\(\) => \{.*\})(\)\);\s*)\Z", re.DOTALL)
# Words too long for a column, and the pieces that a line may end after; none is a first slash.
_LONG_WORD = re.compile(r"(\S{21,})")
_LONG_LABEL = re.compile(r"(\S{13,})")  # it stands beside its value
_NAME = re.compile(r"(?=\S{3,20}\Z)[^\s-]+-\S*")  # with a hyphen, and no longer than a column
_PIECE = re.compile(r"(?:\A\(?[-_/.=,:]{1,20})?[^-_/.=,:]{1,20}[-_/.=,:]?|[-_/.=,:]{1,20}")
_FOLDER = re.compile(r"(?:\A/+)?[^/]{1,20}/?|/+")
_HYPHEN = Markup("-&#8288;")  # no line ends after it, as browsers would have it


@dataclass(frozen=True, slots=True)
class _Panel:
    """A drawing as the template sees it; the figure itself goes to the script."""

    ident: str
    title: str
    alt: str


@dataclass(frozen=True, slots=True)
class _Chart:
    """A chart as the template sees it."""

    title: str
    caption: str
    height: int
    across: int
    keys: tuple[Key, ...]
    panels: tuple[_Panel, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart whose figures are made: what a page needs of it."""

    title: str
    caption: str
    height: int  # of a panel, in px
    across: int  # panels in a row of a wide page
    keys: tuple[Key, ...]
    panels: tuple[Panel, ...]


def render(facts: Facts) -> str:
    """The report of a run, finished or not, as the text of an HTML file."""
    drawn = charts()
    drawings = {
        name: Drawing(
            chart.title, chart.caption, chart.height(facts), chart.across(facts),
            chart.keys(facts), chart.panels(facts),
        )
        for name, chart in drawn.items()
    }  # fmt: skip
    document = _with_charts(compose(facts), drawn)
    return render_document(document, drawings, facts.pgdyno, facts.ident)


def _with_charts(document: Document, drawn: Mapping[str, Chart]) -> Document:
    """The document, each chart that names a section at its end."""
    return replace(
        document,
        sections=tuple(
            replace(
                section,
                blocks=(
                    *section.blocks,
                    *(Figure(name) for name, one in drawn.items() if one.section == section.ident),
                ),
            )
            for section in document.sections
        ),
    )


def render_document(
    document: Document, drawings: Mapping[str, Drawing], pgdyno: str, ident: str
) -> str:
    """A page of a document and its charts; `pgdyno` (a version) and `ident` say what made it."""
    figures: dict[str, Any] = {}
    above: list[Any] = []
    drawn = {name: _draw(name, drawing, figures, above) for name, drawing in drawings.items()}
    page = files("pgdyno.report") / "page"
    flames = {
        block.name: visible_within(flame_data(block.tree))
        for section in document.sections
        for block in section.blocks
        if isinstance(block, Flames)
    }
    template = _environment().get_template("report.html.j2")
    return template.render(
        document=document,
        facts={"pgdyno": pgdyno, "ident": ident},
        charts=drawn,
        figures=_json({"figures": figures, "above": above}),
        style=(page / "report.css").read_text("utf-8"),
        scripts=[(page / name).read_text("utf-8") for name in ("colour.js", "report.js")],
        plotly=parsed_once(get_plotlyjs()),
        flames=flames
        and {
            "data": _json(flames),
            "style": (page / "flame.css").read_text("utf-8"),
            "script": (page / "flame.js").read_text("utf-8"),
        },
    )


def parsed_once(script: str) -> str:
    """plotly.js, the one function that it is in parentheses.

    V8 compiles such a function with what is around it. Any other is read over at first, and again
    when it is called: for plotly.js, 4.8 MB, a quarter of the time until it has run. Of a script of
    another form nothing is changed.
    """
    return _ONE_FUNCTION.sub(r"\1(\2)\3", script)


def _draw(name: str, drawing: Drawing, figures: dict[str, Any], above: list[Any]) -> _Chart:
    """A chart for the template; its figures are added to those of the page.

    Args:
        name: Of the chart.
        drawing: Its panels.
        figures: Of the page, by their elements.
        above: What happened in trials, of which many drawings show the same.
    """
    panels = []
    for number, panel in enumerate(drawing.panels, 1):
        ident = f"chart-{name}-{number}"
        figures[ident] = _once(visible_within(json.loads(panel.figure.to_json())), above)
        panels.append(_Panel(ident, panel.title, panel.alt))
    return _Chart(
        drawing.title, drawing.caption, drawing.height, drawing.across, drawing.keys, tuple(panels)
    )


def _once(figure: dict[str, Any], above: list[Any]) -> dict[str, Any]:
    """The same, with the place of what happened in its trial instead of that itself."""
    marks = [trace for trace in figure["data"] if trace.get("yaxis") == ABOVE]
    if not marks:
        return figure
    if marks not in above:
        above.append(marks)
    data = [trace for trace in figure["data"] if trace.get("yaxis") != ABOVE]
    return figure | {"data": data, "above": above.index(marks)}


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pgdyno.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_seen,
        trim_blocks=True,
    )
    environment.filters["inline"] = _inline
    environment.filters["breakable"] = _breakable
    environment.filters["label"] = _label
    environment.filters["kind"] = lambda block: type(block).__name__
    return environment


def _seen(value: object) -> object:
    """What a template prints, with what is not seen shown by its number; our own pieces as is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _inline(text: str) -> Markup:
    """Escaped text; what stands between backticks becomes code."""
    parts = _CODE.split(visible(text))
    return Markup("").join(
        _code(part) if index % 2 else _breakable(part) for index, part in enumerate(parts)
    )


def _code(part: str) -> Markup:
    """A name is one word: browsers would end a line after `group-` of a stage `group-commit`."""
    shown = _breakable(part)
    if _NAME.fullmatch(part):
        return Markup('<code class="whole">{}</code>').format(shown)
    return Markup("<code>{}</code>").format(shown)


def _breakable(text: str) -> Markup:
    """Escaped text in which lines may end within a word too long for a column, too.

    None ends within the name of an option, or between a number and its unit.
    """
    parts = _WHOLE.split(visible(text))
    return Markup("").join(
        Markup('<span class="{}">{}</span>').format(_kept(part), part)
        if index % 2
        else _pieces(part, _LONG_WORD, Markup("<wbr>"))
        for index, part in enumerate(parts)
    )


def _kept(part: str) -> str:
    return "option" if part.startswith("-") else "whole"


def _label(text: str) -> Markup:
    """The same for what CSS prints of an attribute, which holds no elements."""
    told, between = visible(text), Markup("&#8203;")
    if "/" in told:  # a label that ends with `disk-` names a folder that is not there
        return _pieces(told, _LONG_LABEL, between, _FOLDER).replace("-", _HYPHEN)
    return _pieces(told, _LONG_LABEL, between)


def _pieces(
    text: str, too_long: re.Pattern[str], between: Markup, piece: re.Pattern[str] = _PIECE
) -> Markup:
    parts = too_long.split(text)
    return Markup("").join(
        between.join(piece.findall(part)) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )


def _json(figures: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(figures, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
