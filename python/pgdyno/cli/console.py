"""Where the command line prints: results to standard output, everything said of them to error."""

from __future__ import annotations

from rich.console import Console

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)


def say_error(fact: str, hint: str | None) -> None:
    """Print a failure: the fact, then the hint."""
    stderr.print(f"[bold red]error:[/] {_plain(fact)}")
    if hint:
        stderr.print(f"[bold]hint:[/] {_plain(hint)}")


def _plain(text: str) -> str:
    return text.replace("[", "\\[")
