"""A library that is compiled here and preloaded into servers, told what to do by words in a file.

The words lie in a file that the server's user can write, since the server counts there; so it is
read and written by position, and never mapped: whoever cuts it short makes a read fail, no signal.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from pgdyno.folders import failing, owner_of, scratch
from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser, run

_LIBRARY, _WORDS = "library.so", "words"
_WORD = struct.Struct("=Q")
_COMPILE_S = 60.0
_ABOVE, _PREFIX = Path("/tmp"), "pgdyno-preloaded-"  # noqa: S108  folders of ours are made in it


@dataclass(frozen=True, slots=True)
class Preloaded:
    """The library, and its words while they are held open."""

    library: Path
    words: Path
    _handle: int

    def put(self, word: int, value: int) -> None:
        """Set a word.

        Raises:
            TargetError: The file cannot be written.
        """
        self.put_bytes(word, _WORD.pack(value))

    def put_bytes(self, word: int, value: bytes) -> None:
        """Set words from one on.

        Raises:
            TargetError: The file cannot be written.
        """
        with failing(f"write {self.words}"):
            os.pwrite(self._handle, value, _WORD.size * word)

    def get(self, word: int) -> int:
        """Read a word.

        Raises:
            TargetError: The file was cut short, or cannot be read.
        """
        with failing(f"read {self.words}"):
            found = os.pread(self._handle, _WORD.size, _WORD.size * word)
        if len(found) != _WORD.size:
            raise TargetError(f"{self.words} was cut short by somebody else while it was in use")
        return int(_WORD.unpack(found)[0])

    def require_loaded(self, word: int, what: str) -> None:
        """Refuse a server that runs without the library.

        Args:
            word: Counts the programs that have it.
            what: The library does, in the third person.

        Raises:
            TargetError: None has it, or the words cannot be read.
        """
        if self.get(word) == 0:
            raise TargetError(
                f"no process of the server had the library that {what}",
                "A server that is linked statically takes none, nor does one whose /tmp is noexec.",
            )


def require_compiler() -> str:
    """The C compiler of this machine.

    Raises:
        TargetError: There is none.
    """
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name):
            return found
    raise TargetError("there is no C compiler", "Install one, e.g. the package gcc.")


@contextmanager
def preloaded(sources: Sequence[Traversable], words: int, user: OsUser) -> Iterator[Preloaded]:
    """A library, compiled for this machine, while servers run that have it.

    Args:
        sources: Files of C, and what they include.
        words: How many words it has.
        user: Who runs the servers, and so may write the words.

    Raises:
        TargetError: There is no C compiler, or it failed.
    """
    library = _compiled(require_compiler(), tuple((one.name, one.read_text()) for one in sources))
    with scratch(_ABOVE, _PREFIX) as folder:
        with failing(f"write {folder.path / _LIBRARY}"):
            how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(_LIBRARY, how, 0o600, dir_fd=folder.handle), "wb") as file:
                file.write(library)
            # Whatever our umask is, the server's user has to read it.
            os.chmod(_LIBRARY, 0o755, dir_fd=folder.handle)  # noqa: S103
        folder.write(_WORDS, "\0" * (_WORD.size * words), 0o600, owner_of(user))
        with failing(f"open {folder.path / _WORDS}"):
            how = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(_WORDS, how, dir_fd=folder.handle)
        try:
            yield Preloaded(folder.path / _LIBRARY, folder.path / _WORDS, handle)
        finally:
            os.close(handle)


@cache
def _compiled(compiler: str, sources: tuple[tuple[str, str], ...]) -> bytes:
    """A library, compiled once in a process: a drill preloads the same into each of its loads.

    Args:
        compiler: Of C.
        sources: Names and texts of its files.

    Raises:
        TargetError: The compiler failed.
    """
    with scratch(_ABOVE, _PREFIX) as folder:
        for name, text in sources:
            folder.write(name, text)
        units = sorted(name for name, _ in sources if name.endswith(".c"))
        run(
            [compiler, "-O2", "-fPIC", "-shared", "-o", _LIBRARY, *units, "-ldl", "-lpthread"],
            folder=folder.handle, timeout_s=_COMPILE_S,
        )  # fmt: skip
        with failing(f"read {folder.path / _LIBRARY}"):
            how = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(_LIBRARY, how, dir_fd=folder.handle), "rb") as file:
                return file.read()
