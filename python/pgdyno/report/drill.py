"""A drill: as a page, as Markdown, as JSON, in a terminal."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table as Printed
from rich.text import Text as Line

from pgdyno.analysis.drill_facts import DisasterFacts, DrillFacts, Price
from pgdyno.model.drill import Cut, Disaster, Shrunk
from pgdyno.model.text import json_document
from pgdyno.model.units import bytes_text, count_text, seconds_text, share_text
from pgdyno.model.wording import plural
from pgdyno.report.bars import Bar, height_px, interval_bars
from pgdyno.report.charts import Panel
from pgdyno.report.document import (
    Cell,
    Column,
    Document,
    Figure,
    Points,
    Section,
    Table,
    Text,
    Tone,
    columns,
)
from pgdyno.report.html import Drawing
from pgdyno.report.html import render_document as render_page
from pgdyno.report.markdown import render_document as render_markdown
from pgdyno.report.tone import WORST

_WORDS: dict[str, tuple[str, Tone]] = {
    "whole": ("whole", "good"),
    "lost": ("commits lost", "warn"),
    "damaged": ("damaged", "bad"),
    "dead": ("did not come back", "bad"),
}
_WORST = {"whole": "lost nothing", "down": "lost the service", "lost": "lost commits",
          "broken": "lost the database"}  # fmt: skip
_RECORDERS = {"mount": "a file system", "library": "a preloaded library"}
_REASONS_LETTERS = 300


def render_html(facts: DrillFacts) -> str:
    """The page."""
    return render_page(document(facts), _drawings(facts), facts.pgdyno, facts.ident)


def render_md(facts: DrillFacts) -> str:
    """The same as Markdown."""
    return render_markdown(document(facts), facts.pgdyno, facts.ident)


def render_json(facts: DrillFacts) -> str:
    """All of it in base units."""
    return json_document({"schema": "pgdyno.experiment.drill/1", **asdict(facts)})


def summary(facts: DrillFacts) -> RenderableType:
    """What each disaster did to each stage, for a terminal."""
    table = Printed("stage", "disaster", "cuts", "dead", "damaged", "lost", "whole", "stayed down",
                    box=None, pad_edge=False)  # fmt: skip
    for row in facts.rows:
        numbers = (row.cuts, row.dead, row.damaged, row.lost, row.cuts - row.harmed.of,
                   "" if row.outage_s is None else row.stayed_down)  # fmt: skip
        table.add_row(f"{row.stage} ({row.rung})", row.disaster, *map(str, numbers))
    return Group(table, *(Line(text) for text in (*facts.answers, *facts.doubts)))


def document(facts: DrillFacts) -> Document:
    """Arrange it for reading."""
    return Document(
        title=f"What survives of {facts.plan}?",
        kicker="Drill",
        label="Disasters, rehearsed on copies",
        about=(
            f"plan {facts.plan}, seed {facts.seed}",
            f"{plural(len(facts.loads), 'load')} of {facts.load_s:g} s, recorded call by call by"
            f" {_RECORDERS[facts.recorder]}; {plural(len(facts.cuts), 'cut')}",
            *sorted({one.server for one in facts.loads}),
        ),
        answer=facts.answers,
        cards=(),
        sections=(
            *_price_list(facts),
            Section("survived", "What survived", (_table(facts), Points(facts.sentences))),
            Section("done", "What was done", (
                Text(
                    "The load of each stage was driven once, and again where a disaster strikes the"
                    " load itself or a drill is resumed, while every call to its disk was recorded."
                    " Of that record disks were made, each as a disaster at one instant"
                    " may have left it. A server recovered on each; then its rows were held against"
                    " the driver's ledger of acknowledged commits, the workload's conditions were"
                    " checked, all tables and indexes were read (pg_amcheck, pg_dump), and pages"
                    " against their checksums where they have any."
                ),
                Points((*(f"`{one.name}`: {one.what}" for one in _struck(facts)), *_lying(facts))),
                Text("What the stages give up:"),
                Points(tuple(f"`{name}`: {reason}." for name, reason in facts.gives_up)),
                _loads(facts),
            )),
            *_smallest(facts),
            Section("controls", "Whether the checks can fail", (_controls(facts),)),
            Section("cuts", "Every cut", (_cuts(facts.cuts),)),
        ),
        warnings=facts.doubts,
    )  # fmt: skip


def _struck(facts: DrillFacts) -> tuple[Disaster, ...]:
    """Those that did, of the ones that were asked for."""
    names = {one.disaster for one in facts.cuts}
    return tuple(one for one in facts.disasters if one.name in names)


def _lying(facts: DrillFacts) -> tuple[str, ...]:
    """What is otherwise than the disasters say."""
    return tuple(
        f"Stage {name} has a disk that lies: with it, each power cut is as `power-lying` is, with"
        " the sectors that the disaster itself has."
        for name in facts.lying
    )


def _price_list(facts: DrillFacts) -> tuple[Section, ...]:
    """What each stage brings, beside what it lost."""
    if facts.gains is None:
        return ()
    rows = tuple(
        (
            Cell(one.stage, rung=one.rung),
            Cell(f"×{one.gain.ratio:.2f}" if one.gain else "×1"),
            Cell(f"{one.gain.low:.2f} to {one.gain.high:.2f}" if one.gain else ""),
            Cell(str(one.gain.n) if one.gain else ""),
            *(
                Cell(took.words, tone=WORST[took.worst]) if took else Cell("not drilled")
                for took in one.took
            ),
        )
        for one in facts.prices
    )
    caption = (
        f"Throughput ({facts.gains.headline}) against the first stage in run {facts.gains.run},"
        " with 95% intervals, beside what disasters took here."
    )
    if facts.gains.confidence:
        caption += f" The report of that run has {facts.gains.confidence} confidence in them."
    heads = (
        *columns("stage", "brings", "95%", "n"),
        *(Column(f"{one.name} took", align="left") for one in facts.disasters),
    )
    return (Section("prices", "What each rung brings, and takes",
                    (Figure("prices"), Table(caption, heads, rows))),)  # fmt: skip


def _drawings(facts: DrillFacts) -> dict[str, Drawing]:
    if facts.gains is None:
        return {}
    about = (
        "Throughput as a multiple of the first stage's, with 95% intervals; beside each stage the"
        " worst that disasters took from it."
    )
    height = height_px(len(facts.prices))
    return {"prices": Drawing("The price list", about, height, 1, (), (_panel(facts.prices),))}


def _panel(prices: tuple[Price, ...]) -> Panel:
    """Bars from the first stage's throughput; the first stage on top."""
    bars = [
        Bar(
            f"{one.rung} {one.stage}: {_WORST[one.worst]}",
            *((one.gain.ratio, one.gain.low, one.gain.high) if one.gain else (1.0, 1.0, 1.0)),
        )
        for one in reversed(prices)
    ]
    return interval_bars(
        bars, zero=1.0, unit="times the throughput of the first stage",
        shown=lambda bar: f"×{bar.value:.2f} ({bar.low:.2f} to {bar.high:.2f})",
        alt="; ".join(f"{bar.name}, ×{bar.value:.2f}" for bar in reversed(bars)),
    )  # fmt: skip


def _table(facts: DrillFacts) -> Table:
    heads = columns("stage", "disaster", "cuts", "did not come back", "damaged", "commits lost",
                    "harmed", "95%", "most commits lost", ("lost since", "s"), ("recovery", "s"),
                    "stayed down", ("outage", "s"), "harm")  # fmt: skip
    caption = (
        "Cuts by what came back. Harmed: did not come back, came back damaged, or without commits"
        " that had been acknowledged; the interval is exact. Most commits lost, and since when"
        " before the cut: of the worst one. Recovery: median of those that came back. Stayed down:"
        " servers for which somebody had to do something; outage: the longest time without a"
        " commit from the disaster on, of one that lasts until the load ended; both of disasters"
        " that strike a load which goes on."
    )
    return Table(caption, heads, tuple(_row(one) for one in facts.rows))


def _row(one: DisasterFacts) -> tuple[Cell, ...]:
    tone: Tone = "bad" if one.dead or one.damaged else "warn" if one.lost else "good"
    words = "yes" if one.harmed.of else "none"
    return (
        Cell(one.stage, rung=one.rung),
        Cell(one.disaster),
        *(Cell(str(number)) for number in (one.cuts, one.dead, one.damaged, one.lost)),
        Cell(share_text(one.harmed.of / one.cuts)),
        Cell(f"{share_text(one.harmed.low)} to {share_text(one.harmed.high)}"),
        Cell(str(one.commits_lost)),
        Cell(f"{one.lost_s:.3f}" if one.lost_s else ""),
        Cell(f"{one.recovery_s:.2f}" if one.recovery_s is not None else ""),
        Cell(
            "" if one.outage_s is None else str(one.stayed_down),
            tone="warn" if one.stayed_down else "",
        ),
        Cell("" if one.outage_s is None else f"{one.outage_s:.2f}"),
        Cell(words, tone=tone),
    )


def _smallest(facts: DrillFacts) -> tuple[Section, ...]:
    """Where to look for what went wrong."""
    if not facts.shrunk:
        return ()
    rows = tuple(
        (
            Cell(f"{one.stage}, {one.disaster} {one.number}", note=_why(one)),
            Cell(_WORDS[one.state][0], tone=_WORDS[one.state][1]),
            Cell(str(one.blocks_lost)),
            Cell(_lost_blocks(one)),
            Cell(str(one.tried)),
        )
        for one in facts.shrunk
    )
    heads = (
        Column("cut", align="left"), Column("", align="left"), Column("pages lost"),
        Column("are enough", align="left"), Column("disks tried"),
    )  # fmt: skip
    caption = (
        "The smallest loss that was found to do the same harm as a cut: everything else of the disk"
        " is as it was last. Pages are blocks of 8 KiB of a file."
    )
    return (Section("smallest", "The smallest harm", (Table(caption, heads, rows),)),)


def _why(one: Cut | Shrunk) -> str:
    """What was said of it, shortened; the whole of it is in the JSON."""
    return " ".join(one.reasons)[:_REASONS_LETTERS]


def _lost_blocks(one: Shrunk) -> str:
    names = ["names or sizes of files"] if one.names else []
    blocks = [
        f"{block.path} page {block.block} ({block.sectors_lost} of"
        f" {plural(block.sectors_open, 'sector')})"
        for block in one.blocks
    ]
    return "; ".join([*names, *blocks]) or "nothing of a page"


def _loads(facts: DrillFacts) -> Table:
    rows = tuple(
        (
            Cell(one.stage),
            Cell(count_text(one.acknowledged)),
            Cell(seconds_text(one.seconds)),
            Cell(bytes_text(one.record_bytes)),
        )
        for one in facts.loads
    )
    caption = (
        "Loads as they were recorded. Their speed is that of a recorded disk, and says nothing of"
        " a stage's own."
    )
    return Table(caption, columns("stage", "commits acknowledged", "load", "record"), rows)


def _controls(facts: DrillFacts) -> Table:
    rows = tuple(
        (
            Cell(one.stage),
            Cell(one.what),
            Cell("found" if one.found else "missed", tone="good" if one.found else "bad"),
            Cell(one.found or ""),
        )
        for one in facts.controls
    )
    heads = (
        Column("stage", align="left"), Column("planted", align="left"), Column("", align="left"),
        Column("what was said", align="left"),
    )  # fmt: skip
    caption = "Faults that were planted in a cluster that was whole: each must be found."
    return Table(caption, heads, rows)


def _service(one: Cut) -> str:
    if one.outage is None:
        return ""
    waited = f"{one.outage.waited_s or 0:.0f} s"
    match one.outage.down:
        case "hangs":
            lasts = f", neither comes back nor ends in {waited}"
        case "recovers":
            lasts = f", still recovers after {waited}"
        case "waits":
            lasts = ", waits for a standby"
        case _:
            lasts = ", stays down" if one.outage.needs_somebody else ""
    return f"{one.outage.seconds:.2f} s{lasts}"


def _cuts(cuts: tuple[Cut, ...]) -> Table:
    rows = tuple(
        (
            Cell(f"{one.stage}, {one.disaster} {one.number}"),
            Cell(f"{one.at_s:.3f}"),
            Cell(str(one.seed)),
            Cell(f"{one.made.sectors_lost} of {one.made.sectors_open}"),
            Cell(str(one.made.blocks_torn)),
            Cell(f"{one.made.names_lost} of {one.made.names_open}"),
            Cell(str(one.acknowledged)),
            Cell(str(one.lost)),
            Cell(_service(one)),
            Cell(_WORDS[one.state][0], tone=_WORDS[one.state][1], note=_why(one)),
        )
        for one in cuts
    )
    heads = (
        *columns("cut", "at", "seed", "sectors lost", "pages torn", "names lost", "acknowledged",
                 "lost", "outage"),
        Column("", align="left"),
    )  # fmt: skip
    caption = (
        "At: seconds of the load. Lost: of what was not settled on the disk at that instant. The"
        " same seed makes the same disk of the same record. Outage: the longest time without a"
        " commit, and whether somebody had to start the server."
    )
    return Table(caption, heads, rows, folded=True)
