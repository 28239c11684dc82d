"""Names what limits a stage, from the facts of its windows; a file for each class of limits."""
