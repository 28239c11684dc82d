"""The process that serves a recording file system, apart from whoever drives and measures.

Run as `python -m pgdyno.disk.worker`. Standard input: one line, the spec as JSON; then lines
`{"fault": ...}`, what the disk is to have from then on, and `{"cut": true}`, when its power goes.
Its end, or SIGTERM, ends the recording, so that nothing stays mounted when the other side is
killed. Standard output: `{"mounted": true}` once it can be used, `{"cut": true}` once the power is
gone, at the end `{"result": ...}`; or, instead of any, `{"error": fact}`, with the exit code 1.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress
from types import FrameType

from pgdyno import core
from pgdyno.model.errors import DriveError


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
        _say({"error": core.fact_and_hint(error)[0]})
        return 1
    except DriveError as error:  # the core is of other sources
        _say({"error": error.fact})
        return 1
    except BrokenPipeError:  # nobody listens any more: nothing to say, to nobody
        return 1
    return 0


def _serve(spec_json: str) -> str:
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


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise _AskedToStop


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
