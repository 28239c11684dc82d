"""Fills a database with rows by COPY, and checks that it is consistent."""
