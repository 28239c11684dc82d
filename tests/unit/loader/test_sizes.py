"""Sizes that a plan reckons with against those that the core knows."""

from __future__ import annotations

import pytest

from pgdyno.model.workload import Workload
from pgdyno.plan.estimate.needs import DEFAULT_COSTS, fixture_size
from pgdyno.workload.describe import describe
from tests.data.workloads import tpcb, tpcc


@pytest.mark.parametrize("workload", [tpcc(1), tpcc(10), tpcc(500), tpcb(20)])
def test_a_plan_reckons_with_the_cores_sizes(workload: Workload) -> None:
    tables = fixture_size(workload) - DEFAULT_COSTS.database_bytes

    assert tables == pytest.approx(describe(workload).disk_bytes_estimate, rel=0.01)
