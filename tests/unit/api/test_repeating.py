"""How a run is repeated from a shell: what names a target is repeated by its option."""

from __future__ import annotations

import pytest

from pgdyno.api.repeating import option_words

RUNNING = ('target.kind="running"', 'target.conninfo="host=/run/pg user=engineer"')


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (RUNNING, ["--conninfo", "host=/run/pg user=engineer"]),
        (
            ("protocol.rounds=3", *RUNNING),
            ["--conninfo", "host=/run/pg user=engineer", "--set", "protocol.rounds=3"],
        ),
        (('target.kind="installed"', 'target.bindir="/usr/bin"'), ["--bindir", "/usr/bin"]),
        (RUNNING[:1], ["--set", RUNNING[0]]),
        (RUNNING[1:], ["--set", RUNNING[1]]),
        (('target.kind="embedded"',), ["--set", 'target.kind="embedded"']),
        ((), []),
    ],
)
def test_a_target_is_named_by_its_option(overrides: tuple[str, ...], words: list[str]) -> None:
    assert list(option_words(overrides)) == words
