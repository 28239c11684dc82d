"""Strings that mean something to somebody: to a shell, a server, a page, a terminal."""

from __future__ import annotations

WORDS = {
    "colon": "a:b",
    "blank": " a b ",
    "single": "it's",
    "double": 'a"b',
    "backslash": "a\\b\\",
    "backslash-colon": "a\\:b",
    "newline": "a\nb",
    "tab": "a\tb",
    "percent": "%s%d%%20",
    "command": "$(touch pwned)",
    "variable": "$HOME ${jobname} :v",
    "backtick": "`touch pwned`",
    "semicolon": "a;b",
    "comment": "a--b#c",
    "dash": "--help",
    "equals": "a=b,c=d",
    "at": "a@2",
    "pipe": "a|b&c>d<e",
    "star": "*?[a]_x_",
    "script": "<!--<script>document.documentElement.dataset.pwned=1<_script>",
    "image": "<img src=x onerror=document.documentElement.dataset.pwned=1>",
    "template": "{{7*7}}{% x %}",
    "link": "[x](javascript:alert(1))![y](z)",
    "markup": "[bold]x[_bold] [red on blue] :bug:",
    "escape": "\x1b[2J\x1b]0;pwned\x07",
    "controls": "\x01\x08\r\x7f\x9b",
    "backwards": "txt.\u202eexe\u202c",
    "unseen": "a\u200bb\ufeff\u00ad",
    "lines": "a\u2028b\u2029c\x85d",
    "long": "x" * 200,
    "emoji": "\U0001f41b\U0001f468\u200d\U0001f469",
}
"""Each may be the name of a file: no slash, no NUL, at most 255 bytes."""

NO_TEXT = "a\udcff\udc80b"  # bytes that are no UTF-8, as Python has them

ENDS = {name: word.replace("_script", "/script").replace("_bold", "/bold")
        for name, word in WORDS.items()}  # fmt: skip
"""The same with slashes where they end something."""
