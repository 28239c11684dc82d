"""The folders and homes of the cluster tests, for attacks on whole commands."""

from __future__ import annotations

from tests.cluster.conftest import folder, home_env, session_home

__all__ = ["folder", "home_env", "session_home"]
