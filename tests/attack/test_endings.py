"""How commands end when the machine does not go along: with an error, a code, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pgdyno.cli.app import Defect
from pgdyno.model.system_errors import SystemFailure
from tests.waiting import DEADLINE_S

_RAISES = """
import sys
from pgdyno.cli import app
def fail(**_):
    raise {error}
app.app = fail
sys.argv = ["pgdyno", "run", "x.toml", *sys.argv[1:]]
app.main()
"""

# Ctrl-C while a module is imported: the command line itself, or that of a command.
_STRUCK = """
import sys
class Struck:
    def find_spec(name, *_):
        if name == "{module}":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Struck)
sys.argv = ["pgdyno", "lint", "x.conf"]
from pgdyno.cli.entry import main
main()
"""


def pgdyno(*words: str, out: str) -> subprocess.CompletedProcess[str]:
    with Path(out).open("w") as sink:
        return subprocess.run(
            [sys.executable, "-m", "pgdyno", *words], stdout=sink, stderr=subprocess.PIPE,
            text=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip


def raising(
    error: str, folder: Path, *words: str, **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _RAISES.format(error=error), *words], capture_output=True, text=True,
        check=False, timeout=DEADLINE_S,
        env={"TMPDIR": str(folder), "PATH": "/usr/bin:/bin", **environ},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("typer", "Nothing was begun yet."),
        ("pgdyno.cli.lint", "Nothing of it is still running."),
    ],
)
def test_a_stop_in_the_first_second_is_told(module: str, hint: str) -> None:
    """It was a traceback of imports, or no word at all."""
    done = subprocess.run(
        [sys.executable, "-c", _STRUCK.format(module=module)], capture_output=True, text=True,
        check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"error: stopped\nhint: {hint}\n"


@pytest.mark.parametrize(
    "words",
    [("knobs",), *(pytest.param(one, marks=pytest.mark.wide)
                   for one in (("--help",), ("lint", "/proc/cmdline")))],
)  # fmt: skip
def test_output_to_a_full_device_is_an_error(words: tuple[str, ...]) -> None:
    done = pgdyno(*words, out="/dev/full")

    assert done.returncode == SystemFailure.exit_code
    assert "error: " in done.stderr
    assert "no space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_stop_before_a_command_is_found_is_told(tmp_path: Path) -> None:
    done = raising("KeyboardInterrupt()", tmp_path)

    assert done.returncode == 130
    assert done.stderr == "error: stopped\nhint: Nothing of it is still running.\n"


def test_a_failure_of_the_system_is_told_without_a_traceback(tmp_path: Path) -> None:
    done = raising("OSError(28, 'No space left on device', '/srv/x')", tmp_path)

    assert done.returncode == SystemFailure.exit_code
    assert done.stderr.startswith("error: /srv/x: no space left on device\nhint: ")
    assert "Traceback" not in done.stderr


def test_a_defect_leaves_its_traceback_in_a_file(tmp_path: Path) -> None:
    done = raising("KeyError('tuned')", tmp_path)

    assert done.returncode == Defect.exit_code
    assert "pgdyno itself failed: KeyError: 'tuned'" in done.stderr
    assert "Traceback" not in done.stderr
    (report,) = tmp_path.iterdir()
    assert report.name in done.stderr.replace("\n", "")
    assert "KeyError: 'tuned'" in report.read_text()
    assert "Traceback" in report.read_text()


def test_a_defect_is_shown_at_once_where_asked_for(tmp_path: Path) -> None:
    done = raising("KeyError('tuned')", tmp_path, PGDYNO_DEBUG="1")

    assert done.returncode == Defect.exit_code
    assert "Traceback" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "conninfo", ["host=b password='hunter 2' user=u", "postgresql://u:hunter%202@b/d"]
)
@pytest.mark.parametrize("debug", [{}, {"PGDYNO_DEBUG": "1"}], ids=["file", "shown"])
def test_a_defect_that_is_to_be_handed_on_holds_no_password(
    tmp_path: Path, conninfo: str, debug: dict[str, str]
) -> None:
    """Its user is asked to report it, with the file that says what was typed."""
    done = raising(f"KeyError({conninfo!r})", tmp_path, "-d", conninfo, **debug)

    assert done.returncode == Defect.exit_code
    told = done.stderr + "".join(one.read_text() for one in tmp_path.iterdir())
    assert "Traceback" in told
    assert "hunter" not in told
    assert debug or " -d " in told
