"""Each condition by itself: what spoils a pair that is as it should be, and nothing else does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgdyno.guard.facts import CYCLES, Contents, Seen, Slot
from pgdyno.guard.metrics import FAMILIES
from pgdyno.guard.preconditions import judged, require_acceptable
from pgdyno.guard.preconditions.settings import advice
from pgdyno.model.errors import PlanError
from pgdyno.model.guard import ACCEPTABLE, Life
from tests.unit.guard.facts import LOCAL, MIB, PAIR, PRIMARY, SEEN, STANDBY

DOC = (Path(__file__).parents[3] / "docs" / "concepts" / "guard.md").read_text()


def refused(seen: Seen, *accepted: str) -> list[str]:
    return [one.name for one in judged(seen, accepted) if not one.allows]


def primary(**changes: Any) -> Seen:
    return replace(SEEN, pair=replace(PAIR, primary=replace(PRIMARY, **changes)))


def settings(**changes: str) -> Seen:
    return primary(settings={**PRIMARY.settings, **changes})


def standby(**changes: Any) -> Seen:
    return replace(SEEN, pair=replace(PAIR, standby=replace(STANDBY, **changes)))


def contents(**changes: Any) -> Seen:
    return replace(SEEN, pair=replace(PAIR, contents=replace(Contents((), (), ()), **changes)))


def local(**changes: Any) -> Seen:
    return replace(SEEN, local=replace(LOCAL, **changes))


def slot(**changes: Any) -> Seen:
    return primary(slots=(replace(Slot("standby", True, True, "reserved"), **changes),))


SPOILED = {
    "primary-role": [primary(is_in_recovery=True)],
    "primary-data": [settings(data_directory="/other"), primary(settings={
        name: value for name, value in PRIMARY.settings.items() if name != "data_directory"})],
    "same-system": [standby(system_identifier="8")],
    "standby-role": [standby(is_in_recovery=False)],
    "same-timeline": [standby(timeline=2)],
    "wal-level": [settings(wal_level="minimal")],
    "fsync-primary": [settings(fsync="off")],
    "fsync-standby": [standby(settings={"fsync": "off"})],
    "checksums": [settings(data_checksums="off")],
    "checkpoint-timeout": [settings(checkpoint_timeout="301")],
    "full-page-writes": [
        primary(full_pages_source="/data/postgresql.auto.conf"),
        primary(full_pages_source="command line"), primary(full_pages_source="/data/other.conf"),
    ],
    "streaming": [standby(receiver=""), standby(receiver="stopping")],
    "slot": [
        standby(slot=""), standby(slot="other"), slot(active=False), slot(reserved=False),
        slot(status="lost"), slot(status="unreserved"),
    ],
    "replay": [standby(is_paused=True)],
    "apply-delay": [standby(delay_ms=1)],
    "recovery-target": [standby(recovery_target=("recovery_target_xid", "7"))],
    "lag": [primary(flush_lsn=(120 + 257) * MIB), replace(SEEN, pair=replace(PAIR, lag_s=31))],
    "restartpoint": [
        standby(redo_lsn=(100 - CYCLES * 10) * MIB - 1), primary(redo_oldest_lsn=90 * MIB + 1)],
    "resource-managers": [primary(foreign_managers=("orioledb",))],
    "access-methods": [contents(foreign_methods=("a.strange",))],
    "unlogged": [contents(unlogged=("a.b.c",))],
    "databases-seen": [
        contents(unseen=("a (no)",)), replace(SEEN, pair=replace(PAIR, contents=None))],
    "tablespaces": [primary(tablespaces={16400: "fast"})],
    "rights-primary": [primary(may_checkpoint=False)],
    "rights-standby": [standby(missing_rights=("pg_stat_file(text,boolean)",))],
    "data-whole": [local(closed_by="repair"), local(closed_by="rejoin")],
    "configuration-file": [local(config_wrong="it is a link")],
    "one-configuration": [local(stray_config="/data/postgresql.conf")],
    "server-process": [local(server_pid=None)],
    "run-folder": [local(run_folder_kind="ext4"), local(run_folder_wrong="closed")],
    "interlock": [
        local(line_include=None), local(line_include="/run/other.conf"), local(is_shut=True),
    ],
    "separate-power": [
        replace(standby(life=Life("a", "1")), local=replace(LOCAL, standby_life=Life("a", "1"))),
        standby(is_by_loopback=True), standby(life=Life("", "1"))],
    "standby-power": [
        standby(life=Life("c", "2")), standby(life=Life("c", "1")), local(standby_life=None),
        local(standby_life=Life("", "0"))],
}  # fmt: skip


def test_a_pair_as_it_should_be_is_allowed() -> None:
    assert refused(SEEN) == []


@pytest.mark.parametrize("name", SPOILED)
def test_what_spoils_it_is_refused_by_its_name(name: str) -> None:
    for seen in SPOILED[name]:
        assert refused(seen) == [name]
        (found,) = [one for one in judged(seen, ()) if one.name == name]
        assert found.change
        assert (refused(seen, name) == []) == found.may_be_accepted
        assert name in ACCEPTABLE or not found.may_be_accepted


def test_every_condition_is_spoiled_here_and_stands_in_the_documentation() -> None:
    names = {one.name for one in judged(SEEN, ())}
    assert names == {*SPOILED, "primary-answers", "standby-answers"}
    for name in names:
        assert f"`{name}`" in DOC, name
    starred = {name for line in re.findall(r"^\| (.*?) \* \|", DOC, re.MULTILINE)
               for name in re.findall(r"`([^`]+)`", line)}  # fmt: skip
    assert starred == set(ACCEPTABLE)
    for family in FAMILIES:
        assert f"`{family.name}`" in DOC, family.name


def test_who_does_not_answer_is_refused_with_the_reason() -> None:
    silent = replace(SEEN, pair=replace(PAIR, standby=None, standby_silence="no answer for 9 s"))
    (found,) = [one for one in judged(silent, ()) if not one.allows]
    assert (found.name, found.found) == ("standby-answers", "no answer for 9 s")


def test_a_primary_with_torn_pages_is_not_to_be_started() -> None:
    torn = replace(local(is_shut=True), pair=replace(PAIR, primary=None, contents=None))
    changes = {one.name: one.change for one in judged(torn, ()) if not one.allows}
    assert changes["primary-answers"] == "Repair it before you start it: see interlock."
    assert changes["interlock"].startswith("Do not start the server: `pgdyno guard repair /data`")
    assert changes["databases-seen"] == "The primary has to answer first."


def test_before_it_is_armed_another_file_may_turn_them_on_but_not_off() -> None:
    unarmed = local(is_armed=False, line_include=None)
    on = replace(unarmed, pair=replace(PAIR, primary=replace(
        PRIMARY, full_pages_source="/data/postgresql.conf")))  # fmt: skip
    assert refused(on) == []
    off = replace(PRIMARY, full_pages_source="/data/postgresql.conf",
                  settings={**PRIMARY.settings, "full_page_writes": "off"})  # fmt: skip
    assert refused(replace(on, pair=replace(PAIR, primary=off))) == ["full-page-writes"]


def test_that_a_server_recovers_by_itself_is_advised_against_and_is_no_condition() -> None:
    (sentence,) = advice(settings(restart_after_crash="on"))
    assert "restart_after_crash is on" in sentence
    assert refused(settings(restart_after_crash="on")) == []
    assert list(advice(settings(restart_after_crash="off"))) == []


def test_a_standby_lives_on_by_its_boot_id_or_where_that_is_not_known_by_its_server() -> None:
    assert Life("b", "2").goes_on(Life("b", "1")), "a server that was started again tears nothing"
    assert not Life("c", "1").goes_on(Life("b", "1"))
    for one, since in ((Life("", "1"), Life("b", "1")), (Life("b", "1"), Life("", "1"))):
        assert one.goes_on(since)
    for one, since in ((Life("", "2"), Life("b", "1")), (Life("", "2"), Life("", "1"))):
        assert not one.goes_on(since), "its machine may have lost power meanwhile"


def test_what_cannot_be_accepted_is_told() -> None:
    with pytest.raises(PlanError, match="of no condition that may be accepted: fsync, x"):
        require_acceptable(["fsync", "x", "unlogged"])
    assert require_acceptable(["unlogged", "unlogged"]) == ("unlogged",)
