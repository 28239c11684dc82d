"""Ways to hosts, one in each module, found by where they lie."""
