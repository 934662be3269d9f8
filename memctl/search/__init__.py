"""Question to hits, hits to context and answer.

Reads snapshots and never writes; knows nothing of how documents came in or of who is asking.
"""
