"""Which process is a server's backend: what has its number here may be another server's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pgdyno.target.server_host import is_backend
from tests import children
from tests.waiting import until

TITLE = "postgres: alice orders [local] idle"


@pytest.fixture
def local() -> Iterator[int]:
    """A backend of another server on this host; its title is all that there is to it."""
    process = children.started(["bash", "-c", f"exec -a '{TITLE}' sleep 600"])
    title = Path(f"/proc/{process.pid}/cmdline")
    until(lambda: title.read_bytes().startswith(TITLE.encode()), "its title")
    yield process.pid
    process.kill()
    process.wait()


def test_the_backend_is_the_process_that_began_with_it(local: int) -> None:
    began_s = psutil.Process(local).create_time()
    assert is_backend(local, "alice", began_s)
    assert is_backend(local, "alice", began_s + 1.0)
    assert not is_backend(local, "bob", began_s)


@pytest.mark.parametrize("off_s", [-86_400.0, -3.0, 3.0, 3600.0])
def test_a_process_of_the_number_and_user_that_began_at_another_time_is_none(
    local: int, off_s: float
) -> None:
    assert not is_backend(local, "alice", psutil.Process(local).create_time() + off_s)


def test_a_server_that_does_not_say_when_its_session_began_is_not_taken_for_local(
    local: int,
) -> None:
    assert not is_backend(local, "alice", None)


def test_who_is_gone_is_no_backend(local: int) -> None:
    assert not is_backend(2**22 + 1, "alice", time.time())
