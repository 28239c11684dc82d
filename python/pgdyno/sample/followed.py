"""Processes or threads that come and go, and what they used together, which only grows.

What one used until it was last seen stays when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.process_files import descriptors_to_keep

Used = tuple[float, float]


class Followed:
    """Each by a file of its own, which tells what it used so far.

    Args:
        parse: Two figures that such a file tells.
    """

    def __init__(self, parse: Callable[[bytes], Used]) -> None:
        self._parse = parse
        self._keep = descriptors_to_keep()
        self._files: dict[str, KernelFile | None] = {}  # None: too many are open
        self._used: dict[str, Used] = {}  # by those that are there
        self._of_ended: Used = (0.0, 0.0)
        self.ended: set[str] = set()
        self.unseen: set[str] = set()  # that were gone before they were ever seen

    @property
    def there(self) -> int:
        """How many there are."""
        return len(self._files)

    @property
    def used(self) -> Used:
        """What all used together until they were last seen."""
        first, second = map(sum, zip(self._of_ended, *self._used.values(), strict=True))
        return first, second

    def look(self, paths: Iterable[str]) -> None:
        """Read those that are known, and meet others.

        Args:
            paths: Of the files of those that are there; the path of an ended one is another's.

        Raises:
            PermissionError: Of one of them it is not ours to know.
        """
        for path, file in list(self._files.items()):
            try:
                self._used[path] = self._read(path, file)
            except OSError as error:
                _require_gone(path, error)
                self._end(path)
        for path in paths:
            if path not in self._files:
                self._meet(path)

    def _meet(self, path: str) -> None:
        try:
            file = KernelFile(path)
            self._used[path] = self._parse(file.line())
        except OSError as error:
            _require_gone(path, error)
            self.unseen.add(path)
            return
        self._files[path] = file if len(self._files) < self._keep else None

    def _read(self, path: str, file: KernelFile | None) -> Used:
        return self._parse((file or KernelFile(path)).line())

    def _end(self, path: str) -> None:
        del self._files[path]
        first, second = self._used.pop(path)
        self._of_ended = self._of_ended[0] + first, self._of_ended[1] + second
        self.ended.add(path)


def _require_gone(path: str, error: OSError) -> None:
    if isinstance(error, PermissionError):
        raise PermissionError(f"{path} is not ours to read") from None
