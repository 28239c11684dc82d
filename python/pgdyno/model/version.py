"""This pgdyno's version; `pyproject.toml` and `Cargo.toml` have the same, which a test holds."""

VERSION = "0.1.0"
