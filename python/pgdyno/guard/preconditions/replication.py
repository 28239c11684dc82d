"""Does the standby have, now, what a repair would take from it?"""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.guard.facts import CYCLES, PrimaryFacts, Seen, StandbyFacts
from pgdyno.model.guard import Finding
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural

_KEEPING = ("reserved", "extended")
_MIB = 1 << 20


def _streaming(seen: Seen) -> Iterator[Finding]:
    primary, standby = seen.pair.primary, seen.pair.standby
    if standby is None:
        return
    passed = standby.receiver == "streaming"
    yield Finding(
        "streaming", passed, standby.receiver or "no WAL receiver runs", "streaming",
        "" if passed else "See the standby's log: primary_conninfo, pg_hba.conf, missing WAL.",
    )  # fmt: skip
    if primary is not None:
        yield _slot(primary, standby)


def _slot(primary: PrimaryFacts, standby: StandbyFacts) -> Finding:
    wanted = "an active physical slot of this primary that keeps WAL"
    make = (
        "SELECT pg_create_physical_replication_slot('NAME', true) on the primary, and set"
        " primary_slot_name on the standby."
    )
    if not standby.slot:
        return Finding("slot", False, "the standby uses none", wanted, make)
    found = next((one for one in primary.slots if one.name == standby.slot), None)
    if found is None:
        shown = f"{standby.slot} is not on this primary"
        return Finding("slot", False, shown, wanted, f"Does it follow another one? {make}")
    words = [
        "active" if found.active else "not active",
        "keeps WAL" if found.reserved else "keeps no WAL",
        f"status {found.status}",
    ]
    passed = found.active and found.reserved and found.status in _KEEPING
    change = "" if passed else "See max_slot_wal_keep_size; a slot that is lost is made anew."
    return Finding("slot", passed, f"{found.name}: {', '.join(words)}", wanted, change)


def _replay(seen: Seen) -> Iterator[Finding]:
    standby = seen.pair.standby
    if standby is None:
        return
    yield Finding(
        "replay", not standby.is_paused, "paused" if standby.is_paused else "it replays",
        "it replays", "SELECT pg_wal_replay_resume() on the standby." if standby.is_paused else "",
    )  # fmt: skip
    passed = standby.delay_ms == 0
    yield Finding(
        "apply-delay", passed, f"{standby.delay_ms} ms", "0 ms",
        "" if passed else "Set recovery_min_apply_delay = 0, or name another standby.",
    )  # fmt: skip
    name, value = standby.recovery_target or ("", "")
    yield Finding(
        "recovery-target", not name, f"{name} = {value}" if name else "none", "none",
        f"Take {name} out of the standby's configuration, and restart it: at its target it stops"
        " replaying, and a repair would promote it." if name else "",
    )  # fmt: skip


def _lag(seen: Seen) -> Iterator[Finding]:
    lag = seen.pair.lag_bytes
    if lag is None:
        return
    most, most_s = seen.limits.lag_bytes, seen.limits.lag_s
    passed = lag <= most and seen.pair.lag_s <= most_s
    yield Finding(
        "lag", passed, f"{bytes_text(lag)}, the oldest {seen.pair.lag_s:.0f} s old",
        f"at most {bytes_text(most)} and {most_s:.0f} s",
        "" if passed else "Is the network full, or a query in the way of replay (see"
        " pg_stat_database_conflicts on the standby)?",
    )  # fmt: skip


def _restartpoint(seen: Seen) -> Iterator[Finding]:
    """Some checkpoints behind the primary's last one, at most: as the guard saw them, or by bytes.

    A repair lets the standby make one; the further it is behind, the longer that takes.
    """
    primary, standby = seen.pair.primary, seen.pair.standby
    if primary is None or standby is None:
        return
    oldest = primary.redo_oldest_lsn
    if oldest is None:
        oldest = primary.redo_lsn - CYCLES * int(primary.settings["max_wal_size"]) * _MIB
    passed = standby.redo_lsn >= oldest
    behind = max(primary.redo_lsn - standby.redo_lsn, 0)
    yield Finding(
        "restartpoint", passed, f"{bytes_text(behind)} before the primary's last checkpoint",
        f"at most {plural(CYCLES, 'checkpoint')} of the primary behind",
        "" if passed else "CHECKPOINT on the standby; set its checkpoint_timeout as the primary's.",
    )  # fmt: skip


JUDGED = (_streaming, _replay, _lag, _restartpoint)
