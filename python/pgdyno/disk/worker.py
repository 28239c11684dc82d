"""The process that serves a recording file system, apart from whoever drives and measures.

Run as `python -m pgdyno.disk.worker`. Standard input: one line, the spec as JSON; then lines
`{"fault": ...}`, what the disk is to have from then on, and `{"cut": true}`, when its power goes.
Its end, or SIGTERM, ends the recording, so that nothing stays mounted when the other side is
killed. Standard output: `{"mounted": true}` once it can be used, `{"cut": true}` once the power is
gone, at the end `{"result": ...}`; or, instead of any, `{"error": fact, "hint": hint}`, with the
exit code 1.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from contextlib import suppress
from types import FrameType

from pgdyno import core
from pgdyno.model.errors import DriveError
from pgdyno.model.wording import plural

_OPEN_FILES = 1024  # of sessions: what they have open is held once more


class _AskedToStop(Exception):
    pass


def main() -> int:
    """Serve until the other side has had enough.

    Returns:
        The exit code: 0 with a result, 1 with an error.
    """
    spec_json = sys.stdin.readline()
    try:
        result = _serve(spec_json)
        print(f'{{"result": {result}}}', flush=True)
    except core.CoreError as error:
        fact, hint = core.fact_and_hint(error)
        _say({"error": fact, "hint": hint})
        return 1
    except DriveError as error:
        _say({"error": error.fact, "hint": error.hint})
        return 1
    except BrokenPipeError:  # nobody listens any more: nothing to say, to nobody
        return 1
    return 0


def _serve(spec_json: str) -> str:
    _allow_descriptors(json.loads(spec_json)["data"])
    recording = core.Recording(spec_json)
    # What is half begun cannot be ended: a wish to end that comes before is granted after.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    recording.start()
    signal.signal(signal.SIGTERM, _stop)
    try:
        with suppress(_AskedToStop):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
            _say({"mounted": True})
            for line in sys.stdin:
                wanted = json.loads(line)
                if "fault" in wanted:
                    recording.fail(json.dumps(wanted["fault"]))
                else:
                    recording.cut()
                    _say({"cut": True})
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends already
        result = recording.stop()
    return result


def _allow_descriptors(data: str) -> None:
    """Let this process have all files open at once that lie below, and those that a load adds.

    What was looked up once stays open until the kernel forgets it, which it need not do.

    Raises:
        DriveError: The hard limit is too low for that.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    below = 0
    with suppress(OSError):  # what cannot be read is told by who opens it
        below = sum(len(folders) + len(files) for _, folders, files, _ in os.fwalk(data))
    wanted = 2 * below + _OPEN_FILES
    if most != resource.RLIM_INFINITY and most < wanted:
        raise DriveError(
            f"it may have {plural(most, 'file')} open, and {below} lie in what is recorded, which"
            f" takes {wanted}",
            "Raise the hard limit (`ulimit -Hn`), or leave it to a library: `--recorder library`.",
        )


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _AskedToStop


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
