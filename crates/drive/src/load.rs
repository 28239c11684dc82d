//! Fills a database.
