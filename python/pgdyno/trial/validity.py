"""Whether the numbers of a trial may be used: what makes one invalid, and in which words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.loader.consistency import require
from pgdyno.model.errors import CheckError
from pgdyno.model.fleet import FleetResult
from pgdyno.model.run import Failures, TrialResult, TrialState
from pgdyno.model.wording import listed, plural
from pgdyno.sample.server_log import LogSummary
from pgdyno.stats.fleet import fleet_reasons
from pgdyno.stats.window_end import stuck_reason, window_end

_ONE_PROCESS = FleetResult(())  # no host of it can be lost
_NO_ANSWER = "connection lost"  # as the driver counts a session that ended without a word
_LOST_SESSIONS = (  # what a server says of sessions that end, while it goes down, or comes up
    "terminating connection", "connection to client lost", "data from client", "data to client",
    "the database system is", "terminating background worker",
)  # fmt: skip
_GIVEN_UP = ("statement due to user request",)  # cancelled by the driver, after the drain
# 40P01 and 40001: counted by the driver, retried, and part of the result.
_RETRIED = ("deadlock detected", "could not serialize access")
_NOISE = (  # answers to our own question whether it is ready
    "the database system is starting up", "the database system is not yet accepting connections",
)  # fmt: skip


def judge(
    result: TrialResult, log: LogSummary | None, survive: bool = False
) -> tuple[TrialState, str | None]:
    """Whether the numbers of a trial may be used.

    Inconsistent data, failed transactions, lost connections, requests that the server left without
    an answer for longer than the drain, and errors in the server's log make them invalid: the load
    was not the one that the plan asked for. A plan that is to `survive` asked for lost connections;
    what failed with them is then a part of the result. Sessions that end with a host that was lost
    have that reason, and so have requests that waited to no end: for locks of its transactions,
    which last until the server notices that it is gone.
    """
    reasons = []
    fleet = result.fleet or _ONE_PROCESS
    try:
        require(result.conditions)
    except CheckError as error:
        reasons.append(error.fact)
    failed = sum(kind.run.failed for kind in result.kinds)
    lost = sum(one.count for one in result.errors if is_lost(one.sqlstate)) if survive else 0
    if failed > lost:
        where, example = _where(result), _example(failed, result.errors)
        reasons.append(f"{plural(failed, 'transaction')} failed{where}{example}")
    if result.reconnects and not survive:
        reasons.append(f"{plural(result.reconnects, 'connection was', 'connections were')} lost")
    ended = not fleet.lost or fleet.went_on
    reasons += _idle(result) if ended else ()
    if result.fleet is not None:
        reasons += fleet_reasons(result.fleet)
    stuck = stuck_reason(window_end([kind.window for kind in result.kinds], result.given_up_s))
    if stuck and ended:
        reasons.append(stuck)
    if any(one.sqlstate in ("stopped", "gave_up") for one in result.errors):
        reasons.append("the driver did not reach the end of the window")
    # Who is not of the load, a standby or its guard, is turned away while the server is killed.
    killed = result.recovery is not None
    reasons += _reported(log, ends=survive or killed, lost=bool(fleet.lost))
    if reasons:
        return TrialState.INVALID, "; ".join(reasons)
    if fleet.is_degraded:
        return TrialState.DEGRADED, "; ".join(fleet.lost)
    return TrialState.FINISHED, None


def _idle(result: TrialResult) -> Iterator[str]:
    """That nothing was done, or nothing on one of several servers."""
    if not any(kind.window.succeeded for kind in result.kinds):
        yield "no transaction succeeded in the window"
        return
    for part in result.parts if result.servers else ():
        if not any(kind.window.succeeded for kind in part.kinds):
            yield f"no transaction succeeded on server {part.name} in the window"


def _reported(log: LogSummary | None, *, ends: bool, lost: bool) -> Iterator[str]:
    """What the server's log has of errors that nothing explains, such as a host that was lost.

    Args:
        log: None: it cannot be read.
        ends: Whether sessions were to end: the plan survives that, or the server was killed.
        lost: Whether hosts of the load were.
    """
    sessions_end = _LOST_SESSIONS if ends or lost else ()
    known = (*_NOISE, *_RETRIED, *sessions_end, *(_GIVEN_UP if lost else ()))
    bad = log.bad if log else {}
    unexplained = {text: n for text, n in bad.items() if not any(one in text for one in known)}
    if unexplained:
        count, first = sum(unexplained.values()), next(iter(unexplained))
        yield f"the server reported {plural(count, 'error')}, first {first}"


def is_fault_of_hosts(state: TrialState, reason: str | None, result: TrialResult) -> bool:
    """Whether lost hosts of the load are the only reason for which `judge` called it invalid."""
    lost = result.fleet.lost if result.fleet is not None else ()
    return state is TrialState.INVALID and bool(lost) and reason == "; ".join(lost)


def _where(result: TrialResult) -> str:
    """On which of several servers something failed."""
    servers = [f"server {part.name}" for part in result.parts if result.servers
               and any(kind.run.failed for kind in part.kinds)]  # fmt: skip
    return f" on {listed(servers)}" if servers else ""


def _example(failed: int, errors: Sequence[Failures]) -> str:
    if not errors:
        return ""
    first = errors[0]
    if first.count >= failed:  # all of them
        return f": {first.sqlstate}: {first.example}"
    return f", {first.count} of them with {first.sqlstate}: {first.example}"


def is_lost(sqlstate: str) -> bool:
    """Whether it says that the session is gone: class 08, 57P01 to 57P05, or no answer at all."""
    return sqlstate.startswith(("08", "57P")) or sqlstate == _NO_ANSWER
