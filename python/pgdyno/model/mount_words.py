"""Words of the kernel's tables of mounts, see proc(5)."""

from __future__ import annotations

import re

_OCTAL = re.compile(r"\\([0-7]{3})")


def mount_word(word: str) -> str:
    """What would separate there, the kernel writes as octal numbers: a blank, a tab, a newline."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), word)
