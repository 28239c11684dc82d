"""The live page and the report keep the same words whole."""

from __future__ import annotations

import re
from importlib.resources import files

from pgdyno.report import html


def test_what_no_line_ends_within_is_the_same_on_both_pages() -> None:
    script = (files("pgdyno.live") / "page" / "live.js").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"const WHOLE = /(.+)/;", script)
    assert pattern.replace(r"\/", "/") == html._WHOLE.pattern
