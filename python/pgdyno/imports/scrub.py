"""Passwords out of what is kept: in properties, connection strings, JSON, URLs and arguments."""

from __future__ import annotations

import re

HIDDEN = "(hidden)"
# Every repetition has an end: a line of 64 KiB without a blank would take minutes otherwise.
_NAMED = re.compile(
    r"""(?ix)
    (["']?[\w.-]{0,40}(?:password|passwd|passphrase|pwd|secret|token|pass)["']?
        \s{0,40}(?:=|:|\s)\s{0,40})
    ("(?:[^"\\]|\\.){0,4000}"|'[^']{0,4000}'|\{[^}]{0,4000}\}|[^\s,;&"'}]+)
    """
)
_URL = re.compile(r"(\w{1,40}://[^\s:/@]{1,200}:)([^\s@]{1,4000})(@)")


def scrubbed(line: str) -> str:
    """The line without what may be a password."""
    line = _URL.sub(rf"\1{HIDDEN}\3", line)
    return _NAMED.sub(rf"\1{HIDDEN}", line)
