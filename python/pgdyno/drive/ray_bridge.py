"""Lines of a host that Ray reaches: copied between our pipes and an actor that runs the worker.

Run as `python -m pgdyno.drive.ray_bridge NODE MODULE`, as the `ssh` client is for SSH: a process of
the head's host whose standard input and output are those of `python -m MODULE` on that node. Ray
chooses nothing and repeats nothing: the actor stands on that node or nowhere, is never restarted,
and no call of it is made twice. What is copied, the database's password among it, goes through
calls of the actor, never through names, environments or logs.

`--refuse-open` first tries to enter the cluster without a token, and refuses one that lets us in.
"""

from __future__ import annotations

import os
import queue
import re
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from typing import IO, Any, NoReturn

from pgdyno.drive.transport import program
from pgdyno.model.errors import DriveError, PgdynoError
from pgdyno.model.system_errors import reason
from pgdyno.model.wording import plural
from pgdyno.shell import start

REFUSE_OPEN, ENTER = "--refuse-open", "--enter"
_NAMESPACE = "pgdyno"
_ENTERED = "entered"
_ENTER_S = 60.0
_ANSWER_S = 5.0
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_REFUSED = "Unauthenticated"  # Ray's word for who has no token
_SAID_MAX = 250  # letters of a failure
_LOG_MAX = 1 << 20


class Host:
    """The actor: it starts the worker beside it, and copies lines. Its end is the worker's."""

    def __init__(self, module: str) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as the worker
        words = [sys.executable, *program(module)]
        self._process = start(words, pipes=True, log=self._errors.fileno())

    def say(self, lines: str | None) -> None:
        """Lines of the head, or None: that none will follow."""
        with suppress(BrokenPipeError, ValueError):
            if lines is None:
                self._process.stdin.close()
            else:
                self._process.stdin.write(lines)
                self._process.stdin.flush()

    def lines(self) -> Iterator[str]:
        """What the worker says, line by line, until it has ended.

        Raises:
            RuntimeError: It ended with a failure.
        """
        for line in self._process.stdout:  # noqa: UP028  Ray wants a generator of its own
            yield line
        if code := self._process.wait(_ENTER_S):
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace")
            raise RuntimeError(f"the worker ended with code {code}: {_last(said)}")


def _last(said: str) -> str:
    """The last line of it, without colours."""
    return _COLOUR.sub("", said.strip()).rpartition("\n")[2][-_SAID_MAX:]


def node_of(nodes: Sequence[Mapping[str, Any]], name: str) -> str:
    """The identity of the node of that name or address.

    Raises:
        LookupError: None that is alive, or several are called so.
    """
    alive = [one for one in nodes if one["Alive"]]
    keys = ("NodeName", "NodeManagerAddress", "NodeManagerHostname")
    found = [str(one["NodeID"]) for one in alive if name in {one[key] for key in keys}]
    if len(found) != 1:
        known = ", ".join(sorted(str(one["NodeName"]) for one in alive)) or "none"
        raise LookupError(
            f"Ray has {plural(len(found), 'node')} called {name}, 1 expected; it has {known}"
        )
    return found[0]


def _entered() -> Any:  # noqa: ANN401  a module that has no types
    """The module `ray`, once we are in the cluster that it finds (RAY_ADDRESS, or this host's)."""
    ray = import_module("ray")
    ray.init("auto", namespace=_NAMESPACE, log_to_driver=False, configure_logging=False)
    return ray


def require_answer(address: str) -> None:
    """Refuse an address of a cluster, `host:port`, where nobody listens: Ray would try a minute.

    Raises:
        DriveError: Nobody does, or not within some seconds.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or "/" in host:
        return  # "auto", or what else Ray makes of it
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except OSError as error:
        raise DriveError(
            f"RAY_ADDRESS is {address}, where nobody answers: {reason(error)}",
            "Name a node of the cluster that runs, and its port.",
        ) from error
    except OverflowError as error:
        raise DriveError(f"RAY_ADDRESS is {address}; allowed: a port up to 65535") from error


def _refuse_open() -> None:
    """Refuse a cluster that lets in who has no token.

    Ray tries for half a minute to enter one that does not, so its first refusal is waited for.

    Raises:
        DriveError: It does, or nothing says that it does not.
    """
    require_answer(os.environ.get("RAY_ADDRESS", ""))
    words = [sys.executable, *program("pgdyno.drive.ray_bridge"), ENTER]
    until_s = time.monotonic() + _ENTER_S
    with tempfile.TemporaryFile() as log:
        tried = start(words, env={"RAY_AUTH_MODE": "disabled"}, log=log.fileno())
        try:
            while time.monotonic() < until_s:
                ended = tried.wait(0.1) is not None
                said = os.pread(log.fileno(), _LOG_MAX, 0).decode(errors="replace")
                if _ENTERED in said.split():
                    raise DriveError(
                        "the Ray cluster lets in who has no token; RAY_AUTH_MODE=token expected"
                    )
                if _REFUSED in said:
                    return
                if ended:
                    break
        finally:
            tried.kill()
    raise DriveError(f"whether the Ray cluster asks for a token is not known: {_last(said)}")


def _copy(node: str, module: str, out: IO[str]) -> None:
    ray = _entered()
    strategies = import_module("ray.util.scheduling_strategies")
    node_id = node_of(ray.nodes(), node)
    actor = (
        ray.remote(Host)
        .options(
            name=f"host-{node_id}",  # one a node: a second of that name is refused
            scheduling_strategy=strategies.NodeAffinitySchedulingStrategy(node_id, soft=False),
            num_cpus=0, max_restarts=0, max_task_retries=0, max_concurrency=2,
        )
        .remote(module)
    )  # fmt: skip

    heard: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            heard.put(line)
        heard.put(None)

    def say() -> None:
        try:
            while True:  # one call after the other, so that nothing overtakes
                found = [heard.get()]
                while not heard.empty():
                    found.append(heard.get())
                lines = [line for line in found if line is not None]
                ray.get(actor.say.remote("".join(lines)))
                if len(lines) < len(found):
                    ray.get(actor.say.remote(None))
                    return
        except Exception as error:
            _fail(error)

    for act in (listen, say):
        threading.Thread(target=act, name="pgdyno head", daemon=True).start()
    for line in actor.lines.options(num_returns="streaming").remote():
        out.write(ray.get(line))
        out.flush()


def _fail(error: BaseException) -> NoReturn:
    """End at once, with why in one line."""
    name = "" if isinstance(error, PgdynoError | LookupError) else f"{type(error).__name__}: "
    text = " ".join(_COLOUR.sub("", str(error)).split())
    print(f"{name}{text[-_SAID_MAX:]}", file=sys.stderr, flush=True)
    os._exit(1)


def main() -> NoReturn:
    """Copy lines until either side ends."""
    words = sys.argv[1:]
    try:
        if words == [ENTER]:
            with redirect_stdout(sys.stderr):
                _entered()
            print(_ENTERED, flush=True)
            os._exit(0)
        if words[0] == REFUSE_OPEN:
            words.pop(0)
            _refuse_open()
        node, module = words
        with os.fdopen(os.dup(1), "w") as out:
            os.dup2(2, 1)  # what Ray prints is none of the lines that are copied
            _copy(node, module, out)
    except Exception as error:
        _fail(error)
    os._exit(0)  # Ray's own goodbye takes seconds; the actor ends with its owner


if __name__ == "__main__":
    main()
