"""Tests; mirrors python/pgdyno."""
