"""Are the two servers what they are taken for?"""

from __future__ import annotations

import os
from collections.abc import Iterator

from pgdyno.guard.facts import Seen
from pgdyno.model.guard import Finding


def _answers(seen: Seen) -> Iterator[Finding]:
    pair = seen.pair
    for who, facts, silence in (
        ("primary", pair.primary, pair.primary_silence),
        ("standby", pair.standby, pair.standby_silence),
    ):
        yield Finding(
            f"{who}-answers", facts is not None,
            "it does" if facts is not None else silence or "it was not asked yet",
            f"a session on the {who}", "" if facts is not None else _change_of(seen, who),
        )  # fmt: skip


def _change_of(seen: Seen, who: str) -> str:
    if who == "primary" and seen.local.is_shut:
        return "Repair it before you start it: see interlock."
    return f"Start the {who}, or let the guard's role in (pg_hba.conf)."


def _primary(seen: Seen) -> Iterator[Finding]:
    primary = seen.pair.primary
    if primary is None:
        return
    is_primary = not primary.is_in_recovery
    yield Finding(
        "primary-role", is_primary, "a primary" if is_primary else "in recovery: a standby itself",
        "a primary", "" if is_primary else "Name the data directory of the primary.",
    )  # fmt: skip
    folder = primary.settings.get("data_directory")
    if folder is None:
        yield Finding(
            "primary-data", False, "the role may not read data_directory", seen.local.data,
            "GRANT pg_read_all_settings (pg_monitor has it) to the guard's role.",
        )  # fmt: skip
        return
    same = os.path.realpath(folder) == seen.local.data
    yield Finding(
        "primary-data", same, folder, seen.local.data,
        "" if same else "Name the data directory of the server that answers, or its conninfo.",
    )  # fmt: skip


def _system(seen: Seen) -> Iterator[Finding]:
    primary, standby = seen.pair.primary, seen.pair.standby
    if primary is None or standby is None:
        return
    same = primary.system_identifier == standby.system_identifier
    yield Finding(
        "same-system", same, standby.system_identifier, primary.system_identifier,
        "" if same else "Name a standby that was made from this primary.",
    )  # fmt: skip
    yield Finding(
        "standby-role", standby.is_in_recovery,
        "in recovery" if standby.is_in_recovery else "not in recovery: promoted, or no standby",
        "in recovery", "" if standby.is_in_recovery else "Make a new standby of this primary.",
    )  # fmt: skip
    same = primary.timeline == standby.timeline
    yield Finding(
        "same-timeline", same, str(standby.timeline), str(primary.timeline),
        "" if same else "Let the standby follow (recovery_target_timeline = 'latest').",
    )  # fmt: skip


JUDGED = (_answers, _primary, _system)
