"""Pages of a copy, judged by the core before they take the place of pages that may be torn."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from pgdyno import core
from pgdyno.core import fact_and_hint
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_json
from pgdyno.model.repair import JudgedPages


@dataclass(frozen=True, slots=True)
class CopiedPages:
    """Of which file pages are, and what they may be."""

    path: str  # below the data directory
    first_block: int  # within the fork; the others follow it
    block_bytes: int
    end_lsn: str  # of the crashed cluster's WAL
    source_has_checksums: bool
    has_checksums: bool  # the crashed cluster


def judged(pages: CopiedPages, source: bytes, target: bytes) -> tuple[bytes, JudgedPages]:
    """The pages that take the place of those on the crashed cluster's disk.

    Args:
        pages: Which.
        source: The copy's, as long as it has them.
        target: The crashed cluster's.

    Raises:
        TargetError: A page of either is newer than the WAL's end, or is none.
    """
    try:
        new, told = core.repaired(json.dumps(asdict(pages)), source, target)
    except core.CoreError as error:
        raise TargetError(*fact_and_hint(error)) from error
    return new, from_json(JudgedPages, told)
