"""The text of a page, without the marks of where its lines may end and of what is code."""

from __future__ import annotations

import re
from html import unescape

_MARKS = re.compile(r'<wbr>|<span class="(?:whole|option)">([^<]*)</span>|</?code>')


def page_text(page: str) -> str:
    """As it is read; other elements stay."""
    return unescape(_MARKS.sub(r"\1", page))
