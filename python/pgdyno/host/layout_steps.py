"""Takes the steps of a storage layout: looks again before each, and lets none be cut short.

Between plan and step the machine may have changed, so a device is looked at right before it is
written over. A step has no deadline, and neither Ctrl-C nor our own death ends it: half a file
system is worse than a late one. Each is written down before and after, so that what a kill left is
known to the next layout.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgdyno.host.device import Device, device
from pgdyno.host.layout import Layout, Step
from pgdyno.host.state_folder import open_file, open_folder
from pgdyno.model.errors import Interrupted, PgdynoError, TargetError
from pgdyno.model.record_json import json_value
from pgdyno.model.system_errors import reason
from pgdyno.shell import run_whole

NAME = "layouts.jsonl"
_APPEARS_S = 10.0
_SAID_CHARS = 600


class _EndUnwrittenError(TargetError):
    """A step was taken to its end, which the book does not know."""


class Book:
    """What layouts were begun on this machine, and how far they came."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other layouts away.

        Raises:
            TargetError: Another one is under way, or the book cannot be written.
        """
        try:
            folder = open_folder(self.path.parent, make=True)
            assert folder is not None
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
                self._handle = open_file(folder, self.path.name, self.path, flags)
                os.fsync(folder)
            finally:
                os.close(folder)
            assert self._handle is not None
        except OSError as error:
            raise TargetError(
                f"cannot write {self.path}: {reason(error)}", "No device was touched."
            ) from error
        try:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise TargetError(
                    f"another pgdyno is making a layout ({self.path})", "Wait for it."
                ) from error
            yield
        finally:
            os.close(self._handle)

    def write(self, what: str, where: str, step: Step, devices: Sequence[str]) -> None:
        """Append a line, `begin` or `end` of a step, and wait until it is on the disk.

        Raises:
            TargetError: It cannot be written.
        """
        assert self._handle is not None
        line = {"what": what, "step": where, "command": step.shown, "devices": list(devices)}
        end = os.lseek(self._handle, 0, os.SEEK_END)
        left = (json.dumps(line) + "\n").encode()
        try:
            while left:  # a disk that becomes full takes a part of it, and says so the next time
                left = left[os.write(self._handle, left) :]
            os.fsync(self._handle)
        except OSError as error:
            os.ftruncate(self._handle, end)
            raise TargetError(f"cannot write {self.path}: {reason(error)}") from error

    def left_by_a_kill(self, devices: Sequence[str]) -> str | None:
        """The step that a layout of these devices began and never ended, in words."""
        folder = open_folder(self.path.parent, make=False)
        if folder is None:
            return None
        try:
            handle = open_file(folder, self.path.name, self.path, os.O_RDONLY)
        finally:
            os.close(folder)
        if handle is None:
            return None
        with os.fdopen(handle, encoding="utf-8", errors="replace") as text:
            return _unended(text.read().splitlines(), devices)


def _unended(lines: Sequence[str], devices: Sequence[str]) -> str | None:
    for line in reversed(lines):
        try:
            entry = json_value(line)
        except ValueError:  # cut short by a kill; the line before tells what came last
            continue
        if set(devices) & set(entry["devices"]):
            begun = f"step {entry['step']} was begun and not ended: {entry['command']}"
            return begun if entry["what"] == "begin" else None
    return None


def make(layout: Layout, book: Book, on_step: Callable[[Step], None] = lambda _: None) -> None:
    """Take the steps.

    Args:
        layout: Planned.
        book: Where each is written down.
        on_step: Hears of each before it is taken.

    Raises:
        TargetError: One failed, or a device is not any more as it was planned; the message says
            which were taken.
        Interrupted: Somebody asked to stop; the step that was under way was ended.
    """
    planned = {one.path: one for one in layout.devices}
    expected = {one.path: one.holds for one in layout.devices}
    with book.locked():
        for number, step in enumerate(layout.steps, start=1):
            where = f"{number} of {len(layout.steps)}"
            on_step(step)
            try:
                for path in step.on:
                    _require_as_planned(path, planned, expected.get(path, ()), step)
                stopped = _written_down(step, where, book, list(planned))
            except _EndUnwrittenError as error:
                raise TargetError(
                    error.fact,
                    f"Taken: {number}. What they made stands; nothing else was touched. Make room"
                    " before the next layout.",
                ) from error
            except PgdynoError as error:
                raise TargetError(
                    f"step {where} failed: {error.fact}",
                    f"Taken before: {number - 1}. What they made stands; nothing else was touched.",
                ) from error
            expected.update({path: () for path in step.on if step.forgets})
            if stopped:
                raise Interrupted(
                    f"stopped after step {where}: {step.shown}",
                    "That step was ended, none was begun after it. What they made stands.",
                )


def _written_down(step: Step, where: str, book: Book, devices: Sequence[str]) -> bool:
    book.write("begin", where, step, devices)
    try:
        stopped = _take(step)
    except PgdynoError as failed:  # whoever asked for it is told, so it counts as ended
        try:
            book.write("end", where, step, devices)
        except TargetError as unwritten:
            failed.add_note(f"afterwards: {unwritten}")
        raise
    try:
        book.write("end", where, step, devices)
    except TargetError as error:
        raise _EndUnwrittenError(
            f"step {where} was taken, but its end could not be written down: {error.fact}"
        ) from error
    return stopped


def _require_as_planned(
    path: str, planned: dict[str, Device], holds: tuple[str, ...], step: Step
) -> None:
    now = device(path)
    then = planned.get(path)
    if then is not None and now.identity != then.identity:
        raise TargetError(
            f"{path} is another device than it was: {', '.join(now.identity)} instead of"
            f" {', '.join(then.identity)}"
        )
    if now.busy:
        raise TargetError(f"{path}: {'; '.join(now.busy)}")
    new_and_may_go = then is None and step.forgets
    if now.holds != holds and not new_and_may_go:
        raise TargetError(
            f"{path} holds {', '.join(now.holds) or 'nothing'} now, and"
            f" {', '.join(holds) or 'nothing'} when it was planned"
        )


def _take(step: Step) -> bool:
    """Run a command to its end; returns whether somebody asked to stop meanwhile."""
    done, stopped = run_whole(step.args, text=step.text or None)
    if done.code != 0:
        said = (done.stderr or done.stdout).strip()[-_SAID_CHARS:]
        raise TargetError(f"{step.args[0]} ended with code {done.code}: {said}")
    deadline = time.monotonic() + _APPEARS_S
    while step.appears and not Path(step.appears).is_block_device():
        if time.monotonic() > deadline:
            raise TargetError(f"the kernel shows no {step.appears} within {_APPEARS_S:.0f} s")
        time.sleep(0.05)
    return stopped
