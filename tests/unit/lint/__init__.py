"""Tests of the linter."""
