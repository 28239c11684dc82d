"""PostgreSQL compiled from source: a recipe, a content-named build, its logs, training for PGO."""
