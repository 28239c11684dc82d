"""Servers and hosts for tests, as PostgreSQL 15.20 and 18.6 told of themselves.

`postgres/describe-config-*.tsv` is the output of `postgres --describe-config`;
`postgres/settings-*.jsonl` holds a row of `pg_settings` per line: the columns of
`plan.server.SETTINGS_QUERY`, then `setting` and what SHOW prints. Paths and ports are left out.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from pgdyno.model.settings import HostFacts, ServerFacts
from pgdyno.plan.settings.server import facts_of_rows, parse_describe_config

FOLDER = Path(__file__).parent / "postgres"
VERSION_NUMS = {15: 150020, 18: 180006}
GIB = 1 << 30

HOST = HostFacts(
    cpus=2,
    memory_bytes=24 * GIB,
    huge_pages_free=0,
    huge_page_bytes=2 << 20,
    free_disk_bytes=80 * GIB,
    data_path="/srv/pgdyno",
    file_system="ext4",
)


def describe_config(major: int) -> str:
    """What `postgres --describe-config` prints."""
    return (FOLDER / f"describe-config-{major}.tsv").read_text()


@cache
def rows(major: int) -> list[list[Any]]:
    """Rows of `pg_settings`, see above."""
    text = (FOLDER / f"settings-{major}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@cache
def installed(major: int) -> ServerFacts:
    """A server as its binaries tell of it."""
    num = VERSION_NUMS[major]
    return parse_describe_config(describe_config(major), num, f"PostgreSQL {_dotted(num)}")


@cache
def running(major: int) -> ServerFacts:
    """A server as it tells of itself while running."""
    num = VERSION_NUMS[major]
    told = [row[:8] for row in rows(major)]
    return facts_of_rows(told, num, f"PostgreSQL {_dotted(num)}")


def _dotted(num: int) -> str:
    return f"{num // 10000}.{num % 10000}"
