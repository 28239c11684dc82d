"""The command line: read, resolve, call one function, print. No logic lives here."""
