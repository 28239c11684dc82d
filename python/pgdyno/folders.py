"""Folders held open, and files in them: marked, without links, written whole or not at all.

A folder is opened once (`access.open_folder`), and what is done in it goes by its descriptor:
nothing here follows a link in it, whoever else may write there. What already lies there is judged
by what was opened, never by its name. As root that is the rule for every folder that another user
can change; what takes more than a few calls is done by a child with that user's rights.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from pgdyno.access import is_closed, open_folder, require_unmounted, trusted_users, user_name
from pgdyno.locks import locked_or_closed, try_lock
from pgdyno.model.errors import TargetError
from pgdyno.model.system_errors import reason
from pgdyno.shell import OsUser, run

MARK = ".pgdyno"
_TEXT_BYTES_MAX = 16 << 20
_REMOVE_S = 36_000
_AS_IT_WAS = "surrogateescape"  # what was read so, in whatever encoding, is written as it was
_PATIENCE_S = 2.0  # making a folder takes no time
_FRESH = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Owner(NamedTuple):
    """Whose a new file or folder becomes."""

    uid: int
    gid: int


def owner_of(user: OsUser) -> Owner | None:
    """The owner of what is made for a user; None: it stays ours."""
    return Owner(user.uid, user.gid) if user.is_other else None


class Folder:
    """A folder held open. Close it, or use it in a `with`."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path = path
        self.handle = handle

    @classmethod
    def hold(cls, path: Path, hint: str | None = None) -> Self:
        """An existing folder; `hint` says what to name where there is none.

        Raises:
            TargetError: It is none, is closed to us, or a stranger's link is on the way.
        """
        with failing(f"open folder {path}", hint):
            return cls(path, open_folder(path))

    @classmethod
    def made(cls, path: Path) -> Self:
        """A folder that is made where it is missing, with those above it."""
        with failing(f"make folder {path}"):
            try:
                return cls(path, open_folder(path))
            except FileNotFoundError:
                pass
            with cls.made(path.parent) as above, suppress(FileExistsError):
                os.mkdir(path.name, 0o755, dir_fd=above.handle)
            return cls(path, open_folder(path))

    def again(self) -> Folder:
        """The same folder, held a second time; names above it are not looked at."""
        return Folder(self.path, os.dup(self.handle))

    def close(self) -> None:
        """Release it; a second time does nothing."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what it is ---------------------------------------------------------------------------

    @property
    def facts(self) -> os.stat_result:
        """Of the folder itself."""
        return os.fstat(self.handle)

    def names(self) -> list[str]:
        """What lies in it, in order."""
        with failing(f"read folder {self.path}"):
            return sorted(os.listdir(self.handle))

    def has(self, name: str) -> bool:
        """Whether something lies there under a name, be it a link to nowhere."""
        try:
            os.lstat(name, dir_fd=self.handle)
        except FileNotFoundError:
            return False
        return True

    def require_closed(self) -> None:
        """As root, refuse a folder that somebody else can change.

        Raises:
            TargetError: Another user owns it, or everybody may write there.
        """
        facts = self.facts
        if os.geteuid() != 0 or is_closed(facts, sticky_holds=False):
            return
        who = user_name(facts.st_uid)
        whose = f"belongs to user {who}" if facts.st_uid not in trusted_users() else "is open"
        raise TargetError(
            f"folder {self.path} {whose} (mode {stat.S_IMODE(facts.st_mode):03o}), so that others"
            " than root can change it",
            "As root, name a folder that only root can change, or run pgdyno as that user.",
        )

    # -- folders in it ------------------------------------------------------------------------

    def into(self, name: str) -> Folder:
        """A folder in it.

        Raises:
            TargetError: It is missing, a link, or no folder.
        """
        how = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        with failing(f"open folder {self.path / name}"):
            return Folder(self.path / name, os.open(name, how, dir_fd=self.handle))

    def make(self, name: str, mode: int = 0o755, owner: Owner | None = None) -> Folder:
        """A new folder in it.

        Raises:
            TargetError: Something of that name is there, or it cannot be made.
        """
        with failing(f"make folder {self.path / name}"):
            os.mkdir(name, 0o700, dir_fd=self.handle)
        made = self.into(name)
        try:
            if made.facts.st_uid != os.geteuid() or made.names():
                raise TargetError(f"folder {made.path} is another one than was just made")
            if owner is not None:
                os.fchown(made.handle, owner.uid, owner.gid)
            os.fchmod(made.handle, mode)
        except BaseException:
            made.close()
            raise
        return made

    def appear(self, name: str) -> Folder:
        """A new folder in somebody else's, which has its name only once it has its mark.

        Meanwhile it has a passing one. What a killed pgdyno left under that is removed: a folder of
        ours, empty or with a mark alone.

        Raises:
            TargetError: Something of either name is there that is no such folder.
        """
        passing = _passing(name)
        with _alone(self.path) as alone:
            if self.has(passing):
                with self.into(passing) as left:
                    bare = left.names() == [] or (left.names() == [MARK] and left.marked())
                    ours = left.facts.st_uid == os.geteuid() and bare
                    if not (alone and ours):
                        raise TargetError(
                            f"{left.path} is there already, and may be somebody else's",
                            "Remove it yourself, or name another folder.",
                        )
                self.remove_folder(passing)
            made = self.make(passing)
            try:
                made.mark(name)
                self.rename(passing, name)
            except BaseException:  # a full disk, for one
                made.close()
                self.remove_folder(passing)
                raise
        made.path = self.path / name
        return made

    def disappear(self, name: str) -> None:
        """Remove a folder that `appear` made; a missing one is fine.

        Before it loses its mark it loses its name: should we be killed in between, what is left is
        removed by the next one that appears.

        Raises:
            TargetError: Something in it cannot be removed.
        """
        if not self.has(name):
            return
        with _alone(self.path) as alone:
            with self.into(name) as inner:
                inner.clear(but=MARK)
            if alone and not self.has(passing := _passing(name)):
                self.rename(name, passing)
                name = passing
            self.remove_folder(name)

    def remove_folder(self, name: str) -> None:
        """Remove a folder in it with everything below; a missing one is fine.

        What lies in a folder of another user is removed with that user's rights.

        Raises:
            TargetError: It is not a folder, something is mounted in it, or cannot be removed.
        """
        if not self.has(name):
            return
        with self.into(name) as inner:
            require_unmounted(inner.handle, itself=True)
            facts = inner.facts
            if os.geteuid() == 0 and facts.st_uid != 0:
                user = OsUser(user_name(facts.st_uid), facts.st_uid, facts.st_gid)
                run(["find", ".", "-xdev", "-mindepth", "1", "-delete"], user=user,
                    timeout_s=_REMOVE_S, folder=inner.handle)  # fmt: skip
            else:
                inner.clear()
        with failing(f"remove folder {self.path / name}"):
            os.rmdir(name, dir_fd=self.handle)

    def clear(self, but: str | None = None) -> None:
        """Remove everything in it, its mark last: should we be killed, the rest is still ours.

        Raises:
            TargetError: As `remove_folder`.
        """
        require_unmounted(self.handle, itself=False)
        for name in sorted(self.names(), key=lambda name: name == MARK):
            if name == but:
                continue
            if stat.S_ISDIR(os.lstat(name, dir_fd=self.handle).st_mode):
                self.remove_folder(name)
            else:
                self.remove(name)

    # -- files in it --------------------------------------------------------------------------

    def open(self, name: str, owner: int | None = None) -> int:
        """A descriptor to read a file; the owner must be this one or a trusted user.

        Raises:
            TargetError: It is missing, a link, no regular file, or somebody else's.
        """
        handle = self._open_regular(name)
        if (uid := os.fstat(handle).st_uid) in trusted_users() or uid == owner:
            return handle
        os.close(handle)
        raise TargetError(f"{self.path / name} belongs to user {user_name(uid)}, and is not read")

    def open_given(self, name: str) -> int:
        """The same in a folder that a person named, whoever has it.

        As root, no file that another user may have put there by a link, be it a hard one: then
        what only root can read would be read for that user.

        Raises:
            TargetError: It is missing, a link, no regular file, or may be such a link.
        """
        handle = self._open_regular(name)
        facts, whose = os.fstat(handle), self.facts
        if os.geteuid() != 0 or is_closed(whose, sticky_holds=False):
            return handle
        ours = whose.st_uid in trusted_users()
        theirs = not ours and facts.st_uid == whose.st_uid
        # What has one name was never linked, and what all may read is no secret if it was moved.
        if theirs or (facts.st_nlink == 1 and (ours or facts.st_mode & stat.S_IROTH)):
            return handle
        os.close(handle)
        raise TargetError(
            f"{self.path / name} belongs to user {user_name(facts.st_uid)}, and others than root"
            f" can change folder {self.path}",
            "As root, name a copy in a folder that only root can change, or of one user alone.",
        )

    def _open_regular(self, name: str) -> int:
        how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with failing(f"read {self.path / name}"):
            handle = os.open(name, how, dir_fd=self.handle)
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
        os.close(handle)
        raise TargetError(f"{self.path / name} is not a regular file, and is not read")

    def read(self, name: str, owner: int | None = None, most: int = _TEXT_BYTES_MAX) -> str:
        """The text of a file, as `open`.

        Raises:
            TargetError: As `open`; or it is longer than `most` bytes.
        """
        with os.fdopen(self.open(name, owner), "rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise TargetError(f"{self.path / name} is longer than {most} bytes")
        return data.decode(errors="replace")

    def write(self, name: str, text: str, mode: int = 0o644, owner: Owner | None = None) -> None:
        """Put a file there, whole; what had its name before is replaced, a link by itself.

        Raises:
            TargetError: It cannot be written.
        """
        fresh = f".{secrets.token_hex(8)}.new"
        with failing(f"write {self.path / name}"):
            handle = os.open(fresh, _FRESH | os.O_WRONLY, 0o600, dir_fd=self.handle)
            try:
                with os.fdopen(handle, "w", encoding="utf-8", errors=_AS_IT_WAS) as file:
                    file.write(text)
                    file.flush()
                    os.fsync(handle)
                    os.fchmod(handle, mode)
                    if owner is not None:
                        os.fchown(handle, owner.uid, owner.gid)
                os.rename(fresh, name, src_dir_fd=self.handle, dst_dir_fd=self.handle)
            except BaseException:
                with suppress(OSError):
                    os.unlink(fresh, dir_fd=self.handle)
                raise

    def log(self, name: str) -> int:
        """A descriptor of a file of ours to append to; made where it is missing.

        Raises:
            TargetError: What is there is a link, no regular file or not ours.
        """
        how = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with failing(f"open {self.path / name}"):
            handle = os.open(name, how, 0o600, dir_fd=self.handle)
        facts = os.fstat(handle)
        if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid():
            return handle
        os.close(handle)
        raise TargetError(f"{self.path / name} is not a file of ours")

    def remove(self, name: str) -> None:
        """Remove a file or a link; a missing one is fine."""
        with failing(f"remove {self.path / name}"), suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.handle)

    def rename(self, old: str, new: str) -> None:
        """Give something in it another name."""
        with failing(f"rename {self.path / old} to {new}"):
            os.rename(old, new, src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def sync(self) -> None:
        """Wait until the names in it are on the disk."""
        os.fsync(self.handle)

    # -- whose it is --------------------------------------------------------------------------

    def mark(self, what: str) -> None:
        """Mark a folder as pgdyno's while it is empty.

        Raises:
            TargetError: Something is in it already that is not a mark of ours.
        """
        if not self.marked():
            if set(self.names()) - {MARK}:
                raise TargetError(f"folder {self.path} is not empty, and not marked as pgdyno's")
            self._put_mark(what)

    def _put_mark(self, what: str) -> None:
        with failing(f"mark folder {self.path}"), suppress(FileExistsError):
            handle = os.open(MARK, _FRESH | os.O_WRONLY, 0o644, dir_fd=self.handle)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"pgdyno {what}\n")
        if not self.marked():
            raise TargetError(f"{self.path / MARK} is not a mark of ours")

    def marked(self) -> bool:
        """Whether it carries a mark of ours: a regular file that this user, or root, made."""
        try:
            facts = os.lstat(MARK, dir_fd=self.handle)
        except FileNotFoundError:
            return False
        return stat.S_ISREG(facts.st_mode) and facts.st_uid in trusted_users()

    def lock(self, name: str) -> int | None:
        """Take a lock on a file in it; None: another process has it.

        Returns:
            The descriptor that holds the lock until it is closed.

        Raises:
            TargetError: What has the file's name is a link, or not ours.
        """
        return locked_or_closed(self.log(name))


def write_file(path: Path, text: str) -> None:
    """Put a file at a path, whole, its folder made where it is missing.

    Raises:
        TargetError: It cannot be written.
    """
    with Folder.made(path.parent) as folder:
        folder.write(path.name, text)


@contextmanager
def scratch(above: Path, prefix: str, *, sole: bool = False) -> Iterator[Folder]:
    """A folder for a while: marked, locked, and removed in any case.

    It is ours; others may enter it, and write in no more than the folders that are made in it for
    them. Those that killed processes of ours left below `above` go when the next one comes.

    Raises:
        TargetError: It cannot be made; or it is to be the `sole` one, and another is held.
    """
    with Folder.hold(above) as outside:
        name = f"{prefix}{secrets.token_hex(6)}"
        with _alone(above) as alone:
            if _sweep(outside, prefix, alone) and sole:
                raise TargetError(f"another pgdyno works in {above}", "Wait for it, or stop it.")
            inner = outside.make(name)
            try:
                fcntl.flock(inner.handle, fcntl.LOCK_EX)
                inner.mark("scratch")
            except BaseException:  # a full disk, for one
                inner.close()
                outside.remove_folder(name)
                raise
        with inner:
            try:
                yield inner
            finally:
                outside.remove_folder(name)


def _passing(name: str) -> str:
    """What a folder is called while it has no mark."""
    return f".{name}.new"


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Meanwhile, no other pgdyno makes a folder there; tells whether that could be had."""
    handle = open_folder(path)  # opened apart, since a lock is let go with what was opened
    try:
        yield _takes(handle, _PATIENCE_S)
    finally:
        os.close(handle)


def _takes(handle: int, patience_s: float = 0.0) -> bool:
    try:
        return try_lock(handle, patience_s)
    except OSError:  # a file system without locks
        return False


def _sweep(outside: Folder, prefix: str, alone: bool) -> bool:
    """Remove what carries our prefix and mark and is held by nobody; tells whether some is."""
    held = False
    for name in outside.names():
        if not name.startswith(prefix):
            continue
        try:
            left = outside.into(name)
        except TargetError:
            continue  # a link, or gone meanwhile
        with left:
            if left.marked():
                if takes := _takes(left.handle):
                    outside.remove_folder(name)
                held |= not takes
            # One that is held is being removed by whoever made it, its mark already gone.
            elif alone and left.facts.st_uid == os.geteuid() and _takes(left.handle):
                with suppress(OSError):  # an empty one was left before it had its mark
                    os.rmdir(name, dir_fd=outside.handle)
    return held


@contextmanager
def failing(what: str, hint: str | None = None) -> Iterator[None]:
    """Let an error of the system say what was tried.

    Raises:
        TargetError: That, the system's reason, and where a name leads to nothing the hint.
    """
    try:
        yield
    except OSError as error:
        nowhere = isinstance(error, FileNotFoundError | NotADirectoryError)
        raise TargetError(f"{what}: {reason(error)}", hint if nowhere else None) from error
