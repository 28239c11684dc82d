"""pgdyno, a dynamometer for PostgreSQL: staged tuning, measured, with statistics."""

__version__ = "0.1.0"
