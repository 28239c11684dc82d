"""What was looked at in the runs of made-up pages, as much and as long as it may be."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.telemetry_facts import (
    Lacking,
    Looks,
    Sampled,
    SampledGroup,
    SampledLevel,
    SampledSeries,
    SampledTable,
    SamplerUse,
    TelemetryCost,
    TelemetryFacts,
)
from pgdyno.model.plan import Telemetry

_ROLE = "engineer_of_a_department"
_PROCESSES = ("client_backend", "background_worker", "checkpointer", "autovacuum_worker")
_CONTEXTS = ("relation.normal", "relation.bulkread", "temp_relation.normal", "wal.normal")
_COUNTED = ("reads", "writes", "writebacks", "extends", "fsyncs", "evictions", "read_bytes")


def looked_at(stages: Sequence[str], long: str, telemetry: Telemetry = "default") -> TelemetryFacts:
    """What was seen and what not.

    Args:
        stages: Their names.
        long: A text without a place to break it.
        telemetry: That of all stages.
    """
    return TelemetryFacts(
        tuple(TelemetryCost(name, telemetry, 0.0123, 37.5, 0.0012) for name in stages),
        tuple(Looks(name, what, count, 50.123, 49.876, 0.0049)
              for name in stages for what, count in (("sessions", 1), ("series", 21))),
        (
            Lacking("sessions of others", f"the role {_ROLE} may not read what other roles and"
                    " processes do", f"GRANT pg_monitor TO {_ROLE};", tuple(stages)),
            Lacking("times of WAL I/O", "track_wal_io_timing is off",
                    "Set track_wal_io_timing = on, which reads the clock twice for each"
                    " operation.", tuple(stages[1:])),
            Lacking("sampler replication", f"it stopped: {long}", "", (stages[0],)),
        ),
        (
            SamplerUse("sessions", 1000.0, (1_234.5, *(None for _ in stages[1:]))),
            SamplerUse("I/O by process, object and context", 1000.0, (456.7,) * len(stages)),
        ),
        everything(stages, long),
    )  # fmt: skip


def everything(stages: Sequence[str], long: str = "") -> Sampled:
    """As many series as a server of today has, and a host with some devices."""
    of_io = [f"pg_stat_io.{process}.{context}.{what}" for process in _PROCESSES
             for context in _CONTEXTS for what in _COUNTED]  # fmt: skip
    of_devices = [f"device.nvme{n}n1.{what}" for n in range(12)
                  for what in ("reads", "read_bytes", "writes", "busy_s")]  # fmt: skip
    return Sampled(
        (
            _group("CPUs of the host", [f"cpu.{n}.busy_s" for n in range(64)], stages),
            _group("block devices", of_devices, stages),
            _group("I/O of the server by process, object and context", of_io, stages),
            SampledGroup(
                "memory of the host",
                (SampledSeries("memory.dirty_bytes", "B", "gauge", (
                    SampledLevel(123_456_789.0, 1_234_567_890.0), *(None for _ in stages[1:]))),),
                tuple(f"memory.{what}_bytes" for what in ("huge_total", "huge_free", "swap_total")),
                ("vm.oom_kills",), 0,
            ),
        ),
        (
            SampledTable("sessions", "tally", ("role", "wait_class", "wait_event", "state", "kind"),
                         tuple(123 for _ in stages)),
            SampledTable(f"pg_stat_io{long}", "snapshot", ("backend_type", "object", *_COUNTED),
                         (None, *(56_789 for _ in stages[1:]))),
        ),
    )  # fmt: skip


def _group(title: str, names: Sequence[str], stages: Sequence[str]) -> SampledGroup:
    series = tuple(
        SampledSeries(name, "B" if name.endswith("_bytes") else "1", "counter", tuple(
            SampledLevel(1_234.5 * number, None) for number, _ in enumerate(stages, 1)
        ))
        for name in names
    )  # fmt: skip
    return SampledGroup(title, series, (), (), 0)
