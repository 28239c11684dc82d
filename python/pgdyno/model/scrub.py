"""Passwords out of what is kept or told: properties, connection strings, JSON, SQL, URLs, options.

A value is hidden from where it begins to where it ends, however long it is: one whose quote is
never closed goes on to the end of its line. A line that comes in pieces is hidden as if it were
whole: of each piece that much is held back as a secret may begin in that the next one goes on with.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HIDDEN = "(hidden)"
# Every repetition has an end, or gives nothing back: a line of 64 KiB without a blank would take
# minutes otherwise.
_NAME = re.compile(
    r"""(?ix)
    ["']?[\w.-]{0,40}(?:password|passwd|passphrase|pwd|secret|token|pass|identified\s{1,40}by)
    ["']?\s{0,40}(?:=|:|\s)\s{0,40}(?=\S)
    """
)
_MAY_BE = re.compile(r"(?i)pass|pwd|secret|token|identified|@")
"""What every line with one has; of most it says quickly that there is none."""
_QUOTED = {
    '"': re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"'),
    "'": re.compile(r"[^']*+(?:''[^']*+)*+'"),
    "{": re.compile(r"[^}]*+\}"),
}
"""What follows a quote, up to the one that closes it."""
_BARE = re.compile(r"""[^\s,;&"'}]*+(?=[\s,;&"'}])""")
"""A value without quotes, and that something follows."""
_LOCATED = (
    re.compile(r"\w{1,40}://[^\s:/@]{0,200}:([^\s@]{1,4000}+(?:@[^\s@/]{1,200}+){0,8})@"),
    re.compile(
        r"(?i)(?:\bjdbc:oracle:\w{1,10}:|\b(?:connect|conn|sqlplus)\s{1,4})[\w$#.]{1,128}/"
        r"([^\s@]{1,4000}+)@"
    ),
)
"""A password within an address: the group."""
_OF_CONNINFO = re.compile(r"(?i)password\s*=|://")
"""What names one in a conninfo; `token` may be a column of a statement."""
_HELD = 1 << 14
"""Characters of a piece that are held back: more than any address has, or a name with its value's
first letter."""


class _Secret(NamedTuple):
    """Where one stands."""

    name: int  # begins here: what says that it is one
    first: int
    last: int  # behind it; the end of the text where it goes on
    rest: re.Pattern[str] | None  # what would end it


class Scrubber:
    """Hides secrets in lines that may come in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._rest: re.Pattern[str] | None = None  # ends the value that the last piece broke off in

    def piece(self, text: str, *, ended: bool) -> str:
        """What may be kept of a line so far.

        Args:
            text: The next piece.
            ended: Whether it is the last one of its line; nothing is held back then.
        """
        text, self._held = self._held + text, ""
        if ended and self._rest is None and _MAY_BE.search(text) is None:
            return text
        begin = 0
        if self._rest is not None:
            found = self._rest.match(text)
            if found is None:
                self._goes_on(self._rest, text, ended=ended)
                return ""
            begin, self._rest = found.end(), None
        cut = len(text) if ended else max(begin, len(text) - _HELD)
        secrets = [one for one in (*_named(text, begin), *_located(text, begin)) if one.name < cut]
        shown, at = [], begin
        for one in sorted(secrets, key=lambda one: one.first):
            if one.first >= at:
                shown += [text[at : one.first], HIDDEN]
            at = max(at, one.last)
            if one.last == len(text) and one.rest is not None:
                self._goes_on(one.rest, text, ended=ended)
                return "".join(shown)
        cut = max(cut, at)
        self._held = text[cut:]
        return "".join([*shown, text[at:cut]])

    def _goes_on(self, rest: re.Pattern[str], text: str, *, ended: bool) -> None:
        """The value has no end in this piece: with its line it ends."""
        escapes = len(text) - len(text.rstrip("\\"))
        self._rest, self._held = (None, "") if ended else (rest, "\\" * (escapes % 2))


def scrubbed(line: str) -> str:
    """The line without what may be a password."""
    return Scrubber().piece(line, ended=True)


def without_passwords(text: str) -> str:
    """A text that somebody wrote, to be told again as it is, but for passwords of conninfos in it.

    That there is one is refused by a sentence of its own; another mistake may come before that.
    """
    return scrubbed(text) if _OF_CONNINFO.search(text) else text


def _named(text: str, begin: int) -> list[_Secret]:
    """Values behind a name that says what they are."""
    found: list[_Secret] = []
    while (name := _NAME.search(text, begin)) is not None:
        first = name.end()
        rest = _QUOTED.get(text[first])
        end = _BARE.match(text, first) if rest is None else rest.match(text, first + 1)
        last = len(text) if end is None else end.end()
        if last > first:
            found.append(_Secret(name.start(), first, last, rest or _BARE))
        begin = max(last, first + 1)
    return found


def _located(text: str, begin: int) -> list[_Secret]:
    """Passwords within addresses."""
    if "@" not in text:
        return []
    return [
        _Secret(found.start(), found.start(1), found.end(1), None)
        for pattern in _LOCATED
        for found in pattern.finditer(text, begin)
    ]
