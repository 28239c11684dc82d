"""Events of the server's log, as far as it is ours to read: it is read once, when a trial ends.

See `server_log`. Here is said where nobody will: checkpoints, autovacuums, waits for locks,
temporary files and errors are not on the axis of time then; that does not mean there were none.
"""

from __future__ import annotations

from pgdyno.sample.sampler import Found, Missing, Subject

_NAME = "events of the server's log"


def sampler(subject: Subject) -> Found:
    """Missing where the log is not ours to read; else None."""
    if subject.session is None or subject.log is not None:
        return None
    return Missing(_NAME, "the server is not ours, so that its log is not read")
