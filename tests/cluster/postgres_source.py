"""PostgreSQL's source as Debian has it: fetched from its mirror, into a folder of the tests."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from tests.waiting import DEADLINE_S

PACKAGE = "postgresql-15"
MIRROR = "http://deb.debian.org/debian"
GIVEN = "PGDYNO_TEST_SOURCE"


def postgres_source(folder: Path) -> Path:
    """The tarball of PostgreSQL 15's source.

    The lists of this machine are left as they are: apt gets lists of its own, in the folder. Who
    has no mirror names a tarball in PGDYNO_TEST_SOURCE.
    """
    if given := os.environ.get(GIVEN):
        return Path(given)
    release = platform.freedesktop_os_release()
    assert release["ID"] == "debian", f"no source of {PACKAGE} here: name a tarball in {GIVEN}"
    (folder / "lists" / "partial").mkdir(parents=True)
    sources = folder / "sources.list"
    sources.write_text(f"deb-src {MIRROR} {release['VERSION_CODENAME']} main\n")
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache::SrcPkgCache": "",
        "Dir::Cache::PkgCache": "",
        "APT::Sandbox::User": "",  # it could not write into the folder
    }
    apt = ["apt-get", "-q", *(word for key, value in options.items()
                              for word in ("-o", f"{key}={value}"))]  # fmt: skip
    for command in (["update"], ["source", "--download-only", PACKAGE]):
        done = subprocess.run(
            [*apt, *command],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, (
            f"{' '.join(command)} from {MIRROR} failed (or name a tarball in {GIVEN}):"
            f"\n{done.stdout}\n{done.stderr}"
        )
    (tarball,) = folder.glob("*.orig.tar.*")
    return tarball
