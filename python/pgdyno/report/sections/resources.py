"""Utilisation, saturation and errors of every resource, and what processes took of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.process_line_facts import ROLE_LABELS
from pgdyno.analysis.resource_facts import ProcessUse, ResourceRow, Unit
from pgdyno.analysis.words import NOTHING
from pgdyno.model.units import bytes_text, digits_text, ns_text, share_text
from pgdyno.model.wording import listed
from pgdyno.report.document import Block, Cell, Column, Section, Table, Text


def section(facts: Facts) -> Section | None:
    """The tables; None: nothing was sampled."""
    if not facts.resources and not facts.processes:
        return None
    blocks: tuple[Block, ...] = tuple(_used(facts)) if facts.resources else ()
    return Section("resources", "Resources", (*blocks, *_processes(facts), *_parts(facts)))


def _used(facts: Facts) -> Iterator[Block]:
    """Utilisation, saturation and errors; what tells less of a resource is folded."""
    yield Text(
        "Utilisation is how much of a resource is used, saturation what waits for it, errors what"
        " went wrong: means of the windows. What has no figure stands below, with the reason."
    )
    told = [one for one in facts.resources if one.aspect != "part"]
    for caption, is_further in (
        ("Resources of the host, the server and the driver.", False),
        ("Further measures of these resources, and the limits of control groups.", True),
    ):
        rows = tuple(
            (Cell(f"{one.resource}: {one.aspect}", note=one.what), *_cells(one))
            for one in told
            if one.further == is_further and one.unit != "uncounted"
        )
        if rows or not is_further:
            yield Table(caption, _columns("resource", facts), rows, folded=is_further)
    yield from _absent(told)


def _absent(told: Sequence[ResourceRow]) -> Iterator[Table]:
    """What of these resources has no figure in any stage, reason by reason."""
    missing: dict[str, list[str]] = {}
    for one in told:
        if one.unit == "uncounted":
            missing.setdefault(one.what, []).append(f"{one.resource}: {one.aspect}")
    if missing:
        rows = tuple((Cell(listed(names)), Cell(why)) for why, names in missing.items())
        columns = (Column("resource", align="left"), Column("why", align="left"))
        yield Table("What has no figure of these resources.", columns, rows, folded=True)


def _parts(facts: Facts) -> Iterator[Table]:
    """What the use of CPUs and of memory is made of."""
    for resource, caption in _PARTS.items():
        rows = tuple(
            (Cell(one.what), *_cells(one))
            for one in facts.resources
            if one.aspect == "part" and one.resource == resource and any(one.stages)
        )
        if rows:
            yield Table(caption, _columns("what", facts), rows, folded=True)


_PIECES = (
    "Where the cache keeps files in larger pieces (XFS since Linux 5.18, ext4 since 6.16), all"
    " pages of a piece count at each write to it: that may be many times what devices were given."
)
_PARTS = {
    "CPU": "Time of the host's CPUs by state, as shares of all of it, and by CPU; what the kernel"
    " did beside. What was zero throughout is left out.",
    "memory": "The host's memory by what it is used for, and what was done to have some; what was"
    f" zero throughout is left out. {_PIECES}",
}


def _columns(first: str, facts: Facts) -> tuple[Column, ...]:
    return (Column(first, align="left"), *(Column(stage.name) for stage in facts.stages))


def _cells(row: ResourceRow) -> Iterator[Cell]:
    return (_cell(row, value) for value in row.stages)


def _processes(facts: Facts) -> Iterator[Table]:
    """CPU beside reads and writes, of each role that did either."""
    for caption, of, cell in (
        ("CPUs that the server's processes used on average, by role; below, how many of them"
         " waited for one.", _of_cpu, _cpus),
        ("What the server's processes wrote to devices, by role; below, what they read from them."
         " A write counts when a page of the kernel's cache became dirty, not when the kernel wrote"
         f" it. {_PIECES}", _of_bytes, _bytes),
    ):  # fmt: skip
        rows = tuple(
            (Cell(ROLE_LABELS.get(one.role, one.role)), *map(cell, one.stages))
            for one in facts.processes
            if any(use is not None and any(of(use)) for use in one.stages)
        )
        if rows:
            yield Table(caption, _columns("role", facts), rows)


def _of_cpu(use: ProcessUse) -> tuple[float | None, float | None]:
    return use.cpus, use.waiting


def _of_bytes(use: ProcessUse) -> tuple[float | None, float | None]:
    return use.written_bytes_per_s, use.read_bytes_per_s


def _cpus(use: ProcessUse | None) -> Cell:
    if use is None or use.cpus is None:
        return Cell(NOTHING, "quiet")
    return Cell(_level(use.cpus), note=_noted("{} waited", use.waiting, _level))


def _bytes(use: ProcessUse | None) -> Cell:
    if use is None or use.written_bytes_per_s is None:
        return Cell(NOTHING, "quiet")
    return Cell(
        _per_s(use.written_bytes_per_s), note=_noted("read {}", use.read_bytes_per_s, _per_s)
    )


def _noted(words: str, value: float | None, text: Callable[[float], str]) -> str | None:
    return None if value is None else words.format(text(value))


def _per_s(value: float) -> str:
    return f"{bytes_text(value)}/s"


def _level(value: float) -> str:
    return "0" if value == 0 else digits_text(value)


def _cell(row: ResourceRow, value: float | None) -> Cell:
    return Cell(NOTHING, "quiet") if value is None else Cell(_TEXTS[row.unit](value))


_TEXTS: Mapping[Unit, Callable[[float], str]] = {
    "share": share_text,
    "per_s": _level,
    "level": _level,
    "s": lambda value: ns_text(value * 1e9),
    "bytes": bytes_text,
    "bytes_per_s": _per_s,
    "hz": lambda value: f"{digits_text(value / 1e9)} GHz",
    "celsius": lambda value: f"{digits_text(value)} °C",
}
