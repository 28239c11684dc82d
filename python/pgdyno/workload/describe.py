"""What a workload is, as the core says without a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from pgdyno import core
from pgdyno.catalog.contract import default
from pgdyno.core import fact_and_hint
from pgdyno.model.description import Description, TpccDescription
from pgdyno.model.errors import DriveError
from pgdyno.model.record_json import from_json
from pgdyno.model.workload import Tpcc, Workload
from pgdyno.workload.spec import workload_spec


def describe(workload: Workload, c_load: Mapping[str, int] | None = None) -> Description:
    """Its tables, statements, kinds, mix, conditions, deviations and size.

    Args:
        workload: What is driven or loaded.
        c_load: The constants that TPC-C's data were loaded with; None: those of its seed.

    Raises:
        DriveError: The workload's parameters are out of range.
    """
    try:
        return _description(json.dumps(workload_spec(workload, c_load)))
    except core.CoreError as error:
        raise DriveError(*fact_and_hint(error)) from error


def describe_tpcc(
    workload: Workload, c_load: Mapping[str, int] | None = None
) -> tuple[Description, TpccDescription]:
    """The same of a TPC-C workload, with what only it has.

    Raises:
        DriveError: The workload's parameters are out of range.
    """
    described = describe(workload, c_load)
    assert described.tpcc is not None, described.name
    return described, described.tpcc


def describe_loaded(
    tpcc: Tpcc, seed: int | None, c_load: Mapping[str, int]
) -> tuple[Description, TpccDescription]:
    """The same of rows that were made before, as they or their files tell.

    Args:
        tpcc: Their size, schema and keys.
        seed: They follow from it; None: from none of ours.
        c_load: The constants that they were made with.
    """
    known = default("TpccSpec", "seed") if seed is None else seed
    return describe_tpcc(Workload("tpcc", known, tpcc=tpcc), c_load)


@cache
def _description(spec_json: str) -> Description:
    # A plan asks once for each stage, and again before each step that needs it, while counting the
    # rows of 5,000 warehouses takes half a second.
    return from_json(Description, core.describe(spec_json))
