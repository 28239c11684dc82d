"""`--live` with and without a value, `--metrics`, and what of them is refused."""

from __future__ import annotations

import pytest

from pgdyno.cli.live_options import watched
from pgdyno.cli.optional_value import with_values
from pgdyno.model.errors import PlanError


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("demo --live", "demo --live=0"),
        ("--live demo", "--live=0 demo"),
        ("--live --quick demo", "--live=0 --quick demo"),
        ("demo --live 8080 --quick", "demo --live 8080 --quick"),
        ("demo --live=8080", "demo --live=8080"),
        ("demo --live 0.0.0.0:8080", "demo --live 0.0.0.0:8080"),
        ("--live [::1]:8080 demo", "--live [::1]:8080 demo"),
        ("--live db1:x demo", "--live db1:x demo"),
        ("--live plans/8080.toml", "--live=0 plans/8080.toml"),
        ("--out --live demo", "--out --live=0 demo"),
        ("demo -- --live", "demo -- --live"),
        ("demo", "demo"),
    ],
)
def test_a_value_may_be_left_out(typed: str, meant: str) -> None:
    assert with_values(typed.split()) == meant.split()


@pytest.mark.parametrize(
    ("live", "metrics"), [("x", None), (None, "x"), ("8080", "127.0.0.1"), ("65536", None)]
)
def test_what_is_no_address_is_refused(live: str | None, metrics: str | None) -> None:
    with pytest.raises(PlanError, match=r"--(live|metrics) (is|has)"):
        watched(lambda _: None, live, metrics).__enter__()


def test_without_them_nobody_stands_between() -> None:
    def listener(_event: object) -> None:
        """Listen."""

    with watched(listener, None, None) as found:
        assert found is listener
