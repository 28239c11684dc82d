"""Answers to `pgdyno init` that cannot be meant."""

from __future__ import annotations

import pytest

from pgdyno.api.first_plan import FirstPlan
from pgdyno.model.errors import PlanError


@pytest.mark.parametrize("server", ["embeded", "/usr/lib/postgresql/no-such-version/bin"])
def test_a_server_that_is_neither_is_told_what_it_may_be(server: str) -> None:
    with pytest.raises(PlanError, match="is not embedded, no folder that is there") as caught:
        FirstPlan(server, 1, "wal_buffers=64MB").text()
    assert "Write embedded" in (caught.value.hint or "")
