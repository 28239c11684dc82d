"""Why a server does not come back: for its data, which a cut is about, or for want of something.

A server tells that in its log. What the machine lacks (room, memory, a port, a right) says nothing
of what a power cut left: no cut is kept of it, and the drill can go on once it is mended.
"""

from __future__ import annotations

import errno
import os
import re

from pgdyno.model.errors import RefusedError, TargetError

_FATAL = ("PANIC: ", "FATAL: ", "CONTEXT: ", "HINT: ")
_NEXT = " / "  # between the lines of a log's last words
_LOG = "LOG: "  # of these only that a process was killed ends a server
_KILLED = "by signal 9"  # one of the server's processes
_POSTMASTER_KILLED = "ended with code -9 "
_LACKING = (
    errno.EACCES, errno.EADDRINUSE, errno.EAGAIN, errno.EDQUOT, errno.EIO, errno.EMFILE,
    errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EPERM, errno.EROFS,
)  # fmt: skip
_OF_MACHINE = re.compile(
    "|".join([
        *(re.escape(os.strerror(one)) for one in _LACKING),
        "has only [0-9].* free", "the journal may take", "out of memory", _KILLED,
        "lock file", "shared memory", "could not create semaphores",
        "could not create any [a-z/-]+ sockets", "no socket created",
        "has invalid permissions", "has wrong ownership",
        "could not load library", 'could not access file "',
    ]),
    re.IGNORECASE,
)  # fmt: skip
_HINT = "Mend that. Cuts that were made are kept, and `pgdyno resume` makes this one anew."


def refusal(error: RefusedError) -> str:
    """What a server says of the data that it does not start on, or a repair that leaves them.

    Raises:
        TargetError: It was not for the data: a cut would tell nothing of them.
    """
    fatal = [
        one.strip() for one in error.fact.split(_NEXT) if any(level in one for level in _FATAL)
    ]
    words = " ".join(fatal) or error.fact
    if _is_of_machine(error.fact):
        raise TargetError(
            f"a server did not come back, and not for what is in its data: {words}", _HINT
        ) from error
    return words


def require_of_data(words: str) -> None:
    """Accept what keeps a server that came back from being read.

    Raises:
        TargetError: It is not in its data.
    """
    if _is_of_machine(words):
        raise TargetError(f"a server that came back could not be looked at: {words}", _HINT)


def _is_of_machine(words: str) -> bool:
    lines = (one for one in words.split(_NEXT) if _LOG not in one or _KILLED in one)
    return _POSTMASTER_KILLED in words or any(_OF_MACHINE.search(one) for one in lines)
