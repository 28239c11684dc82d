"""What stages on several storages saw of their disks, and what follows for a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from pgdyno.analysis.disk_facts import Answer, DiskInUse, StorageInUse
from pgdyno.analysis.disk_windows import LEAST_MS
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.one_device import on_one_file_system
from pgdyno.analysis.storage_answers import THRESHOLDS
from pgdyno.analysis.words import NOTHING
from pgdyno.model.floor_figures import Span
from pgdyno.model.shared_storage import OWN_FOLDER
from pgdyno.model.text import path_typed
from pgdyno.model.units import count_text, ns_text, share_text
from pgdyno.model.wording import listed
from pgdyno.report.document import Block, Cell, Column, Points, Section, Table, Text
from pgdyno.report.storage_advice import doubt, sentence

_NS = 1e9
_TO_TRY = "These are things to try."
_NO_DISK = "No disk was measured, and nothing is advised: all data lay in memory."
_PLANS = (
    "Plans that are named measure the disk below PGDYNO_HOME: to measure another one, set it to a"
    " folder there."
)


def section(facts: Facts) -> Section | None:
    """The last words of a comparison of storages; None: all stages have one storage."""
    if (found := facts.storage) is None:
        return None
    about = (_TO_TRY if found.advice else "", _probed(found), THRESHOLDS)
    blocks: list[Block] = [Text(" ".join(filter(None, about))), _table(found)]
    if not found.steps:
        return _section([*blocks, Text(_NO_DISK)])
    told = (*map(sentence, found.advice), *map(doubt, found.not_known))
    blocks += [_answers(found, facts.host), Points(told), Text(_PLANS)]
    if found.not_for_load:
        blocks.append(_not_for_load(found))
    return _section(blocks)


def _section(blocks: Sequence[Block]) -> Section:
    return Section("storage", "What follows for storage", tuple(blocks))


def _probed(found: StorageInUse) -> str:
    """What a load does not show of its disks, and which command does; memory alone: nothing."""
    if not found.folders:
        return ""
    paths = " ".join(map(path_typed, found.folders))
    own = " (name PGDYNO_HOME beside them)" if found.own else ""
    return (
        "The figures show each disk under what this load and other programs ask of it. What it"
        f" does with more requests at once is measured by `pgdyno storage {paths}`{own}, whose"
        " report ends with what follows from that."
    )


def _answers(found: StorageInUse, host: Mapping[str, str]) -> Table:
    """Thing by thing, with a column for each disk."""
    differing = [one.by for one in found.steps if _differ(found.places, one.answers, host)]
    differ = f" The folders differ in {listed(differing)}." if differing else ""
    return Table(
        "What may be done about storage, and what the windows say of it for the data in each"
        f" folder.{differ}",
        (Column("", align="left"), *(_place(one) for one in found.places)),
        tuple((Cell(one.by), *map(Cell, one.answers)) for one in found.steps),
    )


def _differ(
    places: Sequence[str | None], answers: Sequence[Answer], host: Mapping[str, str]
) -> bool:
    """Whether answers differ between file systems: on one of them that is chance."""
    return any(
        one != other and not on_one_file_system(pair, host)
        for pair, (one, other) in zip(
            combinations(places, 2), combinations(answers, 2), strict=True
        )
    )


def _place(folder: str | None) -> Column:
    return Column(folder or OWN_FOLDER, align="left")


def _not_for_load(found: StorageInUse) -> Table:
    heads = ("stage", "not for this load", "since")
    return Table(
        "What is not advised, and the figures that speak against it",
        tuple(Column(head, align="left") for head in heads),
        tuple((Cell(one.where), Cell(one.what), Cell(one.because)) for one in found.not_for_load),
        folded=True,
    )


def _table(found: StorageInUse) -> Table:
    heads = ("reads", "a read", "reads under way", "writes", "a write", "flushes", "a flush",
             "waits for reads", "waits for flushes")  # fmt: skip
    return Table(
        "The device below the data in the windows, and shares of sessions' active time: medians of"
        " the rounds. Memory is no device. The kernel counts whole milliseconds: of requests that"
        f" took less than {LEAST_MS:g} ms together in a window, it is not known how long one took.",
        (Column("stage", align="left"), *(Column(head) for head in heads)),
        tuple(_row(one) for one in found.disks),
    )


def _row(disk: DiskInUse) -> tuple[Cell, ...]:
    return (
        Cell(disk.stage, note=disk.folder or OWN_FOLDER),
        _rate(disk.reads_per_s),
        _time(disk.read_s),
        Cell(NOTHING if disk.reading is None else f"{disk.reading.mid:.2f}"),
        _rate(disk.writes_per_s),
        _time(disk.write_s),
        _rate(disk.flushes_per_s),
        _time(disk.flush_s),
        _share(disk.wait_read),
        _share(disk.wait_flush),
    )


def _rate(per_s: Span | None) -> Cell:
    return Cell(NOTHING if per_s is None else f"{count_text(per_s.mid)}/s")


def _time(seconds: Span | None) -> Cell:
    return Cell(NOTHING if seconds is None else ns_text(seconds.mid * _NS))


def _share(share: Span | None) -> Cell:
    return Cell(NOTHING if share is None else share_text(share.mid))
