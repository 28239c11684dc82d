"""Tests of `pgdyno.guard` that need no server."""
