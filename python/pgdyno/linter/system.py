"""For which system files are judged: versions and memory."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class System:
    """What the files are meant for."""

    postgres: int  # major version
    kernel: tuple[int, ...]  # e.g. (6, 18)
    memory_bytes: int
    huge_page_bytes: int = 2 << 20

    def version(self, of: str) -> tuple[int, ...]:
        """That of the kernel, or of PostgreSQL."""
        return self.kernel if of == "kernel" else (self.postgres,)

    def shown(self, of: str) -> str:
        """The same for people."""
        return f"{'Linux' if of == 'kernel' else of} {'.'.join(map(str, self.version(of)))}"
