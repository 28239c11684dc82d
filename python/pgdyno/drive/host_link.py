"""One host of a fleet as its head sees it: a process somewhere, lines to it and lines from it."""

from __future__ import annotations

import json
import os
import queue
import signal
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO

from pgdyno.drive.listening import Listening, waits
from pgdyno.drive.transport import WORKER, Transport
from pgdyno.model.errors import DriveError, PgdynoError
from pgdyno.model.fleet import LOST_AFTER_S, Fleet, Machine, Offset, Surroundings
from pgdyno.model.host_address import host_address
from pgdyno.model.progress import DriveProgress, LoadProgress
from pgdyno.model.record_json import JsonObject, from_plain, json_object
from pgdyno.model.version import VERSION
from pgdyno.model.wording import plural
from pgdyno.shell import Process

PHASES = ("connect", "ready", "warmup", "window", "drain", "done")
"""What a host may say that it does, in their order."""
END_S = 5.0
"""So long a process may take to end once nothing is said to it any more."""
LINE_MAX = 64 << 20
"""Letters of a line; a result, by far the longest one, has a few millions."""
UNHEARD_MAX = 32
"""Lines of a host that wait to be heard; it waits with the next one until there is room."""
ERRORS_MAX_BYTES = 64 << 20
"""So much a process may write about its failures, which lies on a disk of this host."""
_LAST_WORDS = 300  # letters of what it said of a failure
_TAIL_BYTES = 4096  # of all that it wrote, in which these are looked for
SAME_WHEEL = "Install the same wheel of pgdyno on all hosts."


@dataclass(frozen=True, slots=True)
class Failed:
    """A failure as a program of ours tells it."""

    fact: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """A line of a host, or that none will follow."""

    link: HostLink
    text: str | None
    at_ns: int  # of our steady clock, when it came

    @property
    def is_endless(self) -> bool:
        """Whether it is a piece of a line that is too long to be one."""
        return self.text is not None and len(self.text) >= LINE_MAX


Inbox = queue.SimpleQueue[Heard]


@dataclass(eq=False)
class HostLink:
    """What is known of a host so far; lines of all hosts come into one inbox."""

    name: str
    process: Process
    errors: IO[bytes]  # what the process wrote about its failures
    listening: Listening = field(default_factory=Listening)
    heard_s: float = 0.0  # when its last line came, of the time that is listened
    machine: Machine | None = None
    progress: DriveProgress | None = None
    loading: LoadProgress | None = None
    answer: Mapping[str, int] | None = None  # to the last question for its clock, and its time
    result: str | None = None
    around: Surroundings | None = None
    offsets: list[Offset] = field(default_factory=list)
    lost: str | None = None  # why it is
    _saying: threading.Lock = field(default_factory=threading.Lock)
    _room: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(UNHEARD_MAX))

    @property
    def is_over(self) -> bool:
        """Whether nothing of its load is left to wait for."""
        return self.result is not None or self.lost is not None

    def say(self, message: JsonObject) -> None:
        """Say a line; one that no longer listens is noticed by its silence."""
        with self._saying, suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def take(self, heard: Heard) -> None:
        """Take in a line.

        Raises:
            DriveError: The host says that it failed, or is of another version.
        """
        self._room.release()
        if heard.text is None:
            if not self.is_over:
                code = self.process.wait(END_S)
                self.lost = f"its process ended with code {code}{self.last_words()}"
            return
        if heard.is_endless:
            self.lost = f"it said {plural(LINE_MAX, 'letter', thousands=True)} without a line's end"
            return
        try:  # a login shell, say, may print anything, and some of it is JSON
            failed = self._understand(json_object(heard.text), heard.at_ns)
        except ValueError:
            self.lost = f"it said {heard.text.strip()[:_LAST_WORDS]!r}, which is no line of a host"
            return
        if failed is not None:
            raise DriveError(f"host {self.name}: {failed.fact}", failed.hint)

    def _understand(self, message: JsonObject, at_ns: int) -> Failed | None:
        """Take in what a line says.

        Returns:
            A failure that it tells.

        Raises:
            DriveError: It is of another version.
            ValueError: It is no line of a host.
        """
        if "clock" in message:
            told = from_plain(dict[str, int], message)
            if not {"received_ns", "sent_ns"} <= told.keys():
                raise ValueError("the clock's times are missing")
            self.answer = told | {"answered_ns": at_ns}
        elif "hello" in message:
            self.machine = self._machine(from_plain(JsonObject, message["hello"]))
        elif "result" in message:
            around = message.get("around")
            self.around = None if around is None else from_plain(Surroundings, around)
            self.result = json.dumps(message["result"])
        elif "error" in message:
            return from_plain(Failed, message["error"])
        elif "loading" in message:
            self.loading = from_plain(LoadProgress, message["loading"])
        elif "phase" in message:
            progress = from_plain(DriveProgress, message)
            if progress.phase not in PHASES:
                raise ValueError(f"phase {progress.phase}")
            self.progress = progress
        return None

    def _machine(self, hello: JsonObject) -> Machine:
        """What it says that it is; a host of another version may tell more, or less."""
        try:
            return from_plain(Machine, hello)
        except ValueError:
            theirs = hello.get("pgdyno", "unknown")
            raise DriveError(
                f"host {self.name} tells what it is as another build of pgdyno does: version"
                f" {theirs} there, {VERSION} here",
                SAME_WHEEL,
            ) from None

    def notice_silence(self) -> None:
        """Count it as lost when it has said nothing for too long while we listened."""
        silent_s = self.listening.seconds - self.heard_s
        if not self.is_over and silent_s > LOST_AFTER_S and not waits(self.process.stdout):
            self.lost = f"it said nothing for {LOST_AFTER_S:g} s{self.last_words()}"

    def notice_flood(self) -> None:
        """Count it as lost when it fills the disk with what it writes about failures."""
        size = self.errors.seek(0, os.SEEK_END)
        if self.lost is None and size > ERRORS_MAX_BYTES:
            self.lost = f"it wrote {plural(size, 'byte', thousands=True)} of errors" + (
                self.last_words()
            )

    def await_room(self) -> None:
        """Wait until one line more may wait to be heard."""
        self._room.acquire()

    def last_words(self) -> str:
        """What its process wrote about a failure, as the end of a sentence."""
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - _TAIL_BYTES))
        text = self.errors.read(_TAIL_BYTES).decode(errors="replace").strip()
        return f": {text[-_LAST_WORDS:].splitlines()[-1]}" if text else ""

    def end(self) -> None:
        """Let it end: it is told by the end of its input, then by signals."""
        self._room.release(UNHEARD_MAX)  # nobody hears it any more
        with self._saying, suppress(BrokenPipeError, ValueError):
            self.process.stdin.close()
        if self.process.wait(END_S) is None:
            self.process.signal(signal.SIGTERM)
            if self.process.wait(1.0) is None:
                self.process.kill_group()
        with suppress(BrokenPipeError):
            self.process.close_pipes()
        self.errors.close()


def open_link(
    name: str,
    fleet: Fleet,
    transport: Transport,
    inbox: Inbox,
    module: str = WORKER,
    listening: Listening | None = None,
) -> HostLink:
    """Start the process of a host; it says hello when it is there.

    Args:
        name: The host.
        fleet: It is one of these.
        transport: The way to it.
        inbox: Where its lines come in.
        module: Of pgdyno, run there as a program.
        listening: How long the inbox was listened to; None: its silence is not counted.

    Raises:
        DriveError: It cannot be started.
    """
    errors = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the link
    try:
        process = transport.start(host_address(name), fleet, errors.fileno(), module)
    except PgdynoError as error:
        errors.close()
        raise DriveError(f"host {name}: {error.fact}", error.hint) from error
    link = HostLink(name, process, errors, listening or Listening())
    link.heard_s = link.listening.seconds

    def pump() -> None:
        with suppress(ValueError, OSError):  # we have given up and closed it; it cannot be read
            while line := process.stdout.readline(LINE_MAX):
                link.heard_s = link.listening.seconds
                heard = Heard(link, line, time.monotonic_ns())
                link.await_room()
                inbox.put(heard)
                if heard.is_endless:
                    break  # it is lost, and nothing more is taken from it
        inbox.put(Heard(link, None, time.monotonic_ns()))

    threading.Thread(target=pump, name=f"pgdyno host {name}", daemon=True).start()
    return link
