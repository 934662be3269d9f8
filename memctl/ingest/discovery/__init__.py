"""Finding what is to be ingested:

paths, folders, streams, JSON lines, inboxes. Never reads a document's text.
"""
