"""Disks that are none: stages that differ by folders of one device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pgdyno.analysis.one_device import on_one_device
from tests.data.pages import facts_of


def test_the_first_screen_says_that_two_disks_are_one(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    first, second, *_ = facts.stages
    host = {"file_system.device": "/dev/vda", "folders./srv/a.device": "/dev/vda"}

    assert list(on_one_device((first, replace(second, folder="/srv/a")), host)) == [
        "pgdyno's own folder and /srv/a lie on one device, /dev/vda: what differs between stages"
        " that differ by these alone is chance"
    ]
    assert list(on_one_device((first, second), host)) == []
