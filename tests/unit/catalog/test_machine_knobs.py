"""The catalogue of the machine: complete, consistent, and true of the running kernel."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from pgdyno.catalog import Entry, entries, knobs, known_settings, layers, machine_knobs
from pgdyno.catalog.machine import MachineKnob
from pgdyno.model.settings import Rung
from tests.data.servers import rows

GONE_OR_OWNED = {name for name, knob in knobs().items() if knob.type is None or knob.owned}
KERNEL = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
MAJORS = (15, 18)


def test_the_catalogue_holds_every_layer() -> None:
    assert {entry.layer for entry in entries().values()} == set(layers())
    assert len(entries()) >= 400
    assert len(machine_knobs()) + len(knobs()) == len(entries())


@pytest.mark.parametrize("entry", entries().values(), ids=lambda entry: entry.name)
def test_every_knob_tells_all_that_a_user_needs(entry: Entry) -> None:
    assert entry.why.endswith((".", "?")), entry.why
    assert entry.sources
    assert all(source.startswith("https://") for source in entry.sources)
    assert entry.versions
    assert entry.how
    assert entry.verify
    assert entry.undo
    assert entry.risk
    if not entry.gone:
        assert entry.kind
        assert entry.apply


@pytest.mark.parametrize(("name", "knob"), machine_knobs().items(), ids=list(machine_knobs()))
def test_machine_knobs_are_consistent(name: str, knob: MachineKnob) -> None:
    gone = knob.never is not None or knob.until is not None
    assert (knob.default is None) <= gone, "what exists has a default"
    if knob.type == "enum":
        assert len(knob.values) > 1
    if knob.min is not None and knob.max is not None:
        assert knob.min < knob.max
    for fall in knob.fall:
        allowed = knob.values or ("on", "off", "0", "1")
        assert set(fall.values) <= set(allowed)
        assert knob.risk != "none"
    if knob.instead and knob.layer in ("sysctl", "build"):
        known = knob.instead in entries() or knob.instead.startswith("/")
        assert known, f"{name}: {knob.instead} is not in the catalogue"


@pytest.mark.parametrize(
    "name", [name for name, knob in machine_knobs().items() if knob.layer == "sysctl"]
)
def test_sysctls_stand_in_the_running_kernel_exactly_if_the_catalogue_says_so(name: str) -> None:
    knob = machine_knobs()[name]
    path = Path("/proc/sys", *name.split("."))
    if knob.exists_in(KERNEL) and knob.module is None and not namespaced(name):
        assert path.exists()
    if not knob.exists_in(KERNEL):
        assert not path.exists()


def namespaced(name: str) -> bool:
    """Some settings of the network show in the first network namespace only."""
    return name.startswith("net.core.") and not Path("/proc/sys/net/core/rmem_max").exists()


@pytest.mark.parametrize("major", MAJORS)
def test_facts_of_server_knobs_are_those_of_pg_settings(major: int) -> None:
    told = {row[0]: row for row in rows(major)}
    for name, knob in knobs().items():
        known = known_settings().get(name)
        if name not in told:
            exists = known is not None and known.exists_in(major) and not known.hidden
            assert not exists or name in GONE_OR_OWNED, f"{name} is not in PostgreSQL {major}"
            continue
        _, kind, _unit, context, low, high, *_ = told[name]
        before = knob.before if major == MAJORS[0] else None
        assert kind == ((before and before.type) or knob.type), name
        assert context == ((before and before.context) or knob.context), name
        if kind in ("integer", "real"):
            least = before.min if before and before.min is not None else knob.min
            most = before.max if before and before.max is not None else knob.max
            assert (float(low), float(high)) == pytest.approx((least, most)), name


def test_versions_are_compared_as_far_as_they_are_told() -> None:
    recycle = machine_knobs()["net.ipv4.tcp_tw_recycle"]
    assert recycle.exists_in((4, 11))
    assert not recycle.exists_in((4, 12))
    assert not machine_knobs()["vm.extra_free_kbytes"].exists_in((6, 18))
    assert not machine_knobs()["kernel.io_uring_disabled"].exists_in((6, 5))
    assert machine_knobs()["kernel.io_uring_disabled"].exists_in((6, 6))


@pytest.mark.parametrize(
    ("name", "rung"),
    [
        ("xfs nobarrier", "D5"),
        ("ext4 barrier", "D5"),
        ("ext4 data", "D5"),
        ("queue/write_cache", "D5"),
        ("fsync", "D6"),
        ("vm.swappiness", "D0"),
    ],
)
def test_the_rung_is_that_of_the_worst_value(name: str, rung: str) -> None:
    assert entries()[name].rung == Rung(rung).value
