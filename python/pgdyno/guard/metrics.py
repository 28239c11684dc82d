"""The guard's metrics in OpenMetrics, for a collector of text files."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.model.guard import Finding, Heartbeat
from pgdyno.model.openmetrics import Family, Kind, Sample, exposition


def _family(name: str, kind: Kind, unit: str, text: str, *labels: str) -> Family:
    return Family(f"pgdyno_guard_{name}".rstrip("_"), kind, unit, text, labels)


ARMED = _family("", "info", "", "The server that is guarded.", "data", "system_identifier")
OFF = _family(
    "full_pages_off", "gauge", "",
    "1 while the server has full pages off, else 0; by the interlock's file if it does not answer.",
)  # fmt: skip
COMPLETE = _family(
    "images_complete", "gauge", "",
    "1 while images protect every page: full pages are on, and a checkpoint began since.",
)  # fmt: skip
CONDITION = _family(
    "condition", "gauge", "", "1 for each condition that holds or is accepted, else 0.", "name"
)
LAG_BYTES = _family(
    "lag_bytes", "gauge", "bytes", "WAL flushed on the primary and not replayed on the standby."
)
LAG = _family("lag_seconds", "gauge", "seconds", "The age of the oldest of these bytes.")
REPAIR = _family(
    "wal_since_redo_bytes", "gauge", "bytes", "WAL that a repair would have to read now."
)
TURNS = _family("turns", "counter", "", "How often full pages went on while the daemon runs.")
WATCHDOG = _family(
    "watchdog_turns", "counter", "", "Of these, without the daemon, which gave no sign of life."
)
BEAT = _family(
    "heartbeat_seconds", "gauge", "seconds", "The last sign of life, since the machine began."
)

FAMILIES = (ARMED, OFF, COMPLETE, CONDITION, LAG_BYTES, LAG, REPAIR, TURNS, WATCHDOG, BEAT)


def metrics(
    data: str, system_identifier: str, heartbeat: Heartbeat, findings: tuple[Finding, ...]
) -> str:
    """The text of them; what is not known has no sample."""
    return exposition(_samples(data, system_identifier, heartbeat, findings))


def _samples(
    data: str, system_identifier: str, heartbeat: Heartbeat, findings: tuple[Finding, ...]
) -> Iterator[Sample]:
    yield Sample(ARMED, (data, system_identifier), 1)
    yield Sample(OFF, (), (heartbeat.server_pages or heartbeat.pages) == "off")
    yield Sample(COMPLETE, (), heartbeat.complete)
    for one in findings:
        yield Sample(CONDITION, (one.name,), one.allows)
    for family, value in (
        (LAG_BYTES, heartbeat.lag_bytes),
        (LAG, heartbeat.lag_s),
        (REPAIR, heartbeat.wal_since_redo_bytes),
        (TURNS, heartbeat.turns),
        (WATCHDOG, heartbeat.watchdog_turns),
        (BEAT, heartbeat.at_s),
    ):
        if value is not None:
            yield Sample(family, (), value)
