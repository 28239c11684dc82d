"""From a run file to facts: what was found, how sure it is, and what speaks against it."""
