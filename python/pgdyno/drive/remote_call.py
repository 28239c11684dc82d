"""A remote call at a host of a fleet: a program of ours there is asked one thing, and answers.

Over the same transports as a load. The program reads a line of JSON and prints one.
"""

from __future__ import annotations

import queue
import time
from dataclasses import dataclass

from pgdyno.drive.host_link import Failed, Inbox, open_link
from pgdyno.drive.transport import transports
from pgdyno.model.errors import DriveError, HostLostError
from pgdyno.model.fleet import Fleet
from pgdyno.model.record_json import JsonObject, from_plain, json_object

_SHOWN = 300  # letters of what is no answer


@dataclass(frozen=True, slots=True)
class _Told:
    error: Failed


def remote_call(
    name: str, fleet: Fleet, module: str, question: JsonObject, patience_s: float
) -> JsonObject:
    """Ask a program at a host one thing.

    Args:
        name: The host.
        fleet: It is one of these.
        module: Of pgdyno, run there as a program.
        question: What it reads.
        patience_s: So long it may take, in seconds.

    Returns:
        What it answers.

    Raises:
        DriveError: It answers with an error.
        HostLostError: It cannot be reached, or gives no answer.
    """
    inbox: Inbox = queue.SimpleQueue()
    link = open_link(name, fleet, transports()[name.partition(":")[0]], inbox, module)
    until_s = time.monotonic() + patience_s
    try:
        link.say(question)
        heard = inbox.get(timeout=max(0.0, until_s - time.monotonic()))
    except queue.Empty:
        text = f"host {name} gave no answer in {patience_s:g} s{link.last_words()}"
        raise HostLostError(text) from None
    else:
        if heard.text is None or heard.is_endless:
            link.take(heard)
            raise HostLostError(f"host {name} gave no answer: {link.lost}")
        return answer_in(name, heard.text)
    finally:
        link.end()


def answer_in(name: str, text: str) -> JsonObject:
    """What a host's line answers.

    Raises:
        DriveError: An error.
        HostLostError: Nothing that could be read.
    """
    try:  # a login shell, say, may print anything, and some of it is JSON
        answer = json_object(text)
        if "error" not in answer:
            return answer
        failed = from_plain(_Told, answer).error
    except ValueError:
        raise unreadable(name, text) from None
    raise DriveError(f"host {name}: {failed.fact}", failed.hint)


def unreadable(name: str, text: str) -> HostLostError:
    """That a host's line answers nothing."""
    return HostLostError(f"host {name} answered {text.strip()[:_SHOWN]!r}, which is no answer")
