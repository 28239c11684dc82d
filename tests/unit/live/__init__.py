"""Tests of `pgdyno.live` that need no process."""
