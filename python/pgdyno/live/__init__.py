"""A run as it goes on: a page for a browser, and figures for Prometheus.

    run -> Audience =pipe=> worker: Watched -> page (SSE), metrics
                              |
                              `- the run file, read without a lock: analysis.run, as the report does

The worker is a process of its own, so that neither a browser nor an analysis shares a processor's
turn with what measures. It talks to nobody but its viewers, and never to a server under test.
"""
