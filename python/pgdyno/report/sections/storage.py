"""What stages on several storages saw of their disks, and what follows for a server."""

from __future__ import annotations

import shlex

from pgdyno.analysis.disk_facts import DiskInUse, StorageInUse
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.storage_in_use import LEAST_MS, THRESHOLDS
from pgdyno.analysis.words import NOTHING
from pgdyno.model.floor_figures import Span
from pgdyno.model.units import count_text, ns_text, share_text
from pgdyno.report.document import Block, Cell, Column, Points, Section, Table, Text
from pgdyno.report.storage_advice import doubt, sentence

_NS = 1e9
_TO_TRY = "These are things to try."
_NOTHING = (
    "Nothing follows that these windows speak for: sessions did not wait long for reads of one page"
    " at a time, nor for flushes that might be shared or put elsewhere."
)
_UNKNOWN = (
    "What follows is not known: the devices below the data, or what sessions waited for, were not"
    " sampled."
)


def section(facts: Facts) -> Section | None:
    """The last words of a comparison of storages; None: all stages have one storage."""
    if (found := facts.storage) is None:
        return None
    about = (_TO_TRY if found.advice else "", _probed(found), THRESHOLDS)
    blocks: list[Block] = [Text(" ".join(filter(None, about))), _table(found)]
    told = (*map(sentence, found.advice), *map(doubt, found.not_known))
    if told:
        blocks.append(Points(told))
    else:
        blocks.append(Text(_NOTHING if _is_known(found) else _UNKNOWN))
    return Section("storage", "What follows for storage", tuple(blocks))


def _probed(found: StorageInUse) -> str:
    """What a load does not show of its disks, and which command does; memory alone: nothing."""
    if not found.folders:
        return ""
    paths = " ".join(shlex.quote(one) for one in found.folders)
    own = " (name PGDYNO_HOME beside them)" if found.own else ""
    return (
        "The figures show each disk under the requests of this load alone. What it does with more"
        f" of them at once is measured by `pgdyno storage {paths}`{own}, whose report ends with"
        " what follows from that."
    )


def _is_known(found: StorageInUse) -> bool:
    """Whether of any disk all is known that advice rests on."""
    return any(
        None not in (one.read_s, one.wait_read) or None not in (one.flush_s, one.wait_flush)
        for one in found.disks
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
        Cell(disk.stage, note=disk.folder or "pgdyno's own folder"),
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
