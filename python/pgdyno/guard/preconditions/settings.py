"""Do both servers write what a repair needs, and is full_page_writes the guard's alone?"""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.guard.facts import PrimaryFacts, Seen
from pgdyno.model.guard import Finding

_AUTO = "postgresql.auto.conf"


def _levels(seen: Seen) -> Iterator[Finding]:
    primary, standby = seen.pair.primary, seen.pair.standby
    if primary is not None:
        level = primary.settings["wal_level"]
        passed = level in ("replica", "logical")
        yield Finding(
            "wal-level", passed, level, "replica or logical",
            "" if passed else "Set wal_level = replica on the primary, and restart it.",
        )  # fmt: skip
    for who, facts in (("primary", primary), ("standby", standby)):
        if facts is None:
            continue
        passed = facts.settings["fsync"] == "on"
        yield Finding(
            f"fsync-{who}", passed, facts.settings["fsync"], "on",
            "" if passed else f"Set fsync = on on the {who}: without it nothing is sure.",
        )  # fmt: skip


def _checksums(seen: Seen) -> Iterator[Finding]:
    if seen.pair.primary is None:
        return
    settings = seen.pair.primary.settings
    sums, hints = settings["data_checksums"], settings["wal_log_hints"]
    passed = "on" in (sums, hints)
    yield Finding(
        "checksums", passed, f"data_checksums {sums}, wal_log_hints {hints}", "one of them on",
        "" if passed else "Set wal_log_hints = on, or stop the primary and run pg_checksums"
        " --enable: without either, a mistake would be silent, and after a failover this server"
        " could not come back without a new copy.",
        may_be_accepted=True,
    )  # fmt: skip


def _checkpoints(seen: Seen) -> Iterator[Finding]:
    if seen.pair.primary is None:
        return
    seconds, most = (
        int(seen.pair.primary.settings["checkpoint_timeout"]),
        (seen.limits.checkpoint_timeout_s),
    )
    passed = seconds <= most
    yield Finding(
        "checkpoint-timeout", passed, f"{seconds} s", f"at most {most} s",
        "" if passed else f"Set checkpoint_timeout = {most}s: a repair reads the WAL since the last"
        " checkpoint, and fetches each block that it names. Checkpoints are cheap now.",
        may_be_accepted=True,
    )  # fmt: skip


def _full_pages(seen: Seen) -> Iterator[Finding]:
    primary = seen.pair.primary
    if primary is None:
        return
    found = f"{primary.settings['full_page_writes']}, by {primary.full_pages_source}"
    wrong = _decided_elsewhere(primary, seen)
    yield Finding(
        "full-page-writes", not wrong, found, f"decided by {seen.local.include} alone", wrong
    )


def _decided_elsewhere(primary: PrimaryFacts, seen: Seen) -> str:
    """What would change it where something overrides the guard's file; empty: nothing does."""
    source, include = primary.full_pages_source, seen.local.include
    if source == include:
        return ""
    if source.endswith(_AUTO):
        return "ALTER SYSTEM RESET full_page_writes; it is read after the guard's file."
    if source == "command line":
        return "Start the server without -c full_page_writes, which no file can override."
    if seen.local.is_armed:
        return f"Take full_page_writes out of {source}, which is read after the guard's file."
    if not primary.full_pages:
        return f"Take full_page_writes = off out of {source}: it would count without the guard."
    return ""  # not armed yet: the guard's line will come last


def advice(seen: Seen) -> Iterator[str]:
    """What would be better, though full pages may be off without."""
    primary = seen.pair.primary
    if primary is not None and primary.settings.get("restart_after_crash") == "on":
        yield (
            "restart_after_crash is on: if the storage loses a write while the kernel lives on,"
            " PostgreSQL recovers by itself over pages that may be half written, and nothing asks"
            " for a repair. Off is safer."
        )


JUDGED = (_levels, _checksums, _checkpoints, _full_pages)
