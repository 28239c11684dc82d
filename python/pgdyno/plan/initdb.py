"""Which arguments of initdb a plan may give, and in which versions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pgdyno.plan.complaint import Complaint, shown

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
