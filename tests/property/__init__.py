"""Properties: what holds for every input."""
