"""What of a standby is judged without one: how it is reached again."""

from __future__ import annotations

from pgdyno.guard.source import pinned
from pgdyno.model.connection import Connection, Host

SEVERAL = Connection(
    "a", 5432, "guard", "postgres", "of a", None,
    (Host("b", 5433, "of b"), Host("", 5434, "of c", "192.0.2.3"), Host("/run/d", 5435)),
    (("load_balance_hosts", "random"), ("sslmode", "verify-full")),
)  # fmt: skip


def test_a_server_is_reached_again_by_itself_alone() -> None:
    one = pinned(SEVERAL, "b", "192.0.2.2", 5433)
    assert one.hosts == (Host("b", 5433, "of b", "192.0.2.2"),)
    assert one.parameters == (("sslmode", "verify-full"),), "its certificate is still asked for"
    assert (one.user, one.database) == ("guard", "postgres")
    # libpq gives an address where there is no name.
    assert pinned(SEVERAL, "192.0.2.3", "192.0.2.3", 5434).password == "of c"
    assert pinned(SEVERAL, "/run/d", "", 5435).hosts == (Host("/run/d", 5435),)


def test_of_two_addresses_of_a_name_the_one_is_taken_that_answered() -> None:
    two = Connection(
        "a", 5432, "u", "d", "of 1", "192.0.2.1", (Host("a", 5432, "of 2", "192.0.2.2"),)
    )
    for number in ("1", "2"):
        one = pinned(two, "a", f"192.0.2.{number}", 5432)
        assert (one.hostaddr, one.password) == (f"192.0.2.{number}", f"of {number}")
