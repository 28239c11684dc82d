"""Sizes that a plan reckons with against those that the core knows."""

from __future__ import annotations

from typing import Any

import pytest

from pgdyno.loader.copy import describe
from pgdyno.model.workload import Pgbench, Tpcc, Workload
from pgdyno.plan.estimate.needs import DEFAULT_COSTS, fixture_size


@pytest.mark.parametrize(
    ("workload", "spec"),
    [(Workload("tpcc", 1, tpcc=Tpcc(scale)), {"kind": "tpcc", "warehouses": scale})
     for scale in (1, 10, 500)]
    + [(Workload("tpcb", 1, pgbench=Pgbench(20)), {"kind": "tpcb", "scale": 20})],
)  # fmt: skip
def test_a_plan_reckons_with_the_cores_sizes(workload: Workload, spec: dict[str, Any]) -> None:
    tables = fixture_size(workload) - DEFAULT_COSTS.database_bytes

    assert tables == pytest.approx(describe(spec).disk_bytes_estimate, rel=0.01)
