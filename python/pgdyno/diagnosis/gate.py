"""What must be true of a window before any limit is named, and whether its load asks for more."""

from __future__ import annotations

from pgdyno.analysis.account_facts import IDLE, Account
from pgdyno.analysis.diagnosis_facts import Figure
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.diagnosis.rule import Threshold
from pgdyno.model.units import share_text
from pgdyno.model.wording import often, plural

THRESHOLDS = {
    "seconds": Threshold(10, "of the window that sessions were looked at"),
    "looks": Threshold(80, "at sessions, at least"),
    "covered": Threshold(0.90, "of the window's seconds, that were looked at"),
    "failed": Threshold(0.005, "of the requests, at most"),
    "excess": Threshold(0.10, "of session time, that the kernel counts and no session had"),
    "sessions": Threshold(0.10, "fewer sessions than connections"),
    "others": Threshold(0.50, "more sessions than connections"),
    "kept_up": Threshold(0.98, "of the requests that were due, that were answered"),
    "asks": Threshold(0.50, "of session time, with nothing asked: less is left to gain from"),
    "wanted": Threshold(0.80, "of time, from which on the driver is why nothing is asked"),
    "thinks": Threshold(0.80, "of a terminal's time, that it keys or thinks"),
}


def _limit(name: str) -> float:
    return THRESHOLDS[name].value


def shut(window: WindowFacts) -> str | None:
    """Why nothing can be said of what limits this window; None: something can."""
    account = window.account
    if not isinstance(account, Account):
        return None  # the rules that need it say so; others answer
    lacks = _too_little(window, account)
    return lacks or _contradicts(window, account)


def _too_little(window: WindowFacts, account: Account) -> str | None:
    if account.seconds < _limit("seconds"):
        return (
            f"sessions were looked at for {plural(account.seconds, 'whole second')} of the window,"
            f" {_limit('seconds'):.0f} are needed"
        )
    if account.looks < _limit("looks"):
        looks = often(account.looks)
        return f"sessions were looked at {looks}, {_limit('looks'):.0f} are needed"
    whole = max(1.0, window.window_s - 1)
    if account.seconds / whole < _limit("covered"):
        return (
            f"sessions were looked at in {account.seconds} of {whole:.0f} seconds: what happened"
            " in the others is not known"
        )
    load = window.load
    if load.due and load.failed / load.due > _limit("failed"):
        return (
            f"{share_text(load.failed / load.due)} of the requests failed, at most"
            f" {share_text(_limit('failed'))} are allowed"
        )
    return None


def _contradicts(window: WindowFacts, account: Account) -> str | None:
    if account.excess > _limit("excess") * account.sessions:
        return (
            "session time does not add up: the kernel counts"
            f" {account.excess:.2f} sessions that run or want a CPU beyond the"
            f" {account.sessions:.2f} that were there"
        )
    asked = window.load.connections
    load = f"the load has {plural(asked, 'connection')}"
    met = f"{account.sessions:.2f} sessions were met"
    if account.sessions < asked * (1 - _limit("sessions")):
        return f"{met}, and {load}"
    if account.sessions > asked * (1 + _limit("others")) + 1:
        return f"{met}, and {load}: what the others do is not told apart"
    return None


def paced(window: WindowFacts) -> tuple[str, tuple[Figure, ...]] | None:
    """That the load asks for less than there is, and by what that is known; None: it asks all."""
    load = window.load
    if load.arrivals == "open" and load.due:
        kept = load.ended / load.due
        if kept < _limit("kept_up") or load.skipped:
            return None
        figure = Figure("requests that were due and answered", kept, "share",
                        limit=_limit("kept_up"))  # fmt: skip
        fact = (
            f"of {load.due:,} requests that were due {load.ended:,} were answered in the window,"
            f" {load.per_s:,.0f} a second"
        )
        return fact, (figure,)
    if load.waits_share >= _limit("thinks"):
        figure = Figure("keying and thinking of a terminal's time", load.waits_share, "share",
                        limit=_limit("thinks"))  # fmt: skip
        return f"terminals key or think {share_text(load.waits_share)} of their time", (figure,)
    return _pauses(window)


def _pauses(window: WindowFacts) -> tuple[str, tuple[Figure, ...]] | None:
    """A client that asks nothing most of the time, without being busy."""
    account, wanted = window.account, window.driver.wanted
    if not isinstance(account, Account) or IDLE not in account.roots or wanted is None:
        return None
    # As met: what holds a lock while it thinks makes others wait, and those ask.
    idle = float(account.share(IDLE, root=False)[0])
    if idle < _limit("asks") or wanted >= _limit("wanted"):
        return None
    figure = Figure("session time with nothing asked", idle, "share", limit=_limit("asks"))
    fact = (
        f"sessions have nothing to do {share_text(idle)} of their time, and the driver is not why:"
        f" its busiest thread was wanted {share_text(wanted)} of the time"
    )
    return fact, (figure,)
