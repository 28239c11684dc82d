"""Run by `owning`: every statement of psycopg is counted, and one of them is the last."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import psycopg
from psycopg import sql

from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.run import Fixture
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.target.interface import ending
from pgdyno.target.running_target import RunningTarget

_conninfo, _ident, _step, _when = sys.argv[1:]
_sent: list[str] = []
_execute = psycopg.Connection.execute


def _counted(self: Any, query: Any, *args: Any, **more: Any) -> Any:
    text = query.as_string(self) if isinstance(query, sql.Composable) else str(query)
    _sent.append(text)
    is_last = len(_sent) == int(_step)
    if is_last and _when != "after":
        if _when == "during" and not args[:1]:
            # The server has it and works on; nobody will hear the answer.
            self.pgconn.send_query(text.encode())
            self.pgconn.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    cursor = _execute(self, query, *args, **more)
    if is_last:
        os.kill(os.getpid(), signal.SIGKILL)
    return cursor


def _work() -> None:
    target = RunningTarget(_conninfo)
    with ending(target.close):
        connection = target.begin_fixture(_ident)
        with psycopg.connect(**connection.arguments(), autocommit=True) as session:
            session.execute("CREATE TABLE loaded (n int)")
        target.keep_fixture(Fixture(_ident, FixtureShape(), 0, None, (), "", reused=False))
        target.restore(_ident, 2)
        origin = Origin(OriginKind.PLAN, "a test")
        target.apply([Setting("synchronous_commit", "off", origin)])
        target.stop()


psycopg.Connection.execute = _counted  # type: ignore[method-assign]
_work()
print(json.dumps(_sent))
