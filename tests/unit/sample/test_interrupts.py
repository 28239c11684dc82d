"""Interrupts between CPUs, as two architectures list them."""

from __future__ import annotations

from pathlib import Path

from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers.interrupts import parse, sampler

X86 = """           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
LOC:     322923     333575   Local timer interrupts
RES:        130         20   Rescheduling interrupts
CAL:          5          7   Function call interrupts
TLB:      94251      50641   TLB shootdowns
ERR:          0
"""
ARM = """           CPU0       CPU1       CPU2
 11:      12345      12345      12345     GICv3  27 Level     arch_timer
IPI0:       100        200          3       Rescheduling interrupts
IPI1:         1          2          4       Function call interrupts
IPI2:         0          0          0       CPU stop interrupts
"""


def test_wake_ups_and_calls_are_counted_on_both_architectures() -> None:
    assert parse(X86) == 162
    assert parse(ARM) == 310


def test_a_kernel_that_lists_none_has_no_sampler(tmp_path: Path) -> None:
    alone = tmp_path / "interrupts"
    alone.write_text("           CPU0\nLOC:     322923   Local timer interrupts\n")

    assert sampler(Subject(), alone) is None
    assert sampler(Subject(), tmp_path / "nothing") is None


def test_what_a_cpu_counted_before_it_was_switched_on_is_no_growth(tmp_path: Path) -> None:
    path = tmp_path / "interrupts"
    path.write_text(X86)
    interrupts = sampler(Subject(), path)
    assert interrupts is not None
    more = X86.replace("CPU1", "CPU1       CPU2").replace("   Resch", "    90000   Resch")

    path.write_text(more)
    assert parse(more) == 90_162
    assert interrupts.take() == {}
    path.write_text(X86)
    assert interrupts.take() == {"host.ipis": 162.0}


def test_a_sampler_reads_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "interrupts"
    path.write_text(X86)
    interrupts = sampler(Subject(), path)
    assert interrupts is not None
    assert interrupts.take() == {"host.ipis": 162.0}

    path.write_text(X86.replace("130", "131"))

    assert interrupts.take() == {"host.ipis": 163.0}
    assert [column.name for column in interrupts.columns] == ["host.ipis"]
