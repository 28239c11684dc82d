"""Sets up what is measured: host facts, binaries, clusters, fixtures, and a stage's settings."""
