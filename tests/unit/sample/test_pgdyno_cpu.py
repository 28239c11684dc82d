"""CPU time of pgdyno's own process."""

from __future__ import annotations

import time

from pgdyno.sample.sampler import Subject
from pgdyno.sample.samplers import pgdyno_cpu


def test_what_this_process_computes_is_counted_and_what_it_sleeps_is_not() -> None:
    own = pgdyno_cpu.sampler(Subject())
    assert [(one.name, one.unit, one.kind) for one in own.columns] == [
        ("pgdyno.cpu_s", "s", "counter")
    ]
    begun_s = time.process_time()
    before = own.take()["pgdyno.cpu_s"]
    while time.process_time() - begun_s < 0.05:
        pass
    computed_s = own.take()["pgdyno.cpu_s"] - before
    assert 0.04 < computed_s <= time.process_time() - begun_s
