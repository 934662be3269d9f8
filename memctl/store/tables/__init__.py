"""The tables on disk:

the engine, reading a commit, changing tables in a transaction, indexes and upkeep. Knows nothing
of what the rows mean.
"""
