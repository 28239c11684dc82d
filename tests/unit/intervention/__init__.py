"""Tests of interventions, without a server."""
