"""The knee's run file: what must not stand in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

import pgdyno
from pgdyno.api.experiments.knee import _conninfo
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.model.knee import Search

SEARCH = Search(1_000_000, start=10, low=1, high=100)


@pytest.mark.parametrize(
    "conninfo", ["host=/nowhere password=SECRET", "postgresql://me:SECRET@nowhere/db"]
)
def test_a_password_is_refused_before_it_could_be_stored(tmp_path: Path, conninfo: str) -> None:
    with pytest.raises(PlanError, match="holds a password") as caught:
        pgdyno.knee(pgdyno.Asked("tpcb"), conninfo, SEARCH, out=tmp_path / "k.sqlite")
    assert "SECRET" not in f"{caught.value.fact}{caught.value.hint}"
    assert list(tmp_path.iterdir()) == []


def test_how_to_get_there_again_is_kept_whole_but_for_its_password() -> None:
    there = Connection(
        "h", 5432, "u", "my db", password="SECRET",
        parameters=(("sslmode", "verify-full"), ("sslrootcert", "/x"), ("options", "-c a=b c")),
    )  # fmt: skip
    kept = conninfo_to_dict(_conninfo(there))
    assert "SECRET" not in _conninfo(there)
    assert kept["dbname"] == "my db"
    assert (kept["sslrootcert"], kept["options"]) == ("/x", "-c a=b c")
