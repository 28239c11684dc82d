"""Certificates for tests, made by the `openssl` program as an administrator would."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pgdyno.shell import postgres_user

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, in PEM files."""

    crt: Path
    key: Path


class Authority:
    """Signs certificates in a folder of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.root = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
        _openssl(
            "req", "-x509", *_KEY, "-subj", f"/CN=authority {name}", "-days", "2",
            "-keyout", self.root.key, "-out", self.root.crt,
        )  # fmt: skip

    def issue(self, name: str, names: str) -> Certificate:
        """A certificate for `names`, as openssl writes them: `DNS:localhost,IP:127.0.0.1`.

        Without names it is one of X.509 version 1, as in PostgreSQL's manual.
        """
        made = Certificate(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\n")
        _openssl("req", *_KEY, "-subj", f"/CN={name}", "-keyout", made.key, "-out", request)
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.root.crt, "-CAkey", self.root.key,
            "-CAcreateserial", "-days", "2", "-out", made.crt,
            *(("-extfile", extensions) if names else ()),
        )  # fmt: skip
        return made


def give_to_server(certificate: Certificate, data: Path) -> None:
    """Put a certificate where a server reads it: `server.crt` and `server.key`."""
    user = postgres_user()
    for source, name in ((certificate.crt, "server.crt"), (certificate.key, "server.key")):
        target = data / name
        shutil.copyfile(source, target)
        target.chmod(0o600)
        if user.is_other:
            shutil.chown(target, user.uid, user.gid)


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
