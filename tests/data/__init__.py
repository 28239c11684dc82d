"""What tests read: saved files, and writers of made-up ones."""
