"""Tests of builds: recipes, sources, kept builds, the steps."""
