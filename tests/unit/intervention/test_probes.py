"""What probes say of themselves, and on which servers they have nothing to touch."""

from __future__ import annotations

import pytest

from pgdyno.intervention.probes import PROBES, idle, needs_library

NAMES = [one.name for one in PROBES]


def test_names_are_unique_and_texts_are_sentences() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for one in PROBES:
        for text in (one.how, one.misleads, *([one.loses] if one.loses else [])):
            assert text.endswith(".")


def test_what_is_free_says_what_it_loses_and_the_rest_loses_nothing() -> None:
    for one in PROBES:
        assert (one.loses is not None) == (one.means == "free")
        assert not (one.counts and one.means != "dearer")


@pytest.mark.parametrize(
    ("settings", "touched_not"),
    [
        ({}, set()),
        ({"synchronous_commit": "off"}, {"commit-free", "wal-flush"}),
        ({"full_page_writes": "off"}, {"page-images-free"}),
        ({"fsync": "off"}, {"wal-flush", "wal-flush-free", "data-flush-free"}),
        ({"wal_sync_method": "open_datasync"}, {"wal-flush", "wal-flush-free"}),
    ],
)
def test_a_probe_of_what_is_not_there_is_left_out(
    settings: dict[str, str], touched_not: set[str]
) -> None:
    assert {name for name in NAMES if idle(name, settings)} == touched_not


def test_only_flushes_and_reads_take_the_library() -> None:
    assert {name for name in NAMES if needs_library(name)} == {
        "wal-flush", "read", "wal-flush-free", "data-flush-free",
    }  # fmt: skip
