"""The machine under the database: what it is, what could be better, and changes that are undone."""
