"""Results of other tools beside ours: as they were told, with what to mind, and in no verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.analysis import words
from pgdyno.analysis.facts import Facts, StageFacts
from pgdyno.analysis.others import NOT_TOLD, OtherConditions
from pgdyno.imports.alike import alike, result_numbers
from pgdyno.imports.simultaneous import Together
from pgdyno.model.imported import COMPARABLE, Imported
from pgdyno.model.units import count_text
from pgdyno.model.wording import listed, plural
from pgdyno.report.document import Cell, Column, Points, Section, Table, Text, columns

_NOTE = (
    "Figures of other tools were imported as they were told. Each is one run, without an interval,"
    " and none is in a verdict or an answer of this report; no ratio to them is printed, because"
    " server, host, data and what a tool counts are others, or not known. Tables mark them ○, and"
    " the charts of the page draw them hollow."
)
_APART = "None of their figures means what one of ours means, so no chart sets them beside ours."
_GROUPS_MAX = 4  # columns of others; JSON has all
_RATES = ("nopm_committed", "nopm_ended", "tpm_all_ended", "tps")


def section(facts: Facts) -> Section | None:
    """A row for each stage of ours and each result of others; none where nothing was imported."""
    if not facts.imported:
        return None
    table = Table(
        "Ours (medians of rounds) and those of other tools (○, one run each).",
        columns(
            "result", ("New-Orders", "a minute"), ("all kinds", "a minute"), "tps", "size",
            "clients", "failed",
        ),
        (
            *(_ours(stage, facts) for stage in facts.stages),
            *(_theirs(number, one) for number, one in enumerate(facts.imported, 1)),
            *(_sum(group) for group in facts.imported_together),
        ),
    )  # fmt: skip
    minded = tuple(_minded(facts))
    points = (Points(minded, "warn"),) if minded else ()
    unlike = tuple(_unlike(facts.imported_conditions)) if facts.imported_conditions else ()
    apart = () if _meet(facts) else (Text(_APART, "quiet"),)
    blocks = (
        Text(_NOTE, "quiet"), table, *unlike, *points, Text(_meanings(facts), "quiet"), *apart,
    )  # fmt: skip
    return Section("imported", "Results of other tools", blocks)


def _meet(facts: Facts) -> bool:
    """Whether a figure of others means what one of ours does."""
    ours = {"tps"} if facts.headline == "tps" else {"nopm_committed", "nopm_ended", "tpm_all_ended"}
    return any(figure.metric in ours for one in facts.imported for figure in one.comparable)


def _ours(stage: StageFacts, facts: Facts) -> tuple[Cell, ...]:
    is_tpcc = facts.headline == "NOPM"
    throughput = words.count(stage.throughput)
    return (
        Cell(f"{stage.name}, ours", rung=stage.rung),
        Cell(throughput if is_tpcc else words.NOTHING),
        Cell(words.count(stage.tpm_total) if is_tpcc else words.NOTHING),
        Cell(words.NOTHING if is_tpcc else throughput),
        Cell(facts.same.get("size", words.NOTHING)),
        Cell(facts.same.get("connections", words.NOTHING)),
        Cell("see Every round", "quiet"),
    )


def _theirs(number: int, one: Imported) -> tuple[Cell, ...]:
    orders = one.value("nopm_committed")
    orders = one.value("nopm_ended") if orders is None else orders
    where = one.source.place
    return (
        Cell(f"○ {number}. {one.name}", note=f"{one.form}: {where}"),
        _figure(orders),
        _figure(one.value("tpm_all_ended")),
        _figure(one.value("tps")),
        Cell(_size(one)),
        _figure(one.conditions.get("clients")),
        _figure(one.failed),
    )


def _sum(group: Together) -> tuple[Cell, ...]:
    names = listed([str(place + 1) for place in group.places])
    orders = group.sums.get("nopm_committed", group.sums.get("nopm_ended"))
    return (
        Cell(f"○ {names} together", note="added by the importer"),
        _figure(orders),
        _figure(group.sums.get("tpm_all_ended")),
        _figure(group.sums.get("tps")),
        *(Cell(words.NOTHING) for _ in range(3)),
    )


def _figure(value: float | str | None) -> Cell:
    if value is None:
        return Cell(NOT_TOLD, "quiet")
    return Cell(value if isinstance(value, str) else count_text(value))


def _size(one: Imported) -> str:
    for key, noun in (("warehouses", "warehouse"), ("scale", "scale")):
        value = one.conditions.get(key)
        if isinstance(value, int | float):
            return plural(int(value), noun) if key == "warehouses" else f"scale {value:g}"
    return NOT_TOLD


def _unlike(found: OtherConditions) -> Iterator[Table | Text]:
    """A line for each thing that is not the same of ours and of others."""
    shown = found.groups[:_GROUPS_MAX]
    heads = [f"○ {_numbers(places)}" for places in shown]
    yield Table(
        "What is not the same of ours and of those of other tools: their figures hold all of it.",
        (Column("what", align="left"), *(Column(head, align="left") for head in ("ours", *heads))),
        tuple(
            (
                Cell(line.what), Cell(line.ours),
                *(
                    Cell(text, "quiet" if text == NOT_TOLD else "")
                    for text in line.theirs[:_GROUPS_MAX]
                ),
            )
            for line in found.lines
        ),
    )  # fmt: skip
    left = [place for places in found.groups[_GROUPS_MAX:] for place in places]
    if left:
        yield Text(f"What {result_numbers(left)} ran under is in the JSON.", "quiet")


def _numbers(places: Sequence[int]) -> str:
    return result_numbers(places).partition(" ")[2]


def _minded(facts: Facts) -> Iterator[str]:
    """What fired, each once, with the results that it is about."""
    return (one.sentence(len(facts.imported)) for one in alike(facts.imported, "fires"))


def _meanings(facts: Facts) -> str:
    there = {figure.metric for one in facts.imported for figure in one.comparable}
    said = [f"{name}: {COMPARABLE[name]}" for name in _RATES if name in there]
    ours = "Ours are New-Orders that were committed." if facts.headline == "NOPM" else ""
    return " ".join(part for part in (ours, f"{'; '.join(said)}." if said else "") if part)
