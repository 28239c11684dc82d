"""Which arguments of initdb a plan may give, in which versions, and what follows from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pgdyno.model.settings import ServerFacts
from pgdyno.plan.schema.complaint import Complaint, shown

_DEFAULT_SEGMENT_MB = 16
_SEGMENTS = {"min_wal_size": 5, "max_wal_size": 64}  # initdb writes as many into the configuration
_SEGMENT_SIZES = tuple(str(1 << power) for power in range(11))  # MB

# option -> (first version that has it, whether it takes a value after '=')
_OPTIONS = {
    "--data-checksums": (12, False),
    "-k": (12, False),
    "--no-data-checksums": (18, False),
    "--wal-segsize": (12, True),
    "--encoding": (12, True),
    "--locale": (12, True),
    "--no-locale": (12, False),
    "--lc-collate": (12, True),
    "--lc-ctype": (12, True),
    "--locale-provider": (15, True),
    "--icu-locale": (15, True),
    "--builtin-locale": (17, True),
}


def initdb_complaints(arguments: Sequence[str], major: int) -> list[Complaint]:
    """What is wrong with the arguments, for this major version."""
    complaints = []
    for argument in arguments:
        option, equals, value = argument.partition("=")
        since, takes_value = _OPTIONS.get(option, (None, False))
        if since is None:
            options = [name + ("=VALUE" if takes else "") for name, (_, takes) in _OPTIONS.items()]
            text = f"{shown(argument)} is not for plans; allowed: {', '.join(options)}"
        elif major < since:
            text = f"{shown(argument)}: initdb {major} has no such option; it came with {since}"
        elif takes_value != bool(equals and value):
            form = f"{option}=VALUE" if takes_value else option
            text = f"{shown(argument)} is written {form}"
        elif option == "--wal-segsize" and value not in _SEGMENT_SIZES:
            text = f"{shown(argument)}: allowed: {', '.join(_SEGMENT_SIZES)} (MB)"
        elif not re.fullmatch(r"[\w.@:-]*", value):
            text = f"{shown(argument)} holds letters that are not for plans"
        else:
            continue
        complaints.append(Complaint("target.initdb", text))
    return complaints


def segment_mb(arguments: Sequence[str]) -> int:
    """Size of a WAL segment."""
    found = re.search(r"--wal-segsize=(\d+)", " ".join(arguments))
    return int(found.group(1)) if found else _DEFAULT_SEGMENT_MB


def after_initdb(server: ServerFacts, arguments: Sequence[str]) -> ServerFacts:
    """The server with the defaults that initdb leaves behind: WAL sizes follow the segments."""
    size = segment_mb(arguments)
    if size == _DEFAULT_SEGMENT_MB:
        return server
    changed = {
        name: replace(server.knobs[name], default=str(count * size))
        for name, count in _SEGMENTS.items()
        if name in server.knobs
    }
    return replace(server, knobs={**server.knobs, **changed})
