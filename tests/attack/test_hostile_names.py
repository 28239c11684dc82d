"""Hostile names, pushed through each boundary to a program with a little language of its own.

Each is read back by the real other program where it is installed, and must be what it was.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from markdown_it import MarkdownIt
from psycopg import sql
from rich.status import Status
from rich.table import Table
from rich.text import Text

from pgdyno.analysis.diagnosis_facts import WindowDiagnosis
from pgdyno.analysis.facts import Facts
from pgdyno.api.runs import Run
from pgdyno.cli import console
from pgdyno.drive.pgbench import _conninfo, _secrets
from pgdyno.host.layout import _in_fstab
from pgdyno.model.connection import Connection
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.model.text import ascii_json, one_line, path_typed, shell_line, visible
from pgdyno.probe import fio
from pgdyno.probe.folder import own_folder
from pgdyno.report import html, markdown
from pgdyno.report import json as json_report
from pgdyno.store import RunFile
from pgdyno.target.cluster import Cluster
from pgdyno.target.conninfo import resolve
from pgdyno.target.file_systems import file_system, mounts
from pgdyno.target.running_target import _value_of
from tests.cluster.conftest import cluster_apart
from tests.data.hostile import ENDS, NO_TEXT, WORDS
from tests.data.miniature import write_miniature
from tests.waiting import DEADLINE_S

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
words = pytest.mark.parametrize("word", ENDS.values(), ids=ENDS)


def unseen(text: str) -> list[str]:
    return [one for one in text if one != "\n" and unicodedata.category(one) in UNSEEN]


# -- what people look at ----------------------------------------------------------------------


@words
def test_words_are_shown_and_never_obeyed(word: str) -> None:
    assert unseen(visible(word + NO_TEXT)) == []
    assert "\n" not in one_line(word)
    assert visible(visible(word)) == visible(word), "twice is once"
    assert json.loads(ascii_json(json.dumps({word: NO_TEXT}, ensure_ascii=False))) == {
        word: NO_TEXT
    }
    assert unseen(ascii_json(json.dumps(word, ensure_ascii=False))) == []


def test_other_letters_stay_as_they_are() -> None:
    assert visible("Größe µs × 日本語 …\nb") == "Größe µs × 日本語 …\nb"


def printed(terminal: bool, prints: Callable[[console.Shown], None]) -> str:
    stream = io.StringIO()
    target = console._console(stream)
    target._force_terminal = terminal
    prints(target)
    return COLOUR.sub("", stream.getvalue())


@words
@pytest.mark.parametrize("terminal", [True, False])
def test_the_terminal_gets_no_control_character(word: str, terminal: bool) -> None:
    def prints(to: console.Shown) -> None:
        table = Table("head", word)
        table.add_row(word, Text(word, "bold"))
        to.print(word, soft_wrap=True)
        to.print(Text(word), table, soft_wrap=True)
        to.print_json(json.dumps({word: word}))

    text = printed(terminal, prints)
    assert unseen(text) == []
    if word.isprintable() and word.strip() == word:
        assert word in text, "neither markup nor an emoji"


@words
def test_a_name_has_one_row_in_a_table(word: str) -> None:
    table = Table(box=None, show_header=False)
    table.add_column(overflow="fold", width=400)
    table.add_row(word)
    stream = io.StringIO()
    console.Shown(file=stream, width=500).print(table)
    assert len(stream.getvalue().rstrip("\n").split("\n")) == 1


@words
def test_errors_and_progress_are_no_markup(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(console, "stderr", console._console(stream))
    console.say_error(f"folder {word} is closed", f"See {word}.", [word])
    with Status("x", console=console.stderr) as status:
        console.say(status, word)
    text = stream.getvalue()
    assert unseen(text) == []
    heads = [line for line in text.splitlines() if line.startswith(("error:", "hint:"))]
    assert len(heads) == 2, "nothing looks like another message"


NASTY = "[/]\x1b[2J\u202e'\"$(touch pwned)\n:bug:\u200b"


COMMANDS = (
    ("lint", f"{NASTY}.conf", "--kind", "postgresql"),
    ("run", f"{NASTY}.toml"),
    ("run", f"{NASTY}.toml", "--dry-run"),
    ("resume", f"{NASTY}.sqlite"),
    ("report", f"{NASTY}.sqlite"),
    ("check", "-d", f"host=/nowhere dbname='{NASTY.replace(chr(39), '')}'"),
    ("bench", NASTY, "-d", "host=/nowhere"),
    ("load", "tpcc", "--from-csv", NASTY, "-d", "host=/nowhere"),
    ("knobs", NASTY),
    ("host", "plan", f"{NASTY}=1"),
    ("host", "plan", f"vm.swappiness={NASTY}"),
    ("host", "plan", "--huge-pages-for", NASTY),
    ("host", "layout", NASTY),
    ("host", "restore", "--keep", NASTY),
    ("storage", NASTY),
    ("build", NASTY),
    ("builds", "remove", NASTY),
    ("knee", NASTY),
    ("calibrate", NASTY),
    ("export", NASTY),
    (NASTY,),
    ("run", f"--{NASTY}"),
    ("aa", f"{NASTY}.toml"),
    ("aa", "demo", "--stage", NASTY),
    ("import", NASTY),
    ("import", __file__, "--tool", NASTY),
    ("import", __file__, "--into", NASTY),
)


OF_EVERY_DAY = (1, 4, 5, 14)  # a plan, a run file, a server, a folder


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(one, id=str(number), marks=[] if number in OF_EVERY_DAY else pytest.mark.long)
        for number, one in enumerate(COMMANDS)
    ],
)
def test_commands_show_what_was_typed_and_do_not_obey_it(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pgdyno", *arguments], cwd=tmp_path,
        env=os.environ | {"PGDYNO_HOME": str(tmp_path / "home"),
                          "PGDYNO_HOST_STATE": str(tmp_path / "state")},
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode not in (0, 70), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert unseen(done.stdout + done.stderr) == []
    assert not (tmp_path / "pwned").exists()


def test_arguments_that_are_no_text_are_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pgdyno", "report", os.fsencode(NO_TEXT)],
        cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert r"argument a\xff\x80b is not text in UTF-8" in done.stderr


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return Run(write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite")).facts


def hostile(facts: Facts, word: str) -> Facts:
    stages = tuple(
        replace(stage, name=f"{number}{word}", why=word)
        for number, stage in enumerate(facts.stages)
    )
    names = {old.name: new.name for old, new in zip(facts.stages, stages, strict=True)}
    trials = tuple(
        replace(trial, stage=names[trial.stage], reason=word) for trial in facts.trials
    )  # fmt: skip
    diagnosis = tuple(
        replace(
            one, stage=names[one.stage], sentence=word,
            windows=tuple(diagnosed(window, word) for window in one.windows),
        )
        for one in facts.diagnosis
    )  # fmt: skip
    return replace(
        facts, question=word, plan=word, stages=stages, trials=trials, diagnosis=diagnosis
    )


def diagnosed(window: WindowDiagnosis, word: str) -> WindowDiagnosis:
    """Statements and tables are named by whoever made the database."""
    statements = tuple(replace(one, kind=word, statement=word) for one in window.statements)
    answers = tuple(replace(one, fact=word) for one in window.answers)
    return replace(window, statements=statements, answers=answers)


@words
def test_reports_have_the_same_shape_with_any_name(facts: Facts, word: str) -> None:
    """As many tables, rows and cells as with harmless names; no image, no HTML, no link away."""
    parser = MarkdownIt("commonmark").enable("table")
    shapes = []
    for named in (hostile(facts, "x"), hostile(facts, word)):
        text = markdown.render(named)
        assert unseen(text) == []
        tokens = parser.parse(text)
        inner = [child for token in tokens for child in token.children or ()]
        assert not {"image", "html_inline"} & {one.type for one in inner}, word
        links = [str(one.attrs["href"]) for one in inner if one.type == "link_open"]
        assert all(one.startswith("#") for one in links), word
        kinds = [token.type for token in tokens]
        shapes.append([kind for kind in kinds if kind != "inline"])
    assert shapes[0] == shapes[1]
    assert unseen(json_report.render(hostile(facts, word))) == []


@pytest.mark.browser
@pytest.mark.wide
def test_a_browser_sees_only_text(facts: Facts, tmp_path: Path) -> None:
    """All of them on one page each would take minutes; each is a stage's name of one page."""
    page = tmp_path / "page.html"
    text = html.render(hostile(facts, " ".join(ENDS.values())))
    assert unseen(text[: text.index("plotly.js")]) == []
    page.write_text(text, encoding="utf-8")
    dumped = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000",
         f"--user-data-dir={tmp_path}/profile", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=DEADLINE_S, check=True,
    ).stdout  # fmt: skip
    assert "main-svg" in dumped, "the charts are drawn"
    assert "data-pwned" not in dumped
    assert "onerror=" not in re.sub(r"&lt;img[^<]*", "", re.sub(r"<script.*?</script>", "", dumped,
                                                                flags=re.DOTALL))  # fmt: skip


# -- shells ------------------------------------------------------------------------------------


@words
def test_a_shell_reads_what_was_meant(tmp_path: Path, word: str) -> None:
    typed = shell_line([word, NO_TEXT, "plain"])
    assert unseen(typed) == []
    said = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {typed}"], cwd=tmp_path, capture_output=True, check=True
    ).stdout
    assert said.split(b"\0")[:3] == [os.fsencode(word), os.fsencode(NO_TEXT), b"plain"]
    if not typed.startswith("$'"):
        said = subprocess.run(
            ["sh", "-c", f"printf '%s\\0' {shell_line([word])}"],
            cwd=tmp_path, capture_output=True, check=True,
        ).stdout  # fmt: skip
        assert said == os.fsencode(word) + b"\0"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", [*WORDS.values(), "--out", "-"], ids=[*WORDS, "option", "dash"])
def test_the_command_of_a_hint_names_the_file(tmp_path: Path, word: str) -> None:
    """Of whatever name: `pgdyno resume --out` would be an option."""
    (tmp_path / word).touch()
    said = subprocess.run(
        ["bash", "-c", f"ls -- {path_typed(word)}; stat -c %n {path_typed(word)}"],
        cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip
    assert said.stderr == b"", "no option of `stat`, which takes no `--`"


# -- files and mounts --------------------------------------------------------------------------


@pytest.mark.parametrize("word", [*WORDS.values(), NO_TEXT], ids=[*WORDS, "no-text"])
def test_run_files_have_any_name(tmp_path: Path, word: str) -> None:
    path = write_miniature(tmp_path / word)
    with RunFile.read(path) as run:
        assert run.finished()
    assert [one.name for one in tmp_path.iterdir()] == [word]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_mounts_have_any_name(tmp_path: Path) -> None:
    """In a namespace of their own: the machine's stay as they are."""
    table = tmp_path / "mounts"
    places = []
    for word in (*WORDS.values(), NO_TEXT):
        place = tmp_path / word
        place.mkdir()
        places.append(str(place))
    script = 'for place in "$@"; do mount -t tmpfs none "$place"; done; cat /proc/mounts > "$OUT"'
    subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *places],
        env=os.environ | {"OUT": str(table)}, check=True,
    )  # fmt: skip
    found = [place for _, place, kind, _ in mounts(table) if kind == "tmpfs"]
    assert sorted(set(places) - set(found)) == []
    assert file_system(Path("/proc"))["type"] == "proc"


@words
def test_fstab_holds_any_place(word: str) -> None:
    if not word.isprintable():
        return  # refused as a place for a mount
    (found,) = mounts_of(f"/dev/x {_in_fstab(f'/m/{word}')} ext4 noatime 0 2\n")
    assert found[1] == f"/m/{word}"


def mounts_of(text: str) -> Iterator[tuple[str, str, str, str]]:
    read, write = os.pipe()
    os.write(write, text.encode())
    os.close(write)
    with os.fdopen(read, "rb") as handle:
        yield from mounts(Path(f"/proc/self/fd/{handle.fileno()}"))


# -- fio ---------------------------------------------------------------------------------------


def test_fio_works_in_our_folder_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All words at once, each the name of a folder within the one before."""
    monkeypatch.setattr(fio, "WAL_BYTES", 1 << 20)
    path = tmp_path.joinpath(*WORDS.values(), NO_TEXT)
    path.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with own_folder(path) as folder, own_folder(tmp_path / "a:b") as other:
        grounds = [fio.Ground(fio.find_fio(), one, 2 << 20, direct=False)
                   for one in (folder, other)]  # fmt: skip
        for ground in grounds:
            assert fio.write_files(ground) > 0
            assert (ground.data.stat().st_size, ground.wal.stat().st_size) == (2 << 20, 1 << 20)
        assert fio.measure(grounds[0], "random read", 1, 1, 1, 1).per_s > 0
        assert fio.measure_alone(grounds[0], 1, 1).per_s > 0
        assert all(rate > 0 for rate in fio.measure_together(grounds, 1, 1, 1, 1))
        assert len(list(folder.iterdir())) == len(("in-use", "data", "wal", "path0", "path1",
                                                   "fio.json"))  # fmt: skip
    assert sorted(tmp_path.rglob("*")) == before


# -- servers -----------------------------------------------------------------------------------


@words
def test_libpq_reads_a_conninfo_as_it_was_meant(word: str) -> None:
    meant = Connection("/nowhere", 5432, f"u{word}", f"d{word}", f"p{word}")
    read = resolve(_conninfo(meant))
    assert (read.user, read.database) == (meant.user, meant.database)
    assert "password" not in _conninfo(meant)
    assert _secrets(meant) == {"PGPASSWORD": meant.password}


@pytest.mark.wide
@pytest.mark.cluster
@pytest.mark.parametrize("name", ["embedded-18", pytest.param("debian-15", marks=pytest.mark.long)])
def test_servers_hold_any_setting_and_any_database(name: str, tmp_path: Path) -> None:
    origin = Origin(OriginKind.PLAN, "of this test")
    with cluster_apart(name, "socket") as cluster:
        settings = [
            Setting(f"pgdyno.h{number}", word, origin)
            for number, word in enumerate(ENDS.values())
            if "\n" not in word  # refused with the plan: a file of settings has lines
        ]
        cluster.stop(clean=True)
        cluster.start(settings)
        with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
            for setting in settings:
                row = session.execute("SELECT current_setting(%s)", (setting.name,)).fetchone()
                assert row == (setting.value,)
            names = [word[:50] for word in ENDS.values()]
            for word in names:
                quoted = sql.Identifier(word)
                session.execute(sql.SQL("CREATE DATABASE {} STRATEGY wal_log").format(quoted))
        _check_pgbench(cluster, names, tmp_path)
        _check_lists(cluster, names)


def _check_pgbench(cluster: Cluster, names: list[str], folder: Path) -> None:
    program = cluster._binaries.program("pgbench")
    for word in names:
        digest = hashlib.md5(word.encode(), usedforsecurity=False).hexdigest()
        script = folder / "script.sql"
        script.write_text(f"SELECT 1 / (md5(current_database()) = '{digest}')::int;\n")
        conninfo = _conninfo(cluster.connection().to(word))
        done = subprocess.run(
            [program, "-n", "-t", "1", "-f", script, conninfo],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        assert "number of transactions actually processed: 1/1" in done.stdout, done.stderr


def _check_lists(cluster: Cluster, names: list[str]) -> None:
    """A list of settings of a database is a list, whatever its items are called."""
    origin = Origin(OriginKind.PLAN, "of this test")
    with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
        for word in names:
            session.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(word)))
            quoted = word.replace('"', '""')
            setting = Setting("search_path", f'"{quoted}", public', origin)
            session.execute(
                sql.SQL("ALTER DATABASE postgres SET search_path = {}").format(_value_of(setting))
            )
            with psycopg.connect(**cluster.connection().arguments()) as again:
                row = again.execute("SELECT current_schemas(false)").fetchone()
            assert row == ([word, "public"],)
