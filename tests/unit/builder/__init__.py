"""Tests of builds: recipes, sources, the shelf, the steps."""
