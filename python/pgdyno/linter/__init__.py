"""Reads configuration files and names what is gone, without effect, or dangerous in them."""

from pgdyno.linter.check import check
from pgdyno.linter.finding import Finding, Severity
from pgdyno.linter.source import KINDS, STANDARD_INPUT, Assignment, Kind, Source, read_source
from pgdyno.linter.system import System

__all__ = [
    "KINDS",
    "STANDARD_INPUT",
    "Assignment",
    "Finding",
    "Kind",
    "Severity",
    "Source",
    "System",
    "check",
    "read_source",
]
