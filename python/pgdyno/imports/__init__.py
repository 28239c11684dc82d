"""Results of other tools, read from what they print and write.

`formats` holds an importer a file, found by location; `recognise` chooses one by content; `reading`
streams; `traps` says what is easily read wrong. Nothing here knows a run file or a server.
"""
