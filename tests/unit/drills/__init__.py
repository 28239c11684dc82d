"""Tests of drills without a server."""
