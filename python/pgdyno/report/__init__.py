"""Reports of a run file: a page, Markdown, JSON, the terminal. They read, and never measure."""
