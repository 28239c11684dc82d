"""Results of hosts as one: what all of them recorded, whoever recorded it."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pgdyno import core
from pgdyno.drive.histogram import SHARES, Histogram
from pgdyno.drive.result import parse_result
from pgdyno.model import response_times
from tests.unit.drive.test_driver import RESULT

WORKLOAD = {"kind": "tpcb", "scale": 1}
TALLY = [[0] * 50 for _ in range(4)]
TIMES_NS = st.lists(st.integers(1, 4_000_000_000_000), max_size=40)


def histogram(values: list[int]) -> Histogram:
    """What a host that met these times sends."""
    found = Histogram()
    found.add(np.array(values, dtype=np.int64))
    return found


EDGES_NS = core.time_edges_ns()


@cache
def empty() -> tuple[str, dict[str, int]]:
    """A histogram of nothing, and its summary."""
    return Histogram().encoded(), Histogram().summary_ns()


def result(values: list[int], second: int) -> dict[str, Any]:
    """A host's result: so many transactions that took so long, all in one second."""
    own, (text, summary) = histogram(values), empty()
    count = len(values)
    counts = dict.fromkeys(
        ("due", "succeeded", "rolled_back", "failed", "unknown", "skipped", "unfinished",
         "drained", "unanswered", "stuck", "retries_40001", "retries_40p01"), 0,
    ) | {"due": count, "succeeded": count}  # fmt: skip
    statement = {"name": "end", "statements": ["end"], "count": count,
                 "histogram": own.encoded(), "ns": own.summary_ns()}  # fmt: skip
    kind = {
        "kind": "tpcb", "window": counts, "run": counts,
        "response": own.encoded(), "response_ns": own.summary_ns(),
        "service": own.encoded(), "service_ns": own.summary_ns(),
        "queue": text, "queue_ns": summary, "keying_mean_s": 0.0, "think_mean_s": 0.5,
        "statements": [statement],
    }  # fmt: skip
    column = [0] * second + [count]
    seconds = RESULT["seconds"] | {
        "committed": {"tpcb": column}, "factor": [1.0] * len(column),
        **{name: [0] * len(column) for name in ("rolled_back", "failed", "retries", "skipped")},
        "due": column,
        "times": {"step_s": 1, "edges_ns": EDGES_NS, "counts": [
            [0] * second + [int(here)] if here else []
            for here in np.histogram(values, EDGES_NS)[0]
        ]},
    }  # fmt: skip
    return RESULT | {
        "kinds": [kind], "seconds": seconds, "late": text, "late_ns": summary, "audit": [],
        "errors": [], "tally": TALLY, "statements_per_transaction": 3.0,
        "round_trips_per_transaction": 2.0,
        "stream_digest": {"requests": count, "sum": f"{(2**128 - 1) // 3 * 2:032x}"},
    }  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.tuples(TIMES_NS, st.integers(0, 5)), min_size=1, max_size=7))
def test_a_merged_result_is_that_of_one_host_that_had_it_all(
    hosts: list[tuple[list[int], int]],
) -> None:
    texts = [json.dumps(result(values, second)) for values, second in hosts]
    joined = [value for values, _ in hosts for value in values]

    merged = parse_result(json.loads(core.merge_results(json.dumps(WORKLOAD), texts)))

    (kind,) = merged.kinds
    shares = list(SHARES.values())
    wanted = core.quantiles(histogram(joined).encoded(), shares)
    for text in (kind.response, kind.service, kind.statements[0].histogram):
        assert core.quantiles(text, shares) == wanted
    assert [kind.response_ns[name] for name in SHARES] == wanted
    assert kind.window.succeeded == kind.statements[0].count == len(joined)
    assert core.histogram_count(kind.response) == len(joined)
    series = {one.name: one.values for one in merged.series}
    for at in range(len(series["driver.due"])):
        counted = sum(len(values) for values, second in hosts if second == at)
        assert series["driver.due"][at] == series["driver.committed.tpcb"][at] == counted
    kept = response_times.counted({one.name: one for one in merged.series})
    if joined:
        assert kept is not None
        _, _, edges_ns, counts = kept
        for at in range(len(series["driver.due"])):
            values = [value for own, second in hosts if second == at for value in own]
            assert counts[:, at].tolist() == np.histogram(values, edges_ns)[0].tolist()
    assert merged.stream_digest is not None
    assert merged.stream_digest.requests == len(joined)
    total = len(hosts) * ((2**128 - 1) // 3 * 2) % 2**128
    assert int(merged.stream_digest.sum, 16) == total
    assert merged.statements_per_transaction == (3.0 if joined else 0.0)
    assert merged.client.threads == 2 * len(hosts)
