"""Disks that are taken while something is measured on them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.folders import scratch
from pgdyno.host import disk_lock
from pgdyno.host.disk_lock import VARIABLE, disks_taken, require_free
from pgdyno.model.errors import TargetError
from pgdyno.model.floor import DeviceClaims


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Disks that are shown; below a folder lie those that its name has, e.g. `a-sda-sdb`."""

    def claims(path: Path) -> DeviceClaims:
        named = next(one.name for one in (path, *path.parents) if one.name[:2] in ("a-", "b-"))
        disks = tuple(named.split("-")[1:])
        return DeviceClaims("ext4", "/", "", f"/dev/{disks[0]}", disks=disks)

    monkeypatch.setattr(disk_lock, "device_claims", claims)
    for disk in ("sda", "sdb"):
        (tmp_path / "disks" / disk).mkdir(parents=True)
    return {VARIABLE: str(tmp_path / "disks")}


def made(tmp_path: Path, *names: str) -> list[Path]:
    folders = [tmp_path / name for name in names]
    for folder in folders:
        folder.mkdir()
    return folders


def test_a_second_one_on_a_disk_is_told_who_is_there(tmp_path: Path, locks: dict[str, str]) -> None:
    array, single = made(tmp_path, "a-sda-sdb", "b-sdb")
    with (
        disks_taken([array], alone=True, environ=locks),
        scratch(array, ".pgdyno-storage-") as own,
        pytest.raises(TargetError) as refused,
        disks_taken([single], alone=True, environ=locks),
    ):
        pytest.fail("both would measure each other")
    assert refused.value.fact.startswith(
        f"{single} lies on disk sdb, on which another pgdyno measures: process {os.getpid()} of"
    )
    assert f", in {own.path}" in refused.value.fact
    assert refused.value.hint
    with disks_taken([single], alone=True, environ=locks):
        pass  # the first one has ended


def test_disks_that_are_apart_are_measured_at_once(tmp_path: Path, locks: dict[str, str]) -> None:
    first, second = made(tmp_path, "a-sda", "b-sdb")
    with (
        disks_taken([first], alone=True, environ=locks),
        disks_taken([second / "not-there-yet"], alone=True, environ=locks),
    ):
        pass


def test_runs_that_compare_no_disks_are_beside_each_other(
    tmp_path: Path, locks: dict[str, str]
) -> None:
    first, second = made(tmp_path, "a-sda", "b-sda")
    with (
        disks_taken([first], alone=False, environ=locks),
        disks_taken([second], alone=False, environ=locks),
        pytest.raises(TargetError, match="another pgdyno measures"),
        disks_taken([second], alone=True, environ=locks),
    ):
        pytest.fail("a probe would disturb them")
    with (
        disks_taken([first], alone=True, environ=locks),
        pytest.raises(TargetError, match="another pgdyno measures"),
        disks_taken([second], alone=False, environ=locks),
    ):
        pytest.fail("a run would disturb a probe")


def test_a_look_is_told_what_a_taking_would_be(tmp_path: Path, locks: dict[str, str]) -> None:
    first, second, apart = made(tmp_path, "a-sda", "b-sda", "b-sdb")
    with disks_taken([first], alone=False, environ=locks):
        require_free([second], alone=False, environ=locks)
        with pytest.raises(TargetError) as looked:
            require_free([apart, second], alone=True, environ=locks)
        with (
            pytest.raises(TargetError) as refused,
            disks_taken([second], alone=True, environ=locks),
        ):
            pytest.fail("a probe would disturb a run")
        assert (looked.value.fact, looked.value.hint) == (refused.value.fact, refused.value.hint)
    with disks_taken([first], alone=True, environ=locks):
        require_free([apart / "not-there-yet"], alone=True, environ=locks)
        with pytest.raises(TargetError, match=f"another pgdyno measures: process {os.getpid()} of"):
            require_free([second], alone=False, environ=locks)
    require_free([second], alone=True, environ=locks)


def test_what_the_kernel_does_not_show_is_not_locked(
    tmp_path: Path, locks: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_lock, "_DISKS", Path(locks[VARIABLE]))
    (only,) = made(tmp_path, "a-sdz")
    with (
        disks_taken([only], alone=True, environ={}),
        disks_taken([only], alone=True, environ={}),
    ):
        require_free([only], alone=True, environ={})


def test_a_named_folder_that_is_empty_locks_as_the_kernels_does(
    tmp_path: Path, locks: dict[str, str]
) -> None:
    """Nothing lay in it to be locked, so that two measured each other without a word."""
    first, second, named = made(tmp_path, "a-sda-sdb", "b-sdb", "locks")
    environ = {VARIABLE: str(named)}
    require_free([first], alone=True, environ=environ)
    assert not list(named.iterdir()), "a look makes nothing"

    with disks_taken([first], alone=True, environ=environ):
        with pytest.raises(TargetError, match=f"another pgdyno measures: process {os.getpid()} of"):
            require_free([second], alone=False, environ=environ)
        with (
            pytest.raises(TargetError, match="another pgdyno measures"),
            disks_taken([second], alone=True, environ=environ),
        ):
            pytest.fail("both would measure each other")
        with disks_taken([second], alone=True, environ=locks):
            pass  # who names another folder is not seen
    with disks_taken([second], alone=True, environ=environ):
        pass  # what was made is left, and locks nothing by itself


def test_a_named_folder_that_cannot_lock_is_refused(tmp_path: Path, locks: dict[str, str]) -> None:
    (only,) = made(tmp_path, "a-sda")
    none = {VARIABLE: str(tmp_path / "none")}
    with pytest.raises(TargetError, match=f"none, named by {VARIABLE}, is not a folder"):
        require_free([only], alone=True, environ=none)
    with (
        pytest.raises(TargetError, match=f"none, named by {VARIABLE}, is not a folder"),
        disks_taken([only], alone=True, environ=none),
    ):
        pytest.fail("nothing would be locked")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "sda").symlink_to(tmp_path)
    with (
        pytest.raises(TargetError, match="disks cannot be locked in"),
        disks_taken([only], alone=True, environ={VARIABLE: str(tmp_path / "links")}),
    ):
        pytest.fail("a link leads elsewhere")


def test_a_holder_that_is_not_shown_is_told_as_such(
    tmp_path: Path, locks: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = made(tmp_path, "a-sda", "b-sda")
    monkeypatch.setattr(disk_lock, "_PROC", tmp_path / "no-proc")
    with (
        disks_taken([first], alone=True, environ=locks),
        pytest.raises(TargetError, match="a process that is not shown here"),
        disks_taken([second], alone=True, environ=locks),
    ):
        pass
