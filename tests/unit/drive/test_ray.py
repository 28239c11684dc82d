"""Ray as a transport: what is refused before anything is entered, and which node is meant."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from pgdyno.drive import ray_bridge
from pgdyno.drive.transports import ray
from pgdyno.model.errors import DriveError
from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import host_address

NODES = [
    {"NodeID": "01", "Alive": True, "NodeName": "a", "NodeManagerAddress": "10.0.0.1",
     "NodeManagerHostname": "client-1"},
    {"NodeID": "02", "Alive": True, "NodeName": "10.0.0.2", "NodeManagerAddress": "10.0.0.2",
     "NodeManagerHostname": "client-2"},
    {"NodeID": "03", "Alive": False, "NodeName": "c", "NodeManagerAddress": "10.0.0.3",
     "NodeManagerHostname": "client-2"},
]  # fmt: skip


@pytest.fixture
def token(tmp_path: Path) -> Path:
    found = tmp_path / "token"
    found.write_text("0123")
    found.chmod(0o600)
    return found


def environ(token: Path, **more: str) -> dict[str, str]:
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)} | more


@pytest.mark.parametrize(
    ("name", "node"), [("a", "01"), ("10.0.0.1", "01"), ("10.0.0.2", "02"), ("client-2", "02")]
)
def test_a_node_is_meant_by_its_name_or_address_while_it_lives(name: str, node: str) -> None:
    assert ray_bridge.node_of(NODES, name) == node


def test_a_node_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(LookupError, match=r"0 nodes called c, 1 expected; it has 10\.0\.0\.2, a"):
        ray_bridge.node_of(NODES, "c")


def test_a_token_that_only_we_can_read_is_taken(token: Path) -> None:
    ray.require_token(environ(token))


@pytest.mark.parametrize("mode", ["0640", "0604", "0666"])
def test_a_token_that_others_can_read_is_refused(token: Path, mode: str) -> None:
    token.chmod(int(mode, 8))

    with pytest.raises(DriveError, match=f"has mode {mode} and owner .* others can read it"):
        ray.require_token(environ(token))


def test_no_token_is_refused(token: Path, tmp_path: Path) -> None:
    with pytest.raises(DriveError, match="RAY_AUTH_MODE is not set, token expected"):
        ray.require_token({"RAY_AUTH_TOKEN_PATH": str(token)})
    with pytest.raises(DriveError, match="RAY_AUTH_MODE is disabled, token expected"):
        ray.require_token(environ(token, RAY_AUTH_MODE="disabled"))
    with pytest.raises(DriveError, match="nobody cannot be read: no such file"):
        ray.require_token(environ(tmp_path / "nobody"))
    with pytest.raises(DriveError, match="is no file"):
        ray.require_token(environ(tmp_path))
    with pytest.raises(DriveError, match="RAY_AUTH_TOKEN holds a token") as caught:
        ray.require_token(environ(token, RAY_AUTH_TOKEN="secret"))
    assert "secret" not in caught.value.line


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "find_spec", lambda _: None)

    begin: Any = ray.TRANSPORT.start
    with pytest.raises(DriveError, match="Ray is not installed, and ray:b is reached by") as caught:
        begin(host_address("ray:b"), Fleet(("ray:b",)), -1, "no.module")
    assert "pgdyno[ray]" in str(caught.value.hint)


def test_an_address_where_nobody_answers_is_named_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # it does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(DriveError, match=f"RAY_ADDRESS is {address}, where nobody answers"):
            ray_bridge.require_answer(address)


@pytest.mark.parametrize("address", ["", "auto", "ray://head:10001", "local"])
def test_what_is_no_host_and_port_is_left_to_ray(address: str) -> None:
    ray_bridge.require_answer(address)


def test_an_address_that_answers_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listens:
        ray_bridge.require_answer(f"127.0.0.1:{listens.getsockname()[1]}")
