"""Layouts on loop devices: probes that fail, devices exchanged in between, kills and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from pgdyno.host import layout, layout_steps
from pgdyno.host.device import device
from pgdyno.model.errors import TargetError
from tests import children
from tests.cluster.test_layout import command, loop_device, unmounted_after
from tests.tally import survived
from tests.waiting import DEADLINE_S, until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("machine"),  # a device that is free belongs to who asks first
    pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root"),
]
KERNEL = layout.Kernel((6, 18), md=False, device_mapper=False)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    with loop_device(tmp_path, "disk") as path:
        yield path


@pytest.fixture
def programs() -> Iterator[Path]:
    """A folder before all others on PATH; root runs programs only where root alone can write."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-programs-", dir="/var/lib") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def put(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def arguments(*words: str) -> list[str]:
    return [sys.executable, "-m", "pgdyno", "host", "layout", *words]


def variables(tmp_path: Path, programs: Path) -> dict[str, str]:
    return os.environ | {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PGDYNO_HOST_STATE": str(tmp_path / "state"),
    }


def content(path: str) -> bytes:
    with Path(path).open("rb") as handle:
        return handle.read(4 << 20)


@pytest.mark.parametrize(
    ("name", "script", "fact"),
    [
        ("wipefs", "echo cannot open >&2; exit 1", "wipefs ended with code 1: cannot open"),
        *(
            pytest.param(*one, marks=pytest.mark.wide)
            for one in [
                ("lsblk", "exit 32", "lsblk ended with code 32"),
                ("wipefs", "echo '{}'", "wipefs ended with 'signatures'"),
            ]
        ),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in [
                ("wipefs", "echo nonsense", "holds cannot be found out: wipefs ended with"),
                ("wipefs", "echo no permission >&2", "holds cannot be found out"),
                ("lsblk", "echo '{\"blockdevices\": []}'", "lsblk says nothing about"),
                ("lsblk", 'echo \'{"blockdevices": [{"name": "x"}]}\'', "lsblk printed"),
            ]
        ),
    ],
)
def test_what_cannot_be_looked_at_is_not_taken_for_empty(
    tmp_path: Path, programs: Path, disk: str, name: str, script: str, fact: str
) -> None:
    command("mkfs.ext4", "-q", disk)
    before = content(disk)
    put(programs, name, script)
    for further in ((), ("--apply",), ("--apply", "--erase", disk)):
        done = subprocess.run(
            arguments(disk, *further), env=variables(tmp_path, programs),
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 3, done.stdout
        assert fact in " ".join(done.stderr.split())
    assert content(disk) == before


@pytest.mark.parametrize("name", ["wipefs", "lsblk"])
def test_a_probe_that_is_not_installed_is_no_answer(
    programs: Path, disk: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for other in {"wipefs", "lsblk"} - {name}:
        (programs / other).symlink_to(command("which", other))
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(TargetError, match=f"{name} cannot be started"):
        device(disk)


def planned(path: str, erase: Sequence[str] = ()) -> layout.Layout:
    wish = layout.Wish((device(path),), "ext4", erase=tuple(erase))
    return layout.plan(wish, KERNEL)


def test_a_device_that_was_exchanged_since_is_not_touched(tmp_path: Path, disk: str) -> None:
    plan = planned(disk)
    other = tmp_path / "other"
    with other.open("wb") as handle:
        handle.truncate(400 << 20)
    command("losetup", "--detach", disk)
    command("losetup", disk, str(other))
    with pytest.raises(TargetError, match=r"is another device than it was"):
        layout_steps.make(plan, layout_steps.Book(tmp_path / "state/layouts.jsonl"))
    assert not any(content(disk))


def test_what_came_onto_a_device_since_is_not_touched(tmp_path: Path, disk: str) -> None:
    plan = planned(disk)
    command("mkfs.xfs", "-q", disk)
    book = layout_steps.Book(tmp_path / "state/layouts.jsonl")
    with pytest.raises(TargetError, match=r"holds xfs signature now, and nothing when it was"):
        layout_steps.make(plan, book)
    agreed = planned(disk, [disk])
    command("wipefs", "--all", "--quiet", disk)
    command("mkfs.ext4", "-q", disk)
    with pytest.raises(TargetError, match=r"holds ext4 signature now, and xfs signature when"):
        layout_steps.make(agreed, book)
    assert "ext4" in command("wipefs", "--no-act", disk)


@pytest.mark.parametrize("use", ["mount", "swap"])
def test_a_device_that_came_into_use_since_is_not_touched(
    tmp_path: Path, disk: str, use: str
) -> None:
    book, place = layout_steps.Book(tmp_path / "state/layouts.jsonl"), tmp_path / "place"
    command("mkswap" if use == "swap" else "mkfs.ext4", "-q", disk)
    plan = planned(disk, [disk])
    place.mkdir()
    with unmounted_after(place):
        if use == "swap":
            command("swapon", disk)
        else:
            command("mount", disk, str(place))
        try:
            with pytest.raises(TargetError, match="in use"):
                layout_steps.make(plan, book)
        finally:
            if use == "swap":
                command("swapoff", disk)


def test_a_mount_of_another_namespace_is_seen(tmp_path: Path, disk: str) -> None:
    """What lsblk shows are only those that we see ourselves."""
    command("mkfs.ext4", "-q", disk)
    (tmp_path / "place").mkdir()
    hidden = children.started(
        ["unshare", "--mount", "sh", "-c", f"mount {disk} {tmp_path}/place; echo there; read x"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert hidden.stdout is not None
        assert hidden.stdout.readline() == "there\n"
        assert device(disk).busy == ("it is in use: device or resource busy",)
    finally:
        hidden.communicate("\n")
    until(lambda: not device(disk).busy, "the namespace goes with its last process")


SLOW = """
echo $$ > "{there}"
read go < "{go}"
exec /usr/sbin/mkfs.ext4 "$@"
"""


def slow(programs: Path, tmp_path: Path) -> tuple[Path, Path]:
    there, go = tmp_path / "there", tmp_path / "go"
    os.mkfifo(go)
    put(programs, "mkfs.ext4", SLOW.format(there=there, go=go))
    return there, go


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_step_is_ended_before_a_wish_to_stop_is_heard(
    tmp_path: Path, programs: Path, disk: str, number: signal.Signals
) -> None:
    there, go = slow(programs, tmp_path)
    place = tmp_path / "place"
    with unmounted_after(place):
        # What runs these tests may ignore the signal, as nohup does: children inherit that.
        running = children.started(
            ["/usr/bin/env", f"--default-signal={number.name.removeprefix('SIG')}",
             *arguments(disk, "--fs", "ext4", "--mount", str(place), "--apply")],
            env=variables(tmp_path, programs), start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until(lambda: there.exists() and there.read_text(), "mkfs runs")
        os.killpg(running.pid, number)
        go.write_text("go\n")
        out, err = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 130, out + err
    assert "stopped after step 1 of 3: mkfs.ext4" in " ".join(err.split())
    assert "ext4" in command("wipefs", "--no-act", disk)
    assert not place.exists()
    command("fsck.ext4", "-n", disk)


def test_a_step_survives_us_and_the_next_layout_knows(
    tmp_path: Path, programs: Path, disk: str
) -> None:
    there, go = slow(programs, tmp_path)
    running = children.started(
        arguments(disk, "--fs", "ext4", "--apply"), env=variables(tmp_path, programs),
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until(lambda: there.exists() and there.read_text(), "mkfs runs")
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=DEADLINE_S)
    go.write_text("go\n")
    until(lambda: "ext4" in command("wipefs", "--no-act", disk), "mkfs ends")
    until(lambda: not device(disk).busy, "mkfs ends")
    command("fsck.ext4", "-n", disk)
    again = subprocess.run(
        arguments(disk, "--fs", "ext4", "--erase", disk), env=variables(tmp_path, programs),
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert "an earlier layout was killed: step 1 of 1 was begun and not ended" in again.stderr
    assert "mkfs.ext4" in again.stderr


def killed_at(last: layout.Step, step: layout.Step) -> None:
    if step is last:
        os.kill(os.getpid(), signal.SIGKILL)


def test_after_a_kill_before_each_step_the_next_layout_works(tmp_path: Path, disk: str) -> None:
    place, book = tmp_path / "place", layout_steps.Book(tmp_path / "state/layouts.jsonl")
    for number in range(3):
        wish = layout.Wish((device(disk),), "ext4", mount=str(place), erase=(disk,))
        plan = layout.plan(wish, KERNEL)
        last = plan.steps[number - 3]
        child = os.fork()
        if child == 0:
            layout_steps.make(plan, book, partial(killed_at, last))
            os._exit(1)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
        assert not place.is_mount()
        layout_steps.make(planned(disk, [disk]), book)
        survived("kills of a layout before a step")
    command("fsck.ext4", "-n", disk)


def test_a_step_of_any_length_is_not_cut_short(
    tmp_path: Path, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No deadline is handed to the process that makes the file system."""
    waits: list[float | None] = []
    wait = subprocess.Popen.wait

    def heard(process: subprocess.Popen[str], timeout: float | None = None) -> int:
        waits.append(timeout)
        return wait(process, timeout)

    step = planned(disk).steps[0]
    monkeypatch.setattr(subprocess.Popen, "wait", heard)
    layout_steps._take(step)
    assert waits == [None]


def test_only_the_named_devices_are_written(tmp_path: Path, disk: str) -> None:
    with loop_device(tmp_path, "neighbour") as neighbour:
        command("mkfs.xfs", "-q", neighbour)
        before = content(neighbour)
        layout_steps.make(planned(disk), layout_steps.Book(tmp_path / "state/layouts.jsonl"))
        assert content(neighbour) == before
    lines = (tmp_path / "state/layouts.jsonl").read_text().splitlines()
    assert [json.loads(line)["what"] for line in lines] == ["begin", "end"]
