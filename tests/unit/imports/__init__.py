"""Importers of other tools' output, on samples."""
