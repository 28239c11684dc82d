"""Who may see what by perf, what its arguments are, and what a process's state is."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.profiler.kernel_symbols import KernelSymbols
from pgdyno.profiler.perf import RecordingSpec, failure, rate_hz, record_arguments
from pgdyno.profiler.rights import addresses_lack, rights_of
from pgdyno.profiler.wait_channels import RUNNING, parse_state

PERFMON = 1 << 38


@pytest.mark.parametrize(
    ("paranoid", "capabilities", "sees", "event"),
    [
        (3, PERFMON, (True, True, True), "cpu-clock"),
        (2, 1 << 21, (True, True, True), "cpu-clock"),
        (-1, 0, (True, True, True), "cpu-clock"),
        (0, 0, (True, True, True), "cpu-clock"),
        (1, 0, (True, True, False), "cpu-clock"),
        (2, 0, (True, False, False), "cpu-clock:u"),
        (3, 0, (False, False, False), "cpu-clock:u"),
        (4, 0, (False, False, False), "cpu-clock:u"),
    ],
)
def test_the_kernels_level_says_what_is_seen(
    paranoid: int, capabilities: int, sees: tuple[bool, bool, bool], event: str
) -> None:
    rights = rights_of(paranoid, capabilities)

    assert (rights.own, rights.kernel, rights.host) == sees
    assert rights.event == event
    assert bool(rights.lacks) == (sees != (True, True, True))
    for lack in rights.lacks:
        assert f"is {paranoid}" in lack.fact
        assert "sysctl kernel.perf_event_paranoid=" in lack.remedy


def test_what_a_remedy_gives_is_more() -> None:
    for paranoid in (1, 2, 3):
        (lack,) = rights_of(paranoid, 0).lacks
        level = int(lack.remedy.partition("paranoid=")[2].partition("`")[0])
        before, after = rights_of(paranoid, 0), rights_of(level, 0)
        assert (after.own, after.kernel, after.host) > (before.own, before.kernel, before.host)


@pytest.mark.parametrize(("paranoid", "is_said"), [(3, False), (2, False), (1, True), (0, True)])
def test_hidden_addresses_are_told_where_the_kernel_is_sampled(
    paranoid: int, is_said: bool
) -> None:
    hidden = KernelSymbols(["0000000000000000 T schedule"])
    told = KernelSymbols(["ffffffff81000000 T schedule"])

    assert (addresses_lack(rights_of(paranoid, 0), hidden) is not None) == is_said
    assert addresses_lack(rights_of(paranoid, 0), told) is None


@pytest.mark.parametrize(
    "said",
    [
        "perf_event_open(..., 0) failed unexpectedly with error 1 (Operation not permitted) Error:"
        " No permission to enable cpu-clock event.",
        "Error: Access to performance monitoring and observability operations is limited.",
    ],
)
def test_a_refusal_is_told_in_a_sentence_with_its_remedy(said: str) -> None:
    error = failure(255, said)

    assert error.fact == (
        "the system refuses perf_event_open, as containers and security modules do"
    )
    assert error.hint is not None
    assert "--cap-add PERFMON" in error.hint


def test_words_of_perf_that_are_not_known_are_kept() -> None:
    error = failure(129, "Error: something new.")
    assert error.fact == "perf record ended with code 129: Error: something new"


def test_a_kernel_without_perf_events_is_told() -> None:
    rights = rights_of(None, PERFMON)
    assert not rights.own
    assert [one.fact for one in rights.lacks] == ["This kernel has no perf events."]


def test_a_recording_stays_small_on_a_large_machine() -> None:
    assert rate_hz(cpus=2, seconds=10) == 99
    assert rate_hz(cpus=64, seconds=10) == 19
    assert rate_hz(cpus=512, seconds=60) == 2


def test_a_recording_is_of_processes_or_of_the_kernel() -> None:
    some = record_arguments(RecordingSpec("server", "cpu-clock", (7, 8), "dwarf"), 99, Path("/a/b"))
    assert some[some.index("-p") + 1] == "7,8"
    assert some[some.index("--call-graph") + 1] == "dwarf,32768"
    assert "-a" not in some
    host = record_arguments(RecordingSpec("kernel", "cpu-clock:k", (), "fp"), 99, Path("/a/b"))
    assert "-a" in host
    assert "-p" not in host
    assert host[host.index("--call-graph") + 1] == "fp"


def test_a_state_is_read_whatever_the_process_is_called() -> None:
    assert parse_state("7 (post) R (x) S 1 7 7 0 -1") == "sleeping"
    assert parse_state("7 (postgres) R 1 7 7 0 -1") == RUNNING
    assert parse_state("7 (postgres) D 1 7 7 0 -1") == "waiting for a device (uninterruptible)"
    assert parse_state("7 (postgres) Z 1 7 7 0 -1") == ""
