"""Passwords out of what is kept: in properties, connection strings, JSON, URLs and arguments."""

from __future__ import annotations

import re

HIDDEN = "(hidden)"
_NAMED = re.compile(
    r"""(?ix)
    (["']?[\w.-]*(?:password|passwd|passphrase|pwd|secret|token|pass)["']?\s*(?:=|:|\s)\s*)
    ("(?:[^"\\]|\\.)*"|'[^']*'|\{[^}]*\}|[^\s,;&"'}]+)
    """
)
_URL = re.compile(r"(\w+://[^\s:/@]+:)([^\s@]+)(@)")


def scrubbed(line: str) -> str:
    """The line without what may be a password."""
    line = _URL.sub(rf"\1{HIDDEN}\3", line)
    return _NAMED.sub(rf"\1{HIDDEN}", line)
